//! What two nodes set up, post and poke in a run of lockstep.

use super::broken::Broken;
use super::fenced::Fenced;
use super::forge::Forged;
use crate::testbench::Names;
use nic_regs::desc::{ControlSegment, control};
use nic_regs::vi::Reliability;

/// Bytes of a node's data area for one VI.
pub(super) const DATA_BYTES: usize = 768 * 1024;
/// Descriptors of a VI that one phase may post, per queue.
pub(super) const SLOTS: usize = 24;
/// Bytes between descriptors.
pub(super) const SLOT_BYTES: usize = 320;

/// A data segment, in terms of the node's own VI data area.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    /// Offset in the data area.
    pub(super) offset: u64,
    /// Length in bytes.
    pub(super) length: u32,
    /// What is wrong with it.
    pub(super) wrong: Wrong,
}

/// How a segment is made to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    /// Nothing.
    Nothing,
    /// Region index out of range, by this bit above those of one.
    Index(u8),
    /// Another generation, by this bit.
    Generation(u8),
    /// The generation before the region changed; another one, by this bit, if it did not.
    Stale(u8),
    /// A region of another tag.
    Tag,
    /// A region of another domain.
    Domain,
    /// Another address, by this bit, outside the region.
    Address(u8),
    /// Past the region's end, behind it, before its beginning, or around the end of all addresses.
    Bounds,
    /// A region that lacks the right (remote memory only).
    Rights,
    /// A region of memory that the host does not have (where the device reads).
    Absent,
}

/// How a descriptor is out of reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unreachable {
    /// Both the token (first of a queue) and Next name a place that is not in the region, by these bits.
    Place(u8, u8),
    /// They name a region of another tag, or of another domain.
    Tag,
    Domain,
    /// They name memory that the host does not have.
    Absent,
    /// NextHandle has another generation, by this bit, or an index out of range. The token is good, so
    /// there is one descriptor more behind it, which makes the device use Next.
    Generation(u8),
    Index(u8),
    /// Next is not aligned, by this bit; as before.
    Aligned(u8),
}

/// The memory that an RDMA names, in terms of the peer's VI data area.
#[derive(Clone, Copy, Debug)]
pub(super) struct Remote {
    /// Offset in the data area.
    pub(super) offset: u64,
    /// What is wrong with it.
    pub(super) wrong: Wrong,
    /// Reserved word of the address segment.
    pub(super) reserved: u32,
}

/// A descriptor.
#[derive(Clone, Debug)]
pub(super) struct Spec {
    /// Address segment of an RDMA.
    pub(super) remote: Option<Remote>,
    /// Segments.
    pub(super) segments: Vec<Segment>,
    /// Control bits.
    pub(super) control: u16,
    /// Reserved word.
    pub(super) reserved: u32,
    /// SegCount, if it is to differ from the number of segments.
    pub(super) seg_count: Option<u16>,
    /// Immediate data.
    pub(super) immediate: u32,
    /// The token (first of a queue) or Next names no valid descriptor.
    pub(super) unreachable: Option<Unreachable>,
}

impl Spec {
    /// Bytes of all segments.
    #[must_use]
    pub(super) fn total(&self) -> u64 {
        self.segments.iter().map(|segment| u64::from(segment.length)).sum()
    }

    /// Its control segment, for so many segments, with nothing behind it.
    pub(super) fn control_segment(&self, count: u16) -> ControlSegment {
        ControlSegment {
            seg_count: self.seg_count.unwrap_or(count),
            control: self.control,
            reserved: self.reserved,
            immediate: self.immediate,
            ..ControlSegment::default()
        }
    }

    /// Whether nothing is wrong with it.
    #[must_use]
    pub(super) fn is_good(&self) -> bool {
        self.segments.iter().all(|segment| segment.wrong == Wrong::Nothing)
            && self.control & !control::IMMEDIATE == 0
            && self.reserved == 0
            && self.seg_count.is_none()
            && self.unreachable.is_none()
    }
}

/// One message: its send, and the receive that is posted for it.
#[derive(Clone, Debug)]
pub(super) struct Message {
    /// Posted first, at the receiver.
    pub(super) recv: Option<Spec>,
    /// The send.
    pub(super) send: Spec,
    /// Cycles between this send's doorbell and the one before.
    pub(super) delay: u64,
}

impl Message {
    /// Whether it is an RDMA read.
    #[must_use]
    pub(super) fn is_read(&self) -> bool {
        self.send.control & control::OP_MASK == control::OP_RDMA_READ
    }
}

/// What one connection does in a phase.
#[derive(Clone, Debug, Default)]
pub(super) struct Traffic {
    /// Node that sends: 0 or 1.
    pub(super) sender: usize,
    /// In order.
    pub(super) messages: Vec<Message>,
    /// A receive behind those of the messages.
    pub(super) spare: Option<Spec>,
    /// How many messages a receive is posted before its own; the others are posted before all sends.
    /// None: all are.
    pub(super) ahead: Option<usize>,
    /// Everything is posted before the VIs are connected, so that the device finds queues that are full.
    pub(super) while_idle: bool,
}

impl Traffic {
    /// In the order of their posts.
    pub(super) fn receives(&self) -> impl Iterator<Item = &Spec> {
        let receives = self.messages.iter().filter_map(|message| message.recv.as_ref());
        receives.chain(&self.spare)
    }

    /// How many receives are posted when the send of a message is. None: all, from the first one on.
    pub(super) fn early(&self, message: usize) -> Option<usize> {
        let upto = message.saturating_add(self.ahead?).min(self.messages.len() - 1);
        Some(self.messages[..=upto].iter().filter(|message| message.recv.is_some()).count())
    }
}

/// One connected pair of VIs.
#[derive(Clone, Debug)]
pub(super) struct Pair {
    /// VI numbers on both nodes.
    pub(super) vi: [u16; 2],
    /// Domains.
    pub(super) domain: [u8; 2],
    /// Tags.
    pub(super) tag: [u16; 2],
    /// Level.
    pub(super) reliability: Reliability,
    /// Largest message of each VI.
    pub(super) max_transfer: u32,
    /// What RDMA each node's VI allows in its memory: bits of [`rdma`].
    pub(super) allows: [u32; 2],
    /// What its peer was notified of that.
    pub(super) reported: [u32; 2],
    /// Event queue of the receives of each node's VI: that of the sends, or one of their own.
    pub(super) recv_events: [usize; 2],
}

/// A region of a pair that becomes another one, while the pair rests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Change {
    /// Pair.
    pub(super) pair: usize,
    /// Node.
    pub(super) node: usize,
    /// How many messages of each other pair are posted before.
    pub(super) after: usize,
}

/// An admin command that a node refuses.
#[derive(Clone, Debug)]
pub(super) struct Refused {
    /// Node.
    pub(super) node: usize,
    /// Dword 0, also of no [`Opcode`](nic_regs::admin::Opcode).
    pub(super) opcode: u32,
    /// Dword 1.
    pub(super) index: u32,
    /// Dwords 4 and on; 0 behind them.
    pub(super) body: Vec<u32>,
}

/// What happens from one rest to the next.
#[derive(Clone, Debug, Default)]
pub(super) struct Phase {
    /// Traffic by pair.
    pub(super) traffic: Vec<Traffic>,
    /// Stray doorbells and register accesses before it.
    pub(super) pokes: Vec<Poke>,
    /// Frames that no device would send, before it.
    pub(super) forged: Vec<Forged>,
    /// Admin commands that are refused, before it.
    pub(super) refused: Vec<Refused>,
    /// 48-byte messages before it: sender, domain.
    pub(super) messages: Vec<(usize, u8)>,
    /// Traffic that ends in its midst. With it no counter of VIs can be compared, nor the interrupts
    /// of the queue of errors.
    pub(super) fenced: Option<Fenced>,
    /// Regions of pairs without traffic that change.
    pub(super) changes: Vec<Change>,
    /// Node that closes the channel after it. It is opened again before the next phase.
    pub(super) closes: Option<usize>,
    /// What a VI receives before the channel closes.
    pub(super) broken: Option<Broken>,
    /// Nobody reads the events of completions behind it, if there is another phase: the rings stay as full as they
    /// are.
    pub(super) keeps_events: bool,
    /// Node that is reset after it, and set up again.
    pub(super) resets: Option<usize>,
    /// Traffic that the reset finds in its midst.
    pub(super) cut: Option<Fenced>,
    /// Which event queues are armed before it, by node.
    pub(super) armed: [[bool; 4]; 2],
    /// Which MSI-X vectors are masked until all else of it is over, by node.
    pub(super) masked: [[bool; 4]; 2],
    /// Least cycles between two interrupts of a vector.
    pub(super) moderation: u32,
}

/// A whole program.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// Its seed.
    pub(super) seed: u64,
    /// Numbers of the nodes and of their objects.
    pub(super) names: Names,
    /// Connections.
    pub(super) pairs: Vec<Pair>,
    /// One after the other.
    pub(super) phases: Vec<Phase>,
    /// Chance that a frame of an Unreliable VI is lost.
    pub(super) unreliable_loss: f64,
    /// In the end more receives are posted to a VI than a queue takes.
    pub(super) overflows: bool,
    /// Log2 of the entries of the event queues of completions and errors, which nobody reads
    /// before the end of a phase.
    pub(super) event_log2: u32,
}

impl Plan {
    /// A seed for what is at a place of the program.
    #[must_use]
    pub(super) fn seed_of(&self, place: [usize; 3]) -> u64 {
        place.iter().fold(self.seed, |seed, &n| seed.wrapping_mul(0x100_0000_01b3) ^ n as u64)
    }

    /// Whether a fence or a reset ends traffic in any phase.
    #[must_use]
    pub(super) fn ends_traffic(&self) -> bool {
        self.phases.iter().any(|phase| phase.fenced.is_some() || phase.cut.is_some())
    }

    /// Whether frames may have been on their way before a phase when a node was reset, or when a channel was closed:
    /// what a broken message is answered with.
    #[must_use]
    pub(super) fn has_cut(&self, before: usize) -> bool {
        self.phases[..before].iter().any(|phase| phase.cut.is_some() || phase.broken.is_some())
    }

    /// Whether the events of completions wait behind a phase.
    #[must_use]
    pub(super) fn keeps_events(&self, phase: usize) -> bool {
        let of = &self.phases[phase];
        let ends = of.closes.is_some() || of.resets.is_some();
        of.keeps_events && !ends && phase + 1 < self.phases.len()
    }

    /// VI of the traffic that a fence ends in this phase.
    #[must_use]
    pub(super) fn fenced_vi(&self, phase: usize) -> Option<u16> {
        self.phases[phase].fenced.as_ref().map(|fenced| fenced.vi)
    }

    /// VI of the traffic that a reset has ended behind the phase before.
    #[must_use]
    pub(super) fn cut_vi(&self, phase: usize) -> Option<u16> {
        self.phases[..phase].last()?.cut.as_ref().map(|cut| cut.vi)
    }

    /// How often the regions of a pair have changed on a node before a phase.
    #[must_use]
    pub(super) fn changes(&self, phase: usize, pair: usize, node: usize) -> usize {
        let before = self.phases[..phase].iter().flat_map(|phase| &phase.changes);
        before.filter(|change| change.pair == pair && change.node == node).count()
    }
}

/// A host access that the device must refuse.
#[derive(Clone, Copy, Debug)]
pub(super) struct Poke {
    /// Node.
    pub(super) node: usize,
    /// BAR.
    pub(super) bar: u8,
    /// Offset.
    pub(super) offset: u64,
    /// Bytes, 1 to 16.
    pub(super) length: usize,
    /// Value of each byte.
    pub(super) fill: u8,
}
