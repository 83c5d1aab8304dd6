//! The simulated nodes of a server, their network and their clock.
//!
//! The clock runs while something is under way, and then as long as a NIC's timers may still have
//! work: what they do when nothing is outstanding (keepalives) does not keep it running.

use host_driver::bus::vfio_user::protocol::errno;
use nic_model::device::Device;
use nic_model::link::Faults;
use nic_regs::csr;
use nic_regs::doorbell::{EVENT_OFFSET, PAGE_BYTES};

use host_driver::bus::sim::MSI_BASE;
use host_driver::bus::{DOORBELL_BAR, REGISTER_BAR};

use super::DeviceFactory;
use super::host::Host;
use super::mesh::Mesh;
use super::pci::ConfigSpace;

/// Most cycles of a register read, and of a reset.
const ANSWER_CYCLES: u64 = 1_000_000;
/// Cycles that the clock goes on after a device has come to rest.
const REST_CYCLES: u64 = 4_096;
/// Writes after which the device is read, which it answers behind them: what a client writes faster
/// than its device takes it waits in the client's socket.
const POSTED_MAX: u32 = 256;
/// Widest piece of a BAR write, in bytes; it does not cross a multiple of it.
const LINE_BYTES: u64 = 64;

/// A NIC and its host.
pub(super) struct Node {
    device: Box<dyn Device + Send>,
    pub(super) host: Host,
    pub(super) config: ConfigSpace,
    /// The process of the client that uses it, as it says itself; 0 if it does not say.
    pub(super) owner: Option<u32>,
    /// Writes since the last read.
    posted: u32,
    retry_timeout: u64,
    retry_limit: u64,
    moderation: u64,
    keepalive: u64,
}

impl Node {
    fn set_timers(&mut self) {
        self.retry_timeout = csr::RETRY_TIMEOUT::RESET.0.into();
        self.retry_limit = csr::RETRY_LIMIT::RESET.0.into();
        self.moderation = csr::MODERATION::RESET.0.into();
        self.keepalive = csr::KEEPALIVE::RESET.0.into();
    }

    /// Longest time in which the device does nothing although something is outstanding.
    fn patience(&self) -> u64 {
        let doublings = self.retry_limit.clamp(1, 15) - 1;
        (self.retry_timeout << doublings) + self.moderation + REST_CYCLES
    }

    /// Notes what a write says about the device's timers.
    fn note(&mut self, offset: u64, value: u32) {
        let value = value.into();
        match u32::try_from(offset) {
            Ok(csr::RETRY_TIMEOUT::OFFSET) => self.retry_timeout = value & 0xff_ffff,
            Ok(csr::RETRY_LIMIT::OFFSET) => self.retry_limit = value & 0xf,
            Ok(csr::MODERATION::OFFSET) => self.moderation = value & 0xff_ffff,
            Ok(csr::KEEPALIVE::OFFSET) => self.keepalive = value,
            Ok(csr::CONTROL::OFFSET) if value & u64::from(csr::CONTROL::SOFT_RESET.mask()) != 0 => {
                self.set_timers();
            }
            _ => {}
        }
    }
}

/// See the module.
pub(super) struct Engine {
    pub(super) nodes: Vec<Node>,
    mesh: Mesh,
    now: u64,
    /// The clock runs until then.
    until: u64,
    new_device: DeviceFactory,
}

fn register(value: u32) -> [u8; 4] {
    value.to_le_bytes()
}

impl Engine {
    pub(super) fn new(
        nodes: u8,
        latency: u64,
        faults: &Faults,
        mut new_device: DeviceFactory,
    ) -> Self {
        let mesh = Mesh::new(nodes.into(), latency, faults);
        let node = |number| {
            let mut node = Node {
                device: new_device(number),
                host: Host::new(),
                config: ConfigSpace::new(number, nodes),
                owner: None,
                posted: 0,
                retry_timeout: 0,
                retry_limit: 0,
                moderation: 0,
                keepalive: 0,
            };
            node.set_timers();
            node
        };
        let nodes = (0..nodes).map(node).collect();
        Self { nodes, mesh, now: 0, until: REST_CYCLES, new_device }
    }

    /// Cycles run so far.
    pub(super) const fn now(&self) -> u64 {
        self.now
    }

    /// Whether the clock runs.
    pub(super) fn is_running(&self) -> bool {
        self.now < self.until
    }

    fn run_for(&mut self, cycles: u64) {
        self.until = self.until.max(self.now.saturating_add(cycles));
    }

    fn patience(&self) -> u64 {
        self.nodes.iter().map(Node::patience).max().unwrap_or(REST_CYCLES)
    }

    /// Runs some cycles of every node.
    pub(super) fn run(&mut self, cycles: u64) {
        for _ in 0..cycles {
            for (number, node) in self.nodes.iter_mut().enumerate() {
                node.device.step(self.now, &mut node.host, &mut self.mesh.end(number));
            }
            self.now += 1;
        }
        let used = self.nodes.iter_mut().fold(false, |used, node| used | node.host.take_busy());
        if used | self.mesh.take_busy() {
            self.run_for(self.patience());
        } else if self.nodes.iter().any(|node| node.device.busy()) {
            self.run_for(REST_CYCLES);
        }
    }

    /// Reads 1 to 8 bytes of a BAR.
    ///
    /// # Errors
    /// The errno for the client: the device does not answer.
    pub(super) fn read(
        &mut self,
        node: usize,
        bar: u8,
        offset: u64,
        length: usize,
    ) -> Result<u64, u32> {
        self.nodes[node].posted = 0;
        self.nodes[node].device.bar_read(bar, offset, length);
        let end = self.now + ANSWER_CYCLES;
        while self.now < end {
            if let Some(value) = self.nodes[node].device.bar_response() {
                return Ok(value);
            }
            self.run(1);
        }
        Err(errno::IO)
    }

    /// Writes bytes of a BAR.
    pub(super) fn write(&mut self, node: usize, bar: u8, offset: u64, data: &[u8]) {
        let (mut at, mut left) = (offset, data);
        while !left.is_empty() {
            let line = usize::try_from(LINE_BYTES - at % LINE_BYTES).unwrap_or(1);
            let (piece, rest) = left.split_at(line.min(left.len()));
            if bar == REGISTER_BAR
                && let Some(value) = piece.first_chunk().map(|value| u32::from_le_bytes(*value))
            {
                self.before_register(node, at, value);
            }
            self.nodes[node].device.bar_write(bar, at, piece);
            self.nodes[node].posted += 1;
            if self.nodes[node].posted >= POSTED_MAX {
                // A device that does not answer is found by the next read of its client.
                let _ = self.read(node, REGISTER_BAR, csr::ID::OFFSET.into(), 4);
            }
            at += piece.len() as u64;
            left = rest;
        }
        // Who waits for events tells so by a doorbell, which begins nothing.
        let is_event = bar == DOORBELL_BAR && offset % PAGE_BYTES == EVENT_OFFSET;
        self.run_for(if is_event { REST_CYCLES } else { self.patience() });
    }

    fn before_register(&mut self, node: usize, offset: u64, value: u32) {
        self.nodes[node].note(offset, value);
        let enables = offset == u64::from(csr::CONTROL::OFFSET)
            && csr::CONTROL(value).get(csr::CONTROL::ENABLE) != 0;
        if enables {
            self.program_vectors(node);
        }
    }

    /// Programs the device's interrupts as its client has eventfds. A client that goes through VFIO
    /// cannot: what it writes to the table stays with its kernel.
    pub(super) fn program_vectors(&mut self, node: usize) {
        let table = u64::from(csr::MSIX_TABLE_OFFSET);
        for vector in self.nodes[node].host.vectors() {
            let number = u32::try_from(vector).unwrap_or(0);
            let entry = table + u64::from(csr::MSIX_ENTRY_BYTES) * u64::from(number);
            let (low, high) = (MSI_BASE & 0xffff_ffff, MSI_BASE >> 32);
            let words = [low, high, number.into(), 0].map(|word| word.to_le_bytes());
            for (at, word) in (entry..).step_by(4).zip(words) {
                self.nodes[node].device.bar_write(REGISTER_BAR, at, &word[..4]);
            }
        }
        self.run_for(REST_CYCLES);
    }

    /// Resets a device.
    pub(super) fn reset(&mut self, node: usize) {
        let reset = csr::CONTROL::RESET.with(csr::CONTROL::SOFT_RESET, 1);
        let status = csr::STATUS::OFFSET.into();
        // After power-on the device drops writes until it is ready.
        let mut ready = false;
        for _ in 0..2 {
            ready = self.wait_ready(node, status);
            if !ready {
                break;
            }
            self.write(node, REGISTER_BAR, csr::CONTROL::OFFSET.into(), &register(reset.0));
        }
        if !ready || !self.wait_ready(node, status) {
            self.mesh.cut(node, self.now);
            let number = u8::try_from(node).unwrap_or(0);
            self.nodes[node].device = (self.new_device)(number);
        }
        self.nodes[node].set_timers();
    }

    fn wait_ready(&mut self, node: usize, status: u64) -> bool {
        let end = self.now + ANSWER_CYCLES;
        while self.now < end {
            match self.read(node, REGISTER_BAR, status, 4) {
                Ok(value) if value & u64::from(csr::STATUS::READY.mask()) != 0 => return true,
                Ok(_) => self.run(16),
                Err(_) => return false,
            }
        }
        false
    }

    /// Takes a device from a client that is gone: nothing of the client is touched any more, and
    /// whoever sends to the node is told that its channel is closed.
    pub(super) fn release(&mut self, node: usize) {
        self.nodes[node].owner = None;
        self.nodes[node].host.clear();
        self.reset(node);
        let number = u32::try_from(node).unwrap_or(0);
        let enable = csr::CONTROL::RESET.with(csr::CONTROL::ENABLE, 1);
        for (offset, value) in [(csr::NODE::OFFSET, number), (csr::CONTROL::OFFSET, enable.0)] {
            self.write(node, REGISTER_BAR, offset.into(), &register(value));
        }
        // Others notice with their next keepalive, which the device answers.
        let others = self.nodes.iter().filter(|node| node.owner.is_some());
        if let Some(longest) = others.map(|node| node.keepalive).max() {
            self.run_for(longest + self.patience());
        }
    }
}
