//! The send engine: VIs with work get scheduling slots, one frame each.

mod answer;

use nic_regs::csr::Stamp;
use nic_regs::desc::control;
use nic_regs::doorbell::Queue;
use nic_regs::frame::{Header, RDMA_HEADER_BYTES, RdmaHeader, Type, flag};
use nic_regs::limits::LINK_PAYLOAD_BYTES;
use nic_regs::vi::Reliability;

use crate::bits::{low32, small16, small32};
use crate::context::Context;
use crate::desc::{Ending, Fault, Operation, Resolved};
use crate::frame::Frame;
use crate::vi::{Pending, SendPhase};
use crate::work_queue::WorkQueues;

/// The channels as the send engine sees them.
pub trait FrameSink {
    /// Whether the channel to a node is open.
    fn is_open(&self, node: u8) -> bool;

    /// Whether pool and credits allow a frame with this header to enter the channel now: sections
    /// 7.4 and 7.5.
    fn admits(&self, node: u8, header: &Header) -> bool;

    /// Takes an admitted frame.
    fn enqueue(&mut self, frame: Frame);
}

/// The send engine, with what it works on. All its state is in the work queues.
#[expect(missing_debug_implementations, reason = "a host bus has no text")]
pub struct SendEngine<'a, 'h> {
    /// VIs, their descriptors, the ready ring.
    pub queues: &'a mut WorkQueues,
    /// Where the frames go.
    pub channels: &'a mut dyn FrameSink,
    /// The cycle's services.
    pub cx: &'a mut Context<'h>,
}

/// Bytes in front of the data of a frame of this operation.
const fn header_bytes(operation: Operation) -> usize {
    match operation {
        Operation::Write { .. } => RDMA_HEADER_BYTES,
        _ => 0,
    }
}

fn rdma_header(address: u64, handle: u32, total: u32) -> [u8; RDMA_HEADER_BYTES] {
    let mut bytes = [0; RDMA_HEADER_BYTES];
    let [a, b] = RdmaHeader { address, handle, total }.to_beats().map(u64::to_le_bytes);
    bytes[..8].copy_from_slice(&a);
    bytes[8..].copy_from_slice(&b);
    bytes
}

/// How a scheduling slot ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// A frame was sent, or a descriptor was completed, or the VI stopped.
    Worked,
    /// The channel does not take the frame now.
    Blocked,
}

impl SendEngine<'_, '_> {
    /// One slot of the first VI that can use one.
    pub fn step(&mut self) {
        self.queues.vis.unblock();
        while let Some(vi) = self.queues.vis.next_ready() {
            let v = &self.queues.vis[vi];
            let slot = match self.queues.vis.first_pending(vi) {
                Some(pending) => self.send_pending(vi, pending),
                None if v.answer.is_some() => self.send_answer(vi),
                None if v.send_work() => self.send_data(vi),
                None => continue,
            };
            match slot {
                Slot::Worked => return self.queues.vis.make_ready(vi),
                Slot::Blocked => self.queues.vis.block(vi),
            }
        }
    }

    /// The VI's first pending control frame.
    fn send_pending(&mut self, vi: u16, pending: Pending) -> Slot {
        let v = &self.queues.vis[vi];
        let node = v.remote.node;
        if !self.channels.is_open(node) {
            self.queues.vis.forget_pending(vi);
            return Slot::Worked;
        }
        let (kind, word) = match pending {
            Pending::Ack => (Type::ViAck, 0),
            Pending::Refuse => (Type::ViRefuse, small32(v.refusal as usize)),
            Pending::Fin => (Type::Fin, 0),
        };
        let mut header = self.queues.vis.header(vi, kind, flag::SEQUENCED);
        header.word = word;
        if !self.channels.admits(node, &header) {
            return Slot::Blocked;
        }
        self.queues.vis.clear_pending(vi, pending);
        self.channels.enqueue(Frame { header, payload: Vec::new() });
        Slot::Worked
    }

    /// The next frame of a message of a VI whose send queue has work.
    pub fn send_data(&mut self, vi: u16) -> Slot {
        let v = &self.queues.vis[vi];
        let node = v.remote.node;
        if !self.channels.is_open(node) {
            return Slot::Blocked;
        }
        let (sent, begun) = match v.send {
            SendPhase::Sending { sent, .. } => (sent, true),
            _ => (0, false),
        };
        let resolved = self.queues.resolve(vi, Queue::Send, self.cx);
        let resolved = match resolved.and_then(|r| self.check_send(vi, r)) {
            Ok(resolved) => resolved,
            Err(fault) => {
                self.fail_send(vi, fault, begun);
                return Slot::Worked;
            }
        };
        if matches!(resolved.operation, Operation::Read { .. }) {
            return self.send_request(vi, resolved);
        }
        let header = self.data_header(vi, &resolved, sent);
        if !self.channels.admits(node, &header) {
            self.queues.cache(vi, Queue::Send, resolved);
            return Slot::Blocked;
        }
        let Some(payload) = self.payload(&header, &resolved, sent) else {
            self.fail_send(vi, Fault::DATA, begun);
            return Slot::Worked;
        };
        if header.flags & flag::FIRST != 0 {
            self.cx.stamp(vi, Stamp::Data);
        }
        let last = header.flags & flag::LAST != 0;
        let operation = resolved.operation.status();
        let sent = sent + small32(payload.len() - header_bytes(resolved.operation));
        let total = low32(resolved.total);
        self.channels.enqueue(Frame { header, payload });
        if last {
            self.end_message(vi, total);
        } else {
            self.queues.vis[vi].send = SendPhase::Sending { sent, total, operation };
            self.queues.cache(vi, Queue::Send, resolved);
        }
        Slot::Worked
    }

    /// Section 3.4; also, a descriptor that was changed in mid-message is refused.
    fn check_send(&self, vi: u16, resolved: Resolved) -> Result<Resolved, Fault> {
        let vi = &self.queues.vis[vi];
        let changed = matches!(vi.send, SendPhase::Sending { total, operation, .. }
            if u64::from(total) != resolved.total || operation != resolved.operation.status());
        if changed || resolved.total > u64::from(vi.max_transfer) {
            return Err(Fault::LENGTH);
        }
        match resolved.operation.needs() {
            Some((bit, fault)) if vi.remote.allows & bit == 0 => Err(fault),
            _ => Ok(resolved),
        }
    }

    /// The payload of the frame with this header, which starts at byte `sent`; `None` if it cannot
    /// be read.
    fn payload(&mut self, header: &Header, resolved: &Resolved, sent: u32) -> Option<Vec<u8>> {
        let mut payload = Vec::with_capacity(header.length.into());
        if let Operation::Write { address, handle } = resolved.operation {
            let address = address.wrapping_add(sent.into());
            payload.extend(rdma_header(address, handle, low32(resolved.total)));
        }
        if let Some(data) = &resolved.inline {
            payload.extend_from_slice(data);
            return Some(payload);
        }
        let length = usize::from(header.length) - payload.len();
        for (bus, n) in resolved.ranges(u64::from(sent), length) {
            let at = payload.len();
            payload.resize(at + n, 0);
            self.cx.read(bus, &mut payload[at..]).ok()?;
        }
        Some(payload)
    }

    /// The request of an RDMA read: section 12.1.
    fn send_request(&mut self, vi: u16, resolved: Resolved) -> Slot {
        let Operation::Read { address, handle } = resolved.operation else {
            debug_assert!(false, "the operation is a read");
            return Slot::Worked;
        };
        let total = low32(resolved.total);
        let mut header = self.queues.vis.header(vi, Type::ReadRequest, flag::SEQUENCED);
        header.length = small16(RDMA_HEADER_BYTES);
        if !self.channels.admits(header.dst_node, &header) {
            self.queues.cache(vi, Queue::Send, resolved);
            return Slot::Blocked;
        }
        let payload = rdma_header(address, handle, total).to_vec();
        self.channels.enqueue(Frame { header, payload });
        self.queues.vis[vi].send = SendPhase::Reading { placed: 0, total };
        Slot::Worked
    }

    /// The header of the frame that starts at byte `sent`.
    fn data_header(&self, vi: u16, resolved: &Resolved, sent: u32) -> Header {
        let v = &self.queues.vis[vi];
        let total = low32(resolved.total);
        let length = (total - sent).min(small32(LINK_PAYLOAD_BYTES));
        let immediate = resolved.control.control & control::IMMEDIATE != 0;
        let (first, last) = (sent == 0, sent + length == total);
        let mut flags = match v.level {
            Reliability::Unreliable => 0,
            Reliability::Delivery => flag::SEQUENCED,
            Reliability::Reception => flag::SEQUENCED | flag::RECEPTION,
        };
        for (on, bit) in
            [(first, flag::FIRST), (last, flag::LAST), (last && immediate, flag::IMMEDIATE)]
        {
            flags |= if on { bit } else { 0 };
        }
        let write = matches!(resolved.operation, Operation::Write { .. });
        let kind = if write { Type::RdmaWrite } else { Type::Data };
        let mut header = self.queues.vis.header(vi, kind, flags);
        header.length = small16(header_bytes(resolved.operation) + length as usize);
        header.word = match (first, last) {
            (_, true) if immediate => resolved.control.immediate,
            (true, false) if !write => total,
            _ => 0,
        };
        if v.level == Reliability::Unreliable {
            let fragment = sent / small32(LINK_PAYLOAD_BYTES);
            header.sequence = u16::from(v.message) << 8 | small16(fragment as usize);
        }
        header
    }

    /// The last frame of a message is in the channel.
    fn end_message(&mut self, vi: u16, total: u32) {
        let v = &mut self.queues.vis[vi];
        v.message = v.message.wrapping_add(1);
        if v.level == Reliability::Reception {
            v.send = SendPhase::Waiting { total };
        } else {
            v.send = SendPhase::Between;
            self.queues.complete(vi, Queue::Send, Ending::good(total), self.cx);
        }
    }

    fn fail_send(&mut self, vi: u16, fault: Fault, begun: bool) {
        let v = &mut self.queues.vis[vi];
        v.message = v.message.wrapping_add(u8::from(begun));
        v.send = SendPhase::Between;
        self.queues.fail(vi, Queue::Send, fault, begun, self.cx);
    }
}
