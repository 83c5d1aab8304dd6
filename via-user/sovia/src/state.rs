//! The states of a connection, and what leads from one to the next (SOVIA, Figure 8).
//!
//! ```text
//!               close: send Fin
//!     Normal ───────────────────► FinWait1 ──FinAck──► FinWait2
//!       │                            │                    │
//!      Fin: send FinAck             Fin: send FinAck     Fin: send FinAck
//!       ▼                            ▼                    ▼
//!    CloseWait                    Closing ──FinAck──►   Closed
//!       │ close: send Fin                                 ▲
//!       └──────────────────────► LastAck ──FinAck─────────┘
//! ```
//!
//! VIA loses and doubles nothing, so nobody waits for packets that come late.

/// A state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Both sides send.
    Normal,
    /// This side has ended.
    FinWait1,
    /// And the other one knows.
    FinWait2,
    /// Both have ended; the other one does not know.
    Closing,
    /// The other side has ended.
    CloseWait,
    /// And this one has; the other one does not know.
    LastAck,
    /// Both have, and know.
    Closed,
}

/// What leads to another state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// This side ends: Fin is sent.
    Close,
    /// The other side's Fin has come: FinAck is sent.
    Fin,
    /// The other side's FinAck has come.
    FinAck,
}

impl State {
    /// The next state. None: the event cannot be here.
    #[must_use]
    pub const fn next(self, event: Event) -> Option<Self> {
        Some(match (self, event) {
            (Self::Normal, Event::Close) => Self::FinWait1,
            (Self::Normal, Event::Fin) => Self::CloseWait,
            (Self::FinWait1, Event::FinAck) => Self::FinWait2,
            (Self::FinWait1, Event::Fin) => Self::Closing,
            (Self::FinWait2, Event::Fin) | (Self::Closing | Self::LastAck, Event::FinAck) => {
                Self::Closed
            }
            (Self::CloseWait, Event::Close) => Self::LastAck,
            _ => return None,
        })
    }

    /// Whether this side may send bytes.
    #[must_use]
    pub const fn sends(self) -> bool {
        matches!(self, Self::Normal | Self::CloseWait)
    }

    /// Whether the other side may send bytes.
    #[must_use]
    pub const fn receives(self) -> bool {
        matches!(self, Self::Normal | Self::FinWait1 | Self::FinWait2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each side sends one Fin, whose FinAck comes back, in every order.
    #[test]
    fn all_orders_of_an_end_lead_to_closed_and_nothing_comes_twice() {
        use Event::{Close, Fin, FinAck};
        let run = |events: &[Event]| {
            events.iter().try_fold(State::Normal, |state, event| state.next(*event))
        };
        for order in [[Close, FinAck, Fin], [Close, Fin, FinAck], [Fin, Close, FinAck]] {
            assert_eq!(run(&order), Some(State::Closed), "{order:?}");
            for twice in order {
                assert_eq!(run(&order).and_then(|state| state.next(twice)), None);
            }
        }
        for wrong in
            [&[FinAck][..], &[Close, Close], &[Fin, Fin], &[Fin, FinAck], &[Close, FinAck, FinAck]]
        {
            assert_eq!(run(wrong), None, "{wrong:?}");
        }
    }
}
