//! What a VI does with packets that arrive.

use port::desc::status;
use port::stamp::{Stage, stamp};
use port::{Handle, MAX_TRANSFER_BYTES, Queue, StopReason};

use super::context::Net;
use super::ending::{complete, fail, peer_stopped, stop_both};
use super::engine::{finish_awaited, reachable};
use super::flow::Arrival;
use super::format::{Fragment, Header, Operation, Packet, flag, parse};
use super::state::{Answer, Arriving, Sending, State};
use crate::via::data::scatter;
use crate::via::descriptor::{Descriptor, Fault, Pieces};
use crate::via::vi::ViCore;

/// A packet of the VI's connection arrived. `bytes` are all of it.
pub(super) fn packet(net: &Net, now: u64, state: &mut State, packet: &Packet<'_>, bytes: &[u8]) {
    let (header, bits) = match *packet {
        Packet::Data { header, .. } => (header, &[][..]),
        Packet::Ack { header, bits } => (header, bits),
        _ => return,
    };
    let Some(link) = &mut state.link else { return };
    link.seen_at = now;
    link.flow.sender.acknowledged(now, header.ack, bits);
    finish_awaited(net, state);
    let Some(link) = &mut state.link else { return };
    if header.has(flag::STOPPED) {
        link.is_void();
    }
    if let Packet::Data { fragment, data, .. } = packet {
        self::data(net, now, state, &header, (fragment, data), bytes);
    } else if header.has(flag::WANTS_ACK) {
        link.flow.receiver.ask_for_ack();
    }
}

fn data(
    net: &Net,
    now: u64,
    state: &mut State,
    header: &Header,
    (fragment, data): (&Fragment, &[u8]),
    bytes: &[u8],
) {
    stamp(Stage::Wire);
    let Some(link) = &mut state.link else { return };
    if state.vi.is_stopped {
        // It takes nothing any more, which the acknowledgement says.
        return link.flow.receiver.ask_for_ack();
    }
    match link.flow.receiver.arrived(header.sequence, bytes) {
        Arrival::Next => {}
        Arrival::Held => return net.counters.reordered.count(),
        Arrival::Duplicate => return net.counters.duplicates.count(),
        Arrival::Beyond => return net.counters.beyond.count(),
    }
    let wants_ack = header.has(flag::WANTS_ACK);
    let mut next = taken(net, now, state, fragment, data, wants_ack);
    while let Some(bytes) = next {
        // It was one when it arrived.
        let Ok(Packet::Data { header, fragment, data }) = parse(&bytes) else { return };
        next = taken(net, now, state, &fragment, data, header.has(flag::WANTS_ACK));
    }
}

/// Takes the next packet; returns the one behind it, if it is here. A packet that stops the VI is not
/// acknowledged.
fn taken(
    net: &Net,
    now: u64,
    state: &mut State,
    fragment: &Fragment,
    data: &[u8],
    wants_ack: bool,
) -> Option<Vec<u8>> {
    let is_stop = matches!(fragment.operation, Operation::Stop(_));
    take(net, state, fragment, data);
    state.vi.known.trim();
    let link = state.link.as_mut()?;
    if state.vi.is_stopped && !is_stop {
        link.flow.receiver.ask_for_ack();
        return None;
    }
    let next = link.flow.receiver.advance(now, wants_ack || is_stop);
    next.filter(|_| !is_stop)
}

fn take(net: &Net, state: &mut State, fragment: &Fragment, data: &[u8]) {
    match fragment.operation {
        Operation::Send => send(net, state, fragment, data),
        Operation::Write => write(net, state, fragment, data),
        Operation::ReadRequest => read_request(net, state, fragment),
        Operation::ReadResponse => read_response(net, state, fragment, data),
        Operation::Stop(reason) => peer_stopped(net, state, reason),
    }
}

/// The peer does not keep the rules.
fn violation(net: &Net, state: &mut State, queue: Queue) {
    stop_both(net, state, StopReason::ConnectionLost, queue);
}

/// Whether a fragment begins a message, or continues the one that arrives. If neither, it is dropped
/// on Unreliable, and stops the VI on the other levels.
fn continues(net: &Net, state: &mut State, fragment: &Fragment, data: &[u8]) -> bool {
    let is_write = fragment.operation == Operation::Write;
    let unreliable = state.vi.is_unreliable();
    let Some(link) = &mut state.link else { return false };
    let Fragment { message, length, offset, .. } = *fragment;
    let bytes = u32::try_from(data.len()).unwrap_or(u32::MAX);
    let end = offset.checked_add(bytes);
    let fits = length <= MAX_TRANSFER_BYTES
        && end.is_some_and(|end| end <= length && fragment.is_last == (end == length))
        && fragment.is_first == (offset == 0);
    let expected = Arriving { is_write, message, length, placed: offset };
    let is_next =
        if fragment.is_first { link.arriving.is_none() } else { link.arriving == Some(expected) };
    if fits && is_next {
        return true;
    }
    if !unreliable {
        violation(net, state, Queue::Recv);
        return false;
    }
    if link.arriving.take().is_some() {
        net.counters.unreliable_gap.count();
    }
    // The message before is lost, and this one begins.
    fits && fragment.is_first
}

/// Remembers how far a message has arrived.
fn advance(state: &mut State, fragment: &Fragment, data: &[u8]) {
    let Some(link) = &mut state.link else { return };
    let Fragment { message, length, offset, .. } = *fragment;
    let placed = offset + u32::try_from(data.len()).unwrap_or(0);
    let is_write = fragment.operation == Operation::Write;
    link.arriving = (!fragment.is_last).then_some(Arriving { is_write, message, length, placed });
}

/// The oldest receive, for a message of a length; `pieces` says where its data goes. None: there is
/// none, or it has failed.
fn receive(
    net: &Net,
    state: &mut State,
    length: u32,
    operation: u32,
) -> Option<(Descriptor, Option<Pieces>)> {
    let Some(post) = state.vi.receives.front().copied() else {
        if state.vi.is_unreliable() {
            net.counters.unreliable_empty.count();
        } else {
            stop_both(net, state, StopReason::ReceiveQueueEmpty, Queue::Recv);
        }
        return None;
    };
    let (tag, level) = (state.vi.settings.tag, state.vi.settings.reliability);
    let ViCore { known, regions, .. } = &mut state.vi;
    let descriptor = match Descriptor::read(&post, tag, known, regions) {
        Ok(descriptor) => descriptor,
        Err(fault) => {
            state.vi.receives.pop_front();
            fail(net, state, Queue::Recv, None, fault);
            return None;
        }
    };
    if operation == status::OP_REMOTE_RDMA_WRITE {
        return Some((descriptor, None));
    }
    let mut pieces = Pieces::default();
    let resolved = descriptor.resolve(Queue::Recv, level, tag, (known, regions), &mut pieces);
    let pieces = resolved.and_then(|_| {
        let fits = u64::from(length) <= pieces.total;
        if fits { Ok(pieces) } else { Err(pieces.excess()) }
    });
    match pieces {
        Ok(pieces) => Some((descriptor, Some(pieces))),
        Err(fault) => {
            state.vi.receives.pop_front();
            fail(net, state, Queue::Recv, Some(&descriptor), fault);
            None
        }
    }
}

fn send(net: &Net, state: &mut State, fragment: &Fragment, data: &[u8]) {
    if !continues(net, state, fragment, data) {
        return;
    }
    let Some((descriptor, pieces)) = receive(net, state, fragment.length, status::OP_RECEIVE)
    else {
        if let Some(link) = &mut state.link {
            link.arriving = None;
        }
        return;
    };
    stamp(Stage::Match);
    if let Some(pieces) = pieces {
        scatter(&state.vi.known, &pieces, fragment.offset as usize, data);
    }
    stamp(Stage::Write);
    advance(state, fragment, data);
    if fragment.is_last {
        let operation = status::OP_RECEIVE;
        descriptor.complete(&state.vi.known, fragment.length, fragment.immediate, operation);
        stamp(Stage::Status);
        state.vi.receives.pop_front();
        state.vi.report(Queue::Recv);
    }
}

fn write(net: &Net, state: &mut State, fragment: &Fragment, data: &[u8]) {
    if !continues(net, state, fragment, data) {
        return;
    }
    let handle = Handle(fragment.handle);
    let at = fragment.address.wrapping_add(fragment.offset.into());
    // The first fragment is refused for what the whole message may not do.
    let length = if fragment.is_first { u64::from(fragment.length) } else { data.len() as u64 };
    let Some(found) = reachable(state, handle, at, length, |rdma| rdma.write) else {
        net.counters.rdma_refused.count();
        if let Some(link) = &mut state.link {
            link.arriving = None;
        }
        if !state.vi.is_unreliable() {
            stop_both(net, state, StopReason::RdmaWriteRefused, Queue::Recv);
        }
        return;
    };
    if let Some((place, offset)) = found {
        state.vi.known.at(place).memory.copy_from(offset, data);
    }
    advance(state, fragment, data);
    let Some(immediate) = fragment.immediate.filter(|_| fragment.is_last) else { return };
    let operation = status::OP_REMOTE_RDMA_WRITE;
    if let Some((descriptor, _)) = receive(net, state, fragment.length, operation) {
        descriptor.complete(&state.vi.known, fragment.length, Some(immediate), operation);
        state.vi.receives.pop_front();
        state.vi.report(Queue::Recv);
    }
}

fn read_request(net: &Net, state: &mut State, fragment: &Fragment) {
    let Fragment { handle, address, length, .. } = *fragment;
    let answers = state.link.as_ref().is_some_and(super::state::Link::is_answering);
    if answers || length > MAX_TRANSFER_BYTES || state.vi.is_unreliable() {
        return violation(net, state, Queue::Recv);
    }
    if reachable(state, Handle(handle), address, length.into(), |rdma| rdma.read).is_none() {
        net.counters.rdma_refused.count();
        return stop_both(net, state, StopReason::RdmaReadRefused, Queue::Recv);
    }
    if let Some(link) = &mut state.link {
        link.answer = Some(Answer { handle, address, offset: 0, length });
    }
}

fn read_response(net: &Net, state: &mut State, fragment: &Fragment, data: &[u8]) {
    let Some(link) = &mut state.link else { return };
    let bytes = u32::try_from(data.len()).unwrap_or(u32::MAX);
    let Sending::Reading { placed, length } = link.sending else {
        return violation(net, state, Queue::Send);
    };
    let end = placed.checked_add(bytes).filter(|end| *end <= length);
    let Some(end) = end.filter(|end| {
        fragment.offset == placed
            && fragment.length == length
            && fragment.is_last == (*end == length)
    }) else {
        return violation(net, state, Queue::Send);
    };
    let Some(post) = state.vi.sends.front().copied() else { return };
    let (tag, level) = (state.vi.settings.tag, state.vi.settings.reliability);
    let ViCore { known, regions, .. } = &mut state.vi;
    let read = Descriptor::read(&post, tag, known, regions);
    let descriptor = match read {
        Ok(descriptor) => descriptor,
        Err(fault) => {
            state.vi.sends.pop_front();
            fail(net, state, Queue::Send, None, fault);
            return;
        }
    };
    let mut pieces = Pieces::default();
    let resolved = descriptor.resolve(Queue::Send, level, tag, (known, regions), &mut pieces);
    let partial = if placed > 0 { status::PARTIAL_ERROR } else { 0 };
    let resolved = resolved.and_then(|_| {
        let same = pieces.total == u64::from(length);
        if same { Ok(pieces) } else { Err(Fault::Bad(status::LENGTH_ERROR)) }
    });
    match resolved {
        Ok(pieces) => scatter(&state.vi.known, &pieces, placed as usize, data),
        Err(fault) => {
            let fault = match fault {
                Fault::Bad(bits) => Fault::Bad(bits | partial),
                Fault::Unreachable => fault,
            };
            state.vi.sends.pop_front();
            fail(net, state, Queue::Send, Some(&descriptor), fault);
            return;
        }
    }
    let Some(link) = &mut state.link else { return };
    link.sending = Sending::Reading { placed: end, length };
    if end == length {
        link.sending = Sending::None;
        complete(state, &descriptor, length, status::OP_RDMA_READ);
    }
}
