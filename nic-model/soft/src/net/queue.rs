//! Completion queues of a port, and waiting.

use core::cell::Cell;
use core::sync::atomic::Ordering;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use port::{Completed, CompletionOps, CompletionQueue, Result, Wait, WaitOps};

use super::NetVia;
use super::node::Node;
use crate::via::completion::{Records, check_entries};

/// Completion queues of a port.
pub(super) const QUEUES: u32 = 1_024;
/// Empty looks of a thread between two at which it lets another one have the processor.
const LOOKS: u32 = 64;

/// A completion queue.
#[derive(Debug)]
pub(super) struct Cq {
    number: u16,
    node: Arc<Node>,
    /// None: it only wakes.
    pub(super) records: Option<Arc<Records>>,
}

impl CompletionQueue for Cq {
    fn number(&self) -> u16 {
        self.number
    }

    fn poll(&self) -> Option<Completed> {
        let records = self.records.as_ref()?;
        if let Some(record) = records.pop() {
            return Some(record);
        }
        self.node.look();
        records.pop()
    }

    fn arm(&self) {
        // Whatever happens wakes sleepers; what is here already has to wake those to come.
        if self.records.as_ref().is_some_and(|records| !records.is_empty()) {
            self.node.net.wakes.wake();
        }
    }

    fn retire(&self, _retired: bool) {}
}

impl NetVia {
    fn add_cq(&self, records: Option<Arc<Records>>) -> Result<Arc<dyn CompletionQueue>> {
        let node = Arc::clone(self.node());
        let cq = self.queues.add(|number| Cq { number, node, records })?;
        Ok(cq)
    }
}

impl CompletionOps for NetVia {
    fn create_queue(&self, entries: u32) -> Result<Arc<dyn CompletionQueue>> {
        check_entries(entries)?;
        self.add_cq(Some(Arc::default()))
    }

    fn create_wake_queue(&self) -> Result<Arc<dyn CompletionQueue>> {
        self.add_cq(None)
    }

    fn resize_queue(&self, queue: u16, entries: u32) -> Result<Arc<dyn CompletionQueue>> {
        check_entries(entries)?;
        Ok(self.queues.get(queue)?)
    }

    fn destroy_queue(&self, queue: u16) -> Result<()> {
        self.queues.get(queue)?;
        self.queues.remove(queue);
        Ok(())
    }
}

impl WaitOps for NetVia {
    fn wake_count(&self) -> u64 {
        self.net().wakes.count()
    }

    fn sleep(&self, seen: u64, bound_ns: u64, _wait: Wait) {
        let node = self.node();
        let left = node.deadline().saturating_sub(node.net.now());
        if node.net.wakes.sleep(&node.net.socket, seen, bound_ns.min(left)) {
            node.look_at_all();
        }
        if node.service_waits.load(Ordering::SeqCst) && !node.net.wakes.has_sleepers() {
            node.service.nudge();
        }
    }

    fn wake(&self) {
        self.net().wakes.wake();
    }

    fn wake_descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.net().is_present().then(|| self.net().wakes.waker())
    }

    fn doze(&self, begins: bool) {
        let wakes = &self.net().wakes;
        wakes.doze(begins);
        if begins && !wakes.has_sleepers() {
            // It leaves the socket to threads that look, as this one did.
            self.node().service.nudge();
        }
    }

    fn relax(&self, _wait: Wait) {
        thread_local! {
            static LOOKED: Cell<u32> = const { Cell::new(0) };
        }
        let looked = LOOKED.get().wrapping_add(1);
        LOOKED.set(looked);
        if looked.is_multiple_of(LOOKS) {
            std::thread::yield_now();
        }
    }

    fn now_ns(&self) -> u64 {
        self.net().now()
    }
}
