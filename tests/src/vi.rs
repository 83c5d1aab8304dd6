//! VIs on bare nodes: descriptors written word by word, doorbells rung by hand.

use cosim::testbench::host::BUS_BASE;
use cosim::testbench::{FREE_OFFSET, high, low, node_number, va};
use nic_regs::admin::Opcode;
use nic_regs::desc::{ControlSegment, DataSegment, STATUS_OFFSET, status};
use nic_regs::doorbell::{Queue, TOKEN_OFFSET, Token};
use nic_regs::tpt::{Handle, RIGHT_VALID};
use nic_regs::vi::{Reliability, State};

use crate::bare::{Bare, FREE_BYTES, RECV_EVENTS, SEND_EVENTS};

/// Domain of the VIs and regions here.
pub const DOMAIN: u8 = 1;
/// Their protection tag.
pub const TAG: u16 = 7;
/// Region over all free memory.
pub const REGION: u16 = 3;
/// Its handle.
pub const HANDLE: Handle = Handle::new(REGION, 9);

/// Bytes of free memory that a VI has.
const AREA_BYTES: usize = 0x6_0000;
/// Its descriptors are the first of them.
const SLOT_BYTES: usize = 512;
const SLOTS: usize = 64;

/// A VI, by its node and number.
#[derive(Clone, Debug)]
pub struct BareVi {
    /// Node.
    pub node: usize,
    /// Number.
    pub number: u16,
    base: usize,
    next_slot: usize,
    tails: [Option<usize>; 2],
}

/// A descriptor that was posted, by its place in host memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Posted {
    node: usize,
    offset: usize,
}

impl Posted {
    /// Its status word.
    #[must_use]
    pub fn status(self, bare: &Bare) -> u32 {
        bare.host(self.node).word(self.offset + usize::try_from(STATUS_OFFSET).unwrap())
    }

    /// Its virtual address.
    #[must_use]
    pub const fn address(self) -> u64 {
        va(self.offset)
    }

    /// Writes its Next and NextHandle.
    pub fn link(self, bare: &mut Bare, next: u64, handle: Handle) {
        let host = bare.host_mut(self.node);
        host.put(self.offset, &next.to_le_bytes());
        host.put(self.offset + 8, &handle.0.to_le_bytes());
    }

    /// Whether it is done.
    #[must_use]
    pub fn is_done(self, bare: &Bare) -> bool {
        self.status(bare) & status::DONE != 0
    }

    /// The error bits of its status.
    #[must_use]
    pub fn errors(self, bare: &Bare) -> u32 {
        self.status(bare) & status::ERROR_MASK
    }
}

/// A region over part of the free memory, at `offset` from its start.
#[must_use]
pub fn region_body(offset: usize, bytes: usize, handle: Handle) -> [u32; 7] {
    let at = FREE_OFFSET + offset;
    region_at(va(at), BUS_BASE + at as u64, bytes, handle)
}

/// A region of [`TAG`] and [`DOMAIN`] anywhere.
#[must_use]
pub fn region_at(va: u64, bus: u64, bytes: usize, handle: Handle) -> [u32; 7] {
    [
        low(va),
        high(va),
        low(bus),
        high(bus),
        u32::try_from(bytes).unwrap(),
        u32::from(TAG) | u32::from(handle.generation()) << 16,
        u32::from(DOMAIN) | u32::from(RIGHT_VALID) << 8,
    ]
}

/// The body of ViCreate with the usual domain, tag and event queues.
#[must_use]
pub fn vi_body(level: Reliability) -> [u32; 3] {
    [
        u32::from(DOMAIN) | (level as u32) << 8 | u32::from(TAG) << 16,
        u32::from(SEND_EVENTS) | u32::from(RECV_EVENTS) << 16,
        nic_regs::limits::MAX_TRANSFER_BYTES,
    ]
}

impl BareVi {
    /// A VI that exists; `place` (0 to 15) says which memory is its own.
    #[must_use]
    pub const fn new(node: usize, number: u16, place: usize) -> Self {
        let base = FREE_OFFSET + place * AREA_BYTES;
        Self { node, number, base, next_slot: 0, tails: [None; 2] }
    }

    /// The same VI after its queues were emptied.
    pub const fn forget_queues(&mut self) {
        self.tails = [None; 2];
    }

    /// Its data buffer: a segment of `length` bytes, `at` bytes from its start.
    #[must_use]
    pub fn segment(&self, at: usize, length: usize) -> DataSegment {
        DataSegment {
            address: va(self.data_offset() + at),
            handle: HANDLE.0,
            length: u32::try_from(length).unwrap(),
        }
    }

    /// Where its data buffer is in host memory.
    #[must_use]
    pub const fn data_offset(&self) -> usize {
        self.base + SLOTS * SLOT_BYTES
    }

    /// Posts a descriptor with these segments.
    pub fn post(&mut self, bare: &mut Bare, queue: Queue, segments: &[DataSegment]) -> Posted {
        let (posted, token) = self.write(bare, queue, segments);
        bare.doorbell(self.node, DOMAIN, TOKEN_OFFSET, token.to_bits());
        posted
    }

    /// Writes a descriptor and links it, but does not ring; gives the token.
    pub fn write(
        &mut self,
        bare: &mut Bare,
        queue: Queue,
        segments: &[DataSegment],
    ) -> (Posted, Token) {
        let offset = self.base + (self.next_slot % SLOTS) * SLOT_BYTES;
        self.next_slot += 1;
        let seg_count = u16::try_from(segments.len()).unwrap();
        let control = ControlSegment { seg_count, ..ControlSegment::default() };
        let host = bare.host_mut(self.node);
        host.put(offset, &control.to_bytes());
        for (i, segment) in segments.iter().enumerate() {
            host.put(offset + 32 + 16 * i, &segment.to_bytes());
        }
        if let Some(tail) = self.tails[queue as usize].replace(offset) {
            host.put(tail, &va(offset).to_le_bytes());
            host.put(tail + 8, &HANDLE.0.to_le_bytes());
        }
        let token = Token {
            vi: self.number,
            region: REGION,
            offset_64: u32::try_from((offset - FREE_OFFSET) / 64).unwrap(),
            segments: u8::try_from(seg_count).unwrap(),
            queue,
        };
        (Posted { node: self.node, offset }, token)
    }
}

impl Bare {
    /// Registers the free memory of both nodes. `None` here and below: the admin ring has stopped.
    #[track_caller]
    pub fn try_register(&mut self) -> Option<()> {
        for node in 0..2 {
            let body = region_body(0, FREE_BYTES, HANDLE);
            self.try_ok(node, Opcode::RegionSet, REGION.into(), &body)?;
        }
        Some(())
    }

    /// Registers the free memory of both nodes.
    #[track_caller]
    pub fn register(&mut self) {
        self.try_register().expect("the admin ring runs");
    }

    /// Creates a VI of the same number on both nodes and connects them.
    #[track_caller]
    pub fn try_connected(
        &mut self,
        level: Reliability,
        number: u16,
        place: usize,
    ) -> Option<[BareVi; 2]> {
        for node in 0..2 {
            self.try_ok(node, Opcode::ViCreate, number.into(), &vi_body(level))?;
        }
        let vis = [0, 1].map(|node| BareVi::new(node, number, place));
        self.try_connect(&vis, 1)?;
        Some(vis)
    }

    /// Creates a VI of the same number on both nodes and connects them.
    #[track_caller]
    pub fn connected(&mut self, level: Reliability, number: u16, place: usize) -> [BareVi; 2] {
        self.try_connected(level, number, place).expect("the admin ring runs")
    }

    /// Connects two idle VIs, node 1 first: what node 0 has posted starts then.
    #[track_caller]
    pub fn connect(&mut self, vis: &[BareVi; 2], connection: u32) {
        self.try_connect(vis, connection).expect("the admin ring runs");
    }

    fn try_connect(&mut self, vis: &[BareVi; 2], connection: u32) -> Option<()> {
        for node in [1, 0] {
            let peer = u32::from(node_number(1 - node)) | u32::from(vis[1 - node].number) << 16;
            self.try_ok(node, Opcode::ViConnect, vis[node].number.into(), &[peer, connection])?;
        }
        Some(())
    }

    /// Disconnects both ends and connects them again, whatever state they were in.
    #[track_caller]
    pub fn reconnect(&mut self, vis: &mut [BareVi; 2], connection: u32) {
        for vi in vis.iter_mut() {
            self.ok(vi.node, Opcode::ViDisconnect, vi.number.into(), &[]);
            vi.forget_queues();
        }
        self.settle();
        self.connect(vis, connection);
    }

    /// State of a VI.
    #[track_caller]
    pub fn state(&mut self, vi: &BareVi) -> u32 {
        self.ok(vi.node, Opcode::ViQuery, vi.number.into(), &[]) & 0xf
    }

    /// Both ends are connected.
    #[track_caller]
    pub fn assert_connected(&mut self, vis: &[BareVi; 2]) {
        for vi in vis {
            assert_eq!(self.state(vi), State::Connected as u32);
        }
    }

    /// A message of `length` bytes from node 0 to node 1 arrives whole.
    #[track_caller]
    pub fn assert_delivers(&mut self, vis: &mut [BareVi; 2], length: usize) {
        let data = crate::pattern(length, vis[0].next_slot);
        let (from, to) = (vis[0].data_offset(), vis[1].data_offset());
        self.host_mut(0).put(from, &data);
        self.host_mut(1).memory[to..to + length].fill(0);
        let segments = [vis[0].segment(0, length), vis[1].segment(0, length)];
        let recv = vis[1].post(self, Queue::Recv, &segments[1..]);
        self.bench.run(100);
        let send = vis[0].post(self, Queue::Send, &segments[..1]);
        self.wait("a message", |bare| recv.is_done(bare) && send.is_done(bare));
        assert_eq!((send.status(self), recv.status(self)), (1, 0x1_0001));
        assert!(self.host(1).memory[to..to + length] == data, "{length} bytes arrive whole");
    }
}
