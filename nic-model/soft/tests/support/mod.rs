//! Two nodes, and their events.
#![allow(dead_code, unreachable_pub, missing_docs, reason = "each test uses a part of it")]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use port::clan::{
    AccessRights, ClanEvent, ClanPeer, ClanPort, Cookie, EventQueue, Remote, Tripwire,
};
use port::{DmaMemory, Wait, WaitOps};
use soft_nic::shm::{ShmNode, ShmPort};

/// A folder for nodes that no other test uses.
pub fn folder(test: &str) -> PathBuf {
    std::env::temp_dir().join(format!("shm-{test}-{}", std::process::id()))
}

/// Two nodes in a folder of their own.
pub struct Pair {
    pub folder: PathBuf,
    pub a: ShmPort,
    pub b: ShmPort,
}

impl Pair {
    pub fn new(test: &str) -> Self {
        let folder = folder(test);
        let port = |name| ShmNode::open_in(&folder, Some(name)).unwrap().port().unwrap();
        let (a, b) = (port("a"), port("b"));
        Self { folder, a, b }
    }

    /// A region of `a` that is open to `b`, as `b` has it.
    pub fn share(&self, memory: &DmaMemory, rights: AccessRights) -> (Cookie, Box<dyn Remote>) {
        let region = self.a.register(memory).unwrap();
        let cookie = self.a.open(region, own(&self.b), rights).unwrap();
        (cookie, self.b.attach(own(&self.a), cookie).unwrap())
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

pub fn own(port: &ShmPort) -> &ClanPeer {
    &port.attributes().own
}

/// The next event, which is on its way.
pub fn event(port: &ShmPort, queue: &Arc<dyn EventQueue>) -> ClanEvent {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        let seen = port.wake_count();
        queue.arm();
        if let Some(event) = queue.poll() {
            return event;
        }
        let left = end.saturating_duration_since(Instant::now());
        assert!(!left.is_zero(), "no event");
        port.sleep(seen, left.as_nanos().try_into().unwrap(), Wait::bounded("an event", 0));
    }
}

/// A tripwire for writes of the word at `offset`, whose tag is its offset.
pub fn on_write(cookie: Cookie, offset: u64, queue: &Arc<dyn EventQueue>) -> Tripwire {
    let (on, queue) = (AccessRights::WRITE, queue.number());
    Tripwire { region: cookie.region, offset, on, once: false, queue, tag: offset }
}
