//! Connection messages and their bytes; [`super::frame`] cuts them into frames.
//!
//! ```text
//! body   Request, PeerRequest  VI 20 | lengths: remote host 1, remote discriminator 1, local host 1,
//!                 local discriminator 1 | the four, in this order | provider data
//!        Accept   VI 20 | provider data
//!        Mismatch VI 20, without provider data          others: empty
//! VI     number 2 | connection id 2 | reliability 1 | RDMA flags 1 | length of the provider data 1 |
//!        zero 1 | maximum transfer 4 | QoS 8
//! ```
//! Little-endian. Mismatch carries no provider data, because no VI gets connected after it.

use super::endpoint::{Endpoint, PROVIDER_DATA_MAX, ProviderData};
use crate::address::{DISCRIMINATOR_MAX, HOST_ADDRESS_MAX, NetAddress};
use crate::attributes::RemoteAttributes;
use nic_regs::vi::Reliability;

/// Bytes of a VI, without its provider data.
const VI_BYTES: usize = 20;
/// Longest body.
pub(super) const BODY_MAX: usize =
    VI_BYTES + 4 + 2 * (DISCRIMINATOR_MAX + HOST_ADDRESS_MAX) + PROVIDER_DATA_MAX;

/// A connection message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Body {
    /// 'I want to connect my VI to whoever waits at `remote`.'
    /// With `peer`: '... to the VI whose program names me there as I name it here.'
    Request { vi: Endpoint, remote: NetAddress, local: NetAddress, peer: bool },
    /// 'My VI is connected to yours.'
    Accept { vi: Endpoint },
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
    pub(super) const fn kind(&self) -> u8 {
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

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(BODY_MAX);
        match self {
            Self::Request { vi, remote, local, .. } => {
                bytes.extend(vi_to_bytes(vi));
                let parts =
                    [&remote.host, &remote.discriminator, &local.host, &local.discriminator];
                bytes.extend(parts.map(|part| u8::try_from(part.len()).unwrap_or(0)));
                parts.iter().for_each(|part| bytes.extend_from_slice(part));
                bytes.extend(vi.data.bytes());
            }
            Self::Accept { vi } => {
                bytes.extend(vi_to_bytes(vi));
                bytes.extend(vi.data.bytes());
            }
            Self::Mismatch { attributes } => bytes.extend(vi_to_bytes(&(*attributes).into())),
            Self::Reject
            | Self::NoMatch
            | Self::Confirm
            | Self::Cancel
            | Self::Settled
            | Self::Void => {}
        }
        bytes
    }

    pub(super) fn from_bytes(kind: u8, bytes: &[u8]) -> Option<Self> {
        let empty = |body| bytes.is_empty().then_some(body);
        match kind {
            1 | 7 => {
                let (vi, rest) = bytes.split_first_chunk()?;
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
                let (vi, peer) = (vi_from_bytes(vi, rest)?, kind == 7);
                Some(Self::Request { vi, remote, local, peer })
            }
            2 => {
                let (vi, data) = bytes.split_first_chunk()?;
                Some(Self::Accept { vi: vi_from_bytes(vi, data)? })
            }
            8 => {
                let (vi, data) = bytes.split_first_chunk()?;
                let attributes = vi_from_bytes(vi, data)?.attributes;
                data.is_empty().then_some(Self::Mismatch { attributes })
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

fn vi_to_bytes(vi: &Endpoint) -> [u8; VI_BYTES] {
    let (a, mut b) = (&vi.attributes, [0; VI_BYTES]);
    b[0..2].copy_from_slice(&a.vi.to_le_bytes());
    b[2..4].copy_from_slice(&a.connection.to_le_bytes());
    b[4] = a.reliability as u8;
    b[5] = u8::from(a.rdma_write) | u8::from(a.rdma_read) << 1;
    b[6] = vi.data.length();
    b[8..12].copy_from_slice(&a.max_transfer.to_le_bytes());
    b[12..20].copy_from_slice(&a.qos.to_le_bytes());
    b
}

/// `data` is what stands where the provider data are.
fn vi_from_bytes(b: &[u8; VI_BYTES], data: &[u8]) -> Option<Endpoint> {
    let u32_at = |i: usize| u32::from_le_bytes([b[i], b[i + 1], b[i + 2], b[i + 3]]);
    (b[5] <= 3 && usize::from(b[6]) == data.len() && b[7] == 0).then_some(())?;
    let attributes = RemoteAttributes {
        vi: u16::from_le_bytes([b[0], b[1]]),
        connection: u16::from_le_bytes([b[2], b[3]]),
        reliability: Reliability::from_bits(b[4].into())?,
        rdma_write: b[5] & 1 != 0,
        rdma_read: b[5] & 2 != 0,
        max_transfer: u32_at(8),
        qos: u64::from(u32_at(12)) | u64::from(u32_at(16)) << 32,
    };
    Some(Endpoint { attributes, data: ProviderData::new(data).ok()? })
}
