//! Two nodes without software: a scenario drives registers, admin ring and doorbells itself.
//!
//! ```text
//! host memory   0          admin ring (16 entries)
//!               0x1_0000   event rings, queue n (0 to 3) at n * 64 KiB
//!               0x10_0000  free: one region covers it on each node, see `vi`
//! ```

mod event;

use cosim::root_complex::HostSettings;
use cosim::testbench::host::{BUS_BASE, Host, MSI_BASE};
use cosim::testbench::{EVENT_OFFSET, MEMORY_BYTES, Testbench, high, low, node_number};
use nic_model::device::Features;
use nic_model::link::Faults;
use nic_regs::admin::{AdminStatus, DONE, Opcode, PeerState};
use nic_regs::counter::{Counter, ErrorRecord};
use nic_regs::csr::{self, CONTROL, STATUS};
use nic_regs::doorbell::PAGE_BYTES;

use crate::{DeviceKind, device};
pub use event::Shape;
use event::{RING_BYTES, Ring};

/// Log2 of the entries of the admin ring.
pub const ADMIN_LOG2: u32 = 4;
/// Event queues that have a ring.
pub const QUEUES: usize = 4;
/// Events of errors and peers.
pub const ERROR_EVENTS: u16 = 0;
/// Completed sends.
pub const SEND_EVENTS: u16 = 1;
/// Completed receives.
pub const RECV_EVENTS: u16 = 2;
/// Messages (wide).
pub const MESSAGE_EVENTS: u16 = 3;
/// An address where no host memory is.
pub const NOWHERE: u64 = 0x6_0000_0000;

/// Cycles that anything may take that is to happen.
const PATIENCE: u64 = 1_000_000;
/// Cycles without work after which everything has come to rest.
const QUIET: u64 = 4_000;
const RING: &str = "the admin ring runs";

/// Two nodes.
#[derive(Debug)]
pub struct Bare {
    /// Devices, hosts, wire.
    pub bench: Testbench,
    kind: DeviceKind,
    host: HostSettings,
    /// Registers that `configure` sets besides the usual ones: offset, value.
    pub registers: Vec<(u32, u32)>,
    tails: [u16; 2],
    rings: [[Ring; QUEUES]; 2],
}

impl Bare {
    /// Two nodes that are out of reset, with ideal hosts and a good wire.
    #[must_use]
    pub fn new(kind: DeviceKind) -> Self {
        Self::with(kind, &HostSettings::default())
    }

    /// The same with hosts that behave like this.
    #[must_use]
    pub fn with(kind: DeviceKind, host: &HostSettings) -> Self {
        let seeds = |n| HostSettings { seed: host.seed + n, ..host.clone() };
        let devices = [0, 1].map(|n| device(kind, &seeds(n)));
        let mut this = Self {
            bench: Testbench::new(devices, 20, &Faults::default()),
            kind,
            host: host.clone(),
            registers: Vec::new(),
            tails: [0; 2],
            rings: [[Ring::default(); QUEUES]; 2],
        };
        this.wait_ready(0);
        this.wait_ready(1);
        this
    }

    /// Two nodes with event queues and an open channel.
    #[must_use]
    pub fn up(kind: DeviceKind) -> Self {
        let mut this = Self::new(kind);
        this.bring_up().expect(RING);
        this
    }

    /// The text of a failure: what, when, and on what.
    fn describe(&self, what: &str) -> String {
        format!("{what} at cycle {} on {:?} with {:?}", self.bench.now(), self.kind, self.host)
    }

    /// Steps until `done`; fails if that takes too long.
    #[track_caller]
    pub fn wait(&mut self, what: &str, done: impl Fn(&Self) -> bool) {
        let start = self.bench.now();
        while !done(self) {
            assert!(self.bench.now() < start + PATIENCE, "{}", self.describe(what));
            self.bench.step();
        }
    }

    /// Steps until nothing is under way.
    #[track_caller]
    pub fn settle(&mut self) {
        self.bench.settle(QUIET).unwrap_or_else(|hung| panic!("{}", self.describe(&hung.0)));
    }

    /// A node's host.
    #[must_use]
    pub fn host(&self, node: usize) -> &Host {
        self.bench.host(node)
    }

    /// A node's host, to change its memory.
    pub fn host_mut(&mut self, node: usize) -> &mut Host {
        self.bench.host_mut(node)
    }

    /// Reads a register.
    #[track_caller]
    pub fn read(&mut self, node: usize, offset: u32) -> u32 {
        let value = self.bench.read32(node, offset);
        value.unwrap_or_else(|hung| panic!("{}", self.describe(&hung.0)))
    }

    /// Writes a register.
    pub fn write(&mut self, node: usize, offset: u32, value: u32) {
        self.bench.write32(node, offset, value);
    }

    /// Reads 1 to 8 bytes of a BAR, well-formed or not.
    #[track_caller]
    pub fn read_raw(&mut self, node: usize, bar: u8, offset: u64, length: usize) -> u64 {
        self.bench.device(node).bar_read(bar, offset, length);
        for _ in 0..PATIENCE {
            self.bench.step();
            if let Some(value) = self.bench.device(node).bar_response() {
                return value;
            }
        }
        panic!("{}", self.describe("a read is not answered"))
    }

    /// Writes 1 to 64 bytes to a BAR, well-formed or not.
    pub fn write_raw(&mut self, node: usize, bar: u8, offset: u64, data: &[u8]) {
        self.bench.device(node).bar_write(bar, offset, data);
    }

    /// What node 0's device has.
    #[track_caller]
    pub fn features(&mut self) -> Features {
        let caps = csr::CAPS3(self.read(0, csr::CAPS3::OFFSET));
        Features {
            push: caps.get(csr::CAPS3::PUSH) != 0,
            rdma_write: caps.get(csr::CAPS3::RDMA_WRITE) != 0,
            rdma_read: caps.get(csr::CAPS3::RDMA_READ) != 0,
        }
    }

    /// Value of a counter.
    #[track_caller]
    pub fn counter(&mut self, node: usize, counter: Counter) -> u32 {
        self.read(node, csr::COUNTER_OFFSET + 4 * counter as u32)
    }

    /// The records of the error log, which is empty afterwards.
    #[track_caller]
    pub fn take_log(&mut self, node: usize) -> Vec<ErrorRecord> {
        let mut records = Vec::new();
        while csr::ERROR_COUNT(self.read(node, csr::ERROR_COUNT::OFFSET))
            .get(csr::ERROR_COUNT::LEVEL)
            > 0
        {
            let low = self.read(node, csr::ERROR_LO::OFFSET);
            let high = self.read(node, csr::ERROR_HI::OFFSET);
            records.push(ErrorRecord::from_bits(u64::from(low) | u64::from(high) << 32));
            self.write(node, csr::ERROR_POP::OFFSET, 0);
            assert!(records.len() <= 16, "the error log does not empty: {records:?}");
        }
        records
    }

    /// Waits for the end of a reset.
    #[track_caller]
    pub fn wait_ready(&mut self, node: usize) {
        let start = self.bench.now();
        while STATUS(self.read(node, STATUS::OFFSET)).get(STATUS::READY) == 0 {
            assert!(self.bench.now() < start + 100_000, "{}", self.describe("not ready"));
        }
    }

    /// Resets a node and forgets what its software knew.
    #[track_caller]
    pub fn soft_reset(&mut self, node: usize) {
        self.write(node, CONTROL::OFFSET, CONTROL::SOFT_RESET.mask());
        self.wait_ready(node);
        self.tails[node] = 0;
        self.rings[node] = [Ring::default(); QUEUES];
        let rings = &mut self.bench.host_mut(node).memory;
        rings[..EVENT_OFFSET + QUEUES * RING_BYTES].fill(0);
    }

    /// Gives a node its number, ring and vectors, and enables it.
    pub fn configure(&mut self, node: usize) {
        for (offset, value) in [
            (csr::ADMIN_BASE_LO::OFFSET, low(BUS_BASE)),
            (csr::ADMIN_BASE_HI::OFFSET, high(BUS_BASE)),
            (csr::ADMIN_SIZE::OFFSET, ADMIN_LOG2),
            (csr::NODE::OFFSET, node_number(node).into()),
            (csr::KEEPALIVE::OFFSET, 0),
            (csr::ERROR_QUEUE::OFFSET, csr::ERROR_QUEUE::VALID.mask() | u32::from(ERROR_EVENTS)),
        ] {
            self.write(node, offset, value);
        }
        for (offset, value) in self.registers.clone() {
            self.write(node, offset, value);
        }
        for vector in 0..4 {
            let entry = csr::msix_entry(vector);
            for (dword, value) in [low(MSI_BASE) + 4 * vector, 0, vector, 0].into_iter().enumerate()
            {
                self.write(node, entry + 4 * u32::try_from(dword).unwrap(), value);
            }
        }
        self.write(node, CONTROL::OFFSET, CONTROL::ENABLE.mask());
    }

    /// Configures a node and gives it its event queues; vector n belongs to queue n. `None` here
    /// and below: the admin ring has stopped.
    #[track_caller]
    pub fn prepare(&mut self, node: usize) -> Option<()> {
        self.configure(node);
        for queue in [ERROR_EVENTS, SEND_EVENTS, RECV_EVENTS] {
            let vector = u8::try_from(queue).unwrap();
            self.try_event_create(node, queue, Shape::narrow(10, vector))?;
        }
        let wide = Shape { log2: 9, wide: true, domain: 0, vector: 3 };
        self.try_event_create(node, MESSAGE_EVENTS, wide)?;
        self.try_ok(node, Opcode::MessageQueue, 0, &[MESSAGE_EVENTS.into()])?;
        Some(())
    }

    /// Prepares both nodes and opens the channel between them.
    #[track_caller]
    pub fn bring_up(&mut self) -> Option<()> {
        self.prepare(0)?;
        self.prepare(1)?;
        self.open_channel(0x1234_5678)
    }

    /// Opens the channel, which must be closed, on both nodes.
    #[track_caller]
    pub fn open_channel(&mut self, epoch: u32) -> Option<()> {
        for node in 0..2 {
            let peer = u32::from(node_number(1 - node));
            self.try_ok(node, Opcode::PeerOpen, peer, &[epoch + peer * 0x777, 64])?;
        }
        for node in 0..2 {
            let start = self.bench.now();
            while self.try_peer_state(node)? != PeerState::Open as u32 {
                assert!(self.bench.now() < start + PATIENCE, "{}", self.describe("no channel"));
            }
        }
        Some(())
    }

    fn try_peer_state(&mut self, node: usize) -> Option<u32> {
        let peer = u32::from(node_number(1 - node));
        Some(self.try_ok(node, Opcode::PeerQuery, peer, &[])? & 0xf)
    }

    /// State of a node's channel to the other.
    #[track_caller]
    pub fn peer_state(&mut self, node: usize) -> u32 {
        self.try_peer_state(node).expect(RING)
    }

    /// Puts entries into the admin ring without telling the device; gives the tail to write.
    pub fn admin_fill(&mut self, node: usize, entries: &[[u32; 16]]) -> u32 {
        for entry in entries {
            let slot = 64 * (usize::from(self.tails[node]) % (1 << ADMIN_LOG2));
            let bytes: Vec<u8> = entry.iter().flat_map(|word| word.to_le_bytes()).collect();
            self.host_mut(node).put(slot, &bytes);
            self.tails[node] = self.tails[node].wrapping_add(1);
        }
        self.tails[node].into()
    }

    /// Runs one command as it stands; `None` if the ring stops instead.
    #[track_caller]
    pub fn try_admin(&mut self, node: usize, entry: [u32; 16]) -> Option<[u32; 4]> {
        let slot = 64 * (usize::from(self.tails[node]) % (1 << ADMIN_LOG2));
        let tail = self.admin_fill(node, &[entry]);
        self.write(node, csr::ADMIN_TAIL::OFFSET, tail);
        let start = self.bench.now();
        let mut look_at = start + 1024;
        while self.host(node).word(slot + 12) != DONE {
            assert!(self.bench.now() < start + PATIENCE, "{}", self.describe("a command hangs"));
            self.bench.run(16);
            if self.bench.now() >= look_at {
                look_at += 1024;
                let status = STATUS(self.read(node, STATUS::OFFSET));
                if status.get(STATUS::ADMIN_FAILED) == 1 {
                    return None;
                }
            }
        }
        Some([0, 4, 8, 12].map(|at| self.host(node).word(slot + at)))
    }

    /// Runs a command; gives its status and result.
    #[track_caller]
    pub fn admin(
        &mut self,
        node: usize,
        opcode: Opcode,
        index: u32,
        body: &[u32],
    ) -> (AdminStatus, u32) {
        let entry = command(opcode as u32, index, body);
        let [status, result, cookie, _] = self.try_admin(node, entry).expect(RING);
        assert_eq!(cookie, entry[2], "the cookie comes back");
        (AdminStatus::from_bits(status).expect("a status"), result)
    }

    /// Runs a command that must be Ok, if it runs at all; gives its result.
    #[track_caller]
    pub fn try_ok(&mut self, node: usize, op: Opcode, index: u32, body: &[u32]) -> Option<u32> {
        let [status, result, ..] = self.try_admin(node, command(op as u32, index, body))?;
        let what = format!("{op:?} {index:#x} {body:x?} on node {node} ends with {status}");
        assert_eq!(status, AdminStatus::Ok as u32, "{}", self.describe(&what));
        Some(result)
    }

    /// Runs a command that must be Ok; gives its result.
    #[track_caller]
    pub fn ok(&mut self, node: usize, op: Opcode, index: u32, body: &[u32]) -> u32 {
        self.try_ok(node, op, index, body).expect(RING)
    }

    /// Writes a doorbell of 8 bytes.
    pub fn doorbell(&mut self, node: usize, domain: u8, offset: u64, value: u64) {
        self.bench.doorbell(node, domain, offset, value);
    }

    /// Nothing was written where no memory is.
    #[track_caller]
    pub fn assert_no_stray_writes(&self) {
        for node in 0..2 {
            assert!(self.host(node).stray_writes.is_empty(), "{:x?}", self.host(node).stray_writes);
        }
    }
}

/// Bytes of the free memory, one region.
pub const FREE_BYTES: usize = MEMORY_BYTES - cosim::testbench::FREE_OFFSET;

/// First byte of a domain's doorbell page.
#[must_use]
pub fn page(domain: u8) -> u64 {
    u64::from(domain) * PAGE_BYTES
}

/// An admin entry.
#[must_use]
pub fn command(opcode: u32, index: u32, body: &[u32]) -> [u32; 16] {
    let mut words = [0; 16];
    words[0] = opcode;
    words[1] = index;
    words[2] = 0xc00c_1e00 ^ opcode ^ index << 8;
    words[4..4 + body.len()].copy_from_slice(body);
    words
}
