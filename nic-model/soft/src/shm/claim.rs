//! Names of nodes: a socket of that name in the run-time folder.
//!
//! A name whose socket nobody answers at is that of a process that died: whoever takes a name next
//! removes such sockets, and any name is free again. Names are taken under the lock of a file, so that
//! no two processes take one. A process that exits with nodes open removes their sockets.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, Once};
use std::time::{Duration, Instant};

use port::address::HOST_ADDRESS_MAX;
use port::own::{self, OwnFd};
use port::sync::{lock, try_lock};
use port::{fork, process, trust};
use rustix::fs::{FlockOperation, flock};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
};

use super::error::{Error, Result};
use super::packet::Socket;

/// Longest wait for the lock, which is held for a moment.
const LOCK_BOUND: Duration = Duration::from_secs(2);
/// Longest wait for a name that another process has.
const ENDING_BOUND: Duration = Duration::from_millis(100);
/// Names that nodes without one get: `node0` and so on.
const NUMBERS: u16 = 1024;
/// Connections that may wait for the service.
const BACKLOG: i32 = 256;

/// A name that this process has.
#[derive(Debug)]
pub(super) struct Claim {
    pub(super) name: String,
    pub(super) listener: Socket,
    path: PathBuf,
}

/// Sockets that this process must remove when it exits, and which of its forked ancestors made them.
static CLAIMED: Mutex<Vec<(PathBuf, u32)>> = Mutex::new(Vec::new());

impl Claim {
    fn new(name: &str, listener: Socket, path: PathBuf) -> Self {
        static AT_EXIT: Once = Once::new();
        // Without the handler a socket is left behind, which whoever takes a name next removes.
        AT_EXIT.call_once(|| {
            let _ = process::at_exit(at_exit);
        });
        let claimed = (path.clone(), fork::generation());
        fork::without_forks(|| lock(&CLAIMED).push(claimed));
        Self { name: name.to_owned(), listener, path }
    }

    /// Frees the name. Nodes that are connected stay connected.
    pub(super) fn release(&self) {
        // No longer this process's to remove, before another one can have made it.
        fork::without_forks(|| lock(&CLAIMED).retain(|(path, _)| *path != self.path));
        if !trust::is_confined() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Removes the sockets of nodes that the program has not closed. While this process runs nobody takes
/// their names, so that they are its own.
extern "C" fn at_exit() {
    if trust::is_confined() {
        return;
    }
    // In a child after fork the lock may be held for good.
    let Some(mut claimed) = try_lock(&CLAIMED) else { return };
    let own = fork::generation();
    for (path, _) in claimed.drain(..).filter(|(_, generation)| *generation == own) {
        let _ = fs::remove_file(path);
    }
}

/// The folder of all nodes of this user: `shm` in the run-time folder.
pub(super) fn folder() -> PathBuf {
    trust::run_time_folder().join("shm")
}

/// Whether this can be the name of a node: 1 to 16 letters, digits, `-`, `_` and `.`, the first one a
/// letter or digit.
pub(super) fn is_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    (1..=HOST_ADDRESS_MAX).contains(&name.len())
        && name.chars().all(allowed)
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
}

/// Where the socket of a name is.
pub(super) fn socket_path(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.sock"))
}

fn packet_socket() -> io::Result<Socket> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Socket::create(|| socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None))
}

/// Connects to the socket of a node.
///
/// # Errors
/// The system's: [`ErrorKind::ConnectionRefused`] or [`ErrorKind::NotFound`] if there is no node,
/// [`ErrorKind::WouldBlock`] if it has no room.
pub(super) fn dial(path: &Path) -> io::Result<Socket> {
    let (socket, address) = (packet_socket()?, SocketAddrUnix::new(path)?);
    connect(&socket, &address)?;
    Ok(socket)
}

/// Makes the folder of the nodes, unless it cannot be trusted.
///
/// # Errors
/// It cannot be used.
pub(super) fn prepare_for_use(folder: &Path) -> Result<()> {
    trust::make_folder(folder).map_err(|why| Error::Folder { folder: folder.to_owned(), why })
}

/// The lock under which names are taken.
#[derive(Debug)]
struct Lock(OwnFd<File>);

impl Drop for Lock {
    fn drop(&mut self) {
        // Not left to `close`: a child that another thread forks meanwhile has the file too.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

fn locked(folder: &Path) -> io::Result<Lock> {
    let path = folder.join("lock");
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    let file = OwnFd::create(|| options.open(path))?;
    let end = Instant::now() + LOCK_BOUND;
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(Lock(file)),
            Err(rustix::io::Errno::AGAIN) if Instant::now() < end => {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(rustix::io::Errno::AGAIN) => {
                let why = "another process holds its file `lock`; it may be stopped";
                return Err(io::Error::new(ErrorKind::TimedOut, why));
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Whether a node answers at a socket.
fn is_taken(path: &Path) -> io::Result<bool> {
    match dial(path) {
        Ok(_) => Ok(true),
        Err(error) => match error.kind() {
            ErrorKind::NotFound | ErrorKind::ConnectionRefused => Ok(false),
            // Its queue is full.
            ErrorKind::WouldBlock => Ok(true),
            _ => Err(error),
        },
    }
}

/// Takes a name, if no node has it.
fn take(folder: &Path, name: &str) -> io::Result<Option<Claim>> {
    let path = socket_path(folder, name);
    if is_taken(&path)? {
        return Ok(None);
    }
    match fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let (listener, address) = (packet_socket()?, SocketAddrUnix::new(&path)?);
    bind(&listener, &address)?;
    let claim = Claim::new(name, listener, path);
    // The folder lets nobody else in; the socket neither.
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    let ready = fs::set_permissions(&claim.path, mode).and_then(|()| {
        listen(&claim.listener, BACKLOG)?;
        Ok(())
    });
    if ready.is_err() {
        claim.release();
    }
    ready.map(|()| Some(claim))
}

/// Removes the sockets of processes that died.
fn sweep(folder: &Path) -> io::Result<()> {
    for (_, path) in sockets(folder)? {
        if matches!(is_taken(&path), Ok(false)) {
            let _ = fs::remove_file(path);
        }
    }
    Ok(())
}

/// The sockets of nodes in a folder, and their names.
fn sockets(folder: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let mut sockets = Vec::new();
    let entries = own::undisturbed(|| Ok::<Vec<_>, io::Error>(fs::read_dir(folder)?.collect()))?;
    for entry in entries {
        let path = entry?.path();
        let is_socket = path.extension().is_some_and(|extension| extension == "sock");
        let name = path.file_stem().and_then(|stem| stem.to_str()).filter(|name| is_name(name));
        if let Some(name) = name.filter(|_| is_socket) {
            sockets.push((name.to_owned(), path));
        }
    }
    Ok(sockets)
}

/// Takes a name in a folder; without one, the first of `node0`, `node1` and so on that is free.
///
/// # Errors
/// The name is no name, or another node has it; all are taken; the folder cannot be used.
pub(super) fn claim(folder: &Path, name: Option<&str>) -> Result<Claim> {
    let in_folder = |why| Error::Folder { folder: folder.to_owned(), why };
    if let Some(name) = name.filter(|name| !is_name(name)) {
        return Err(Error::BadName { name: name.to_owned() });
    }
    trust::make_folder(folder).map_err(in_folder)?;
    let _lock = locked(folder).map_err(in_folder)?;
    sweep(folder).map_err(in_folder)?;
    let numbered = (0..NUMBERS).map(|number| format!("node{number}"));
    let names: Box<dyn Iterator<Item = String>> = match name {
        Some(name) => Box::new(core::iter::once(name.to_owned())),
        None => Box::new(numbered),
    };
    for name in names {
        if let Some(claim) = take(folder, &name).map_err(in_folder)? {
            return Ok(claim);
        }
    }
    // The kernel closes the sockets of a process that ends one by one: its peers may know of its end
    // before its name is free.
    let end = Instant::now() + ENDING_BOUND;
    while let Some(name) = name.filter(|_| Instant::now() < end) {
        std::thread::sleep(Duration::from_millis(1));
        if let Some(claim) = take(folder, name).map_err(in_folder)? {
            return Ok(claim);
        }
    }
    Err(match name {
        Some(name) => Error::NameTaken { name: name.to_owned() },
        None => Error::NoneFree { limit: NUMBERS },
    })
}

/// The names of the nodes that answer now, in order.
///
/// # Errors
/// The folder cannot be used.
pub(super) fn names(folder: &Path) -> Result<Vec<String>> {
    let in_folder = |why| Error::Folder { folder: folder.to_owned(), why };
    let mut names = sockets(folder).map_err(in_folder)?;
    names.retain(|(_, path)| is_taken(path).unwrap_or(false));
    let mut names: Vec<String> = names.into_iter().map(|(name, _)| name).collect();
    names.sort();
    Ok(names)
}
