//! Nodes of `shm:` in processes of their own: traffic, and what happens when one is killed, stopped,
//! forked, replaced or hostile. The processes are this program, as a role that `SHM_ROLE` names.

mod echo;
mod folder;
mod fork;
mod hostile;
mod kills;
mod limits;
mod peer;
mod raw;
mod stopped;
#[path = "../support/mod.rs"]
mod support;
mod traffic;
mod victim;

/// What this program does as another process. No test otherwise.
#[test]
fn as_a_peer() {
    let Ok(role) = std::env::var("SHM_ROLE") else { return };
    let setting = peer::Setting::of_this_process();
    match role.as_str() {
        "server" => echo::serve(&setting),
        "client" => echo::call(&setting),
        "victim" => victim::run(&setting),
        "forker" => fork::run(&setting),
        "leaver" => fork::leave(&setting),
        "opener" => folder::open(&setting),
        "locker" => folder::keep_lock(&setting),
        "dialler" => folder::dial(&setting),
        "listener" => folder::listen(&setting),
        "limited" => limits::run(&setting),
        _ => panic!("no role {role}"),
    }
}
