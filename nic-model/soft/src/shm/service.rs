//! The thread of a node that answers other nodes. It sleeps unless one of them has something to say,
//! and waits for nobody.

use core::sync::atomic::Ordering;
use std::os::fd::AsFd;
use std::sync::Arc;

use port::clan::{ClanEvent, ClanPeer};
use port::sync::lock;
use port::trust;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{SocketFlags, accept_with};

use super::claim;
use super::error::{Error, Result};
use super::link::Link;
use super::node::{Incoming, Node};
use super::packet::{self, Packet, Socket, VERSION};

/// Most packets of one connection in a row.
const BURST: usize = 64;

/// What a ready descriptor belongs to.
enum Source {
    Nudge,
    Listener,
    Incoming(u32, Arc<Socket>),
    Link(Arc<Link>),
}

/// Starts the thread of a node.
///
/// # Errors
/// There is none to be had.
pub(super) fn start(node: &Arc<Node>) -> Result<()> {
    let node = Arc::clone(node);
    let thread = std::thread::Builder::new().name(format!("shm {}", node.own.name));
    let run = move || Service { node, last: 0 }.run();
    thread.spawn(run).map(drop).map_err(|why| Error::System { what: "a thread", why })
}

struct Service {
    node: Arc<Node>,
    /// Number of the last connection.
    last: u32,
}

impl Service {
    fn run(&mut self) {
        while !self.node.ended.load(Ordering::Acquire) {
            let sources = self.sources();
            let ready: Vec<bool> = {
                let mut fds: Vec<PollFd<'_>> =
                    sources.iter().map(|source| self.fd(source)).collect();
                // A signal, or no memory: looks again.
                if poll(&mut fds, None).is_err() {
                    std::thread::yield_now();
                    continue;
                }
                fds.iter().map(|fd| !fd.revents().is_empty()).collect()
            };
            for (source, _) in sources.into_iter().zip(ready).filter(|(_, ready)| *ready) {
                self.serve(&source);
            }
        }
        self.end();
    }

    fn sources(&self) -> Vec<Source> {
        let state = lock(&self.node.state);
        let incoming = state.incoming.iter();
        let incoming = incoming
            .map(|(number, incoming)| Source::Incoming(*number, Arc::clone(&incoming.socket)));
        let links = state.links.values().map(|link| Source::Link(Arc::clone(link)));
        [Source::Nudge, Source::Listener].into_iter().chain(incoming).chain(links).collect()
    }

    fn fd<'a>(&'a self, source: &'a Source) -> PollFd<'a> {
        let fd = match source {
            Source::Nudge => self.node.nudge.as_fd(),
            Source::Listener => self.node.claim.listener.as_fd(),
            Source::Incoming(_, socket) => socket.as_fd(),
            Source::Link(link) => link.owner.socket.as_fd(),
        };
        PollFd::from_borrowed_fd(fd, PollFlags::IN)
    }

    fn serve(&mut self, source: &Source) {
        match source {
            Source::Nudge => {
                let _ = rustix::io::read(&self.node.nudge, &mut [0_u8; 8]);
            }
            Source::Listener => self.accept(),
            Source::Incoming(number, socket) => self.incoming(*number, socket),
            Source::Link(link) => self.link(link),
        }
    }

    fn accept(&mut self) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        while let Ok(socket) = accept_with(&self.node.claim.listener, flags) {
            if let Err(why) = trust::check_peer(&socket) {
                let refused = Packet::Refused { why: why.to_string() };
                let _ = packet::send(socket.as_fd(), &refused, &[]);
                continue;
            }
            let Ok(socket) = Socket::new(socket) else { continue };
            self.last = self.last.wrapping_add(1);
            lock(&self.node.state).incoming.insert(self.last, Incoming::new(socket));
        }
    }

    fn incoming(&self, number: u32, socket: &Socket) {
        for _ in 0..BURST {
            let good = match packet::receive(socket.as_fd()) {
                Ok(None) => return,
                Ok(Some((packet, _))) => self.asked(number, socket, &packet),
                Err(_) => false,
            };
            if !good {
                return self.disconnect(number);
            }
        }
    }

    /// A node asks something. False ends the connection.
    fn asked(&self, number: u32, socket: &Socket, packet: &Packet) -> bool {
        let node = &*self.node;
        let known = {
            let state = lock(&node.state);
            state.incoming.get(&number).and_then(|incoming| incoming.node.clone())
        };
        match (packet, known) {
            (Packet::Hello { version, .. }, None) if *version != VERSION => {
                let why = format!(
                    "it speaks version {VERSION}, and this program speaks version {version}: use one build \
                     of the library for both"
                );
                let _ = packet::send(socket.as_fd(), &Packet::Refused { why }, &[]);
                false
            }
            (Packet::Hello { identity, name, .. }, None) => {
                let Ok(name) = String::from_utf8(name.clone()) else { return false };
                let mut state = lock(&node.state);
                if let Some(incoming) = state.incoming.get_mut(&number) {
                    incoming.node = Some((name.clone(), *identity));
                }
                state.nodes.insert(*identity, name);
                drop(state);
                let Some(control) = node.control.file() else { return false };
                let welcome = Packet::Welcome { identity: node.own.identity };
                packet::send(socket.as_fd(), &welcome, &[control, node.space.as_fd()]).is_ok()
            }
            (Packet::Attach { request, domain, cookie }, Some(_)) => {
                let (answer, memory) = node.grant(number, *request, *domain, *cookie);
                let file = memory.as_ref().and_then(|memory| memory.file());
                let fds: Vec<_> = file.into_iter().map(|(file, _)| file).collect();
                packet::send(socket.as_fd(), &answer, &fds).is_ok()
            }
            (Packet::Detach { grant } | Packet::Revoked { grant }, Some(_)) => {
                node.give_back(number, *grant);
                true
            }
            (Packet::Message { from, to, message }, Some((name, _))) => {
                let from = ClanPeer { host: claim::host_of(&name), domain: *from };
                node.report(Some(*to), &ClanEvent::Message { from, message: *message });
                true
            }
            _ => false,
        }
    }

    fn disconnect(&self, number: u32) {
        let removed = lock(&self.node.state).incoming.remove(&number);
        if let Some((_, identity)) = removed.and_then(|incoming| incoming.node) {
            self.node.lose(identity);
        }
    }

    fn link(&self, link: &Arc<Link>) {
        for _ in 0..BURST {
            let good = match packet::receive(link.owner.socket.as_fd()) {
                Ok(None) => return,
                Ok(Some((packet, fds))) => link.handle(&packet, fds),
                Err(_) => false,
            };
            if !good {
                return self.lose(link.identity);
            }
        }
    }

    /// A node is lost, as the link to it shows. What it said on its own connection comes first.
    fn lose(&self, identity: u64) {
        let its: Vec<(u32, Arc<Socket>)> = {
            let state = lock(&self.node.state);
            let all = state.incoming.iter();
            let its = all.filter(|(_, incoming)| {
                incoming.node.as_ref().is_some_and(|node| node.1 == identity)
            });
            its.map(|(number, incoming)| (*number, Arc::clone(&incoming.socket))).collect()
        };
        its.iter().for_each(|(number, socket)| self.incoming(*number, socket));
        self.node.lose(identity);
    }

    /// Closes all connections; the others find this node lost.
    fn end(&self) {
        let (incoming, links) = {
            let mut state = lock(&self.node.state);
            state.nodes.clear();
            (core::mem::take(&mut state.incoming), core::mem::take(&mut state.links))
        };
        drop(incoming);
        links.values().for_each(|link| link.lose());
    }
}
