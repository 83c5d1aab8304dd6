//! The answers to the peer's RDMA reads.

use nic_regs::doorbell::Queue;
use nic_regs::frame::{Type, flag};
use nic_regs::limits::LINK_PAYLOAD_BYTES;
use nic_regs::vi::StopReason;

use super::{SendEngine, Slot};
use crate::bits::{small16, small32};
use crate::frame::Frame;
use crate::vi::Answer;

impl SendEngine<'_, '_> {
    /// The next frame of the answer to the peer's RDMA read: section 12.3.
    pub fn send_answer(&mut self, vi: u16) -> Slot {
        let node = self.queues.vis[vi].remote.node;
        let Some(Answer { address, handle, left }) = self.queues.vis[vi].answer else {
            return Slot::Worked;
        };
        let n = left.min(small32(LINK_PAYLOAD_BYTES));
        let mut header = self.queues.vis.header(vi, Type::ReadResponse, flag::SEQUENCED);
        header.length = small16(n as usize);
        header.word = left - n;
        if !self.channels.admits(node, &header) {
            return Slot::Blocked;
        }
        let Some(bus) = self.queues.remote_range(vi, true, address, handle, left) else {
            self.queues.refuse_read(vi, self.cx);
            return Slot::Worked;
        };
        let mut payload = vec![0; n as usize];
        if self.cx.read(bus, &mut payload).is_err() {
            self.queues.stop_and_refuse(vi, Queue::Recv, StopReason::HostRead, self.cx);
            return Slot::Worked;
        }
        let left = left - n;
        let rest = Answer { address: address.wrapping_add(n.into()), handle, left };
        self.queues.vis[vi].answer = (left != 0).then_some(rest);
        self.channels.enqueue(Frame { header, payload });
        Slot::Worked
    }
}
