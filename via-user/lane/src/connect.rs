//! Connections: requests of others are accepted, own ones are made when packets want them.

use core::time::Duration;
use std::sync::Arc;
use std::sync::PoisonError;
use std::sync::mpsc::{Receiver, Sender};

use port::sync::lock;
use vipl::{ConnectionRequest, NetAddress, SMI_AUTODISCOVERY, VipReturn, Waiting};

use crate::lane::{Event, Inner};
use crate::link::Link;
use crate::table::{Host, Requested};

/// Requests that may come at once.
const BACKLOG: usize = 16;
/// How long the listener waits before it looks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(100);
/// How long a node has to answer a request: longer than it takes to set up one connection with another
/// node, which it may be doing.
const ANSWER: Duration = Duration::from_secs(3);
/// How long the connector waits without a deadline; it is woken when there is one.
const LONG: Duration = Duration::from_secs(3600);

/// What the connector does next.
enum Task {
    Close(Arc<Link>),
    Search,
    Request(Host),
}

impl Inner {
    // --- requests of others ---

    /// The thread that takes requests. It does nothing else, since a request that nobody waits for is
    /// answered with 'no match'.
    pub(crate) fn listen(&self, requests: &Sender<ConnectionRequest>) {
        let mut listener = match self.shared.nic.listen(&self.local, BACKLOG) {
            Ok(listener) => listener,
            Err(error) => return self.fail(error.into()),
        };
        while !self.is_stopped() {
            match listener.wait_as(LOOK, Waiting::default()) {
                // The acceptor is there as long as this thread is.
                Ok(request) => drop(requests.send(request)),
                Err(error) if error.code == VipReturn::Timeout => {}
                Err(error) => return self.fail(error.into()),
            }
        }
    }

    /// The thread that answers them.
    pub(crate) fn accept(&self, requests: &Receiver<ConnectionRequest>) {
        while let Ok(request) = requests.recv() {
            let host = request.remote_address().host.clone();
            let requested = lock(&self.state).table.requested(&host, self.now());
            // Dropped, it is rejected.
            let Requested::Accept(before) = requested else { continue };
            if let Some(before) = before {
                self.close_link(&before);
            }
            match self.new_link(&host) {
                Ok(link) => self.accept_with(&request, link),
                Err(error) => {
                    (self.report)(&Event::NoRoom(host.clone(), error));
                    lock(&self.state).table.accept_failed(&host);
                }
            }
        }
    }

    fn accept_with(&self, request: &ConnectionRequest, link: Arc<Link>) {
        match request.accept(link.vi()) {
            Ok(()) => self.connected(link, false),
            Err(error) => {
                if error.code == VipReturn::InvalidMtu {
                    (self.report)(&Event::OtherMtu(link.host.clone()));
                }
                lock(&self.state).table.accept_failed(&link.host);
                self.changed.notify_all();
                self.close_link(&link);
            }
        }
    }

    // --- own requests ---

    /// The thread that makes requests, and closes links.
    pub(crate) fn connect(&self) {
        while let Some(task) = self.next_task() {
            match task {
                Task::Close(link) => self.close_link(&link),
                Task::Search => {
                    // A network that cannot be searched has the nodes that the user has named.
                    let found = self.shared.nic.query_management(SMI_AUTODISCOVERY);
                    let found = found.map(|list| list.addresses).unwrap_or_default();
                    let hosts: Vec<Host> = found.into_iter().map(|address| address.host).collect();
                    lock(&self.state).table.found(&hosts);
                }
                Task::Request(host) => self.request(&host),
            }
        }
    }

    /// Waits until there is something to do. None once the lane is stopped.
    fn next_task(&self) -> Option<Task> {
        let mut state = lock(&self.state);
        loop {
            if self.is_stopped() {
                return None;
            }
            let now = self.now();
            let overdue = state.table.overdue(now);
            state.doomed.extend(overdue);
            if let Some(link) = state.doomed.pop() {
                return Some(Task::Close(link));
            }
            if state.table.next_search(now) {
                return Some(Task::Search);
            }
            if let Some(host) = state.table.next_request(now) {
                return Some(Task::Request(host));
            }
            let deadline = state.table.next_deadline();
            let left = deadline.map_or(LONG, |at| Duration::from_nanos(at.saturating_sub(now)));
            let woken = self.changed.wait_timeout(state, left);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn request(&self, host: &Host) {
        let link = match self.new_link(host) {
            Ok(link) => link,
            Err(error) => {
                (self.report)(&Event::NoRoom(host.clone(), error));
                return lock(&self.state).table.request_failed(host, false, self.now());
            }
        };
        let remote = NetAddress::new(host, &self.local.discriminator);
        match link.vi().connect_request(&self.local, &remote, ANSWER) {
            Ok(_) => self.connected(link, true),
            // Nobody is there, or whoever is goes first: there will be another packet.
            Err(error) => {
                let silent = error.code == VipReturn::Timeout;
                lock(&self.state).table.request_failed(host, silent, self.now());
                self.close_link(&link);
            }
        }
    }
}
