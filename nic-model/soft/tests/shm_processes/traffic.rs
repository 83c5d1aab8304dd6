//! Two and three processes: stores, DMA, tripwires, messages, waits that block.

use super::echo::{Client, node};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};

use port::sync::lock;
use soft_nic::shm::ShmNode;

use super::peer::{Held, Peer};
use super::support;

/// A folder that goes with the test. Tests that have one run one after the other: they count what the
/// process has, and use all processors.
pub(crate) struct Folder {
    path: PathBuf,
    _alone: MutexGuard<'static, ()>,
}

impl Folder {
    pub(crate) fn new(test: &str) -> Self {
        static ALONE: Mutex<()> = Mutex::new(());
        let _alone = lock(&ALONE);
        let path = support::folder(test);
        // What a process keeps from its first node on is no leak.
        drop(ShmNode::open_in(&path, None).unwrap());
        while Held::now().threads > 0 {
            std::thread::yield_now();
        }
        std::fs::remove_dir_all(&path).unwrap();
        Self { path, _alone }
    }
}

impl core::ops::Deref for Folder {
    type Target = std::path::Path;

    fn deref(&self) -> &Self::Target {
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// A server that runs.
pub(crate) fn server(folder: &Folder, name: &str, is_careless: bool) -> Peer {
    let server = Peer::start("server", folder, &[name, &is_careless.to_string()]);
    assert_eq!(server.line(), "ready");
    server
}

#[test]
fn two_processes_exchange_blocks_by_every_kind_of_memory() {
    let folder = Folder::new("two");
    let server = server(&folder, "server", false);
    let node = node(&folder, "client");
    let mut clients = [true, false].map(|is_mapped| Client::new(&node, "server", is_mapped, false));
    for _ in 0..1_000 {
        clients.iter_mut().for_each(Client::round);
    }
    server.end();
}

#[test]
fn three_processes_exchange_blocks_with_each_other() {
    let folder = Folder::new("three");
    let (one, two) = (server(&folder, "one", false), server(&folder, "two", false));
    let client = Peer::start("client", &folder, &["three", "one", "500", "false"]);
    let node = node(&folder, "main");
    let mut clients = ["one", "two"].map(|server| Client::new(&node, server, true, false));
    for _ in 0..500 {
        clients.iter_mut().for_each(Client::round);
    }
    assert_eq!([client.line(), client.line()], ["ready", "done"]);
    client.end();
    assert_eq!(one.line(), "lost three");
    drop((clients, node));
    assert_eq!([one.line(), two.line()], ["lost main", "lost main"]);
    one.end();
    two.end();
    let left = std::fs::read_dir(&*folder).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(left.collect::<Vec<_>>(), ["lock"]);
}

#[test]
fn a_process_that_exits_with_open_nodes_leaves_no_socket_behind() {
    let folder = Folder::new("exit");
    let mut leaver = Peer::start("leaver", &folder, &["leaver"]);
    assert_eq!(leaver.line(), "ready");
    assert!(folder.join("leaver.sock").exists());
    leaver.tell("exit");
    while leaver.is_running() {
        std::thread::yield_now();
    }
    assert!(!folder.join("leaver.sock").exists());
    // One that is killed leaves it to the next one, whatever its name.
    let killed = Peer::start("leaver", &folder, &["killed"]);
    assert_eq!(killed.line(), "ready");
    drop(killed);
    assert!(folder.join("killed.sock").exists());
    let _other = node(&folder, "other");
    assert!(!folder.join("killed.sock").exists());
}
