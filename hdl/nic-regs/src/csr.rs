//! BAR0: control and status registers; also the MSI-X table and the counters.
//!
//! Registers are 32 bits wide and accessed whole (one dword, all byte enables). Any other access,
//! and any access outside the registers, counters and MSI-X table, is dropped (reads return zero),
//! counted as [`crate::counter::Counter::BadRegister`] and logged. A write to a read-only register
//! is dropped silently.

/// Offset of the counters: 32-bit, read-only, indexed by [`crate::counter::Counter`].
pub const COUNTER_OFFSET: u32 = 0x400;
/// Offset of the MSI-X table: 16 bytes a vector: address low, address high, data, control (bit 0:
/// masked).
pub const MSIX_TABLE_OFFSET: u32 = 0x1000;
/// Size of one MSI-X table entry, in bytes.
pub const MSIX_ENTRY_BYTES: u32 = 16;
/// Offset of the control word in its entry.
pub const MSIX_CONTROL: u32 = 12;

/// Offset of a vector's entry.
#[must_use]
pub const fn msix_entry(vector: u32) -> u32 {
    MSIX_TABLE_OFFSET + vector * MSIX_ENTRY_BYTES
}

/// Number of stamps of the sampled message, see [`Stamp`].
pub const STAMP_COUNT: usize = 9;

/// Stages of a sampled message (anatomy); the stamp registers hold the low 32 bits of the cycle
/// counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stamp {
    /// Sender: token doorbell accepted.
    Doorbell = 0,
    /// Sender: send descriptor fetched and resolved.
    Descriptor = 1,
    /// Sender: last payload byte of the first frame on the chip.
    Data = 2,
    /// Sender: first beat of the first frame on the link.
    FirstBeatOut = 3,
    /// Sender: last beat of the first frame on the link.
    LastBeatOut = 4,
    /// Receiver: first beat of the first frame off the link.
    FirstBeatIn = 5,
    /// Receiver: receive descriptor fetched and resolved.
    Matched = 6,
    /// Receiver: last payload write accepted by the host port.
    DataWritten = 7,
    /// Receiver: status write accepted by the host port.
    StatusWritten = 8,
}

crate::registers! { 0x2000;
    /// Identity; the driver refuses a device whose MAGIC or ABI differs.
    ID @ 0x000 Ro = 0x51A7_0002 {
        /// Revision of every layout.
        15:0 ABI;
        /// 0x51A7.
        31:16 MAGIC;
    }
    /// Capabilities: VIs and regions.
    CAPS0 @ 0x004 Ro = 0x0400_0400 {
        /// Number of VIs.
        15:0 VIS;
        /// Number of memory regions.
        31:16 REGIONS;
    }
    /// Capabilities: event queues, peers, domains.
    CAPS1 @ 0x008 Ro = 0x4040_0100 {
        /// Number of event queues.
        15:0 EVENT_QUEUES;
        /// Number of peers.
        23:16 PEERS;
        /// Number of domains.
        31:24 DOMAINS;
    }
    /// Capabilities: link payload, segments, vectors.
    CAPS2 @ 0x00C Ro = 0x2010_1000 {
        /// Largest link payload, in bytes.
        15:0 LINK_PAYLOAD;
        /// Data segments of a descriptor.
        23:16 SEGMENTS;
        /// MSI-X vectors.
        31:24 VECTORS;
    }
    /// Capabilities: largest message, and what a device may lack. The reset value is that of a
    /// device without any feature; a device with features reads them as 1, at all times.
    CAPS3 @ 0x010 Ro = 0x0004_0000 {
        /// Largest message, in bytes.
        23:0 MAX_TRANSFER;
        /// Push doorbells (`docs/contract.md` 2.5).
        24:24 PUSH;
        /// RDMA writes, sent and received (11).
        25:25 RDMA_WRITE;
        /// RDMA reads, asked and answered (12).
        26:26 RDMA_READ;
    }
    /// Clock of the core.
    CLOCK @ 0x014 Ro = 250_000 {
        /// Frequency in kHz.
        31:0 KHZ;
    }
    /// Control.
    CONTROL @ 0x018 Rw = 0 {
        /// The device works: admin ring, doorbells, link. While 0, doorbells are dropped and frames
        /// are ignored.
        0:0 ENABLE;
        /// Writing 1 returns every register, table and counter to its value after reset; reads as
        /// 0.
        1:1 SOFT_RESET;
    }
    /// Status.
    STATUS @ 0x01C Ro = 0 {
        /// Reset is over: tables are clear and registers may be written.
        0:0 READY;
        /// The admin ring has work.
        1:1 ADMIN_BUSY;
        /// An admin entry could not be read; the ring is stopped until reset.
        2:2 ADMIN_FAILED;
        /// No read tag has had its completion since READ_TIMEOUT: reads fail at once, until
        /// one arrives or a quarantine ends.
        3:3 READS_FAIL;
        /// The pool holds frames: not transmitted yet, or not acknowledged. A reset forgets them.
        4:4 SENDING;
    }
    /// Admin ring: bus address, low half (64-byte aligned).
    ADMIN_BASE_LO @ 0x020 Rw = 0 {
        /// Address bits 31:0.
        31:0 ADDRESS;
    }
    /// Admin ring: bus address, high half.
    ADMIN_BASE_HI @ 0x024 Rw = 0 {
        /// Address bits 63:32.
        31:0 ADDRESS;
    }
    /// Admin ring: size.
    ADMIN_SIZE @ 0x028 Rw = 0 {
        /// Log2 of the number of entries, 0 to 8.
        3:0 LOG2;
    }
    /// Admin ring: entries posted since reset, modulo 65,536. Writing it starts execution.
    ADMIN_TAIL @ 0x02C Rw = 0 {
        /// Free-running index.
        15:0 INDEX;
    }
    /// Admin ring: entries completed since reset, modulo 65,536.
    ADMIN_HEAD @ 0x030 Ro = 0 {
        /// Free-running index.
        15:0 INDEX;
    }
    /// This node.
    NODE @ 0x034 Rw = 0 {
        /// Own node number, 0 to 63.
        7:0 NUMBER;
    }
    /// PCIe limits, as negotiated by the host.
    PCIE @ 0x038 Rw = 0x0000_0022 {
        /// Maximum payload: 128 << n bytes, n 0 to 2.
        2:0 MAX_PAYLOAD;
        /// Maximum read request: 128 << n bytes, n 0 to 2.
        6:4 MAX_READ;
    }
    /// Requester id of the function.
    REQUESTER @ 0x03C Rw = 0 {
        /// Bus, device, function.
        15:0 ID;
    }
    /// PCIe completion time-out.
    READ_TIMEOUT @ 0x040 Rw = 2_500_000 {
        /// Cycles (10 ms).
        31:0 CYCLES;
    }
    /// Longest delay of a channel acknowledgement.
    ACK_DELAY @ 0x044 Rw = 250 {
        /// Cycles (1 us).
        31:0 CYCLES;
    }
    /// First retransmission time-out; doubles with each try.
    RETRY_TIMEOUT @ 0x048 Rw = 2_000 {
        /// Cycles (8 us).
        23:0 CYCLES;
    }
    /// Tries before a peer is dead.
    RETRY_LIMIT @ 0x04C Rw = 8 {
        /// Retransmissions, or silent keepalive periods; 1 to 15.
        3:0 TRIES;
    }
    /// Keepalive period.
    KEEPALIVE @ 0x050 Rw = 250_000 {
        /// Cycles (1 ms); 0: no keepalive.
        31:0 CYCLES;
    }
    /// Cycle counter, low half; reading it holds the high half.
    CYCLES_LO @ 0x054 Ro = 0 {
        /// Bits 31:0.
        31:0 COUNT;
    }
    /// Cycle counter, high half as of the last read of the low half.
    CYCLES_HI @ 0x058 Ro = 0 {
        /// Bits 63:32.
        31:0 COUNT;
    }
    /// Where error, peer and refusal events go.
    ERROR_QUEUE @ 0x05C Rw = 0 {
        /// Event queue number.
        15:0 QUEUE;
        /// Events are wanted.
        31:31 VALID;
    }
    /// Error log: records lost because the log was full, 31:16, and records in it, 15:0.
    ERROR_COUNT @ 0x060 Ro = 0 {
        /// Records in the log, at most 16.
        15:0 LEVEL;
        /// Records lost since reset, saturating.
        31:16 LOST;
    }
    /// Error log: oldest record, low half (see `counter::ErrorRecord`); zero when empty.
    ERROR_LO @ 0x064 Ro = 0 {
        /// Bits 31:0.
        31:0 RECORD;
    }
    /// Error log: oldest record, high half.
    ERROR_HI @ 0x068 Ro = 0 {
        /// Bits 63:32.
        31:0 RECORD;
    }
    /// Error log: any write removes the oldest record.
    ERROR_POP @ 0x06C Wo = 0 {
    }
    /// Anatomy: which VI to sample. A write clears the stamps; each stage is then stamped once.
    SAMPLE @ 0x070 Rw = 0 {
        /// VI number.
        15:0 VI;
        /// Sampling is on.
        31:31 ARMED;
    }
    /// Anatomy: which stages are stamped.
    SAMPLED @ 0x074 Ro = 0 {
        /// One bit a stage, see [`Stamp`].
        8:0 STAGES;
    }
    /// Interrupt moderation.
    MODERATION @ 0x078 Rw = 0 {
        /// Least cycles between two interrupts of a vector; 0: no moderation.
        23:0 CYCLES;
    }
    /// Stamp: token doorbell accepted.
    STAMP0 @ 0x080 Ro = 0 {
        /// Cycle counter, low half.
        31:0 CYCLE;
    }
    /// Stamp: send descriptor resolved.
    STAMP1 @ 0x084 Ro = 0 {
        /// Cycle counter, low half.
        31:0 CYCLE;
    }
    /// Stamp: payload on the chip.
    STAMP2 @ 0x088 Ro = 0 {
        /// Cycle counter, low half.
        31:0 CYCLE;
    }
    /// Stamp: first beat out.
    STAMP3 @ 0x08C Ro = 0 {
        /// Cycle counter, low half.
        31:0 CYCLE;
    }
    /// Stamp: last beat out.
    STAMP4 @ 0x090 Ro = 0 {
        /// Cycle counter, low half.
        31:0 CYCLE;
    }
    /// Stamp: first beat in.
    STAMP5 @ 0x094 Ro = 0 {
        /// Cycle counter, low half.
        31:0 CYCLE;
    }
    /// Stamp: receive descriptor resolved.
    STAMP6 @ 0x098 Ro = 0 {
        /// Cycle counter, low half.
        31:0 CYCLE;
    }
    /// Stamp: payload written.
    STAMP7 @ 0x09C Ro = 0 {
        /// Cycle counter, low half.
        31:0 CYCLE;
    }
    /// Stamp: status written.
    STAMP8 @ 0x0A0 Ro = 0 {
        /// Cycle counter, low half.
        31:0 CYCLE;
    }
}

const _: () =
    assert!(ID::RESET.0 == (crate::limits::MAGIC as u32) << 16 | crate::limits::ABI as u32);
// The reset values of the capability registers are the limits.
const _: () = {
    use crate::limits as l;
    assert!(ID::RESET.get(ID::MAGIC) == l::MAGIC as u32 && ID::RESET.get(ID::ABI) == l::ABI as u32);
    assert!(CAPS0::RESET.get(CAPS0::VIS) as usize == l::VI_COUNT);
    assert!(CAPS0::RESET.get(CAPS0::REGIONS) as usize == l::REGION_COUNT);
    assert!(CAPS1::RESET.get(CAPS1::EVENT_QUEUES) as usize == l::EVENT_QUEUE_COUNT);
    assert!(CAPS1::RESET.get(CAPS1::PEERS) as usize == l::PEER_COUNT);
    assert!(CAPS1::RESET.get(CAPS1::DOMAINS) as usize == l::DOMAIN_COUNT);
    assert!(CAPS2::RESET.get(CAPS2::LINK_PAYLOAD) as usize == l::LINK_PAYLOAD_BYTES);
    assert!(CAPS2::RESET.get(CAPS2::SEGMENTS) as usize == l::DATA_SEGMENTS_MAX);
    assert!(CAPS2::RESET.get(CAPS2::VECTORS) as usize == l::MSIX_VECTOR_COUNT);
    assert!(
        CAPS3::RESET.0 == l::MAX_TRANSFER_BYTES
            && l::MAX_TRANSFER_BYTES < 1 << 24
            && CLOCK::RESET.0 == l::CLOCK_KHZ
    );
};
