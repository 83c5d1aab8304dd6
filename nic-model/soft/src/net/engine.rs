//! What a VI sends: messages, RDMA, answers to the peer's reads.

use port::desc::status;
use port::doorbell::Post;
use port::stamp::{Stage, stamp};
use port::{Handle, Queue, RdmaAccess, Reliability, StopReason};

use super::context::Net;
use super::ending::{complete, fail, fail_for, stop_both};
use super::format::{Fragment, Operation as Kind};
use super::state::{Answer, Link, Sending, State};
use crate::via::data::gather;
use crate::via::descriptor::{Descriptor, Fault, Operation, Pieces};
use crate::via::vi::ViCore;

/// A send was posted.
pub(super) fn post_send(state: &mut State, post: &Post) {
    stamp(Stage::Doorbell);
    if state.link.is_some() && !state.vi.is_stopped {
        state.vi.sends.push_back(*post);
    }
}

/// A receive was posted. Before the VI is connected it waits for the peer.
pub(super) fn post_recv(state: &mut State, post: &Post) {
    if !state.vi.is_stopped {
        state.vi.receives.push_back(*post);
    }
}

/// Sends what can be sent, and acknowledges what is to be acknowledged.
#[inline]
pub(super) fn pump(net: &Net, now: u64, state: &mut State) {
    while !state.vi.is_stopped && (answer(net, now, state) || send(net, now, state)) {}
    state.vi.known.trim();
    if let Some(link) = &mut state.link {
        link.flush(net, now, state.vi.is_stopped);
    }
}

fn can_send(state: &State) -> bool {
    !state.vi.is_stopped && state.link.as_ref().is_some_and(|link| link.flow.sender.has_credit())
}

/// Goes on with the oldest send. False: there is nothing that could be done now.
fn send(net: &Net, now: u64, state: &mut State) -> bool {
    let (Some(post), Some(link)) = (state.vi.sends.front().copied(), &mut state.link) else {
        return false;
    };
    match link.sending {
        Sending::Awaiting { .. } => return finish_awaited(net, state),
        Sending::Reading { .. } => return false,
        Sending::None | Sending::Message { .. } if !link.flow.sender.has_credit() => return false,
        Sending::None | Sending::Message { .. } => {}
    }
    let sending = link.sending;
    let Some((descriptor, operation, pieces)) = resolve(net, state, &post) else {
        return !state.vi.is_stopped;
    };
    stamp(Stage::Descriptor);
    let length = u32::try_from(pieces.total).unwrap_or(u32::MAX);
    if let Sending::Message { length: before, .. } = sending
        && before != length
    {
        let fault = Fault::Bad(status::LENGTH_ERROR | status::PARTIAL_ERROR);
        return failed(net, state, &descriptor, fault, StopReason::DescriptorError);
    }
    match operation {
        Operation::Message => message(net, now, state, &descriptor, &pieces, None),
        Operation::Write(address, handle) => {
            message(net, now, state, &descriptor, &pieces, Some((address, handle)));
        }
        Operation::Read(address, handle) => {
            let fragment = Fragment {
                operation: Kind::ReadRequest,
                length,
                handle,
                address,
                ..Fragment::stop(StopReason::Disconnected)
            };
            if let Some(link) = &mut state.link {
                link.push(now, &fragment, 0, |_| {});
                link.sending = Sending::Reading { placed: 0, length };
            }
        }
    }
    true
}

/// A send cannot be carried out. Whether the VI goes on.
fn failed(
    net: &Net,
    state: &mut State,
    descriptor: &Descriptor,
    fault: Fault,
    reason: StopReason,
) -> bool {
    state.vi.sends.pop_front();
    if let Some(link) = &mut state.link {
        if !matches!(link.sending, Sending::None) {
            link.message = link.message.wrapping_add(1);
        }
        link.sending = Sending::None;
    }
    fail_for(net, state, Queue::Send, Some(descriptor), fault, reason)
}

/// The descriptor of the oldest send and what it asks for, checked. None: it has failed.
fn resolve(net: &Net, state: &mut State, post: &Post) -> Option<(Descriptor, Operation, Pieces)> {
    let (tag, level) = (state.vi.settings.tag, state.vi.settings.reliability);
    let ViCore { known, regions, .. } = &mut state.vi;
    let descriptor = match Descriptor::read(post, tag, known, regions) {
        Ok(descriptor) => descriptor,
        Err(fault) => {
            state.vi.sends.pop_front();
            fail(net, state, Queue::Send, None, fault);
            return None;
        }
    };
    let mut pieces = Pieces::default();
    let resolved = descriptor.resolve(Queue::Send, level, tag, (known, regions), &mut pieces);
    let max = u64::from(state.vi.settings.max_transfer);
    let resolved = resolved.and_then(|operation| {
        let fits = pieces.total <= max;
        if fits { Ok((operation, pieces)) } else { Err(Fault::Bad(status::LENGTH_ERROR)) }
    });
    let (operation, pieces) = match resolved {
        Ok(resolved) => resolved,
        Err(fault) => {
            failed(net, state, &descriptor, fault, fault.reason());
            return None;
        }
    };
    let remote = &state.link.as_ref()?.remote;
    let refused = match operation {
        Operation::Write(..) if !remote.rdma_write => Some(StopReason::RdmaWriteRefused),
        Operation::Read(..) if !remote.rdma_read => Some(StopReason::RdmaReadRefused),
        _ => None,
    };
    if let Some(reason) = refused {
        failed(net, state, &descriptor, Fault::Bad(status::RDMA_PROT_ERROR), reason);
        return None;
    }
    Some((descriptor, operation, pieces))
}

/// Gives packets of a message, or of an RDMA write to an address of a region, to the connection.
fn message(
    net: &Net,
    now: u64,
    state: &mut State,
    descriptor: &Descriptor,
    pieces: &Pieces,
    target: Option<(u64, u32)>,
) {
    let Some(link) = &mut state.link else { return };
    let length = u32::try_from(pieces.total).unwrap_or(u32::MAX);
    let (number, mut offset) = match link.sending {
        Sending::Message { number, offset, .. } => (number, offset),
        _ => (link.message, 0),
    };
    let immediate = descriptor.has_immediate().then_some(descriptor.immediate);
    let (address, handle) = target.unwrap_or((0, 0));
    let operation = if target.is_some() { Kind::Write } else { Kind::Send };
    loop {
        let bytes = (length - offset).min(u32::try_from(link.segment).unwrap_or(u32::MAX));
        let is_last = offset + bytes == length;
        let fragment = Fragment {
            operation,
            is_first: offset == 0,
            is_last,
            immediate: immediate.filter(|_| is_last),
            message: number,
            length,
            offset,
            handle,
            address,
        };
        let known = &state.vi.known;
        link.push(now, &fragment, bytes as usize, |data| {
            gather(known, pieces, offset as usize, data);
        });
        offset += bytes;
        if is_last {
            break;
        }
        if !link.flow.sender.has_credit() {
            link.flush(net, now, false);
        }
        if !link.flow.sender.has_credit() {
            link.sending = Sending::Message { number, offset, length };
            return;
        }
    }
    stamp(Stage::Data);
    link.message = number.wrapping_add(1);
    link.sending = Sending::None;
    if matches!(state.vi.settings.reliability, Reliability::Reception) {
        link.sending = Sending::Awaiting { before: link.flow.sender.next(), length };
        return;
    }
    complete(state, descriptor, length, descriptor.operation_bits(Queue::Send));
}

/// Completes a send on Reliable Reception whose packets have arrived. False: they have not.
pub(super) fn finish_awaited(net: &Net, state: &mut State) -> bool {
    let Some(link) = &mut state.link else { return false };
    let Sending::Awaiting { before, length } = link.sending else { return false };
    if !link.flow.sender.has_arrived(before) {
        return false;
    }
    link.sending = Sending::None;
    let Some(post) = state.vi.sends.front().copied() else { return false };
    let ViCore { known, regions, settings, .. } = &mut state.vi;
    match Descriptor::read(&post, settings.tag, known, regions) {
        Ok(descriptor) => {
            complete(state, &descriptor, length, descriptor.operation_bits(Queue::Send));
        }
        Err(fault) => {
            state.vi.sends.pop_front();
            fail(net, state, Queue::Send, None, fault);
        }
    }
    true
}

/// Sends a packet of the answer to the peer's read. False: there is none, or it cannot be sent now.
fn answer(net: &Net, now: u64, state: &mut State) -> bool {
    if !can_send(state) {
        return false;
    }
    let Some(Answer { handle, address, offset, length }) =
        state.link.as_ref().and_then(|link| link.answer)
    else {
        return false;
    };
    let left = u64::from(length - offset);
    let at = address.wrapping_add(offset.into());
    let Some(found) = reachable(state, Handle(handle), at, left, |rdma| rdma.read) else {
        net.counters.rdma_refused.count();
        stop_both(net, state, StopReason::RdmaReadRefused, Queue::Recv);
        return false;
    };
    let State { vi: ViCore { known, .. }, link: Some(link), .. } = state else { return false };
    let bytes = (length - offset).min(u32::try_from(link.segment).unwrap_or(u32::MAX));
    let is_last = offset + bytes == length;
    let fragment = Fragment {
        operation: Kind::ReadResponse,
        is_first: offset == 0,
        is_last,
        length,
        offset,
        ..Fragment::stop(StopReason::Disconnected)
    };
    link.push(now, &fragment, bytes as usize, |data| {
        if let Some((place, at)) = found {
            known.at(place).memory.copy_to(at, data);
        }
    });
    let next = Answer { handle, address, offset: offset + bytes, length };
    link.answer = (!is_last).then_some(next);
    true
}

/// Place and offset of a range that the peer may access, as far as `right` says; Some(None) for an
/// empty one. None: it may not.
pub(super) fn reachable(
    state: &mut State,
    handle: Handle,
    address: u64,
    length: u64,
    right: impl Fn(RdmaAccess) -> bool,
) -> Option<Option<(usize, usize)>> {
    right(state.vi.settings.rdma).then_some(())?;
    if length == 0 {
        return Some(None);
    }
    let place = state.vi.known.find(&state.vi.regions, handle)?;
    let region = state.vi.known.at(place);
    let allowed = region.tag == state.vi.settings.tag && right(region.rdma);
    let offset = region.offset(address, length).filter(|_| allowed)?;
    Some(Some((place, offset)))
}

impl Link {
    /// Whether a read of the peer is answered.
    pub(super) const fn is_answering(&self) -> bool {
        self.answer.is_some()
    }
}
