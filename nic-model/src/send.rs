//! The send engine: VIs with work take turns, frame by frame.

use std::collections::VecDeque;

use bitvec::vec::BitVec;
use nic_regs::csr::Stamp;
use nic_regs::desc::control;
use nic_regs::doorbell::Queue;
use nic_regs::frame::{Header, RDMA_HEADER_BYTES, RdmaHeader, Type, flag};
use nic_regs::limits::{LINK_PAYLOAD_BYTES, VI_COUNT};
use nic_regs::vi::Reliability;

use crate::bits::{low32, small8, small16, small32};
use crate::desc::{Ending, Fault, Operation, Resolved};
use crate::device::HostBus;
use crate::frame::Frame;
use crate::nic::Model;
use crate::vi::{Owed, SendPhase};

/// The send engine's own state.
#[derive(Clone, Debug)]
pub(crate) struct SendEngine {
    /// VIs that wait for a turn, in the order in which they became ready.
    ring: VecDeque<u16>,
    /// VIs that were passed over: their peer is not open or lacks pool or credits.
    blocked: VecDeque<u16>,
    /// VIs that are in either.
    ready: BitVec,
    /// Something changed that may let a blocked VI go on.
    retry: bool,
    /// The descriptor of the last turn, for a frame that follows directly.
    cache: Option<(u16, Resolved)>,
}

impl Default for SendEngine {
    fn default() -> Self {
        Self {
            ring: VecDeque::new(),
            blocked: VecDeque::new(),
            ready: BitVec::repeat(false, VI_COUNT),
            retry: false,
            cache: None,
        }
    }
}

impl SendEngine {
    /// Whether a VI may have a turn now.
    pub(crate) fn busy(&self) -> bool {
        !self.ring.is_empty() || (self.retry && !self.blocked.is_empty())
    }

    /// Gives passed-over VIs another try.
    pub(crate) fn retry(&mut self) {
        self.retry = true;
    }

    /// Forgets the descriptor at hand if it is `vi`'s, or whoever's it is.
    pub(crate) fn forget(&mut self, vi: Option<u16>) {
        if vi.is_none_or(|vi| self.cache.as_ref().is_some_and(|c| c.0 == vi)) {
            self.cache = None;
        }
    }
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

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// A frame was sent, or a descriptor was completed, or the VI stopped.
    Worked,
    /// The channel does not take the frame now.
    Blocked,
}

impl Model {
    /// Puts a VI with something to send at the end of the ring.
    pub(crate) fn make_ready(&mut self, vi: u16) {
        let index = usize::from(vi);
        let v = self.vi(vi);
        let wants = self.vis.first_owed(vi).is_some() || v.answer.is_some() || v.send_work();
        if wants && !self.send.ready[index] {
            self.send.ready.set(index, true);
            self.send.ring.push_back(vi);
        }
    }

    /// One turn of the first VI that can use one.
    pub(crate) fn send_step(&mut self, host: &mut dyn HostBus) {
        if self.send.retry {
            self.send.retry = false;
            while let Some(vi) = self.send.blocked.pop_back() {
                self.send.ring.push_front(vi);
            }
        }
        while let Some(vi) = self.send.ring.pop_front() {
            self.send.ready.set(usize::from(vi), false);
            let turn = match self.vis.first_owed(vi) {
                Some(owed) => self.send_owed(vi, owed),
                None if self.vi(vi).answer.is_some() => self.send_answer(vi, host),
                None if self.vi(vi).send_work() => self.send_data(vi, host),
                None => continue,
            };
            match turn {
                Turn::Worked => {
                    self.make_ready(vi);
                    return;
                }
                Turn::Blocked => {
                    self.send.ready.set(usize::from(vi), true);
                    self.send.blocked.push_back(vi);
                }
            }
        }
    }

    pub(crate) fn header(&self, vi: u16, kind: Type, flags: u8) -> Header {
        let remote = self.vi(vi).remote;
        Header {
            kind: small8(kind as usize),
            dst_node: remote.node,
            dst_vi: remote.vi,
            src_vi: vi,
            connection: remote.connection,
            flags,
            ..Header::default()
        }
    }

    /// The VI's first owed control frame.
    fn send_owed(&mut self, vi: u16, owed: Owed) -> Turn {
        let node = self.vi(vi).remote.node;
        if !self.channels.is_open(node) {
            self.vis.forget_owed(vi);
            return Turn::Worked;
        }
        let (kind, word) = match owed {
            Owed::Ack => (Type::ViAck, 0),
            Owed::Refuse => (Type::ViRefuse, small32(self.vi(vi).refusal as usize)),
            Owed::Fin => (Type::Fin, 0),
        };
        let mut header = self.header(vi, kind, flag::SEQUENCED);
        header.word = word;
        if !self.channels.admits(node, &header) {
            return Turn::Blocked;
        }
        self.vis.set_owed(vi, owed, false);
        self.channels.enqueue(Frame { header, payload: Vec::new() });
        Turn::Worked
    }

    /// The next frame of the VI's message.
    fn send_data(&mut self, vi: u16, host: &mut dyn HostBus) -> Turn {
        let node = self.vi(vi).remote.node;
        if !self.channels.is_open(node) {
            return Turn::Blocked;
        }
        let at_hand = self.send.cache.take().filter(|cache| cache.0 == vi);
        let (sent, begun) = match self.vi(vi).send {
            SendPhase::Sending { sent, .. } => (sent, true),
            _ => (0, false),
        };
        let resolved = match at_hand {
            Some((_, resolved)) => Ok(resolved),
            None => match self.pushes.take(vi) {
                Some(inline) => self.resolve_inline(vi, inline),
                None => self.fetch(vi, Queue::Send, host),
            },
        };
        let resolved = match resolved.and_then(|r| self.check_send(vi, r)) {
            Ok(resolved) => resolved,
            Err(fault) => {
                self.fail_send(vi, fault, begun, host);
                return Turn::Worked;
            }
        };
        if matches!(resolved.operation, Operation::Read { .. }) {
            return self.send_request(vi, resolved);
        }
        let header = self.data_header(vi, &resolved, sent);
        if !self.channels.admits(node, &header) {
            self.send.cache = Some((vi, resolved));
            return Turn::Blocked;
        }
        let Some(payload) = self.payload(&header, &resolved, sent, host) else {
            self.fail_send(vi, Fault::DATA, begun, host);
            return Turn::Worked;
        };
        if header.flags & flag::FIRST != 0 {
            self.stamp(vi, Stamp::Data);
        }
        let last = header.flags & flag::LAST != 0;
        let operation = resolved.operation.status();
        let sent = sent + small32(payload.len() - header_bytes(resolved.operation));
        let total = low32(resolved.total);
        self.channels.enqueue(Frame { header, payload });
        if last {
            self.end_message(vi, total, host);
        } else {
            self.vi_mut(vi).send = SendPhase::Sending { sent, total, operation };
            self.send.cache = Some((vi, resolved));
        }
        Turn::Worked
    }

    /// Section 3.4; also, a descriptor that was changed in mid-message is refused.
    fn check_send(&self, vi: u16, resolved: Resolved) -> Result<Resolved, Fault> {
        let vi = self.vi(vi);
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
    fn payload(
        &mut self,
        header: &Header,
        resolved: &Resolved,
        sent: u32,
        host: &mut dyn HostBus,
    ) -> Option<Vec<u8>> {
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
        for (bus, n) in resolved.pieces(u64::from(sent), length) {
            let at = payload.len();
            payload.resize(at + n, 0);
            self.host_read(host, bus, &mut payload[at..]).ok()?;
        }
        Some(payload)
    }

    /// The request of an RDMA read: section 12.1.
    fn send_request(&mut self, vi: u16, resolved: Resolved) -> Turn {
        let Operation::Read { address, handle } = resolved.operation else {
            debug_assert!(false, "the operation is a read");
            return Turn::Worked;
        };
        let total = low32(resolved.total);
        let mut header = self.header(vi, Type::ReadRequest, flag::SEQUENCED);
        header.length = small16(RDMA_HEADER_BYTES);
        if !self.channels.admits(header.dst_node, &header) {
            self.send.cache = Some((vi, resolved));
            return Turn::Blocked;
        }
        let payload = rdma_header(address, handle, total).to_vec();
        self.channels.enqueue(Frame { header, payload });
        self.vi_mut(vi).send = SendPhase::Reading { placed: 0, total };
        Turn::Worked
    }

    /// The header of the frame that starts at byte `sent`.
    fn data_header(&self, vi: u16, resolved: &Resolved, sent: u32) -> Header {
        let v = self.vi(vi);
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
        let mut header = self.header(vi, kind, flags);
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
    fn end_message(&mut self, vi: u16, total: u32, host: &mut dyn HostBus) {
        let v = self.vi_mut(vi);
        v.message = v.message.wrapping_add(1);
        if v.level == Reliability::Reception {
            v.send = SendPhase::Waiting { total };
        } else {
            v.send = SendPhase::Between;
            self.complete(vi, Queue::Send, Ending::good(total), host);
        }
    }

    fn fail_send(&mut self, vi: u16, fault: Fault, begun: bool, host: &mut dyn HostBus) {
        let v = self.vi_mut(vi);
        v.message = v.message.wrapping_add(u8::from(begun));
        v.send = SendPhase::Between;
        self.fail(vi, Queue::Send, fault, begun, host);
    }
}
