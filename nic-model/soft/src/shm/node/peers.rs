//! The nodes that a node is connected with.

use std::sync::Arc;

use port::clan::ClanEvent;
use port::sync::lock;

use super::super::claim;
use super::super::error::{Error, Result};
use super::super::grant::Closing;
use super::super::link::{Link, Who};
use super::super::packet::{Packet, Socket};
use super::Node;
use super::regions::Grants;

/// Connections that may be without a `Hello`. The backlog of the listener is not longer.
const HALF_OPEN_MAX: usize = 256;
/// Connections that one process may have: a node needs one, and few processes have many nodes.
const OF_PROCESS_MAX: usize = 256;

/// A node that has connected to this one.
#[derive(Debug)]
pub(in super::super) struct Incoming {
    pub(in super::super) socket: Arc<Socket>,
    /// The node, once it has said which it is.
    pub(in super::super) node: Option<Who>,
    /// It uses the connection, which is the node's from then on.
    is_used: bool,
    /// Number of the process.
    process: u32,
    pub(super) grants: Grants,
}

/// Connections with a lost node. They are closed when no access by grants of that node is under way
/// any more: if it is alive all the same, it takes their end for the end of all accesses.
#[derive(Debug)]
pub(super) struct Ending {
    closing: Closing,
    links: Vec<Arc<Link>>,
    incoming: Vec<Incoming>,
}

impl Ending {
    fn is_done(&mut self) -> bool {
        let is_done = self.closing.is_done();
        if is_done {
            // A program that has a region of the node keeps the socket.
            self.links.iter().for_each(|link| link.owner.socket.shut_down());
            self.incoming.iter().for_each(|incoming| incoming.socket.shut_down());
        }
        is_done
    }
}

impl Node {
    /// A process has connected. An error is why it is refused.
    pub(in super::super) fn accept(
        &self,
        number: u32,
        socket: Socket,
        process: u32,
    ) -> core::result::Result<(), (Socket, &'static str)> {
        let incoming = &mut lock(&self.state).incoming;
        let of_process = incoming.values().filter(|other| other.process == process).count();
        if of_process >= OF_PROCESS_MAX {
            return Err((socket, "this process has too many connections with it"));
        }
        let half_open = incoming.iter().filter(|(_, other)| other.node.is_none());
        let half_open: Vec<u32> = half_open.map(|(number, _)| *number).collect();
        if half_open.len() >= HALF_OPEN_MAX {
            incoming.remove(&half_open[0]);
        }
        let socket = Arc::new(socket);
        let grants = Grants::default();
        incoming.insert(number, Incoming { socket, node: None, is_used: false, process, grants });
        Ok(())
    }

    /// A process that has connected says which node it is. False if it cannot be, or has said so
    /// before.
    pub(in super::super) fn introduce(&self, number: u32, who: Who) -> bool {
        let mut state = lock(&self.state);
        let Some(incoming) = state.incoming.get_mut(&number) else { return false };
        let is_first = incoming.node.is_none() && claim::is_name(&who.name);
        if is_first {
            incoming.node = Some(who);
        }
        is_first
    }

    /// The node of a connection, which uses it from now on. None if it has not said which it is, or is
    /// another process's.
    pub(in super::super) fn use_by(&self, number: u32) -> Option<Who> {
        let mut state = lock(&self.state);
        let state = &mut *state;
        let incoming = state.incoming.get_mut(&number)?;
        let who = incoming.node.clone()?;
        if !incoming.is_used {
            let process = *state.nodes.entry(who.clone()).or_insert(incoming.process);
            if process != incoming.process {
                return None;
            }
            incoming.is_used = true;
        }
        Some(who)
    }

    /// A connection has ended, and its node with it if it used it.
    pub(in super::super) fn disconnect(&self, number: u32) {
        let removed = {
            let mut state = lock(&self.state);
            let removed = state.incoming.remove(&number);
            state.drop_orphans();
            removed
        };
        let used = removed.as_ref().filter(|removed| removed.is_used);
        if let Some(who) = used.and_then(|used| used.node.as_ref()) {
            self.lose(who);
        }
    }

    /// A connection to a node has ended, and the node with it.
    pub(in super::super) fn unlink(&self, link: &Arc<Link>) {
        // It may be one of earlier, and the node be connected anew.
        let links = |name| lock(&self.state).links.get(name).cloned();
        if links(&link.who.name).is_some_and(|current| Arc::ptr_eq(&current, link)) {
            self.lose(&link.who);
        }
    }

    /// A node is lost, as one of the connections with it shows. All of them end.
    fn lose(&self, who: &Who) {
        let (link, incoming, is_known) = {
            let mut state = lock(&self.state);
            let is_known = state.nodes.remove(who).is_some();
            let is_its = |link: &Arc<Link>| link.who == *who;
            let is_linked = state.links.get(&who.name).is_some_and(is_its);
            let link = if is_linked { state.links.remove(&who.name) } else { None };
            let is_its =
                |incoming: &Incoming| incoming.is_used && incoming.node.as_ref() == Some(who);
            let incoming = state.incoming.extract_if(.., |_, incoming| is_its(incoming));
            let incoming: Vec<Incoming> = incoming.map(|(_, incoming)| incoming).collect();
            // A node that takes the name later has none of these rights.
            if !state.nodes.keys().any(|other| other.name == who.name) {
                let host = who.name.as_bytes();
                state.regions.values_mut().for_each(|region| region.close_to(host));
            }
            state.drop_orphans();
            (link, incoming, is_known)
        };
        let links: Vec<Arc<Link>> = link.into_iter().collect();
        let closing = Closing::all(links.iter().map(|link| link.lose()));
        lock(&self.state).ending.push(Ending { closing, links, incoming });
        self.nudge();
        self.confirmed.raise();
        if is_known {
            self.report(None, &ClanEvent::NodeLost { host: who.name.clone().into_bytes() });
            self.control.wake();
        }
    }

    /// Closes connections with lost nodes, and confirms revocations, whose accesses are over. False if
    /// others are left.
    pub(in super::super) fn finish(&self) -> bool {
        let mut state = lock(&self.state);
        state.ending.retain_mut(|ending| !ending.is_done());
        // All of them, not up to the first that is not done.
        let left = state.links.values().filter(|link| !link.confirm()).count();
        state.ending.is_empty() && left == 0
    }

    /// The node ends: closes all connections, and the others find it lost. False if accesses are under
    /// way; then [`Node::finish`] closes them.
    pub(in super::super) fn close_all(&self) {
        let mut state = lock(&self.state);
        state.nodes.clear();
        let links: Vec<Arc<Link>> = core::mem::take(&mut state.links).into_values().collect();
        let incoming = core::mem::take(&mut state.incoming).into_values().collect();
        let closing = Closing::all(links.iter().map(|link| link.lose()));
        state.ending.push(Ending { closing, links, incoming });
    }

    /// The link to a node, which is connected if it is not yet.
    ///
    /// # Errors
    /// There is no such node, or it does not answer.
    pub(in super::super) fn link(&self, host: &[u8]) -> Result<Arc<Link>> {
        let name = core::str::from_utf8(host).ok().filter(|name| claim::is_name(name));
        let no_node = || Error::NoNode { node: String::from_utf8_lossy(host).into_owned() };
        let name = name.ok_or_else(no_node)?;
        if let Some(link) = lock(&self.state).links.get(name).filter(|link| !link.is_lost()) {
            return Ok(Arc::clone(link));
        }
        let link = Link::connect(&self.own, name)?;
        loop {
            let old = {
                let mut state = lock(&self.state);
                match state.links.get(name) {
                    // Another thread was faster. The other node does not count this connection.
                    Some(known) if known.who == link.who => return Ok(Arc::clone(known)),
                    Some(old) => old.who.clone(),
                    None => {
                        let process = *state.nodes.entry(link.who.clone()).or_insert(link.process);
                        if process != link.process {
                            let why = "it has the identity of another node".to_owned();
                            return Err(Error::Refused { node: name.to_owned(), why });
                        }
                        state.links.insert(name.to_owned(), Arc::clone(&link));
                        link.owner.send(Packet::Ready);
                        break;
                    }
                }
            };
            // The service has not found yet that a node of that name was another one.
            self.lose(&old);
        }
        self.nudge();
        Ok(link)
    }
}
