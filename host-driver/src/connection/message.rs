//! Connection messages: bodies cut into 48-byte frames, and put together again.
//!
//! ```text
//! frame  version 1 | kind 1 | fragment 1 | fragments 1 | exchange 4 | body length 2 | zero 2 | 36 bytes of body
//! body   Request, PeerRequest  attributes 20 | lengths: remote host 1, remote discriminator 1, local host 1,
//!                 local discriminator 1 | the four, in this order
//!        Accept, Mismatch  attributes 20               others: empty
//! attributes  VI 2 | connection id 2 | reliability 1 | RDMA flags 1 | zero 2 | maximum transfer 4 | QoS 8
//! ```
//! Little-endian. An exchange is named by the requester; all frames of it carry its number.

use std::collections::BTreeMap;

use nic_regs::vi::Reliability;

use crate::event::Message;
use port::address::{DISCRIMINATOR_MAX, HOST_ADDRESS_MAX};
use port::{NetAddress, RemoteAttributes};

/// Version of the format. Raised with the exchange itself, which both sides must understand alike.
const VERSION: u8 = 2;
/// Bytes of the frame header.
const HEADER_BYTES: usize = 12;
/// Body bytes of a frame.
const BODY_BYTES: usize = size_of::<Message>() - HEADER_BYTES;
/// Bytes of the attributes.
const ATTRIBUTE_BYTES: usize = 20;
/// Longest body.
const BODY_MAX: usize = ATTRIBUTE_BYTES + 4 + 2 * (DISCRIMINATOR_MAX + HOST_ADDRESS_MAX);
/// Messages in pieces that are kept at once.
const PARTIAL_LIMIT: usize = 64;
/// How long the pieces of a message are kept.
const PARTIAL_NS: u64 = 50_000_000;

/// A connection message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Body {
    /// 'I want to connect my VI to whoever waits at `remote`.'
    /// With `peer`: '... to the VI whose program names me there as I name it here.'
    Request { attributes: RemoteAttributes, remote: NetAddress, local: NetAddress, peer: bool },
    /// 'My VI is connected to yours.'
    Accept { attributes: RemoteAttributes },
    /// 'No.'
    Reject,
    /// 'Nobody waits there.'
    NoMatch,
    /// 'My VI is connected, too.'
    Confirm,
    /// 'Forget the exchange.'
    Cancel,
    /// 'I am the peer that you name, but my VI is not like yours.'
    Mismatch { attributes: RemoteAttributes },
    /// 'I know that your VI is connected.'
    Settled,
    /// 'I have given your exchange up, and my VI is not connected to yours.'
    Void,
}

impl Body {
    const fn kind(&self) -> u8 {
        match self {
            Self::Request { peer: false, .. } => 1,
            Self::Accept { .. } => 2,
            Self::Reject => 3,
            Self::NoMatch => 4,
            Self::Confirm => 5,
            Self::Cancel => 6,
            Self::Request { peer: true, .. } => 7,
            Self::Mismatch { .. } => 8,
            Self::Settled => 9,
            Self::Void => 10,
        }
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(BODY_MAX);
        match self {
            Self::Request { attributes, remote, local, .. } => {
                bytes.extend(attributes_to_bytes(attributes));
                let parts =
                    [&remote.host, &remote.discriminator, &local.host, &local.discriminator];
                bytes.extend(parts.map(|part| u8::try_from(part.len()).unwrap_or(0)));
                parts.iter().for_each(|part| bytes.extend_from_slice(part));
            }
            Self::Accept { attributes } | Self::Mismatch { attributes } => {
                bytes.extend(attributes_to_bytes(attributes));
            }
            Self::Reject
            | Self::NoMatch
            | Self::Confirm
            | Self::Cancel
            | Self::Settled
            | Self::Void => {}
        }
        bytes
    }

    fn from_bytes(kind: u8, bytes: &[u8]) -> Option<Self> {
        let empty = |body| bytes.is_empty().then_some(body);
        match kind {
            1 | 7 => {
                let (attributes, rest) = bytes.split_first_chunk::<ATTRIBUTE_BYTES>()?;
                let (lengths, mut rest) = rest.split_first_chunk::<4>()?;
                let mut part = |i: usize, limit: usize| {
                    let length = usize::from(lengths[i]);
                    let (part, after) = rest.split_at_checked(length)?;
                    rest = after;
                    (length <= limit).then(|| part.to_vec())
                };
                let remote = NetAddress {
                    host: part(0, HOST_ADDRESS_MAX)?,
                    discriminator: part(1, DISCRIMINATOR_MAX)?,
                };
                let local = NetAddress {
                    host: part(2, HOST_ADDRESS_MAX)?,
                    discriminator: part(3, DISCRIMINATOR_MAX)?,
                };
                let attributes = attributes_from_bytes(attributes)?;
                let peer = kind == 7;
                rest.is_empty().then_some(Self::Request { attributes, remote, local, peer })
            }
            2 | 8 => {
                let bytes = bytes.first_chunk().filter(|_| bytes.len() == ATTRIBUTE_BYTES)?;
                let attributes = attributes_from_bytes(bytes)?;
                let accept = kind == 2;
                Some(if accept {
                    Self::Accept { attributes }
                } else {
                    Self::Mismatch { attributes }
                })
            }
            3 => empty(Self::Reject),
            4 => empty(Self::NoMatch),
            5 => empty(Self::Confirm),
            6 => empty(Self::Cancel),
            9 => empty(Self::Settled),
            10 => empty(Self::Void),
            _ => None,
        }
    }
}

fn attributes_to_bytes(a: &RemoteAttributes) -> [u8; ATTRIBUTE_BYTES] {
    let mut b = [0; ATTRIBUTE_BYTES];
    b[0..2].copy_from_slice(&a.vi.to_le_bytes());
    b[2..4].copy_from_slice(&a.connection.to_le_bytes());
    b[4] = a.reliability as u8;
    b[5] = u8::from(a.rdma_write) | u8::from(a.rdma_read) << 1;
    b[8..12].copy_from_slice(&a.max_transfer.to_le_bytes());
    b[12..20].copy_from_slice(&a.qos.to_le_bytes());
    b
}

fn attributes_from_bytes(b: &[u8; ATTRIBUTE_BYTES]) -> Option<RemoteAttributes> {
    let u32_at = |i: usize| u32::from_le_bytes([b[i], b[i + 1], b[i + 2], b[i + 3]]);
    (b[5] <= 3 && b[6] == 0 && b[7] == 0).then_some(())?;
    Some(RemoteAttributes {
        vi: u16::from_le_bytes([b[0], b[1]]),
        connection: u16::from_le_bytes([b[2], b[3]]),
        reliability: Reliability::from_bits(b[4].into())?,
        rdma_write: b[5] & 1 != 0,
        rdma_read: b[5] & 2 != 0,
        max_transfer: u32_at(8),
        qos: u64::from(u32_at(12)) | u64::from(u32_at(16)) << 32,
    })
}

/// Cuts a message into frames.
pub(super) fn encode(exchange: u32, body: &Body) -> Vec<Message> {
    let bytes = body.to_bytes();
    let count = bytes.len().div_ceil(BODY_BYTES).max(1);
    let frame = |fragment: usize| {
        let mut frame: Message = [0; size_of::<Message>()];
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
    partial: BTreeMap<(u8, u32, u8), Partial>,
}

impl Reassembly {
    /// Takes a frame from `node`; gives the message if it is whole.
    pub(super) fn receive(
        &mut self,
        now: u64,
        node: u8,
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

    fn make_room(&mut self, now: u64, key: (u8, u32, u8)) {
        self.partial.retain(|_, partial| partial.expires_at > now);
        if self.partial.len() >= PARTIAL_LIMIT && !self.partial.contains_key(&key) {
            let oldest = self.partial.iter().min_by_key(|(_, p)| p.expires_at).map(|(k, _)| *k);
            oldest.map(|key| self.partial.remove(&key));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> Body {
        request_of(false)
    }

    fn request_of(peer: bool) -> Body {
        let attributes = RemoteAttributes {
            vi: 1023,
            connection: 0xbeef,
            reliability: Reliability::Reception,
            rdma_write: true,
            rdma_read: false,
            max_transfer: 262_144,
            qos: 0x0102_0304_0506_0708,
        };
        let remote = NetAddress::new(&[1, 2, 3, 4, 5, 6], &(0..64).collect::<Vec<u8>>());
        let local = NetAddress::new(&[6, 5, 4, 3, 2, 1], b"me");
        Body::Request { attributes, remote, local, peer }
    }

    #[test]
    fn messages_survive_cutting_repeats_and_mixing() {
        let first = encode(7, &request());
        let second = encode(8, &request());
        assert_eq!(first.len(), 3);
        let mut reassembly = Reassembly::default();
        assert_eq!(reassembly.receive(0, 3, &first[0]), Ok(None));
        assert_eq!(reassembly.receive(0, 3, &second[2]), Ok(None));
        assert_eq!(reassembly.receive(0, 3, &first[0]), Ok(None));
        assert_eq!(reassembly.receive(0, 3, &first[2]), Ok(None));
        assert_eq!(reassembly.receive(0, 4, &first[1]), Ok(None), "another node");
        assert_eq!(reassembly.receive(0, 3, &first[1]), Ok(Some((7, request()))));
        assert_eq!(reassembly.receive(0, 3, &second[1]), Ok(None));
        assert_eq!(reassembly.receive(0, 3, &second[0]), Ok(Some((8, request()))));
        let Body::Request { attributes, .. } = request() else { unreachable!() };
        let short = [Body::Reject, Body::NoMatch, Body::Confirm, Body::Cancel];
        let bodies = [Body::Accept { attributes }, Body::Mismatch { attributes }];
        for body in short.into_iter().chain(bodies) {
            let frames = encode(9, &body);
            assert_eq!(reassembly.receive(0, 3, &frames[0]), Ok(Some((9, body))));
        }
        let peer = request_of(true);
        let frames = encode(7, &peer);
        assert_eq!(reassembly.receive(0, 3, &frames[2]), Ok(None));
        assert_eq!(reassembly.receive(0, 3, &frames[0]), Ok(None));
        assert_eq!(reassembly.receive(0, 3, &frames[1]), Ok(Some((7, peer))));
    }

    #[test]
    fn malformed_frames_are_refused_and_bounded() {
        let good = encode(7, &request());
        let mut reassembly = Reassembly::default();
        let mut check = |i: usize, value: u8| {
            let mut frame = good[0];
            frame[i] = value;
            reassembly.receive(0, 3, &frame)
        };
        assert_eq!(check(0, VERSION + 1), Err(Malformed::Version));
        assert_eq!(check(3, 4), Err(Malformed::Frame));
        assert_eq!(check(2, 5), Err(Malformed::Frame));
        assert_eq!(check(9, 0xff), Err(Malformed::Frame));
        let mut frame = encode(7, &Body::Reject)[0];
        frame[1] = 99;
        assert_eq!(reassembly.receive(0, 3, &frame), Err(Malformed::Body));
        for exchange in 0..1000 {
            let frames = encode(exchange, &request());
            assert_eq!(reassembly.receive(0, 3, &frames[0]), Ok(None));
        }
        assert_eq!(reassembly.partial.len(), PARTIAL_LIMIT);
        assert_eq!(reassembly.receive(PARTIAL_NS, 3, &good[0]), Ok(None));
        assert_eq!(reassembly.partial.len(), 1);
    }

    #[test]
    fn random_frames_never_panic() {
        let mut random = crate::peer::Epochs::new(5);
        let mut reassembly = Reassembly::default();
        for _ in 0..100_000 {
            let mut frame =
                encode(random.next_u32() % 4, &request())[(random.next_u32() % 3) as usize];
            for _ in 0..random.next_u32() % 4 {
                let i = (random.next_u32() % 48) as usize;
                frame[i] = random.next_u32().to_le_bytes()[0];
            }
            let _ = reassembly.receive(0, 1, &frame);
        }
    }
}
