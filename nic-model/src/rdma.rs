//! RDMA at its target, and the answer at the asker: sections 11 and 12. What the initiator sends is
//! in `send`, but for the answers to the peer's reads.

use nic_regs::counter::Counter;
use nic_regs::desc::status;
use nic_regs::doorbell::Queue;
use nic_regs::frame::{RDMA_HEADER_BYTES, RdmaHeader, Type, flag};
use nic_regs::limits::{LINK_PAYLOAD_BYTES, MAX_TRANSFER_BYTES};
use nic_regs::tpt::{Handle, RIGHT_RDMA_READ, RIGHT_RDMA_WRITE};
use nic_regs::vi::{Reliability, StopReason, rdma};

use crate::bits::{small16, small32};
use crate::desc::{Ending, Fault};
use crate::device::HostBus;
use crate::frame::Frame;
use crate::nic::Model;
use crate::recv::RecvMessage;
use crate::send::Turn;
use crate::vi::{Answer, Owed, SendPhase};

/// The RDMA header of a frame, and the data behind it. The length was checked at acceptance.
fn split(frame: &Frame) -> (RdmaHeader, &[u8]) {
    let (header, data) = frame.payload.split_at(RDMA_HEADER_BYTES.min(frame.payload.len()));
    let (words, _) = header.as_chunks::<8>();
    let beat = |i: usize| words.get(i).map_or(0, |word| u64::from_le_bytes(*word));
    (RdmaHeader::from_beats([beat(0), beat(1)]), data)
}

impl Model {
    /// Where a range of this side's memory is that the peer names: section 11.3. An empty one is
    /// nowhere in particular.
    fn remote_range(&self, vi: u16, read: bool, address: u64, handle: u32, n: u32) -> Option<u64> {
        let v = self.vi(vi);
        let (bit, right) =
            if read { (rdma::READ, RIGHT_RDMA_READ) } else { (rdma::WRITE, RIGHT_RDMA_WRITE) };
        if v.allows & bit == 0 {
            return None;
        }
        if n == 0 {
            return Some(0);
        }
        self.regions.translate_with(right, address, Handle(handle), n, v.owner)
    }

    /// A frame of an RDMA write: section 11.
    pub(crate) fn take_write(&mut self, vi: u16, frame: &Frame, host: &mut dyn HostBus) {
        let unreliable = self.vi(vi).level == Reliability::Unreliable;
        let (place, data) = split(frame);
        let first = frame.header.flags & flag::FIRST != 0;
        let message = match (first, self.vi(vi).recv) {
            (true, Some(_)) if !unreliable => return self.break_message(vi, host),
            (true, _) => {
                let (length, sequence) = (place.total, frame.header.sequence);
                RecvMessage { write: true, length, placed: 0, sequence }
            }
            (false, Some(message)) if message.write => message,
            (false, _) => return self.stray_frame(vi),
        };
        self.vi_mut(vi).recv = None;
        self.recv.forget(Some(vi));
        let n = small32(data.len());
        let end = u64::from(message.placed) + u64::from(n);
        let last = frame.header.flags & flag::LAST != 0;
        let in_turn = frame.header.sequence == message.sequence
            && (!first || frame.header.sequence & 0xff == 0);
        let fits = place.total == message.length
            && message.length <= MAX_TRANSFER_BYTES
            && end <= u64::from(message.length)
            && (!last || end == u64::from(message.length));
        if unreliable && !(in_turn && fits) {
            self.count(Counter::UnreliableGap);
            return;
        }
        if !fits {
            self.stop_and_refuse(vi, Queue::Recv, StopReason::Length, host);
            return;
        }
        let range = if first { message.length } else { n };
        let Some(bus) = self.remote_range(vi, false, place.address, place.handle, range) else {
            self.count(Counter::RdmaRefused);
            if !unreliable {
                self.stop_and_refuse(vi, Queue::Recv, StopReason::RdmaWrite, host);
            }
            return;
        };
        if n != 0 {
            host.write(bus, data);
        }
        if !last {
            self.vi_mut(vi).recv = Some(message.after(n));
            return;
        }
        let immediate = frame.header.flags & flag::IMMEDIATE != 0;
        let done = !immediate || self.tell(vi, frame.header.word, message.length, host);
        if done && frame.header.flags & flag::RECEPTION != 0 {
            self.owe(vi, Owed::Ack);
        }
    }

    /// Immediate data of an RDMA write takes a receive descriptor: section 11.4. False if it did
    /// not.
    fn tell(&mut self, vi: u16, word: u32, length: u32, host: &mut dyn HostBus) -> bool {
        self.vi_mut(vi).operations[Queue::Recv as usize] = status::OP_REMOTE_RDMA_WRITE;
        if self.vi(vi).queues[Queue::Recv as usize].count == 0 {
            if self.vi(vi).level == Reliability::Unreliable {
                self.count(Counter::UnreliableEmpty);
            } else {
                self.stop_and_refuse(vi, Queue::Recv, StopReason::ReceiveEmpty, host);
            }
            return false;
        }
        if let Err(fault) = self.fetch_control(vi, Queue::Recv, host) {
            self.fail(vi, Queue::Recv, fault, false, host);
            return false;
        }
        self.count(Counter::DescriptorsFetched);
        let ending = Ending { immediate: Some(word), ..Ending::good(length) };
        self.complete(vi, Queue::Recv, ending, host)
    }

    /// The peer asks for memory: section 12.2.
    pub(crate) fn take_request(&mut self, vi: u16, frame: &Frame, host: &mut dyn HostBus) {
        let (RdmaHeader { address, handle, total }, _) = split(frame);
        if total > MAX_TRANSFER_BYTES || self.vi(vi).answer.is_some() {
            self.stop_and_refuse(vi, Queue::Recv, StopReason::Length, host);
        } else if self.remote_range(vi, true, address, handle, total).is_none() {
            self.refuse_read(vi, host);
        } else {
            self.vi_mut(vi).answer = Some(Answer { address, handle, left: total });
            self.make_ready(vi);
        }
    }

    fn refuse_read(&mut self, vi: u16, host: &mut dyn HostBus) {
        self.count(Counter::RdmaRefused);
        self.stop_and_refuse(vi, Queue::Recv, StopReason::RdmaRead, host);
    }

    /// The next frame of the answer that a VI owes: section 12.3.
    pub(crate) fn send_answer(&mut self, vi: u16, host: &mut dyn HostBus) -> Turn {
        let node = self.vi(vi).remote.node;
        let Some(Answer { address, handle, left }) = self.vi(vi).answer else {
            return Turn::Worked;
        };
        let n = left.min(small32(LINK_PAYLOAD_BYTES));
        let mut header = self.header(vi, Type::ReadResponse, flag::SEQUENCED);
        header.length = small16(n as usize);
        header.word = left - n;
        if !self.channels.admits(node, &header) {
            return Turn::Blocked;
        }
        let Some(bus) = self.remote_range(vi, true, address, handle, left) else {
            self.refuse_read(vi, host);
            return Turn::Worked;
        };
        let mut payload = vec![0; n as usize];
        if self.host_read(host, bus, &mut payload).is_err() {
            self.stop_and_refuse(vi, Queue::Recv, StopReason::HostRead, host);
            return Turn::Worked;
        }
        let left = left - n;
        let rest = Answer { address: address.wrapping_add(n.into()), handle, left };
        self.vi_mut(vi).answer = (left != 0).then_some(rest);
        self.channels.enqueue(Frame { header, payload });
        Turn::Worked
    }

    /// Part of the answer to a read of this VI: section 12.4.
    pub(crate) fn take_response(&mut self, vi: u16, frame: &Frame, host: &mut dyn HostBus) {
        let SendPhase::Reading { placed, total } = self.vi(vi).send else {
            self.count(Counter::Unmatched);
            return;
        };
        let (n, left) = (frame.payload.len(), frame.header.word);
        let end = u64::from(placed) + n as u64;
        if end + u64::from(left) != u64::from(total) || (n == 0 && left != 0) {
            self.stop_and_refuse(vi, Queue::Send, StopReason::Length, host);
            return;
        }
        if n != 0 {
            let resolved = self.fetch(vi, Queue::Send, host).and_then(|r| {
                let same =
                    r.total == u64::from(total) && r.operation.status() == status::OP_RDMA_READ;
                if same { Ok(r) } else { Err(Fault::LENGTH) }
            });
            let resolved = match resolved {
                Ok(resolved) => resolved,
                Err(fault) => {
                    if matches!(fault, Fault::Bad { .. }) {
                        self.vi_mut(vi).send = SendPhase::Between;
                    }
                    return self.fail(vi, Queue::Send, fault, placed != 0, host);
                }
            };
            let mut at = 0;
            for (bus, n) in resolved.pieces(u64::from(placed), n) {
                host.write(bus, &frame.payload[at..at + n]);
                at += n;
            }
        }
        if left != 0 {
            let placed = placed + small32(n);
            self.vi_mut(vi).send = SendPhase::Reading { placed, total };
            return;
        }
        self.vi_mut(vi).send = SendPhase::Between;
        self.complete(vi, Queue::Send, Ending::good(total), host);
        self.make_ready(vi);
    }
}
