//! What a VI does: sends, receives, stops.

use port::clan::DmaError;
use port::desc::status;
use port::doorbell::Post;
use port::stamp::{Stage, stamp};
use port::{DataTransfer, Queue, Reliability, StopReason};

use super::ending::{Sent, complete, fail, no_receive, peer_stopped, stop, stop_both};
use super::inbox::{DATA, DATA_BYTES};
use super::link::Link;
use super::net::Net;
use super::rdma;
use super::state::State;
use super::wire::{Data, INLINE_BYTES, PIECES, Room, RoomPiece, Transfer};
use crate::via::descriptor::{Descriptor, Fault, Operation, PIECES_MAX, Pieces};
use crate::via::region::Known;
use crate::via::vi::ViCore;

/// Bytes that go through the inbox at a time: the peer takes them while the next ones come.
const PART_BYTES: usize = 16 << 10;
/// What the system copies into another process.
const DIRECT_BYTES_PER_NS: u64 = 4;

/// A send was posted.
pub(super) fn post_send(net: &Net, state: &mut State, post: &Post) {
    stamp(Stage::Doorbell);
    if state.link.is_none() || state.vi.is_stopped {
        return;
    }
    if !state.vi.sends.is_empty() {
        state.vi.sends.push_back(*post);
        return progress(net, state);
    }
    if matches!(send(net, state, post), Sent::Later) {
        state.vi.sends.push_back(*post);
    }
    state.vi.known.trim();
}

/// A receive was posted. Before the VI is connected it waits for the peer.
pub(super) fn post_recv(net: &Net, state: &mut State, post: &Post) {
    if state.vi.is_stopped {
        return;
    }
    state.vi.receives.push_back(*post);
    offer(net, state);
}

/// Does what there is to do: takes messages, and carries sends out that had to wait.
pub(super) fn progress(net: &Net, state: &mut State) {
    while let Some(link) = &mut state.link
        && !state.vi.is_stopped
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
        state.vi.known.trim();
    }
    let Some(link) = state.link.as_ref().filter(|_| !state.vi.is_stopped) else { return };
    link.look_ahead();
    while !state.vi.is_stopped
        && let Some(post) = state.vi.sends.front().copied()
    {
        match send(net, state, &post) {
            Sent::Later => break,
            Sent::Done => state.vi.sends.pop_front(),
            Sent::Stopped => break,
        };
    }
    if state.offered < state.vi.receives.len() {
        offer(net, state);
    }
}

/// Carries a send out.
fn send(net: &Net, state: &mut State, post: &Post) -> Sent {
    let mut pieces = state.pieces.take().unwrap_or_default();
    let sent = send_from(net, state, post, &mut pieces);
    state.pieces = Some(pieces);
    if !matches!(sent, Sent::Later) {
        (state.sent, state.share) = (0, 0);
    }
    sent
}

fn send_from(net: &Net, state: &mut State, post: &Post, pieces: &mut Pieces) -> Sent {
    let (tag, level) = (state.vi.settings.tag, state.vi.settings.reliability);
    let read = Descriptor::read(post, tag, &mut state.vi.known, &state.vi.regions);
    let descriptor = match read {
        Ok(descriptor) => descriptor,
        Err(fault) => return fail(net, state, Queue::Send, None, fault),
    };
    let known = (&mut state.vi.known, &*state.vi.regions);
    let operation = match descriptor.resolve(Queue::Send, level, tag, known, pieces) {
        Ok(operation) => operation,
        Err(fault) => return fail(net, state, Queue::Send, Some(&descriptor), fault),
    };
    if pieces.total > u64::from(state.vi.settings.max_transfer) {
        let fault = Fault::Bad(status::LENGTH_ERROR);
        return fail(net, state, Queue::Send, Some(&descriptor), fault);
    }
    stamp(Stage::Descriptor);
    match operation {
        Operation::Message => message(net, state, &descriptor, pieces),
        Operation::Write(..) | Operation::Read(..) => {
            rdma::send(net, state, &descriptor, operation, pieces)
        }
    }
}

fn message(net: &Net, state: &mut State, descriptor: &Descriptor, pieces: &Pieces) -> Sent {
    let total = u32::try_from(pieces.total).unwrap_or(u32::MAX);
    loop {
        let Some(found) = state.link.as_ref().and_then(Link::room) else {
            if state.vi.settings.extensions.defer_send {
                return Sent::Later;
            }
            return no_receive(net, state, descriptor, total, status::OP_SEND);
        };
        match share(net, state, descriptor, pieces, &found) {
            Shared::Rest => {}
            Shared::Last => {
                let sent = complete(state, descriptor, total, status::OP_SEND);
                stamp(Stage::Complete);
                return sent;
            }
            Shared::Not(sent) => return sent,
        }
    }
}

/// What became of a receive descriptor's share of a message.
enum Shared {
    /// It is there, and it was the last one.
    Last,
    /// It is there; the message continues.
    Rest,
    /// It is not.
    Not(Sent),
}

/// Sends what the peer's oldest receive descriptor takes of a message: all of it, unless the peer
/// splits messages.
#[inline]
fn share(
    net: &Net,
    state: &mut State,
    descriptor: &Descriptor,
    pieces: &Pieces,
    found: &Room,
) -> Shared {
    let Some(link) = &mut state.link else { return Shared::Not(Sent::Stopped) };
    if link.messages.room() == 0 {
        return Shared::Not(Sent::Later);
    }
    let total = usize::try_from(pieces.total).unwrap_or(usize::MAX);
    let (start, capacity) = (state.share, found.capacity as usize);
    let is_last = !link.splits || total - start <= capacity;
    let end = if is_last { total } else { start + capacity };
    let length = u32::try_from(end - start).unwrap_or(u32::MAX);
    let fits = !found.is_bad && length <= found.capacity;
    let data = if !fits {
        Ok(Some(Data::None))
    } else if length as usize <= INLINE_BYTES
        && state.vi.settings.extensions.transfer != DataTransfer::Dma
    {
        Ok(Some(Data::Inline(gather(&state.vi.known, pieces, (start, end - start)))))
    } else {
        move_data(net, state, found, pieces, end)
    };
    stamp(Stage::Data);
    let Some(link) = &mut state.link else { return Shared::Not(Sent::Stopped) };
    let immediate = (is_last && descriptor.has_immediate()).then_some(descriptor.immediate);
    let sent = data.and_then(|data| {
        let Some(data) = data else { return Ok(false) };
        link.send(Transfer::Send { length, immediate, data, is_continued: !is_last })
    });
    match sent {
        Ok(true) => stamp(Stage::Store),
        Ok(false) => return Shared::Not(Sent::Later),
        Err(_) => {
            stop(net, state, StopReason::ConnectionLost, Queue::Send, status::TRANSPORT_ERROR);
            return Shared::Not(Sent::Stopped);
        }
    }
    link.take_room(&*net.port, found);
    (state.sent, state.share) = (end, end);
    if !fits && matches!(state.vi.settings.reliability, Reliability::Reception) {
        // The peer's VI stops when it finds this.
        let bits = status::REMOTE_DESC_ERROR;
        stop(net, state, StopReason::ConnectionLost, Queue::Send, bits);
        return Shared::Not(Sent::Stopped);
    }
    if is_last || !fits { Shared::Last } else { Shared::Rest }
}

/// Moves the data of a message up to `end` to the peer, but for the last part, whose place the message
/// says. None: there is no room now.
fn move_data(
    net: &Net,
    state: &mut State,
    found: &Room,
    pieces: &Pieces,
    end: usize,
) -> Result<Option<Data>, DmaError> {
    let transfer = state.vi.settings.extensions.transfer;
    loop {
        let Some(link) = &mut state.link else { return Ok(None) };
        let (start, length) = (state.sent, (end - state.sent).min(PART_BYTES));
        let mut at = None;
        if transfer != DataTransfer::Dma {
            at = link.put(&state.vi.known, pieces, (start, length))?;
        }
        if at.is_none() && transfer == DataTransfer::Dynamic {
            // The peer may be about to take some. Longer than it takes to do without is not waited.
            let bound = net.port.now_ns().saturating_add(length as u64 / DIRECT_BYTES_PER_NS);
            while at.is_none() && net.port.now_ns() < bound {
                core::hint::spin_loop();
                at = link.put(&state.vi.known, pieces, (start, length))?;
            }
        }
        let Some(at) = at else {
            if transfer == DataTransfer::Pio {
                return Ok(None);
            }
            place(net, state, found, pieces, end)?;
            return Ok(Some(Data::Placed));
        };
        if start + length == end {
            return Ok(Some(Data::Inbox(at)));
        }
        let bytes = u32::try_from(length).unwrap_or(u32::MAX);
        if !link.send(Transfer::Part { length: bytes, at })? {
            return Ok(None);
        }
        state.sent += length;
        if link.messages.room() == 0 {
            return Ok(None);
        }
    }
}

/// The bytes from `start` on of a message.
#[inline]
fn gather(
    known: &Known,
    pieces: &Pieces,
    (start, length): (usize, usize),
) -> [u64; INLINE_BYTES / 8] {
    let mut words = [0; INLINE_BYTES / 8];
    if let [piece] = pieces.as_slice() {
        known.at(piece.place).memory.load_front(piece.offset + start, &mut words, length);
        return words;
    }
    let mut bytes = [0; INLINE_BYTES];
    let mut at = 0;
    for piece in pieces.part(start, length) {
        let memory = &known.at(piece.place).memory;
        memory.copy_to(piece.offset, &mut bytes[at..at + piece.length]);
        at += piece.length;
    }
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    words
}

/// Writes the data of a message up to `end`, but for what the peer has, to the buffers of the peer's
/// oldest receive.
fn place(
    net: &Net,
    state: &mut State,
    found: &Room,
    pieces: &Pieces,
    end: usize,
) -> Result<(), DmaError> {
    let Some(link) = &mut state.link else { return Ok(()) };
    let targets = link.pieces(found).ok_or(DmaError::Refused)?;
    let (mut done, mut before) = (state.sent, (state.sent - state.share) as u64);
    for target in targets {
        let skipped = before.min(target.length.into());
        before -= skipped;
        let mut at = target.offset.saturating_add(skipped);
        let length =
            (end - done).min(usize::try_from(u64::from(target.length) - skipped).unwrap_or(0));
        for piece in pieces.part(done, length) {
            let memory = &state.vi.known.at(piece.place).memory;
            let remote = link.remote(&*net.port, target.cookie).ok_or(DmaError::Refused)?;
            remote.write_part(at, memory, piece.offset, piece.length)?;
            at = at.saturating_add(piece.length as u64);
        }
        done += length;
    }
    Ok(())
}

/// A message of the peer.
fn arrived(net: &Net, state: &mut State, transfer: Transfer) {
    let data = match transfer {
        Transfer::Send { length, data: Data::Inbox(_), .. } => {
            (length as usize).saturating_sub(state.received)
        }
        Transfer::Part { length, .. } => length as usize,
        _ => 0,
    };
    match transfer {
        Transfer::Part { length, at } => part(net, state, length as usize, at),
        Transfer::Send { length, immediate, data, is_continued } => {
            stamp(Stage::Wire);
            let more = if is_continued { status::CONTINUED } else { 0 };
            receive(net, state, (length, immediate, more), data);
        }
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
        link.take(data);
    }
    if matches!(transfer, Transfer::Send { .. }) {
        stamp(Stage::Release);
    }
}

/// Takes the immediate data of an RDMA write with the oldest receive descriptor.
fn written(net: &Net, state: &mut State, length: u32, immediate: u32) {
    let Some(post) = state.vi.receives.pop_front() else {
        return stop_both(net, state, StopReason::ReceiveQueueEmpty, Queue::Recv);
    };
    state.offered = state.offered.saturating_sub(1);
    let read =
        Descriptor::read(&post, state.vi.settings.tag, &mut state.vi.known, &state.vi.regions);
    match read {
        Ok(descriptor) => {
            let operation = status::OP_REMOTE_RDMA_WRITE;
            descriptor.complete(&state.vi.known, length, Some(immediate), operation);
            state.vi.report(Queue::Recv);
        }
        Err(fault) => {
            fail(net, state, Queue::Recv, None, fault);
        }
    }
}

/// Takes a part of a message into the buffers of the oldest receive descriptor.
fn part(net: &Net, state: &mut State, length: usize, at: u32) {
    let Some(post) = state.vi.receives.front().copied() else {
        return stop_both(net, state, StopReason::ReceiveQueueEmpty, Queue::Recv);
    };
    let (tag, level) = (state.vi.settings.tag, state.vi.settings.reliability);
    let mut pieces = state.pieces.take().unwrap_or_default();
    let ViCore { known, regions, .. } = &mut state.vi;
    // What is wrong with the descriptor is found at the message's end.
    let resolved = Descriptor::read(&post, tag, known, regions).and_then(|descriptor| {
        descriptor.resolve(Queue::Recv, level, tag, (known, regions), &mut pieces)
    });
    let end = state.received.saturating_add(length);
    let fits = resolved.is_ok() && end as u64 <= pieces.total;
    let is_there = !fits || scatter(state, &pieces, (state.received, length), Data::Inbox(at));
    state.pieces = Some(pieces);
    state.received = end;
    if !is_there {
        stop_both(net, state, StopReason::ConnectionLost, Queue::Recv);
    }
}

/// Takes a message, or what is left of it, with the oldest receive descriptor.
fn receive(
    net: &Net,
    state: &mut State,
    (length, immediate, more): (u32, Option<u32>, u32),
    data: Data,
) {
    let Some(post) = state.vi.receives.pop_front() else {
        return stop_both(net, state, StopReason::ReceiveQueueEmpty, Queue::Recv);
    };
    state.offered = state.offered.saturating_sub(1);
    let before = core::mem::take(&mut state.received);
    let (tag, level) = (state.vi.settings.tag, state.vi.settings.reliability);
    let read = Descriptor::read(&post, tag, &mut state.vi.known, &state.vi.regions);
    let descriptor = match read {
        Ok(descriptor) => descriptor,
        Err(fault) => {
            fail(net, state, Queue::Recv, None, fault);
            return;
        }
    };
    let mut pieces = state.pieces.take().unwrap_or_default();
    let known = (&mut state.vi.known, &*state.vi.regions);
    let resolved = descriptor.resolve(Queue::Recv, level, tag, known, &mut pieces);
    let checked = resolved.and_then(|_| {
        let fits = u64::from(length) <= pieces.total && data != Data::None;
        if fits { Ok(()) } else { Err(pieces.excess()) }
    });
    stamp(Stage::Match);
    let rest = (length as usize).checked_sub(before);
    let is_there =
        checked.is_err() || rest.is_some_and(|rest| scatter(state, &pieces, (before, rest), data));
    stamp(Stage::Write);
    state.pieces = Some(pieces);
    if let Err(fault) = checked {
        fail(net, state, Queue::Recv, Some(&descriptor), fault);
    } else if !is_there {
        // No peer that keeps the rules sends this.
        stop_both(net, state, StopReason::ConnectionLost, Queue::Recv);
    } else {
        descriptor.complete(&state.vi.known, length, immediate, status::OP_RECEIVE | more);
        stamp(Stage::Status);
        state.vi.report(Queue::Recv);
    }
}

/// Puts the bytes from `start` on of a message into the buffers of a receive. False: they are not where
/// they are said to be.
fn scatter(state: &State, pieces: &Pieces, (start, length): (usize, usize), data: Data) -> bool {
    let Some(link) = &state.link else { return false };
    match data {
        Data::Placed => true,
        Data::None => false,
        Data::Inline(words) => {
            if length > INLINE_BYTES || start != 0 {
                return false;
            }
            if let [piece, ..] = pieces.as_slice()
                && length <= piece.length
            {
                state.vi.known.at(piece.place).memory.store_front(piece.offset, &words, length);
                return true;
            }
            let bytes = words.map(u64::to_le_bytes);
            let Some(mut bytes) = bytes.as_flattened().get(..length) else { return false };
            for piece in pieces.part(start, length) {
                let (now, rest) = bytes.split_at(piece.length);
                state.vi.known.at(piece.place).memory.copy_from(piece.offset, now);
                bytes = rest;
            }
            true
        }
        Data::Inbox(at) => {
            let at = at as usize;
            if at > DATA_BYTES || length > DATA_BYTES - at {
                return false;
            }
            let mut at = DATA + at;
            for piece in pieces.part(start, length) {
                let target = &state.vi.known.at(piece.place).memory;
                target.copy_part(piece.offset, &link.inbox.memory, at, piece.length);
                at += piece.length;
            }
            true
        }
    }
}

/// Notifies the peer of receives that it does not know yet.
pub(super) fn offer(net: &Net, state: &mut State) {
    while let Some(post) = state.vi.receives.get(state.offered).copied() {
        if state.link.is_none() || state.vi.is_stopped {
            return;
        }
        let mut pieces = state.pieces.take().unwrap_or_default();
        let is_offered = offer_one(net, state, &post, &mut pieces);
        state.pieces = Some(pieces);
        if !is_offered {
            return;
        }
        state.offered += 1;
        state.vi.known.trim();
    }
}

/// Notifies the peer of a receive. False: there is no room for it now, or the peer no longer exists.
fn offer_one(net: &Net, state: &mut State, post: &Post, pieces: &mut Pieces) -> bool {
    let (tag, level) = (state.vi.settings.tag, state.vi.settings.reliability);
    let State { vi: ViCore { known, regions, .. }, link: Some(link), .. } = state else {
        return false;
    };
    let mut room = Room { capacity: 0, pieces: 0, is_bad: true };
    let (mut few, mut many) = ([RoomPiece::NONE; PIECES], None);
    let mut count = 0;
    let resolved = Descriptor::read(post, tag, known, regions).and_then(|descriptor| {
        descriptor.resolve(Queue::Recv, level, tag, (known, regions), pieces)
    });
    let total = pieces.total;
    let pieces = if resolved.is_ok() { pieces.as_slice() } else { &[] };
    let targets = match pieces.len() {
        ..=PIECES => &mut few[..],
        _ => &mut many.insert([RoomPiece::NONE; PIECES_MAX])[..],
    };
    if resolved.is_ok() {
        for (piece, target) in pieces.iter().zip(&mut *targets) {
            let (offset, length) = (piece.offset as u64, u32::try_from(piece.length));
            let (Ok(cookie), Ok(length)) = (link.cookie(&*net.port, known, *piece), length) else {
                break;
            };
            *target = RoomPiece { cookie, offset, length };
            count += 1;
        }
        room.is_bad = count != pieces.len();
        room.capacity = u32::try_from(total).unwrap_or(u32::MAX);
        room.pieces = u32::try_from(count).unwrap_or(0);
    }
    // If not, later, when the peer has used some.
    link.offer(room, &targets[..count]).unwrap_or(false)
}
