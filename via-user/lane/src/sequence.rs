//! Numbers of packets: the immediate data of each message that is one, counted by connection. On the level
//! Unreliable a message that finds no receive is lost without a word; the next number shows how many were.

/// Numbers are below this, and begin again at 0.
const END: u32 = 1 << 31;

/// The number of the next packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sequence(u32);

impl Sequence {
    /// The number of a packet that is sent.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }

    /// It was sent.
    pub const fn advance(&mut self) {
        self.0 = (self.0 + 1) % END;
    }

    /// Notes the number of a packet that has arrived. Gives how many before it have not; one that is late
    /// was counted so before, and gives 0. None if it is no number of a packet.
    pub const fn arrived(&mut self, number: u32) -> Option<u32> {
        if number >= END {
            return None;
        }
        let missing = number.wrapping_sub(self.0) % END;
        if missing >= END / 2 {
            return Some(0);
        }
        self.0 = (number + 1) % END;
        Some(missing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_counted_once() {
        let mut sequence = Sequence::default();
        for (number, missing) in [
            (0, Some(0)),
            (1, Some(0)),
            (4, Some(2)),
            (3, Some(0)),
            (5, Some(0)),
            (crate::hello::KIND, None),
            (u32::MAX, None),
            (6, Some(0)),
        ] {
            assert_eq!(sequence.arrived(number), missing, "{number}");
        }
        let mut sequence = Sequence(END - 2);
        assert_eq!(sequence.arrived(END - 2), Some(0));
        assert_eq!(sequence.arrived(1), Some(2), "numbers begin again");
        let mut sent = Sequence(END - 1);
        sent.advance();
        assert_eq!(sent.number(), 0);
    }
}
