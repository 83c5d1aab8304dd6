//! Who may set connections up: whoever has the key, and can receive what is sent to its address.
//!
//! A message names the instance of the node that it is for, a random number that the node has while
//! it lives. A sender learns it from a challenge, which is the answer to any message without it. So a
//! message of an earlier node is worth nothing, and nothing is kept for an address that cannot be
//! answered. Messages are numbered, and none is taken twice.

use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};

use super::format::CODE_BYTES;

/// The secret that nodes share; one of its own for those that have none.
#[derive(Clone)]
pub struct Key(Hmac<Sha256>);

impl core::fmt::Debug for Key {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Key(..)")
    }
}

impl Key {
    /// The key that a text stands for; the empty text stands for no key.
    #[must_use]
    pub fn new(text: &[u8]) -> Self {
        let digest = Sha256::new().chain_update(b"viaduct udp 1\0").chain_update(text).finalize();
        let mut key = hmac::digest::Key::<Hmac<Sha256>>::default();
        key[..digest.len()].copy_from_slice(&digest);
        Self(Hmac::new(&key))
    }

    /// The code of a message.
    pub(super) fn code(&self, message: &[u8]) -> [u8; CODE_BYTES] {
        let code = self.0.clone().chain_update(message).finalize().into_bytes();
        core::array::from_fn(|i| code[i])
    }

    /// Whether a message has this code. Takes the same time for every code.
    pub(super) fn is_code(&self, message: &[u8], code: &[u8; CODE_BYTES]) -> bool {
        self.0.clone().chain_update(message).verify_truncated_left(code).is_ok()
    }
}

/// Numbers of messages that were taken: the highest, and which of those before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Taken {
    highest: u64,
    /// Bit n: that which is n lower.
    before: u64,
}

impl Taken {
    /// Takes a number; false if it was taken before, or may have been.
    pub(super) const fn take(&mut self, number: u64) -> bool {
        if number > self.highest {
            let ahead = number - self.highest;
            self.before = if ahead < 64 { self.before << ahead } else { 0 };
            self.highest = number;
        }
        let behind = self.highest - number;
        if behind >= 64 || self.before & 1 << behind != 0 {
            return false;
        }
        self.before |= 1 << behind;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_good_for_one_message_and_one_key() {
        let key = Key::new(b"secret");
        let code = key.code(b"message");
        assert!(key.is_code(b"message", &code));
        assert!(!key.is_code(b"messagf", &code));
        assert!(!Key::new(b"").is_code(b"message", &code));
        for bit in 0..8 * CODE_BYTES {
            let mut other = code;
            other[bit / 8] ^= 1 << (bit % 8);
            assert!(!key.is_code(b"message", &other), "{bit}");
        }
        assert!(!format!("{key:?}").contains("secret"));
    }

    #[test]
    fn no_number_is_taken_twice() {
        let mut taken = Taken::default();
        for (number, is_new) in
            [(1, true), (1, false), (3, true), (2, true), (2, false), (100, true), (37, true)]
        {
            assert_eq!(taken.take(number), is_new, "{number}");
        }
        assert!(!taken.take(36), "too old to be known");
        assert!(!taken.take(37) && taken.take(u64::MAX) && !taken.take(u64::MAX));
    }
}
