//! What a VI does: sends, receives, stops.

use port::desc::status;
use port::doorbell::Post;
use port::{Queue, Reliability, StopReason};

use super::ending::{Sent, complete, fail, no_receive, peer_stopped, stop, stop_both};
use super::link::Link;
use super::net::Net;
use super::rdma;
use super::state::State;
use super::wire::{Data, INLINE_BYTES, Room, RoomPiece, Transfer};
use crate::via::descriptor::{Descriptor, Fault, Operation, Pieces};
use crate::via::region::Known;

/// A send was posted.
pub(super) fn post_send(net: &Net, state: &mut State, post: &Post) {
    if state.link.is_none() || state.is_stopped {
        return;
    }
    if !state.sends.is_empty() {
        state.sends.push_back(*post);
        return progress(net, state);
    }
    if matches!(send(net, state, post), Sent::Later) {
        state.sends.push_back(*post);
    }
    state.known.trim();
}

/// A receive was posted. Before the VI is connected it waits for the peer.
pub(super) fn post_recv(net: &Net, state: &mut State, post: &Post) {
    if state.is_stopped {
        return;
    }
    state.receives.push_back(*post);
    offer(net, state);
}

/// Does what there is to do: takes messages, and carries sends out that had to wait.
pub(super) fn progress(net: &Net, state: &mut State) {
    while let Some(link) = &mut state.link
        && !state.is_stopped
        && let Some(body) = link.arrived.peek()
    {
        let Some(transfer) = Transfer::from_body(&body) else {
            return stop(
                net,
                state,
                StopReason::ConnectionLost,
                Queue::Send,
                status::TRANSPORT_ERROR,
            );
        };
        arrived(net, state, transfer);
        state.known.trim();
    }
    if state.link.is_none() || state.is_stopped {
        return;
    }
    while !state.is_stopped
        && let Some(post) = state.sends.front().copied()
    {
        match send(net, state, &post) {
            Sent::Later => break,
            Sent::Done => state.sends.pop_front(),
            Sent::Stopped => break,
        };
    }
    if state.offered < state.receives.len() {
        offer(net, state);
    }
}

/// Carries a send out.
fn send(net: &Net, state: &mut State, post: &Post) -> Sent {
    let (tag, level) = (state.settings.tag, state.settings.reliability);
    let read = Descriptor::read(post, tag, &mut state.known, &state.regions);
    let descriptor = match read {
        Ok(descriptor) => descriptor,
        Err(fault) => return fail(net, state, Queue::Send, None, fault),
    };
    let resolved = descriptor.resolve(Queue::Send, level, tag, &mut state.known, &state.regions);
    let (operation, pieces) = match resolved {
        Ok(resolved) => resolved,
        Err(fault) => return fail(net, state, Queue::Send, Some(&descriptor), fault),
    };
    if pieces.total > u64::from(state.settings.max_transfer) {
        let fault = Fault::Bad(status::LENGTH_ERROR);
        return fail(net, state, Queue::Send, Some(&descriptor), fault);
    }
    match operation {
        Operation::Message => message(net, state, &descriptor, &pieces),
        Operation::Write(..) | Operation::Read(..) => {
            rdma::send(net, state, &descriptor, operation, &pieces)
        }
    }
}

fn message(net: &Net, state: &mut State, descriptor: &Descriptor, pieces: &Pieces) -> Sent {
    let level = state.settings.reliability;
    let immediate = descriptor.has_immediate().then_some(descriptor.immediate);
    let length = u32::try_from(pieces.total).unwrap_or(u32::MAX);
    let Some(found) = state.link.as_ref().and_then(Link::room) else {
        return no_receive(net, state, descriptor, length, status::OP_SEND);
    };
    let Some(link) = &mut state.link else { return Sent::Stopped };
    if link.messages.room() == 0 {
        return Sent::Later;
    }
    let fits = !found.is_bad && length <= found.capacity;
    let data = if !fits {
        Ok(Some(Data::None))
    } else if pieces.total <= INLINE_BYTES as u64 {
        Ok(Some(Data::Inline(gather(&state.known, pieces))))
    } else {
        match link.put(&state.known, pieces) {
            Ok(Some(at)) => Ok(Some(Data::Inbox(at))),
            Ok(None) => place(net, state, &found, pieces),
            Err(error) => Err(error),
        }
    };
    let Some(link) = &mut state.link else { return Sent::Stopped };
    let sent = data.and_then(|data| {
        let Some(data) = data else { return Ok(None) };
        link.send(Transfer::Send { length, immediate, data }).map(Some)
    });
    match sent {
        Ok(Some(_)) => {}
        Ok(None) => return Sent::Later,
        Err(_) => {
            stop(net, state, StopReason::ConnectionLost, Queue::Send, status::TRANSPORT_ERROR);
            return Sent::Stopped;
        }
    }
    link.take_room(&found);
    if !fits && matches!(level, Reliability::Reception) {
        // The peer's VI stops when it finds this.
        let bits = status::REMOTE_DESC_ERROR;
        stop(net, state, StopReason::ConnectionLost, Queue::Send, bits);
        return Sent::Stopped;
    }
    complete(state, descriptor, length, status::OP_SEND)
}

/// The data of a short message.
#[inline]
fn gather(known: &Known, pieces: &Pieces) -> [u64; INLINE_BYTES / 8] {
    let mut bytes = [0; INLINE_BYTES];
    let mut at = 0;
    for piece in pieces.as_slice() {
        let memory = &known.at(piece.place).memory;
        memory.copy_to(piece.offset, &mut bytes[at..at + piece.length]);
        at += piece.length;
    }
    let mut words = [0; INLINE_BYTES / 8];
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    words
}

/// Writes the data of a message to the peer's buffers. None: later.
fn place(
    net: &Net,
    state: &mut State,
    found: &Room,
    pieces: &Pieces,
) -> Result<Option<Data>, port::clan::DmaError> {
    let Some(link) = &mut state.link else { return Ok(None) };
    let Some(targets) = link.pieces(found) else { return Ok(None) };
    let mut sources = pieces.as_slice().iter().copied();
    let mut source = sources.next();
    for target in targets {
        let (mut at, mut left) = (target.offset, target.length as usize);
        while let Some(piece) = &mut source
            && left > 0
        {
            let length = piece.length.min(left);
            let memory = state.known.at(piece.place).memory.slice(piece.offset, length);
            let memory = memory.map_err(|_| port::clan::DmaError::Refused)?;
            let remote = link.remote(&*net.port, target.cookie);
            remote.ok_or(port::clan::DmaError::Refused)?.write(at, &memory)?;
            at += length as u64;
            left -= length;
            piece.offset += length;
            piece.length -= length;
            if piece.length == 0 {
                source = sources.next();
            }
        }
    }
    Ok(Some(Data::Placed))
}

/// A message of the peer.
fn arrived(net: &Net, state: &mut State, transfer: Transfer) {
    match transfer {
        Transfer::Send { length, immediate, data } => receive(net, state, length, immediate, data),
        Transfer::NoReceive => {
            let (reason, flushed) = (StopReason::ReceiveQueueEmpty, status::DESC_FLUSHED_ERROR);
            stop(net, state, reason, Queue::Recv, flushed);
        }
        Transfer::Written { length, immediate } => written(net, state, length, immediate),
        Transfer::RdmaRefused { is_write } => {
            let reason =
                if is_write { StopReason::RdmaWriteRefused } else { StopReason::RdmaReadRefused };
            stop(net, state, reason, Queue::Recv, status::DESC_FLUSHED_ERROR);
        }
        Transfer::Stopped(reason) => peer_stopped(net, state, reason),
    }
    if let Some(link) = &mut state.link {
        link.arrived.take();
        // A peer that does not exist any more is found lost elsewhere.
        let _ = link.arrived.give_back(&mut *link.to);
    }
}

/// Takes the immediate data of an RDMA write with the oldest receive descriptor.
fn written(net: &Net, state: &mut State, length: u32, immediate: u32) {
    let Some(post) = state.receives.pop_front() else {
        return stop_both(net, state, StopReason::ReceiveQueueEmpty, Queue::Recv);
    };
    state.offered = state.offered.saturating_sub(1);
    let read = Descriptor::read(&post, state.settings.tag, &mut state.known, &state.regions);
    match read {
        Ok(descriptor) => {
            let operation = status::OP_REMOTE_RDMA_WRITE;
            descriptor.complete(&state.known, length, Some(immediate), operation);
            state.report(Queue::Recv);
        }
        Err(fault) => {
            fail(net, state, Queue::Recv, None, fault);
        }
    }
}

/// Takes a message with the oldest receive descriptor.
fn receive(net: &Net, state: &mut State, length: u32, immediate: Option<u32>, data: Data) {
    let Some(post) = state.receives.pop_front() else {
        return stop_both(net, state, StopReason::ReceiveQueueEmpty, Queue::Recv);
    };
    state.offered = state.offered.saturating_sub(1);
    let (tag, level) = (state.settings.tag, state.settings.reliability);
    let read = Descriptor::read(&post, tag, &mut state.known, &state.regions);
    let descriptor = match read {
        Ok(descriptor) => descriptor,
        Err(fault) => {
            fail(net, state, Queue::Recv, None, fault);
            return;
        }
    };
    let resolved = descriptor.resolve(Queue::Recv, level, tag, &mut state.known, &state.regions);
    let pieces = resolved.and_then(|(_, pieces)| {
        let fits = u64::from(length) <= pieces.total && data != Data::None;
        if fits { Ok(pieces) } else { Err(Fault::Bad(status::LENGTH_ERROR)) }
    });
    let pieces = match pieces {
        Ok(pieces) => pieces,
        Err(fault) => {
            fail(net, state, Queue::Recv, Some(&descriptor), fault);
            return;
        }
    };
    if !scatter(state, &pieces, length as usize, data) {
        // No peer that keeps the rules sends this.
        return stop_both(net, state, StopReason::ConnectionLost, Queue::Recv);
    }
    descriptor.complete(&state.known, length, immediate, status::OP_RECEIVE);
    state.report(Queue::Recv);
}

/// Puts the data of a message into the buffers of a receive. False: it is not where it is said to be.
fn scatter(state: &State, pieces: &Pieces, length: usize, data: Data) -> bool {
    let Some(link) = &state.link else { return false };
    let mut left = length;
    match data {
        Data::Placed => return true,
        Data::None => return false,
        Data::Inline(words) => {
            let bytes = words.map(u64::to_le_bytes);
            let Some(mut bytes) = bytes.as_flattened().get(..length) else { return false };
            for piece in pieces.as_slice() {
                let (now, rest) = bytes.split_at(piece.length.min(bytes.len()));
                state.known.at(piece.place).memory.copy_from(piece.offset, now);
                bytes = rest;
            }
        }
        Data::Inbox(at) => {
            let mut at = super::inbox::DATA + at as usize;
            for piece in pieces.as_slice() {
                let length = piece.length.min(left);
                let Ok(source) = link.inbox.memory.slice(at, length) else { return false };
                state.known.at(piece.place).memory.copy_memory(piece.offset, &source);
                at += length;
                left -= length;
            }
        }
    }
    true
}

/// Notifies the peer of receives that it does not know yet.
pub(super) fn offer(net: &Net, state: &mut State) {
    while let Some(post) = state.receives.get(state.offered).copied() {
        if state.link.is_none() || state.is_stopped {
            return;
        }
        let (tag, level) = (state.settings.tag, state.settings.reliability);
        let State { known, regions, .. } = state;
        let resolved = Descriptor::read(&post, tag, known, regions)
            .and_then(|descriptor| descriptor.resolve(Queue::Recv, level, tag, known, regions));
        let Some(link) = &mut state.link else { return };
        let mut pieces = Vec::new();
        let mut room = Room { capacity: 0, pieces: 0, is_bad: true };
        if let Ok((_, resolved)) = resolved {
            for piece in resolved.as_slice() {
                let (offset, length) = (piece.offset as u64, piece.length);
                let (Ok(cookie), Ok(length)) =
                    (link.cookie(&*net.port, known, *piece), u32::try_from(length))
                else {
                    break;
                };
                pieces.push(RoomPiece { cookie, offset, length });
            }
            room.is_bad = pieces.len() != resolved.as_slice().len();
            room.capacity = u32::try_from(resolved.total).unwrap_or(u32::MAX);
            room.pieces = u32::try_from(pieces.len()).unwrap_or(0);
        }
        match link.offer(room, &pieces) {
            Ok(true) => state.offered += 1,
            // Later, when the peer has used some; or the peer no longer exists.
            Ok(false) | Err(_) => return,
        }
        state.known.trim();
    }
}
