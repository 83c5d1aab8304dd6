//! Frames of 48 bytes: messages cut into them, and put together again.
//!
//! ```text
//! frame  version 1 | kind 1 | fragment 1 | fragments 1 | exchange 4 | body length 2 | zero 2 | 36 bytes of body
//! ```
//! Little-endian. An exchange is named by the requester; all frames of it carry its number.
//! [`super::message`] has the kinds and their bodies. Version 3 is the first with provider data; a
//! frame of another version is dropped.

use std::collections::BTreeMap;

use nic_regs::frame::MESSAGE_BYTES;

use super::message::{BODY_MAX, Body};

/// A frame of connection management: what a NIC carries outside any VI.
pub type Message = [u8; MESSAGE_BYTES];

/// Version of the format. Raised with the exchange itself, which both sides must understand alike.
const VERSION: u8 = 3;
/// Bytes of the frame header.
const HEADER_BYTES: usize = 12;
/// Body bytes of a frame.
const BODY_BYTES: usize = MESSAGE_BYTES - HEADER_BYTES;
/// Messages in pieces that are kept at once.
const PARTIAL_LIMIT: usize = 64;
/// How long the pieces of a message are kept.
const PARTIAL_NS: u64 = 50_000_000;

/// Cuts a message into frames.
pub(super) fn encode(exchange: u32, body: &Body) -> Vec<Message> {
    let bytes = body.to_bytes();
    let count = bytes.len().div_ceil(BODY_BYTES).max(1);
    let frame = |fragment: usize| {
        let mut frame: Message = [0; MESSAGE_BYTES];
        frame[0] = VERSION;
        frame[1] = body.kind();
        frame[2] = u8::try_from(fragment).unwrap_or(u8::MAX);
        frame[3] = u8::try_from(count).unwrap_or(u8::MAX);
        frame[4..8].copy_from_slice(&exchange.to_le_bytes());
        frame[8..10].copy_from_slice(&u16::try_from(bytes.len()).unwrap_or(0).to_le_bytes());
        let part = bytes.chunks(BODY_BYTES).nth(fragment).unwrap_or_default();
        frame[HEADER_BYTES..HEADER_BYTES + part.len()].copy_from_slice(part);
        frame
    };
    (0..count).map(frame).collect()
}

/// Why a frame was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Malformed {
    Version,
    Frame,
    Body,
}

#[derive(Debug)]
struct Partial {
    bytes: Vec<u8>,
    have: u32,
    count: u8,
    expires_at: u64,
}

/// Messages of which some frames have come. Frames may come twice, since messages are sent again.
#[derive(Debug, Default)]
pub(super) struct Reassembly {
    /// By node, exchange and kind.
    partial: BTreeMap<(u32, u32, u8), Partial>,
}

impl Reassembly {
    /// Takes a frame from `node`; gives the message if it is whole.
    pub(super) fn receive(
        &mut self,
        now: u64,
        node: u32,
        frame: &Message,
    ) -> Result<Option<(u32, Body)>, Malformed> {
        let [version, kind, fragment, count, ..] = *frame;
        if version != VERSION {
            return Err(Malformed::Version);
        }
        let exchange = u32::from_le_bytes([frame[4], frame[5], frame[6], frame[7]]);
        let length = usize::from(u16::from_le_bytes([frame[8], frame[9]]));
        let expected = length.div_ceil(BODY_BYTES).max(1);
        if length > BODY_MAX || usize::from(count) != expected || fragment >= count {
            return Err(Malformed::Frame);
        }
        let key = (node, exchange, kind);
        self.make_room(now, key);
        let expires_at = now + PARTIAL_NS;
        let entry = self.partial.entry(key).or_insert_with(|| Partial {
            bytes: vec![0; length],
            have: 0,
            count,
            expires_at,
        });
        if entry.bytes.len() != length {
            self.partial.remove(&key);
            return Err(Malformed::Frame);
        }
        let start = usize::from(fragment) * BODY_BYTES;
        let part = &mut entry.bytes[start..length.min(start + BODY_BYTES)];
        part.copy_from_slice(&frame[HEADER_BYTES..HEADER_BYTES + part.len()]);
        entry.have |= 1 << fragment;
        if entry.have.count_ones() < u32::from(entry.count) {
            return Ok(None);
        }
        let bytes = self.partial.remove(&key).map(|partial| partial.bytes).unwrap_or_default();
        Body::from_bytes(kind, &bytes).map(|body| Some((exchange, body))).ok_or(Malformed::Body)
    }

    fn make_room(&mut self, now: u64, key: (u32, u32, u8)) {
        self.partial.retain(|_, partial| partial.expires_at > now);
        if self.partial.len() >= PARTIAL_LIMIT && !self.partial.contains_key(&key) {
            let oldest = self.partial.iter().min_by_key(|(_, p)| p.expires_at).map(|(k, _)| *k);
            oldest.map(|key| self.partial.remove(&key));
        }
    }
}

#[cfg(test)]
mod tests;
