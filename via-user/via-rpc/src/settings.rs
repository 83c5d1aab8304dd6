//! Settings of one side. The negotiation takes the smaller MTU and the shorter longest message.

use crate::header::MAX_MESSAGE;

/// Settings of a server or a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Packets of data that the other side may send: receives, 1 to 255.
    pub credits: u8,
    /// Most bytes of a packet, from [`Settings::LEAST_MTU`] to [`Settings::MOST_MTU`].
    pub mtu: u32,
    /// Most bytes of a message, at most [`MAX_MESSAGE`].
    pub max_message: u32,
    /// Most clients of a server at a time; one more is rejected.
    pub clients: usize,
    /// Most buffers that the cache keeps while nobody uses them.
    pub cached_buffers: usize,
    /// Most bytes of these together.
    pub cached_bytes: usize,
}

impl Default for Settings {
    /// 32 credits of 8 KiB, as the paper measures (3.2); messages up to 16 MiB.
    fn default() -> Self {
        Self {
            credits: 32,
            mtu: 8 << 10,
            max_message: 16 << 20,
            clients: 256,
            cached_buffers: 64,
            cached_bytes: 32 << 20,
        }
    }
}

impl Settings {
    /// Least bytes of a packet: what the negotiation needs, and a header of a message.
    pub const LEAST_MTU: u32 = 64;
    /// Most bytes of a packet: what a VI carries on every device.
    pub const MOST_MTU: u32 = port::MAX_TRANSFER_BYTES;

    /// Checks the settings.
    ///
    /// # Errors
    /// The setting that cannot be, and what it must be.
    pub fn check(&self) -> Result<(), &'static str> {
        if self.credits == 0 {
            Err("a side has 1 to 255 credits")
        } else if !(Self::LEAST_MTU..=Self::MOST_MTU).contains(&self.mtu) {
            Err("an MTU has 64 bytes to 256 KiB")
        } else if self.max_message > MAX_MESSAGE {
            Err("a message has at most 1 GiB")
        } else if self.clients == 0 {
            Err("a server has at least 1 client")
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_cannot_be_are_named() {
        let base = Settings::default();
        assert_eq!(base.check(), Ok(()));
        for (settings, wanted) in [
            (Settings { credits: 0, ..base }, "credits"),
            (Settings { mtu: 63, ..base }, "MTU"),
            (Settings { mtu: (256 << 10) + 1, ..base }, "MTU"),
            (Settings { max_message: MAX_MESSAGE + 1, ..base }, "message"),
            (Settings { clients: 0, ..base }, "client"),
        ] {
            assert!(settings.check().unwrap_err().contains(wanted), "{wanted}");
        }
    }
}
