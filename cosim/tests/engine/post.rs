//! Posts random descriptors, good and bad, to one work queue; the queue follows the successor rule.

use crate::host::{Host, UNREAD};
use nic_model::tpt::{Access, Owner, Place};
use nic_model::vi::{Head, WorkQueue};
use nic_regs::desc::{ControlSegment, DataSegment, SEG_COUNT_OFFSET, control};
use nic_regs::doorbell;
use nic_regs::tpt::Handle;

/// What to post.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// Chance of each kind of fault.
    pub faults: f64,
    /// Chance of a long buffer.
    pub long: f64,
    pub longest: u64,
    pub immediate: f64,
    /// Chance of an RDMA, and that it is a read.
    pub rdma: f64,
    pub reads: f64,
}

/// A descriptor's token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Token {
    pub region: u16,
    pub offset_64: u32,
    pub segments: u8,
}

/// A posted descriptor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Posted {
    pub token: Token,
    pub bus: u64,
    /// Whether `Next` of this descriptor leads to its successor.
    pub linked: bool,
}

/// One work queue and the memory that its descriptors use.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    pub owner: Owner,
    desc_region: u16,
    desc_bytes: u32,
    pub data_region: u16,
    other_region: u16,
    slot: u32,
    /// Slots are used again; Next of what lay there leads nowhere.
    rewound: bool,
    /// A descriptor lies at the region's end; a second one would overlap it.
    at_end: bool,
    pub posted: Vec<Posted>,
    /// Descriptors popped.
    pub popped: usize,
    /// The device's head and last token, and its posted count.
    pub head: Token,
    pub last: Token,
    pub count: u16,
    /// Next of the head cannot be read any more.
    pub unread: bool,
    /// Chance that a descriptor lies right behind the one before (1: its hints are right, too).
    pub close: f64,
    /// Descriptors are in a region of another tag.
    hidden: bool,
}

const DESC_BYTES: u32 = 64 * 1024;
pub(crate) const DATA_BYTES: u32 = 300 * 1024;
/// Nothing random.
const PLAIN: Plan =
    Plan { faults: 0.0, long: 0.0, longest: 0, immediate: 0.0, rdma: 0.0, reads: 0.0 };
/// Behind what may be read of a descriptor at the region's start.
const FIRST_SLOT: u32 = 6;

impl Queue {
    pub(crate) fn new(host: &mut Host, owner: Owner) -> Self {
        Self::sized(host, owner, DESC_BYTES)
    }

    /// With so many bytes of descriptors.
    pub(crate) fn sized(host: &mut Host, owner: Owner, desc_bytes: u32) -> Self {
        let other = Owner { tag: owner.tag ^ 1, domain: owner.domain };
        Self {
            owner,
            desc_region: host.new_region(desc_bytes, owner),
            desc_bytes,
            data_region: host.new_region(DATA_BYTES, owner),
            other_region: host.new_region(4096, other),
            slot: FIRST_SLOT,
            ..Self::default()
        }
    }

    fn lengths(host: &mut Host, plan: Plan, count: u64) -> Vec<u32> {
        let random = &mut host.random;
        let long = random.chance(plan.long);
        let mut left = if long { plan.longest } else { plan.longest.min(80_000) };
        let each = match random.below(4) {
            _ if long => plan.longest / count.max(1) + 1,
            0 => 20,
            1 => 300,
            _ => 5001,
        };
        (0..count)
            .map(|_| {
                let bytes = if random.chance(0.1) { 0 } else { random.below(each).min(left) };
                left -= bytes;
                u32::try_from(bytes).unwrap()
            })
            .collect()
    }

    /// Writes a descriptor and posts it.
    pub(crate) fn post(&mut self, host: &mut Host, plan: Plan) {
        let count = match host.random.below(4) {
            0 => 1,
            1 => host.random.below(4),
            _ => host.random.below(17),
        };
        let lengths = Self::lengths(host, plan, count);
        let region = host.region(self.data_region);
        let mut segments: Vec<DataSegment> = lengths
            .into_iter()
            .map(|length| {
                let offset = host.random.below(u64::from(DATA_BYTES - length));
                let handle = host.handle(self.data_region);
                DataSegment { address: region.va_base + offset, handle, length }
            })
            .collect();
        let mut control = ControlSegment {
            seg_count: u16::try_from(count).unwrap(),
            control: if host.random.chance(plan.immediate) { control::IMMEDIATE } else { 0 },
            immediate: u32::try_from(host.random.below(1 << 32)).unwrap(),
            length: 0xdead_beef,
            ..ControlSegment::default()
        };
        if host.random.chance(0.1) {
            control.control |= control::QFENCE;
        }
        if plan.rdma > 0.0 && host.random.chance(plan.rdma) {
            let (address, handle) = (host.random.bits(), host.random.below(1 << 32) as u32);
            segments.insert(0, DataSegment { address, handle, length: 0 });
            control.seg_count += 1;
            if host.random.chance(plan.reads) {
                // With immediate data it is malformed.
                let keep = if host.random.chance(plan.faults) { 0 } else { control::IMMEDIATE };
                control.control = control.control & !keep | control::OP_RDMA_READ;
            } else {
                control.control |= control::OP_RDMA_WRITE;
            }
        }
        if host.random.chance(plan.faults) {
            self.spoil(host, &mut control, &mut segments);
        }
        self.place(host, control, &segments, plan);
    }

    /// Posts one segment of so many bytes, aligned to 64.
    pub(crate) fn post_one(&mut self, host: &mut Host, length: u32) {
        let region = host.region(self.data_region);
        let address = (region.va_base + 63) & !63;
        let handle = host.handle(self.data_region);
        let control = ControlSegment { seg_count: 1, ..ControlSegment::default() };
        self.place(host, control, &[DataSegment { address, handle, length }], PLAIN);
        self.last.segments = 1;
        self.head.segments = 1;
    }

    /// Posts so many segments of 8 bytes.
    pub(crate) fn post_split(&mut self, host: &mut Host, segments: u8) {
        let (address, handle) =
            (host.region(self.data_region).va_base, host.handle(self.data_region));
        let control = ControlSegment { seg_count: segments.into(), ..ControlSegment::default() };
        let segment = |at| DataSegment { address: address + 8 * u64::from(at), handle, length: 8 };
        self.place(host, control, &(0..segments).map(segment).collect::<Vec<_>>(), PLAIN);
    }

    /// Posts a read into one segment of so many bytes, aligned to 64.
    pub(crate) fn post_read(&mut self, host: &mut Host, length: u32) {
        let region = host.region(self.data_region);
        let address = (region.va_base + 63) & !63;
        let handle = host.handle(self.data_region);
        let op = control::OP_RDMA_READ;
        let control = ControlSegment { seg_count: 2, control: op, ..ControlSegment::default() };
        let remote = DataSegment { address: 0, handle: 0, length: 0 };
        self.place(host, control, &[remote, DataSegment { address, handle, length }], PLAIN);
        self.last.segments = 2;
        self.head.segments = 2;
    }

    /// Posts one segment at this offset of the data, with immediate data or not.
    pub(crate) fn post_place(&mut self, host: &mut Host, place: (u64, u32), word: Option<u32>) {
        let address = host.region(self.data_region).va_base + place.0;
        let handle = host.handle(self.data_region);
        let control = ControlSegment {
            seg_count: 1,
            control: word.map_or(0, |_| control::IMMEDIATE),
            immediate: word.unwrap_or(0),
            ..ControlSegment::default()
        };
        self.place(host, control, &[DataSegment { address, handle, length: place.1 }], PLAIN);
    }

    fn spoil(&self, host: &mut Host, control: &mut ControlSegment, segs: &mut [DataSegment]) {
        let random = &mut host.random;
        let kind = random.below(14);
        if kind < 4 || segs.is_empty() {
            match random.below(4) {
                0 => control.control |= 1 << (4 + random.below(12)),
                1 => control.control |= u16::try_from(1 + random.below(3)).unwrap(),
                2 => control.reserved = 1 << random.below(32),
                _ => control.seg_count = [17, 18, 48, 0xffff, 0x101][random.below(5) as usize],
            }
            return;
        }
        if kind == 4 && segs.len() > 4 {
            // Each lies in the region, and their sum passes what has 20 bits by a few.
            let length = (1 << 20) / (segs.len() as u32 - 1) + 1;
            let address = host.region(self.data_region).va_base;
            segs[1..].iter_mut().for_each(|seg| (seg.address, seg.length) = (address, length));
            return;
        }
        let at = random.below(segs.len() as u64) as usize;
        let seg = &mut segs[at];
        let handle = Handle(seg.handle);
        match kind {
            5 => seg.handle = Handle::new(handle.index() | 1024, handle.generation()).0,
            6 => seg.handle = Handle::new(handle.index(), handle.generation() + 1).0,
            7 => {
                let other = host.region(self.other_region);
                seg.address = other.va_base;
                seg.handle = Handle::new(self.other_region, other.generation).0;
            }
            8 => seg.address = host.region(self.data_region).va_base - 1,
            9 => seg.length = DATA_BYTES + 1,
            10 => seg.length = u32::MAX - 3,
            11 => seg.address = u64::MAX - 2,
            // Of a remote segment it is reserved, each bit of it.
            12 => seg.length ^= 1 << [0, random.below(32)][random.below(2) as usize],
            _ => seg.handle ^= 0x3f,
        }
    }

    fn place(
        &mut self,
        host: &mut Host,
        control: ControlSegment,
        segments: &[DataSegment],
        plan: Plan,
    ) {
        let region = host.region(self.desc_region);
        let rounded = region.bus_base & !63;
        let mut slot = self.slot;
        let mut token_region = self.desc_region;
        let mut hint = u8::try_from(control.seg_count.min(31)).unwrap();
        if self.close < 1.0 && host.random.chance(0.3) {
            hint = u8::try_from(host.random.below(32)).unwrap();
        }
        self.slot += 6;
        if self.close > 0.0 && host.random.chance(self.close) {
            // As near as it can be without lying in what the hint has the device read.
            let read = if hint == 0 { 2 } else { u32::from(hint).min(17) };
            let segments = u32::try_from(segments.len()).unwrap();
            self.slot = slot + (32 + 16 * read.max(segments)).div_ceil(64);
        }
        let last_slot =
            u32::try_from((region.bus_base % 64 + u64::from(self.desc_bytes)) / 64).unwrap();
        if host.random.chance(plan.faults / 4.0) {
            // Near or beyond the end, before the start, or in another region.
            match host.random.below(4) {
                0 if !self.at_end => {
                    slot = last_slot - u32::try_from(host.random.below(5)).unwrap();
                    self.at_end = true;
                }
                0 | 1 => slot = (1 << 26) - 1,
                2 => slot = 0,
                _ => token_region = self.other_region,
            }
        }
        let bus = rounded + u64::from(slot) * 64;
        if slot < last_slot && slot > 0 {
            let mut bytes = control.to_bytes().to_vec();
            bytes.extend(segments.iter().flat_map(|segment| segment.to_bytes()));
            let space = rounded + u64::from(last_slot + 1) * 64 - bus;
            bytes.truncate(usize::try_from(space).unwrap());
            host.memory.put(bus, &bytes);
            if host.random.chance(plan.faults / 6.0) {
                host.memory.poison.push((bus, 32));
            }
        }
        let token = Token { region: token_region, offset_64: slot, segments: hint };
        self.link(host, token, plan);
        self.posted.push(Posted { token, bus, linked: false });
        if self.count == 0 {
            self.head = token;
        }
        self.last = token;
        self.count += 1;
    }

    /// Writes Next of the descriptor before.
    fn link(&mut self, host: &mut Host, token: Token, plan: Plan) {
        if std::mem::take(&mut self.rewound) {
            return;
        }
        let Some(before) = self.posted.last_mut() else { return };
        let region = host.region(token.region);
        let mut va = (region.va_base & !63) + 64 * u64::from(token.offset_64);
        let mut handle = Handle::new(token.region, region.generation).0;
        let reachable = va >= region.va_base && va < region.va_base + u64::from(region.length);
        before.linked = reachable && token.region == self.desc_region;
        if host.random.chance(plan.faults / 4.0) {
            before.linked = false;
            match host.random.below(4) {
                0 => va += 1 + host.random.below(63),
                1 => va = (region.va_base + u64::from(region.length) + 64) & !63,
                2 => va = 0,
                _ => handle ^= 0x10000,
            }
        }
        let real = host.region(self.desc_region);
        let span = real.bus_base & !63..(real.bus_base + u64::from(self.desc_bytes)) & !63;
        if span.contains(&before.bus) && before.bus > real.bus_base {
            host.memory.put(before.bus, &va.to_le_bytes());
            host.memory.put(before.bus + 8, &handle.to_le_bytes());
        } else {
            before.linked = false;
        }
    }

    /// Next of the descriptor that was posted as number `at` leads so many lines beyond its region.
    pub(crate) fn lead_beyond(&mut self, host: &mut Host, at: usize, lines: u64) {
        let region = host.region(self.desc_region);
        let end = (region.va_base + u64::from(region.length)).next_multiple_of(64);
        let before = &mut self.posted[at];
        host.memory.put(before.bus, &(end + 64 * lines).to_le_bytes());
        before.linked = false;
    }

    /// Empties it; its slots are not used again.
    pub(crate) fn clear(&mut self) {
        (self.count, self.popped) = (0, self.posted.len());
    }

    /// The next descriptor lies so many slots behind where it would.
    pub(crate) const fn skip(&mut self, slots: u32) {
        self.slot += slots;
    }

    /// The next descriptor is the last one, with space for a few segments behind it.
    pub(crate) const fn skip_to_end(&mut self) {
        self.slot = self.desc_bytes / 64 - 2;
    }

    /// Slots are used again from the first one on: nothing is posted, and every status was written. All of them
    /// can be read again.
    pub(crate) fn rewind(&mut self, host: &mut Host) {
        assert_eq!(self.count, 0, "slots that are in use");
        let from = host.region(self.desc_region).bus_base;
        let slots = from..from + u64::from(self.desc_bytes);
        host.memory.poison.retain(|(bus, _)| !slots.contains(bus));
        (self.slot, self.rewound) = (FIRST_SLOT, true);
    }

    /// Takes the last post back: its descriptor stays in memory, no doorbell was rung for it.
    pub(crate) fn unpost(&mut self) -> Posted {
        let posted = self.posted.pop().expect("a descriptor");
        self.last = self.posted.last().map_or(Token::default(), |before| before.token);
        self.count -= 1;
        posted
    }

    /// Posts what was taken back.
    pub(crate) fn post_again(&mut self, posted: Posted) {
        if self.count == 0 {
            self.head = posted.token;
        }
        self.posted.push(posted);
        self.last = posted.token;
        self.count += 1;
    }

    /// Makes the handles of all posted segments stale.
    pub(crate) fn revoke(&self, host: &mut Host) {
        let region = host.region_mut(self.data_region);
        region.generation = region.generation.wrapping_add(7).max(1);
    }

    /// The head cannot be read any more, or no descriptor of this queue can be reached.
    pub(crate) fn lose(&mut self, host: &mut Host) {
        if host.random.chance(0.5) {
            host.memory.poison.push((self.posted[self.popped].bus, 32));
        } else {
            self.hide(host);
        }
    }

    /// No descriptor of this queue can be reached any more.
    pub(crate) fn hide(&mut self, host: &mut Host) {
        if !self.hidden {
            self.hidden = true;
            host.region_mut(self.desc_region).tag ^= 1;
        }
    }

    /// Software writes nonsense over the head, which is in use.
    pub(crate) fn corrupt(&self, host: &mut Host) {
        let bus = self.posted[self.popped].bus;
        let (place, word) = match host.random.below(6) {
            // Another operation; reserved bits; more segments than a descriptor has, or than there are.
            0 => (
                14,
                [control::OP_RDMA_WRITE, control::OP_SENDRECV][host.random.below(3) as usize / 2],
            ),
            1 => (14, control::OP_RDMA_READ | 0x0010),
            2 => (12, 18),
            3 => (12, 17),
            // A remote segment with a length; a segment longer than all messages.
            4 => (44 + 2 * host.random.below(2), 1 << host.random.below(16)),
            _ => (62, 0x1000),
        };
        host.memory.put(bus + place, &u16::to_le_bytes(word));
    }

    /// What was out of reach is there again.
    pub(crate) fn find_again(&mut self, host: &mut Host) {
        if std::mem::take(&mut self.hidden) {
            host.region_mut(self.desc_region).tag ^= 1;
        }
    }

    /// Makes the last segment of the head, which was found good, shorter.
    pub(crate) fn shorten(&self, host: &mut Host) {
        let place = Place::Offset(64 * u64::from(self.head.offset_64));
        let owner = self.owner;
        let access = Access { generation: None, place, length: 32, owner, rights: 0 };
        let bus = host
            .reference
            .queues
            .regions
            .look_up(self.head.region, &access)
            .expect("a good head")
            .bus;
        let count = host.memory.read(bus + SEG_COUNT_OFFSET, 2).try_into().unwrap();
        let count = u16::from_le_bytes(count);
        if count == 0 {
            return;
        }
        let at = bus + 32 + 16 * (u64::from(count) - 1) + 12;
        let length = u32::from_le_bytes(host.memory.read(at, 4).try_into().unwrap());
        if length > 1 {
            let less = length - u32::try_from(host.random.below(2)).unwrap() - 1;
            host.memory.put(at, &less.to_le_bytes());
        }
    }

    /// Whether another descriptor fits.
    pub(crate) const fn has_space(&self) -> bool {
        self.slot + 12 < self.desc_bytes / 64
    }

    /// The queue as the VI table has it.
    pub(crate) fn work_queue(&self, vi: u16, queue: doorbell::Queue) -> WorkQueue {
        let token = |Token { region, offset_64, segments }| doorbell::Token {
            vi,
            region,
            offset_64,
            segments,
            queue,
        };
        let head = match (self.head.region, self.head.offset_64) {
            UNREAD => Head::Unreadable,
            _ => Head::Token(token(self.head)),
        };
        WorkQueue { head, last: Some(token(self.last)), count: self.count, next: None }
    }

    /// What the engine must find as the head's successor.
    pub(crate) fn successor(&self) -> Option<(u16, u32)> {
        let next = self.posted.get(self.popped + 1)?.token;
        Some(match (self.unread, self.posted[self.popped].linked) {
            (true, _) => UNREAD,
            (_, true) => (next.region, next.offset_64),
            _ => (0xffff, 0),
        })
    }

    /// POP by the successor rule; false: Next has to be read again.
    pub(crate) fn pop(&mut self, next: Option<(u16, u32)>) -> bool {
        assert!(self.count > 0, "pop of an empty queue");
        if self.count == 2 {
            self.head = self.last;
        } else if self.count > 2 {
            let Some((region, offset_64)) = next else { return false };
            let true_token = self.posted[self.popped + 1].token;
            if self.unread {
                assert_eq!((region, offset_64), UNREAD);
            } else if self.posted[self.popped].linked {
                assert_eq!(
                    (region, offset_64),
                    (true_token.region, true_token.offset_64),
                    "successor"
                );
            } else {
                assert_eq!(region, 0xffff, "a bad Next must lead nowhere");
            }
            self.head = Token { region, offset_64, segments: 0 };
        }
        self.unread = false;
        self.count -= 1;
        self.popped += 1;
        true
    }
}
