//! Frames of RDMA: writes and read requests of the peer, answers to this side's reads (sections 11 and
//! 12).

use nic_regs::counter::Counter;
use nic_regs::desc::status;
use nic_regs::doorbell::Queue;
use nic_regs::frame::{RDMA_HEADER_BYTES, RdmaHeader, flag};
use nic_regs::limits::MAX_TRANSFER_BYTES;
use nic_regs::vi::{Reliability, StopReason};

use super::RecvEngine;
use crate::bits::small32;
use crate::desc::{Ending, Fault};
use crate::frame::Frame;
use crate::vi::{Answer, Pending, RecvMessage, SendPhase};

/// The RDMA header of a frame, and the data behind it. The length was checked at acceptance.
fn split(frame: &Frame) -> (RdmaHeader, &[u8]) {
    let (header, data) = frame.payload.split_at(RDMA_HEADER_BYTES.min(frame.payload.len()));
    let (words, _) = header.as_chunks::<8>();
    let beat = |i: usize| words.get(i).map_or(0, |word| u64::from_le_bytes(*word));
    (RdmaHeader::from_beats([beat(0), beat(1)]), data)
}

impl RecvEngine<'_, '_> {
    /// A frame of an RDMA write: section 11.
    pub(super) fn take_write(&mut self, vi: u16, frame: &Frame) {
        let unreliable = self.queues.vis[vi].level == Reliability::Unreliable;
        let (place, data) = split(frame);
        let first = frame.header.flags & flag::FIRST != 0;
        let message = match (first, self.queues.vis[vi].recv) {
            (true, Some(_)) if !unreliable => return self.break_message(vi),
            (true, _) => {
                let (length, sequence) = (place.total, frame.header.sequence);
                RecvMessage { write: true, length, placed: 0, sequence }
            }
            (false, Some(message)) if message.write => message,
            (false, _) => return self.stray_frame(vi),
        };
        self.queues.vis[vi].recv = None;
        self.queues.forget_cached(vi, Queue::Recv);
        let n = small32(data.len());
        let end = u64::from(message.placed) + u64::from(n);
        let last = frame.header.flags & flag::LAST != 0;
        let continues = frame.header.sequence == message.sequence
            && (!first || frame.header.sequence & 0xff == 0);
        let fits = place.total == message.length
            && message.length <= MAX_TRANSFER_BYTES
            && end <= u64::from(message.length)
            && (!last || end == u64::from(message.length));
        if unreliable && !(continues && fits) {
            self.cx.count(Counter::UnreliableGap);
            return;
        }
        if !fits {
            self.queues.stop_and_refuse(vi, Queue::Recv, StopReason::Length, self.cx);
            return;
        }
        let range = if first { message.length } else { n };
        let Some(bus) = self.queues.remote_range(vi, false, place.address, place.handle, range)
        else {
            self.cx.count(Counter::RdmaRefused);
            if !unreliable {
                self.queues.stop_and_refuse(vi, Queue::Recv, StopReason::RdmaWrite, self.cx);
            }
            return;
        };
        if n != 0 {
            self.cx.write(bus, data);
        }
        if !last {
            self.queues.vis[vi].recv = Some(message.after(n));
            return;
        }
        let immediate = frame.header.flags & flag::IMMEDIATE != 0;
        let done = !immediate || self.report_immediate(vi, frame.header.word, message.length);
        if done && frame.header.flags & flag::RECEPTION != 0 {
            self.queues.vis.set_pending(vi, Pending::Ack);
        }
    }

    /// Immediate data of an RDMA write takes a receive descriptor: section 11.4. False if it did
    /// not.
    fn report_immediate(&mut self, vi: u16, word: u32, length: u32) -> bool {
        self.queues.vis[vi].operations[Queue::Recv as usize] = status::OP_REMOTE_RDMA_WRITE;
        if self.queues.vis[vi].queues[Queue::Recv as usize].count == 0 {
            if self.queues.vis[vi].level == Reliability::Unreliable {
                self.cx.count(Counter::UnreliableEmpty);
            } else {
                self.queues.stop_and_refuse(vi, Queue::Recv, StopReason::ReceiveEmpty, self.cx);
            }
            return false;
        }
        if let Err(fault) = self.queues.fetch_control(vi, Queue::Recv, self.cx) {
            self.queues.fail(vi, Queue::Recv, fault, false, self.cx);
            return false;
        }
        self.cx.count(Counter::DescriptorsFetched);
        let ending = Ending { immediate: Some(word), ..Ending::good(length) };
        self.queues.complete(vi, Queue::Recv, ending, self.cx)
    }

    /// The peer asks for memory: section 12.2.
    pub(super) fn take_request(&mut self, vi: u16, frame: &Frame) {
        let (RdmaHeader { address, handle, total }, _) = split(frame);
        if total > MAX_TRANSFER_BYTES || self.queues.vis[vi].answer.is_some() {
            self.queues.stop_and_refuse(vi, Queue::Recv, StopReason::Length, self.cx);
        } else if self.queues.remote_range(vi, true, address, handle, total).is_none() {
            self.queues.refuse_read(vi, self.cx);
        } else {
            self.queues.vis[vi].answer = Some(Answer { address, handle, left: total });
            self.queues.vis.make_ready(vi);
        }
    }

    /// Part of the answer to a read of this VI: section 12.4.
    pub(super) fn take_response(&mut self, vi: u16, frame: &Frame) {
        let SendPhase::Reading { placed, total } = self.queues.vis[vi].send else {
            self.cx.count(Counter::Unmatched);
            return;
        };
        let (n, left) = (frame.payload.len(), frame.header.word);
        let end = u64::from(placed) + n as u64;
        if end + u64::from(left) != u64::from(total) || (n == 0 && left != 0) {
            self.queues.stop_and_refuse(vi, Queue::Send, StopReason::Length, self.cx);
            return;
        }
        if n != 0 {
            let resolved = self.queues.fetch(vi, Queue::Send, self.cx).and_then(|r| {
                let same =
                    r.total == u64::from(total) && r.operation.status() == status::OP_RDMA_READ;
                if same { Ok(r) } else { Err(Fault::LENGTH) }
            });
            let resolved = match resolved {
                Ok(resolved) => resolved,
                Err(fault) => {
                    if matches!(fault, Fault::Bad { .. }) {
                        self.queues.vis[vi].send = SendPhase::Between;
                    }
                    return self.queues.fail(vi, Queue::Send, fault, placed != 0, self.cx);
                }
            };
            let mut at = 0;
            for (bus, n) in resolved.ranges(u64::from(placed), n) {
                self.cx.write(bus, &frame.payload[at..at + n]);
                at += n;
            }
        }
        if left != 0 {
            let placed = placed + small32(n);
            self.queues.vis[vi].send = SendPhase::Reading { placed, total };
            return;
        }
        self.queues.vis[vi].send = SendPhase::Between;
        self.queues.complete(vi, Queue::Send, Ending::good(total), self.cx);
        self.queues.vis.make_ready(vi);
    }
}
