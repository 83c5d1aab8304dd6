//! The message that arrives: its fragments are copied, once, into memory that is used again.

use crate::error::Violation;
use crate::header::{MESSAGE_HEADER, MessageHeader};
use crate::negotiate::Offer;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Inbound {
    /// Of the message of which not all fragments have come.
    header: Option<MessageHeader>,
    body: Vec<u8>,
}

impl Inbound {
    /// A fragment of `length` bytes has come, which `read` copies from an offset on. The header of the
    /// message if it is whole now.
    ///
    /// # Errors
    /// It is not the next fragment of a message that both sides take.
    pub(crate) fn fragment(
        &mut self,
        length: usize,
        offer: &Offer,
        read: impl Fn(usize, &mut [u8]),
    ) -> Result<Option<MessageHeader>, Violation> {
        let (header, front) = match self.header {
            Some(header) => (header, 0),
            None => (Self::first(length, offer, &read)?, MESSAGE_HEADER),
        };
        if front > 0 {
            self.body.clear();
        }
        let at = self.body.len();
        let due = (front + header.length as usize - at).min(offer.mtu as usize);
        if length != due {
            return Err(Violation::Fragment { found: length, due });
        }
        // Grows with what has come, not with what the header promises.
        self.body.resize(at + length - front, 0);
        read(front, &mut self.body[at..]);
        let is_whole = self.body.len() == header.length as usize;
        self.header = (!is_whole).then_some(header);
        Ok(is_whole.then_some(header))
    }

    fn first(
        length: usize,
        offer: &Offer,
        read: impl Fn(usize, &mut [u8]),
    ) -> Result<MessageHeader, Violation> {
        if length < MESSAGE_HEADER {
            return Err(Violation::NoMessage);
        }
        let mut bytes = [0; MESSAGE_HEADER];
        read(0, &mut bytes);
        let header = MessageHeader::from_bytes(bytes).ok_or(Violation::NoMessage)?;
        let (length, most) = (header.length, offer.max_message);
        if length > most { Err(Violation::Length { length, most }) } else { Ok(header) }
    }

    /// Exchanges the bytes of the message that is whole for a vector.
    pub(crate) fn take(&mut self, body: &mut Vec<u8>) {
        core::mem::swap(&mut self.body, body);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const OFFER: Offer = Offer { mtu: 64, max_message: 1000 };

    fn packets(call: u32, body: &[u8]) -> Vec<Vec<u8>> {
        let length = u32::try_from(body.len()).unwrap();
        let header = MessageHeader { length, call, is_unanswered: false };
        let message = [&header.to_bytes()[..], body].concat();
        message.chunks(OFFER.mtu as usize).map(<[u8]>::to_vec).collect()
    }

    fn give(inbound: &mut Inbound, packet: &[u8]) -> Result<Option<MessageHeader>, Violation> {
        inbound.fragment(packet.len(), &OFFER, |at, out| {
            out.copy_from_slice(&packet[at..at + out.len()]);
        })
    }

    proptest! {
        #[test]
        fn messages_are_the_same_whole(bodies in proptest::collection::vec(
            proptest::collection::vec(any::<u8>(), 0..=1000), 1..5,
        )) {
            let mut inbound = Inbound::default();
            let mut out = Vec::new();
            for (call, body) in (0..).zip(&bodies) {
                let packets = packets(call, body);
                for (at, packet) in packets.iter().enumerate() {
                    let whole = give(&mut inbound, packet).unwrap();
                    prop_assert_eq!(whole.is_some(), at + 1 == packets.len());
                }
                inbound.take(&mut out);
                prop_assert_eq!(&out, body);
            }
        }

        #[test]
        fn no_packet_breaks_it_or_makes_it_large(packets in proptest::collection::vec(
            proptest::collection::vec(any::<u8>(), 0..=64), 1..20,
        )) {
            let mut inbound = Inbound::default();
            for packet in packets {
                if give(&mut inbound, &packet).is_err() {
                    break;
                }
                prop_assert!(inbound.body.len() <= 1000);
            }
        }
    }

    #[test]
    fn fragments_that_cannot_be_are_named() {
        let body = [7; 100];
        let all = packets(1, &body);
        let refused = |packet: &[u8]| give(&mut Inbound::default(), packet).unwrap_err();
        assert_eq!(refused(&all[0][..7]), Violation::NoMessage);
        assert_eq!(refused(&[0xff; 64]), Violation::NoMessage);
        assert_eq!(refused(&all[0][..63]), Violation::Fragment { found: 63, due: 64 });
        let header = MessageHeader { length: 1001, call: 1, is_unanswered: false };
        let long = Violation::Length { length: 1001, most: 1000 };
        assert_eq!(refused(&header.to_bytes()), long);
        let mut inbound = Inbound::default();
        give(&mut inbound, &all[0]).unwrap();
        let next = give(&mut inbound, &all[1][..43]).unwrap_err();
        assert_eq!(next, Violation::Fragment { found: 43, due: 44 });
    }
}
