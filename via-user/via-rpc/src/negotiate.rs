//! The three trips that begin a connection, without input and output (RPC over VI Architecture, 4.2).
//!
//! ```text
//!   client                                server
//!     │ Hello: revision, MTU, message ──────► │ takes the smaller of each
//!     │ ◄────── Accept: MTU, message          │ (or Refuse, if it speaks another revision)
//!     │ Ready ──────────────────────────────► │ the client has its receives and knows the settings
//! ```
//!
//! The credits of each side are in the immediate data of its packets. The bytes of Hello, Accept and
//! Refuse, numbers little-endian; the first eight are the same in every revision:
//!
//! | bytes | |
//! |---|---|
//! | 0 to 3 | `VRPC` |
//! | 4, 5 | revision of the protocol |
//! | 6, 7 | zero |
//! | 8 to 11 | MTU: most bytes of a packet |
//! | 12 to 15 | most bytes of a message |

use crate::header::{Header, Kind};
use crate::settings::Settings;

/// Revision of the protocol.
pub const REVISION: u16 = 1;
/// Bytes of an offer.
pub const OFFER: usize = 16;

const MAGIC: [u8; 4] = *b"VRPC";

/// Why sides do not come together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Disagreement {
    /// The other side speaks another revision of the protocol.
    #[error("the other side speaks revision {theirs} of the protocol, this one {REVISION}")]
    Revision {
        /// Its revision.
        theirs: u16,
    },
    /// The other side speaks another protocol.
    #[error("the other side does not speak this protocol: {0}")]
    Foreign(&'static str),
    /// The other side has chosen what was not offered.
    #[error("the other side has chosen {0}, which was not offered")]
    Choice(&'static str),
    /// A packet that does not belong to this trip.
    #[error("a packet {found:?} instead of {due:?}")]
    Trip {
        /// The packet.
        found: Kind,
        /// What the trip is.
        due: Kind,
    },
}

/// What a side offers, or has chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Most bytes of a packet.
    pub mtu: u32,
    /// Most bytes of a message.
    pub max_message: u32,
}

/// Revision and offer of a packet.
fn parse(bytes: &[u8]) -> Result<(u16, Offer), Disagreement> {
    let front = bytes.first_chunk::<8>().ok_or(Disagreement::Foreign("its offer is too short"))?;
    let [a, b, c, d, revision @ .., e, f] = *front;
    if [a, b, c, d] != MAGIC {
        return Err(Disagreement::Foreign("its offer does not begin with VRPC"));
    }
    let revision = u16::from_le_bytes(revision);
    if revision != REVISION {
        return Err(Disagreement::Revision { theirs: revision });
    }
    if bytes.len() != OFFER || [e, f] != [0, 0] {
        return Err(Disagreement::Foreign("its offer has another form"));
    }
    let number = |at: usize| bytes[at..].first_chunk().copied().map_or(0, u32::from_le_bytes);
    let offer = Offer { mtu: number(8), max_message: number(12) };
    if offer.mtu < Settings::LEAST_MTU {
        return Err(Disagreement::Foreign("it offers packets of fewer than 64 bytes"));
    }
    Ok((revision, offer))
}

impl Offer {
    /// The offer of a side with these settings.
    #[must_use]
    pub const fn of(settings: &Settings) -> Self {
        Self { mtu: settings.mtu, max_message: settings.max_message }
    }

    /// As the bytes of a packet.
    #[must_use]
    pub fn to_bytes(self) -> [u8; OFFER] {
        let mut bytes = [0; OFFER];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..6].copy_from_slice(&REVISION.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.mtu.to_le_bytes());
        bytes[12..].copy_from_slice(&self.max_message.to_le_bytes());
        bytes
    }

    fn smaller(self, other: Self) -> Self {
        let max_message = self.max_message.min(other.max_message);
        Self { mtu: self.mtu.min(other.mtu), max_message }
    }
}

/// What both sides have settled on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agreed {
    /// MTU and longest message.
    pub offer: Offer,
    /// The other side's receives for data.
    pub theirs: u8,
}

/// What a packet of the negotiation leads to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// A packet to send, with an offer or without.
    pub send: Option<(Kind, Option<Offer>)>,
    /// The connection is there; after that packet.
    pub agreed: Option<Agreed>,
}

/// What one side waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Negotiation {
    /// A server: Hello.
    AwaitHello(Offer),
    /// A client, which has sent its Hello: Accept or Refuse.
    AwaitAccept(Offer),
    /// A server: Ready.
    AwaitReady(Agreed),
    /// A server that has refused: the client's end.
    Refused,
}

impl Negotiation {
    /// A packet has come.
    ///
    /// # Errors
    /// The sides do not come together: the connection is to be ended.
    pub fn receive(&mut self, header: Header, bytes: &[u8]) -> Result<Step, Disagreement> {
        let due = match self {
            Self::AwaitHello(_) => Kind::Hello,
            Self::AwaitAccept(_) => Kind::Accept,
            Self::AwaitReady(_) | Self::Refused => Kind::Ready,
        };
        match (*self, header.kind) {
            (Self::AwaitHello(own), Kind::Hello) => match parse(bytes) {
                Ok((_, theirs)) => {
                    let offer = own.smaller(theirs);
                    *self = Self::AwaitReady(Agreed { offer, theirs: header.credits });
                    Ok(Step { send: Some((Kind::Accept, Some(offer))), agreed: None })
                }
                Err(Disagreement::Revision { .. }) => {
                    *self = Self::Refused;
                    Ok(Step { send: Some((Kind::Refuse, Some(own))), agreed: None })
                }
                Err(foreign) => Err(foreign),
            },
            (Self::AwaitAccept(own), Kind::Accept) => {
                let (_, offer) = parse(bytes)?;
                if offer.mtu > own.mtu {
                    return Err(Disagreement::Choice("longer packets"));
                }
                if offer.max_message > own.max_message {
                    return Err(Disagreement::Choice("longer messages"));
                }
                let agreed = Some(Agreed { offer, theirs: header.credits });
                Ok(Step { send: Some((Kind::Ready, None)), agreed })
            }
            (Self::AwaitAccept(_), Kind::Refuse) => match parse(bytes) {
                Err(why) => Err(why),
                Ok(_) => Err(Disagreement::Foreign("it refuses its own revision")),
            },
            (Self::AwaitReady(agreed), Kind::Ready) if bytes.is_empty() => {
                Ok(Step { send: None, agreed: Some(agreed) })
            }
            (_, found) => Err(Disagreement::Trip { found, due }),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::header::Sequence;

    const SMALL: Offer = Offer { mtu: 64, max_message: 1000 };
    const LARGE: Offer = Offer { mtu: 8192, max_message: 900 };

    fn header(kind: Kind, credits: u8) -> Header {
        Header { kind, sequence: Sequence::default(), expected: Sequence::default(), credits }
    }

    #[test]
    fn both_sides_settle_on_the_smaller_values_in_three_trips() {
        for (own, other) in [(SMALL, LARGE), (LARGE, SMALL)] {
            let (mut client, mut server) =
                (Negotiation::AwaitAccept(own), Negotiation::AwaitHello(other));
            let step = server.receive(header(Kind::Hello, 7), &own.to_bytes()).unwrap();
            let Some((Kind::Accept, Some(chosen))) = step.send else { panic!("{step:?}") };
            assert_eq!(chosen, Offer { mtu: 64, max_message: 900 });
            assert_eq!(step.agreed, None);
            let step = client.receive(header(Kind::Accept, 9), &chosen.to_bytes()).unwrap();
            assert_eq!(step.send, Some((Kind::Ready, None)));
            assert_eq!(step.agreed, Some(Agreed { offer: chosen, theirs: 9 }));
            let step = server.receive(header(Kind::Ready, 7), &[]).unwrap();
            assert_eq!(
                step,
                Step { send: None, agreed: Some(Agreed { offer: chosen, theirs: 7 }) }
            );
        }
    }

    #[test]
    fn another_revision_is_refused_and_named_on_both_sides() {
        let mut other = SMALL.to_bytes();
        other[4] = 9;
        let mut server = Negotiation::AwaitHello(SMALL);
        // Only the first bytes are the same in every revision.
        let step = server.receive(header(Kind::Hello, 7), &other[..8]).unwrap();
        assert_eq!(step.send, Some((Kind::Refuse, Some(SMALL))));
        assert!(server.receive(header(Kind::Ready, 7), &[]).is_err());
        let mut client = Negotiation::AwaitAccept(SMALL);
        let refused = client.receive(header(Kind::Refuse, 7), &other).unwrap_err();
        assert_eq!(refused, Disagreement::Revision { theirs: 9 });
    }

    #[test]
    fn packets_of_other_protocols_and_trips_are_named() {
        let fresh = || [Negotiation::AwaitHello(SMALL), Negotiation::AwaitAccept(SMALL)];
        for (mut side, kind) in fresh().into_iter().zip([Kind::Hello, Kind::Accept]) {
            for bytes in [&b"VRPC"[..], b"SOVI\x01\0\x20\0\0\0\x10\0\0\x80\0\0", &[0; 16]] {
                let foreign = side.receive(header(kind, 7), bytes).unwrap_err();
                assert!(matches!(foreign, Disagreement::Foreign(_)), "{foreign}");
            }
            let early = side.receive(header(Kind::Data, 7), &[1; 9]).unwrap_err();
            assert_eq!(early, Disagreement::Trip { found: Kind::Data, due: kind });
        }
        let [_, mut client] = fresh();
        let chosen = client.receive(header(Kind::Accept, 7), &LARGE.to_bytes()).unwrap_err();
        assert_eq!(chosen, Disagreement::Choice("longer packets"));
    }

    proptest! {
        #[test]
        fn offers_are_read_as_they_were_written(mtu in 64_u32.., max_message: u32) {
            let offer = Offer { mtu, max_message };
            prop_assert_eq!(parse(&offer.to_bytes()), Ok((REVISION, offer)));
        }

        #[test]
        fn no_bytes_break_the_parser(bytes: Vec<u8>) {
            if let Ok((_, offer)) = parse(&bytes) {
                prop_assert_eq!(&offer.to_bytes()[..], &bytes[..]);
            }
        }
    }
}
