//! A simulator that several programs share: NICs on a network, each served as a PCI device over the
//! vfio-user protocol on a UNIX socket (`docs/simulator.md`).
//!
//! | module | what |
//! |---|---|
//! | `engine` | the NICs, in a [`crate::world`] |
//! | `host` | memory and interrupts of a NIC's client |
//! | `pci` | configuration space |
//! | `client` | what a client's messages do |
//!
//! One thread does everything: it handles what has come, runs the nodes a little while they have
//! work, and sleeps when they have none.

mod client;
mod engine;
mod host;
mod pci;

use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use nic_model::device::Device;
use nic_model::link::Faults;
use nic_regs::limits::PEER_COUNT;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use client::Client;
use engine::Engine;

/// Cycles that run between two looks at the clients.
const TURN_CYCLES: u64 = 32;
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

/// Served NICs. Dropping it closes all connections and removes the sockets.
pub struct Server {
    engine: Engine,
    listeners: Vec<(UnixListener, PathBuf)>,
    clients: Vec<Client>,
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

/// Makes the folder of the sockets, or checks that nobody else may write to it.
fn make_folder(folder: &Path) -> io::Result<()> {
    if let Err(error) = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder) {
        return Err(at(folder, &error));
    }
    let found = fs::metadata(folder).map_err(|error| at(folder, &error))?;
    if found.uid() != rustix::process::geteuid().as_raw() || found.mode() & 0o022 != 0 {
        let text = "others may write to this folder: choose one of your own with --dir";
        return Err(at(folder, &text));
    }
    Ok(())
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
    listener.set_nonblocking(true).map_err(|error| at(path, &error))?;
    Ok(listener)
}

impl Server {
    /// Makes the devices and the sockets `nic0.sock`, `nic1.sock`, ...
    ///
    /// # Errors
    /// A number of nodes that cannot be; a folder or a socket that cannot be had.
    pub fn start(config: Config) -> io::Result<Self> {
        let Config { nodes, latency, faults, folder, device } = config;
        if nodes == 0 || usize::from(nodes) > PEER_COUNT {
            let text = format!("{nodes} nodes: it must be 1 to {PEER_COUNT}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        make_folder(&folder)?;
        let engine = Engine::new(nodes, latency, &faults, device);
        // `drop` removes those that are there if one fails.
        let mut server = Self { engine, listeners: Vec::new(), clients: Vec::new() };
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
            // Who is gone makes room before others ask for it.
            self.serve(clients);
            self.accept(listeners);
            if self.engine.is_running() {
                self.engine.run(TURN_CYCLES);
            }
            self.drop_clients(|engine, client| {
                client.is_owner && engine.seat(client.node).host.has_failed()
            });
        }
    }

    /// Waits until there is something to do. Whether to stop, and which listeners and clients have
    /// something.
    fn wait(&self, stop: BorrowedFd<'_>) -> io::Result<(bool, Vec<bool>)> {
        let sockets = self.listeners.iter().map(|(listener, _)| listener.as_fd());
        let sockets = sockets.chain(self.clients.iter().map(Client::socket));
        let all = core::iter::once(stop).chain(sockets);
        let mut fds: Vec<_> = all.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        let at_once = Timespec::default();
        let bound = self.engine.is_running().then_some(&at_once);
        match poll(&mut fds, bound) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut ready = fds.iter().map(|fd| !fd.revents().is_empty());
        let stopped = ready.next().unwrap_or(true);
        Ok((stopped, ready.collect()))
    }

    fn serve(&mut self, ready: &[bool]) {
        for (client, ready) in self.clients.iter_mut().zip(ready) {
            client.is_ready = *ready;
        }
        // Owners first: one that is gone makes room for one that asks.
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
        self.clients.retain_mut(|client| {
            let goes = goes(engine, client);
            if goes && client.is_owner {
                engine.release(client.node);
            }
            !goes
        });
    }

    fn accept(&mut self, ready: &[bool]) {
        for node in (0..self.listeners.len()).filter(|node| ready.get(*node) == Some(&true)) {
            let Ok((socket, _)) = self.listeners[node].0.accept() else { continue };
            let waiting = |client: &&Client| client.node == node && !client.is_owner;
            if self.clients.iter().filter(waiting).count() >= WAITING_MAX {
                // The one that waits longest has had its time.
                let mut dropped = false;
                self.drop_clients(|_, client| {
                    let this = !dropped && client.node == node && !client.is_owner;
                    dropped |= this;
                    this
                });
            }
            self.clients.push(Client::new(socket, node));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        for (_, path) in &self.listeners {
            let _ = fs::remove_file(path);
        }
    }
}
