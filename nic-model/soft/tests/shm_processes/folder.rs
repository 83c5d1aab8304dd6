//! Folders in which nodes cannot meet, and processes that must not.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::time::{Duration, Instant};

use port::clan::{ClanPeer, ClanPort};
use rustix::fs::{FlockOperation, flock};
use rustix::process::geteuid;
use soft_nic::shm::ShmNode;

use super::echo::node;
use super::peer::{Peer, Setting, command, next_line, say};
use super::raw;
use super::traffic::Folder;

/// Somebody who is not the superuser.
const NOBODY: u32 = 65_534;

fn error(folder: &Path, name: Option<&str>) -> String {
    ShmNode::open_in(folder, name).map(drop).unwrap_err().to_string()
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Opens a node, and says what came of it.
pub(crate) fn open(setting: &Setting) {
    match ShmNode::open_in(&setting.folder, None) {
        Ok(node) => say(node.name()),
        Err(error) => say(&error.to_string()),
    }
}

/// Holds the lock until it is asked to end.
pub(crate) fn keep_lock(setting: &Setting) {
    let file = fs::File::options().write(true).open(setting.folder.join("lock")).unwrap();
    flock(&file, FlockOperation::LockExclusive).unwrap();
    say("locked");
    next_line();
}

/// Connects to node `node` by hand, and says what it answers.
pub(crate) fn dial(setting: &Setting) {
    let socket = raw::dial(&setting.folder, "node");
    raw::send(&socket, &raw::hello(raw::VERSION, 1, "other"), &[]);
    let (answer, fds) = raw::receive(&socket);
    assert_eq!(fds.len(), 0);
    say(&String::from_utf8_lossy(&answer));
}

/// A socket that looks like that of node `other`.
pub(crate) fn listen(setting: &Setting) {
    let _listener = raw::listener(&setting.folder, "other");
    say("ready");
    next_line();
}

/// This program as another user, from a place where that user may read it.
fn as_nobody(role: &str, folder: &Path) -> Peer {
    let program = folder.with_extension("program");
    if !program.exists() {
        fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    }
    let own = command(role, folder, &["-"]);
    let mut other = std::process::Command::new(&program);
    other.args(own.get_args());
    own.get_envs().for_each(|(name, value)| {
        other.env(name, value.unwrap_or_default());
    });
    Peer::of(other.current_dir("/").uid(NOBODY).gid(NOBODY))
}

#[test]
fn folders_in_which_nodes_cannot_meet_are_refused_with_the_reason() {
    let folder = Folder::new("folders");
    fs::create_dir(&*folder).unwrap();
    let inner = folder.join("inner");
    let link = folder.join("link");
    fs::create_dir(&inner).unwrap();
    symlink(&inner, &link).unwrap();
    let refused = |path: &Path, why: &str| {
        let text = error(path, None);
        assert!(
            text.starts_with(&format!("nodes meet in the folder {}", path.display())),
            "{text}"
        );
        assert!(text.contains(why), "{text}");
    };
    refused(&link, "it is a symbolic link");
    set_mode(&inner, 0o777);
    refused(&inner, "mode 777");
    set_mode(&inner, 0o700);
    refused(&folder.join("no").join("such"), "No such file");
    fs::write(folder.join("file"), "").unwrap();
    refused(&folder.join("file"), "it is no folder");
    if geteuid().is_root() {
        chown(&inner, Some(NOBODY), None).unwrap();
        refused(&inner, "belongs to user 65534");
        // Read-only, to a user whom that holds for.
        set_mode(&inner, 0o500);
        set_mode(&folder, 0o755);
        let text = as_nobody("opener", &inner).line();
        assert!(text.contains("Permission denied"), "{text}");
    } else {
        set_mode(&inner, 0o500);
        refused(&inner, "Permission denied");
        set_mode(&inner, 0o700);
    }
}

#[test]
fn a_full_folder_is_an_error_and_leaves_nothing_behind() {
    let folder = Folder::new("full");
    fs::create_dir(&*folder).unwrap();
    let mount = |program: &str, arguments: &[&str]| {
        let status = std::process::Command::new(program).args(arguments).arg(&*folder).status();
        status.is_ok_and(|status| status.success())
    };
    // Only the superuser may.
    if !mount("mount", &["-t", "tmpfs", "-o", "mode=700,nr_inodes=2", "none"]) {
        return;
    }
    let before = super::peer::Held::now();
    let text = error(&folder, Some("name"));
    assert!(text.contains("No space left"), "{text}");
    before.settle();
    assert!(mount("mount", &["-o", "remount,nr_inodes=20"]));
    drop(node(&folder, "name"));
    assert!(mount("umount", &["-l"]));
}

#[test]
fn a_lock_that_another_process_keeps_is_waited_for_in_bounds() {
    let folder = Folder::new("lock");
    let one = node(&folder, "one");
    let locker = Peer::start("locker", &folder, &["-"]);
    assert_eq!(locker.line(), "locked");
    let start = Instant::now();
    let text = error(&folder, Some("two"));
    assert!(text.contains("another process holds its file `lock`"), "{text}");
    assert!(start.elapsed() >= Duration::from_secs(2));
    // Who is here needs no lock.
    let port = one.port().unwrap();
    assert_eq!(port.discover().unwrap(), Vec::<Vec<u8>>::new());
    locker.end();
    let _two = node(&folder, "two");
}

#[test]
fn another_users_process_is_refused_on_both_sides() {
    // Only the superuser can be somebody else.
    if !geteuid().is_root() {
        return;
    }
    let folder = Folder::new("users");
    let node = node(&folder, "node");
    // As far as the folder goes, anybody may.
    set_mode(&folder, 0o777);
    set_mode(&folder.join("node.sock"), 0o666);
    let dialler = as_nobody("dialler", &folder);
    let text = dialler.line();
    assert!(
        text.starts_with('\u{3}') && text.contains("is of user 65534, not of user 0"),
        "{text}"
    );
    let listener = as_nobody("listener", &folder);
    assert_eq!(listener.line(), "ready");
    let to = ClanPeer { host: b"other".to_vec(), domain: 0 };
    let error = node.port().unwrap().send_message(&to, &[0; 48]).unwrap_err().to_string();
    assert!(
        error.starts_with("node 'other' refuses") && error.contains("is of user 65534"),
        "{error}"
    );
    fs::remove_file(folder.with_extension("program")).unwrap();
}
