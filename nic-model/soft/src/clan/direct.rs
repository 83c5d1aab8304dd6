//! Sends without a descriptor: from memory of the program that need not be registered, straight into the
//! peer's buffers, during the call.

use port::clan::ClanPort;

use super::link::Link;
use super::net::Net;
use super::state::State;
use super::wire::{Data, INLINE_BYTES, Room, Transfer};

/// Sends a message now. False: nothing has happened. Whatever is wrong, a descriptor finds it.
pub(super) fn send(net: &Net, state: &mut State, data: &[u8], immediate: Option<u32>) -> bool {
    let is_next = state.vi.sends.is_empty() && !state.vi.is_stopped;
    let Some(link) = state.link.as_mut().filter(|_| is_next) else { return false };
    let room = link.room().filter(|room| !room.is_bad && link.messages.room() > 0);
    let Some(room) = room else { return false };
    let most = room.capacity.min(state.vi.settings.max_transfer);
    let Some(length) = u32::try_from(data.len()).ok().filter(|length| *length <= most) else {
        return false;
    };
    let data = match inline(data) {
        Some(words) => Data::Inline(words),
        None if place(&*net.port, link, &room, data) => Data::Placed,
        None => return false,
    };
    let sent = link.send(Transfer::Send { length, immediate, data, is_continued: false });
    if !sent.unwrap_or(false) {
        return false;
    }
    link.take_room(&*net.port, &room);
    true
}

/// Data that a message carries itself. None: it is too long.
fn inline(data: &[u8]) -> Option<[u64; INLINE_BYTES / 8]> {
    let mut words = [[0; 8]; INLINE_BYTES / 8];
    words.as_flattened_mut().get_mut(..data.len())?.copy_from_slice(data);
    Some(words.map(u64::from_le_bytes))
}

/// Writes data to the buffers of the peer's oldest receive, if the processor can store there.
fn place(port: &dyn ClanPort, link: &mut Link, room: &Room, mut data: &[u8]) -> bool {
    for number in 0..room.pieces as usize {
        let Some(piece) = link.piece(number) else { return false };
        let (now, rest) = data.split_at(data.len().min(piece.length as usize));
        let Some(remote) = link.remote(port, piece.cookie).filter(|remote| remote.is_mapped())
        else {
            return false;
        };
        if remote.write_bytes(piece.offset, now).is_err() {
            return false;
        }
        data = rest;
        if data.is_empty() {
            break;
        }
    }
    data.is_empty()
}
