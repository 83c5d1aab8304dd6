//! The thread of a node that answers other nodes. It sleeps unless one of them has something to say,
//! and waits for nobody. It blocks all signals: the program's handlers run in the program's threads.

use core::sync::atomic::Ordering;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use port::clan::{ClanEvent, ClanPeer};
use port::sync::lock;
use port::{process, trust};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with};

use super::error::{Error, Result};
use super::link::{Link, Who};
use super::node::Node;
use super::packet::{self, Packet, Received, Socket, VERSION};

/// Most packets of one connection in a row, and most connections.
const BURST: usize = 64;
/// Time between two looks at accesses that must be over before something is confirmed.
const LOOK: Duration = Duration::from_millis(1);
/// How long no connections are accepted after the system had no descriptor for one.
const REST: Duration = Duration::from_millis(10);

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
    let thread = std::thread::Builder::new().name(format!("shm {}", node.own.who.name));
    let run = move || Service { node, last: 0, rests_until: None }.run();
    let started = process::without_signals(|| thread.spawn(run));
    started.map(drop).map_err(|why| Error::System { what: "a thread", why })
}

struct Service {
    node: Arc<Node>,
    /// Number of the last connection.
    last: u32,
    rests_until: Option<Instant>,
}

impl Service {
    fn run(&mut self) {
        while !self.node.ended.load(Ordering::Acquire) {
            let mut bound = if self.node.finish() { None } else { Some(LOOK) };
            if let Some(end) = self.rests_until {
                let left = end.saturating_duration_since(Instant::now());
                self.rests_until = self.rests_until.filter(|_| !left.is_zero());
                bound = bound.or(self.rests_until.map(|_| left));
            }
            let sources = self.sources();
            let ready = self.wait(&sources, bound);
            for (source, ready) in sources.iter().zip(ready).filter(|(_, ready)| !ready.is_empty())
            {
                self.serve(source, ready);
            }
        }
        self.node.close_all();
        while !self.node.finish() {
            std::thread::sleep(LOOK);
        }
    }

    fn sources(&self) -> Vec<Source> {
        let state = lock(&self.node.state);
        let incoming = state.incoming.iter();
        let incoming = incoming
            .map(|(number, incoming)| Source::Incoming(*number, Arc::clone(&incoming.socket)));
        let links = state.links.values().map(|link| Source::Link(Arc::clone(link)));
        let listener = self.rests_until.is_none().then_some(Source::Listener);
        let sources = [Source::Nudge].into_iter().chain(listener);
        sources.chain(incoming).chain(links).collect()
    }

    /// What the sources are ready for, once one of them is, or `bound` is over.
    fn wait(&self, sources: &[Source], bound: Option<Duration>) -> Vec<PollFlags> {
        let mut fds: Vec<PollFd<'_>> = sources.iter().map(|source| self.fd(source)).collect();
        let bound = bound.map(|bound| Timespec {
            tv_sec: i64::try_from(bound.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: bound.subsec_nanos().into(),
        });
        if poll(&mut fds, bound.as_ref()).is_err() {
            // No memory, or more descriptors than the process may have now: looks at all of them.
            std::thread::sleep(REST);
            return vec![PollFlags::IN | PollFlags::OUT; sources.len()];
        }
        fds.iter().map(PollFd::revents).collect()
    }

    fn fd<'a>(&'a self, source: &'a Source) -> PollFd<'a> {
        let (fd, flags) = match source {
            Source::Nudge => (self.node.own.nudge.as_fd(), PollFlags::IN),
            Source::Listener => (self.node.claim.listener.as_fd(), PollFlags::IN),
            Source::Incoming(_, socket) => (socket.as_fd(), PollFlags::IN),
            // A node that takes no confirmations cannot have more to confirm.
            Source::Link(link) if link.owner.has_outbox() => {
                (link.owner.socket.as_fd(), PollFlags::OUT)
            }
            Source::Link(link) => (link.owner.socket.as_fd(), PollFlags::IN),
        };
        PollFd::from_borrowed_fd(fd, flags)
    }

    fn serve(&mut self, source: &Source, ready: PollFlags) {
        match source {
            Source::Nudge => {
                let _ = rustix::io::read(&*self.node.own.nudge, &mut [0_u8; 8]);
            }
            Source::Listener => self.accept(),
            Source::Incoming(number, socket) => self.incoming(*number, socket),
            Source::Link(link) => {
                if ready.contains(PollFlags::OUT) {
                    link.owner.flush();
                }
                if ready != PollFlags::OUT {
                    self.link(link);
                }
            }
        }
    }

    fn accept(&mut self) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        for _ in 0..BURST {
            let listener = &self.node.claim.listener;
            let socket = match Socket::create(|| accept_with(listener, flags)) {
                Ok(socket) => socket,
                Err(error) => match Errno::from_io_error(&error) {
                    Some(Errno::AGAIN) => return,
                    Some(Errno::INTR | Errno::CONNABORTED) => continue,
                    // No descriptor, or no memory. The connection stays where it is, and the listener
                    // ready.
                    _ => {
                        self.rests_until = Some(Instant::now() + REST);
                        return;
                    }
                },
            };
            self.last = self.last.wrapping_add(1);
            let accepted = match trust::check_peer(&socket) {
                Ok(process) => self
                    .node
                    .accept(self.last, socket, process)
                    .map_err(|(socket, why)| (socket, why.to_owned())),
                Err(why) => Err((socket, why.to_string())),
            };
            if let Err((socket, why)) = accepted {
                let _ = packet::send(socket.as_fd(), &Packet::Refused { why }, &[]);
            }
        }
    }

    fn incoming(&self, number: u32, socket: &Socket) {
        for _ in 0..BURST {
            let is_good = match packet::receive(socket.as_fd()) {
                Ok(None) => return,
                Ok(Some(Received { packet, .. })) => self.asked(number, socket, packet),
                Err(_) => false,
            };
            if !is_good {
                return self.node.disconnect(number);
            }
        }
    }

    /// A node asks something. False ends the connection.
    fn asked(&self, number: u32, socket: &Socket, packet: Packet) -> bool {
        let node = &*self.node;
        if let Packet::Hello { version, identity, name } = packet {
            return self.hello(number, socket, version, (identity, name));
        }
        let Some(who) = node.use_by(number) else { return false };
        match packet {
            Packet::Ready => {}
            Packet::Attach { request, domain, cookie } => {
                return node.grant(number, request, domain, cookie);
            }
            Packet::Detach { grant } | Packet::Revoked { grant } => node.give_back(number, grant),
            Packet::Message { from, to, message } => {
                let from = ClanPeer { host: who.name.into_bytes(), domain: from };
                node.report(Some(to), &ClanEvent::Message { from, message });
            }
            _ => return false,
        }
        true
    }

    fn hello(
        &self,
        number: u32,
        socket: &Socket,
        version: u32,
        (identity, name): (u64, Vec<u8>),
    ) -> bool {
        if version != VERSION {
            let why = format!(
                "it speaks version {VERSION}, and this program speaks version {version}: use one build of \
                 the library for both"
            );
            let _ = packet::send(socket.as_fd(), &Packet::Refused { why }, &[]);
            return false;
        }
        let node = &*self.node;
        let Ok(name) = String::from_utf8(name) else { return false };
        let Some(control) = node.control.file() else { return false };
        let waker = node.control.waker();
        let welcome = Packet::Welcome { identity: node.own.who.identity };
        node.introduce(number, Who { name, identity })
            && packet::send(socket.as_fd(), &welcome, &[control, node.space.as_fd(), waker]).is_ok()
    }

    fn link(&self, link: &Arc<Link>) {
        for _ in 0..BURST {
            let is_good = match packet::receive(link.owner.socket.as_fd()) {
                Ok(None) => return,
                Ok(Some(received)) => link.handle(received),
                Err(_) => false,
            };
            if !is_good {
                return self.lose(link);
            }
        }
    }

    /// A node is lost, as the link to it shows. What it said on its own connection comes first.
    fn lose(&self, link: &Arc<Link>) {
        let its: Vec<(u32, Arc<Socket>)> = {
            let state = lock(&self.node.state);
            let all = state.incoming.iter();
            let its = all.filter(|(_, incoming)| incoming.node.as_ref() == Some(&link.who));
            its.map(|(number, incoming)| (*number, Arc::clone(&incoming.socket))).collect()
        };
        its.iter().for_each(|(number, socket)| self.incoming(*number, socket));
        self.node.unlink(link);
    }
}
