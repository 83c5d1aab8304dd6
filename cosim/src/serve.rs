//! A simulator that several programs share: NICs on a network, each served as a PCI device over the
//! vfio-user protocol on a UNIX socket (`docs/simulator.md`).
//!
//! | module | what |
//! |---|---|
//! | `engine` | the NICs, in a [`crate::simulation`] |
//! | `host` | memory and interrupts of a NIC's client |
//! | `pci` | configuration space |
//! | `client` | what a client's messages do |
//! | `memory` | memory that a client gave by a descriptor |
//! | `notifier` | its interrupts, which must keep nobody waiting |
//! | `session` | a server whose one client is the caller |
//!
//! One thread handles what clients have sent, runs the nodes a little while they have work, and sleeps
//! when they have none. The notifier's thread only sees to it that writes to eventfds end.

mod client;
mod engine;
mod host;
mod memory;
mod notifier;
mod pci;
mod session;

use std::borrow::Cow;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nic_model::device::Device;
use nic_model::link::Faults;
use nic_regs::limits::PEER_COUNT;
use port::trust;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::simulation::host::IommuFault;
use crate::simulation::network::capture::Capture;

use client::Client;
use engine::Engine;
use notifier::Notifier;
pub use session::Session;

/// Cycles that run between two looks at the clients.
const TURN_CYCLES: u64 = 32;
/// Idle turns after which the server does not give up the processor at each any more: who has not
/// answered by then has nothing to do, and timers are due sooner where other programs compute.
const YIELDED_TURNS: u32 = 64;
/// How long after there was no descriptor for a connection the next one is looked for.
const CROWDED_WAIT: Duration = Duration::from_millis(100);
/// Connections of a NIC that have not said what they want.
const WAITING_MAX: usize = 16;

/// Makes the device of a node.
pub type DeviceFactory = Box<dyn FnMut(u8) -> Box<dyn Device + Send> + Send>;

/// What is served.
pub struct Config {
    /// Nodes, 1 to 64.
    pub nodes: u8,
    /// Cycles from one end of a wire to the other.
    pub latency: u64,
    /// What the wires do to frames.
    pub faults: Faults,
    /// Folder of the sockets; it is made if it is not there, for this user alone.
    pub folder: PathBuf,
    /// Makes the devices, also a new one where an old one does not come out of reset.
    pub device: DeviceFactory,
}

impl core::fmt::Debug for Config {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Config({} nodes at {})", self.nodes, self.folder.display())
    }
}

/// An access of a device to memory that its client did not give, or did not give so.
///
/// The device learns of it as from a root complex (`docs/contract.md` 9): a read fails, a write is lost.
/// The address is reported here, since neither contract nor protocol have a place for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreachable {
    /// Node of the device.
    pub node: u8,
    /// The access; its address is the first that could not be reached, its length that of the whole.
    pub access: IommuFault,
    /// What is the matter.
    pub why: Cow<'static, str>,
}

impl core::fmt::Display for Unreachable {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self { node, access: IommuFault { address, length, write }, why } = self;
        let what = if *write { "write" } else { "read" };
        write!(f, "nic{node}: a {what} of {length} bytes fails at {address:#x}: {why}")
    }
}

/// Served NICs. Dropping it closes all connections and removes the sockets.
pub struct Server {
    engine: Engine,
    listeners: Vec<(UnixListener, PathBuf)>,
    clients: Vec<Client>,
    report: Box<dyn FnMut(&Unreachable) + Send>,
    /// Turns since something happened.
    idle_turns: u32,
    /// There was no descriptor for a connection: none is accepted until then, or until a client
    /// goes.
    crowded: Option<Instant>,
}

impl core::fmt::Debug for Server {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Server({} nodes at cycle {})", self.listeners.len(), self.engine.now())
    }
}

/// An error that says where it happened.
fn at(path: &Path, error: &dyn core::fmt::Display) -> io::Error {
    io::Error::other(format!("{}: {error}", path.display()))
}

/// Makes the folder of the sockets, or checks that it is this user's alone.
fn make_folder(folder: &Path) -> io::Result<()> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.and_then(|()| trust::check_folder(folder)).map_err(|error| at(folder, &error))
}

/// Binds a socket. One that a dead server left behind is replaced.
fn bind(path: &Path) -> io::Result<UnixListener> {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    if is_socket {
        if UnixStream::connect(path).is_ok() {
            return Err(at(path, &"another server runs here: stop it, or choose another --dir"));
        }
        fs::remove_file(path).map_err(|error| at(path, &error))?;
    }
    let listener = UnixListener::bind(path).map_err(|error| at(path, &error))?;
    // Who connects before this is refused by its credentials, as later.
    let mode = fs::set_permissions(path, fs::Permissions::from_mode(0o600));
    mode.and_then(|()| listener.set_nonblocking(true)).map_err(|error| at(path, &error))?;
    Ok(listener)
}

/// Raises this process's limit of open files as far as it may: a client has some 40.
fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // If it stays, clients that find no room are refused.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

impl Server {
    /// A server without sockets.
    fn of(engine: Engine) -> Self {
        let report = Box::new(|_: &Unreachable| {});
        let (listeners, clients) = (Vec::new(), Vec::new());
        Self { engine, listeners, clients, report, idle_turns: 0, crowded: None }
    }

    /// Makes the devices and the sockets `nic0.sock`, `nic1.sock`, ...; and raises this process's
    /// limit of open files, since clients give descriptors.
    ///
    /// # Errors
    /// A number of nodes that cannot be; a folder, a socket or a thread that cannot be had.
    pub fn start(config: Config) -> io::Result<Self> {
        let Config { nodes, latency, faults, folder, device } = config;
        if nodes == 0 || usize::from(nodes) > PEER_COUNT {
            let text = format!("{nodes} nodes: it must be 1 to {PEER_COUNT}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        make_folder(&folder)?;
        raise_file_limit();
        let engine = Engine::new(nodes, latency, &faults, device, &Notifier::start()?);
        // `drop` removes those that are there if one fails.
        let mut server = Self::of(engine);
        for node in 0..nodes {
            let path = folder.join(format!("nic{node}.sock"));
            let listener = bind(&path)?;
            server.listeners.push((listener, path));
        }
        for node in 0..usize::from(nodes) {
            server.engine.release(node);
        }
        Ok(server)
    }

    /// The sockets, by node.
    pub fn sockets(&self) -> impl Iterator<Item = &Path> {
        self.listeners.iter().map(|(_, path)| path.as_path())
    }

    /// Cycles run so far.
    #[must_use]
    pub const fn now(&self) -> u64 {
        self.engine.now()
    }

    /// Writes the frames of the network to a file from now on.
    pub fn capture(&mut self, capture: &Capture) {
        self.engine.capture(capture);
    }

    /// Has this called for accesses that fail; of each client's the first 16.
    pub fn on_unreachable(&mut self, report: impl FnMut(&Unreachable) + Send + 'static) {
        self.report = Box::new(report);
    }

    /// Reports accesses that failed.
    fn report_faults(&mut self) {
        for (node, function) in (0..).zip(self.engine.functions()) {
            for (access, why) in function.host.take_faults() {
                (self.report)(&Unreachable { node, access, why });
            }
        }
    }

    /// Serves until `stop` can be read or is closed.
    ///
    /// # Errors
    /// Waiting itself fails.
    pub fn run(&mut self, stop: BorrowedFd<'_>) -> io::Result<()> {
        loop {
            let (stopped, ready) = self.wait(stop)?;
            if stopped {
                return Ok(());
            }
            let (listeners, clients) = ready.split_at(self.listeners.len());
            // A client that has left makes room before others ask for it.
            self.serve(clients);
            self.accept(listeners);
            self.advance(ready.iter().all(PollFlags::is_empty));
        }
    }

    /// Runs the nodes a little, reports what failed, and drops clients that must go. `quiet`: no
    /// client had anything.
    fn advance(&mut self, quiet: bool) {
        if self.engine.is_running() {
            self.engine.run(TURN_CYCLES);
            self.give_way(quiet);
        }
        self.report_faults();
        self.drop_clients(|engine, client| {
            let failure = engine.function(client.node).host.failure();
            let failure = failure.filter(|_| client.is_owner);
            failure.inspect(|why| client.say_farewell(why)).is_some()
        });
    }

    /// Lets others have the processor while nothing happens: where processors are few, the programs
    /// that are to answer wait for it.
    fn give_way(&mut self, quiet: bool) {
        let idle = quiet && self.engine.is_idle();
        self.idle_turns = if idle { self.idle_turns.saturating_add(1) } else { 0 };
        if (1..=YIELDED_TURNS).contains(&self.idle_turns) {
            std::thread::yield_now();
        }
    }

    /// Waits until there is something to do. Whether to stop, and what listeners and clients have.
    fn wait(&self, stop: BorrowedFd<'_>) -> io::Result<(bool, Vec<PollFlags>)> {
        let left = self.crowded.map(|end| end.saturating_duration_since(Instant::now()));
        let left = left.filter(|left| !left.is_zero());
        let asked = if left.is_some() { PollFlags::empty() } else { PollFlags::IN };
        let listeners = self.listeners.iter().map(|(listener, _)| (listener.as_fd(), asked));
        let clients = self.clients.iter().map(|client| (client.socket(), PollFlags::IN));
        let all = core::iter::once((stop, PollFlags::IN)).chain(listeners).chain(clients);
        let mut fds: Vec<_> = all.map(|(fd, flags)| PollFd::from_borrowed_fd(fd, flags)).collect();
        let bound = if self.engine.is_running() { Some(Duration::ZERO) } else { left };
        // Of a wait of less than a second.
        let bound = bound.map(|left| Timespec { tv_sec: 0, tv_nsec: left.subsec_nanos().into() });
        match poll(&mut fds, bound.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut ready = fds.iter().map(PollFd::revents);
        let stopped = ready.next().is_none_or(|stop| !stop.is_empty());
        Ok((stopped, ready.collect()))
    }

    fn serve(&mut self, ready: &[PollFlags]) {
        for (client, ready) in self.clients.iter_mut().zip(ready) {
            client.is_ready = !ready.is_empty();
            client.is_destroyed = ready.contains(PollFlags::HUP);
        }
        // What somebody said before it went is for nobody: its device is reset. It must not wait for
        // its turns meanwhile, since the next program may be here.
        self.drop_clients(|_, client| client.is_destroyed);
        // Owners first: one that leaves makes room for one that asks.
        for owners in [true, false] {
            self.drop_clients(|engine, client| {
                let turn = client.is_ready && client.is_owner == owners;
                client.is_ready &= !turn;
                turn && !client.handle(engine)
            });
        }
    }

    /// Drops clients, and takes their NICs back.
    fn drop_clients(&mut self, mut goes: impl FnMut(&mut Engine, &mut Client) -> bool) {
        let engine = &mut self.engine;
        let mut crowded = self.crowded;
        self.clients.retain_mut(|client| {
            let goes = goes(engine, client);
            if goes && client.is_owner {
                engine.release(client.node);
            }
            crowded = crowded.filter(|_| !goes);
            !goes
        });
        self.crowded = crowded;
    }

    /// Drops the connection that has waited longest without saying what it wants, at these nodes.
    fn drop_waiting(&mut self, at: impl Fn(usize) -> bool) -> bool {
        let mut dropped = false;
        self.drop_clients(|_, client| {
            let this = !dropped && !client.is_owner && at(client.node);
            dropped |= this;
            this
        });
        dropped
    }

    fn accept(&mut self, ready: &[PollFlags]) {
        let has = |node: &usize| ready.get(*node).is_some_and(|ready| !ready.is_empty());
        for node in (0..self.listeners.len()).filter(has) {
            let socket = match self.listeners[node].0.accept() {
                Ok((socket, _)) => socket,
                // Who wanted to connect may have gone. If there is no descriptor for it, somebody
                // makes room, or it waits until somebody does, which may be another process.
                Err(error) => {
                    let crowded = is_full(&error) && !self.drop_waiting(|_| true);
                    self.crowded = crowded.then(|| Instant::now() + CROWDED_WAIT);
                    continue;
                }
            };
            self.crowded = None;
            // A process of another user does not even learn why.
            let Ok(process) = trust::check_peer(&socket) else { continue };
            let waiting = |client: &&Client| client.node == node && !client.is_owner;
            if self.clients.iter().filter(waiting).count() >= WAITING_MAX {
                self.drop_waiting(|other| other == node);
            }
            self.clients.push(Client::new(socket, node, process));
        }
    }
}

/// Whether there was no descriptor or memory for a connection.
fn is_full(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let full = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM];
    Errno::from_io_error(error).is_some_and(|code| full.contains(&code))
}

impl Drop for Server {
    fn drop(&mut self) {
        for (_, path) in &self.listeners {
            let _ = fs::remove_file(path);
        }
    }
}
