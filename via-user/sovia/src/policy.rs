//! How a connection moves its bytes: the variants whose curves SOVIA's Figure 9 and the figures of Stream
//! Sockets show, as settings of one engine.

use core::time::Duration;

use vipl::Reliability;

/// How the sender learns that receives are posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowControl {
    /// Acknowledgements come unasked, with data or when `delayed` of them are due (SOVIA, 3.2.2).
    /// 1: for each packet of data.
    Window {
        /// Acknowledgements that are sent alone.
        delayed: u16,
    },
    /// They come when they are asked for, and then only if `low` are due (Stream Sockets, 3.1).
    Credits {
        /// The low watermark.
        low: u16,
    },
}

/// Settings of one side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Packets of data that the other side may send without an acknowledgement: receives for data.
    pub window: u16,
    /// How acknowledgements come.
    pub flow: FlowControl,
    /// Most bytes of a packet.
    pub mtu: u32,
    /// Up to so many bytes of a message are copied, more are sent from where they are (SOVIA, 3.1.3).
    pub copy_limit: u32,
    /// How long small messages wait for others (SOVIA, 3.2.3). None: they do not.
    pub combine: Option<Duration>,
    /// A thread of the library handles packets, as in SOVIA's first version (3.1.2); else whoever
    /// calls it does.
    pub handler: bool,
    /// Sends that are done are looked for when there is no room any more, and not after each
    /// (Stream Sockets, 3.1).
    pub defers_sends: bool,
    /// When sends are done. As both papers have it, with [`Reliability::Delivery`], that is when the NIC
    /// has taken them; with [`Reliability::Reception`], when they have arrived, which
    /// [`crate::TcpStream::has_sent_all`] then says.
    pub reliability: Reliability,
}

impl Policy {
    /// One packet at a time, each acknowledged; whoever calls handles packets.
    pub const SINGLE: Self = Self {
        window: 1,
        flow: FlowControl::Window { delayed: 1 },
        mtu: 32 << 10,
        copy_limit: 2 << 10,
        combine: None,
        handler: false,
        defers_sends: true,
        reliability: Reliability::Delivery,
    };
    /// The same with a thread that handles packets.
    pub const HANDLER: Self = Self { handler: true, ..Self::SINGLE };
    /// A window of 32 packets.
    pub const FLOWCTRL: Self = Self { window: 32, ..Self::SINGLE };
    /// And acknowledgements that are delayed.
    pub const DACKS: Self = Self { flow: FlowControl::Window { delayed: 16 }, ..Self::FLOWCTRL };
    /// And small messages that are combined.
    pub const COMBINE: Self = Self { combine: Some(Duration::from_millis(100)), ..Self::DACKS };
    /// Stream Sockets: 32 credits, packets of 8 KiB.
    pub const STREAM_SOCKETS: Self =
        Self { flow: FlowControl::Credits { low: 8 }, mtu: 8 << 10, ..Self::FLOWCTRL };

    /// All, by the names that the papers give them.
    pub const ALL: [(&'static str, Self); 6] = [
        ("HANDLER", Self::HANDLER),
        ("SINGLE", Self::SINGLE),
        ("FLOWCTRL", Self::FLOWCTRL),
        ("DACKS", Self::DACKS),
        ("COMBINE", Self::COMBINE),
        ("STREAM_SOCKETS", Self::STREAM_SOCKETS),
    ];

    /// Receives that are posted, so that no packet of the other side finds none: all data of the
    /// window, the acknowledgements of all data that this side may have sent, requests for credits,
    /// Wakeup or Fin, and FinAck.
    ///
    /// SOVIA's count (4.3) is one less: it has no room for a FinAck that comes before the Fin of the
    /// same side.
    #[must_use]
    pub fn receives(&self, peer_window: u16) -> usize {
        let acknowledgements = match self.flow {
            FlowControl::Window { delayed } => peer_window / delayed.max(1),
            // A request and a response.
            FlowControl::Credits { .. } => 2,
        };
        usize::from(self.window) + usize::from(acknowledgements) + 2
    }

    /// What is wrong with the settings.
    ///
    /// # Errors
    /// The setting, and what it must be.
    pub fn check(&self) -> Result<(), &'static str> {
        let due = match self.flow {
            FlowControl::Window { delayed } => delayed,
            FlowControl::Credits { low } => low,
        };
        if self.window == 0 || self.window > 1024 {
            Err("a window has 1 to 1,024 packets")
        } else if due == 0 || due > self.window {
            Err("acknowledgements are due after 1 to as many packets as the window has")
        } else if self.mtu == 0 || self.copy_limit > self.mtu {
            Err("a packet has at least 1 byte, and room for all that is copied")
        } else if self.reliability == Reliability::Unreliable {
            Err("what is sent must arrive")
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_settings_are_good_and_others_are_named() {
        for (name, policy) in Policy::ALL {
            assert_eq!(policy.check(), Ok(()), "{name}");
        }
        let bad = |policy: Policy, wanted: &str| {
            assert!(policy.check().is_err_and(|why| why.contains(wanted)), "{wanted}");
        };
        bad(Policy { window: 0, ..Policy::DACKS }, "a window");
        bad(Policy { window: 2000, ..Policy::DACKS }, "a window");
        bad(Policy { window: 8, ..Policy::DACKS }, "acknowledgements");
        bad(Policy { flow: FlowControl::Credits { low: 0 }, ..Policy::DACKS }, "acknowledgements");
        bad(Policy { mtu: 1024, ..Policy::DACKS }, "a packet");
        // SOVIA: P = w + w/t + 1, here with room for a FinAck.
        assert_eq!(Policy::DACKS.receives(32), 32 + 2 + 2);
        assert_eq!(Policy::SINGLE.receives(1), 4);
    }
}
