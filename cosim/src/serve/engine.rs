//! The NICs of a server: their simulation, and what a server does with a device between two clients.

use core::ops::Range;
use std::sync::Arc;

use host_driver::bus::REGISTER_BAR;
use nic_model::device::{HostBus, HostReadError};
use nic_model::link::Faults;
use nic_regs::csr;
use nic_regs::limits::MSIX_VECTOR_COUNT;
use nic_regs::pci::MSI_BASE;
use vfio_user::protocol::errno;

use super::DeviceFactory;
use super::host::Host;
use super::notifier::Notifier;
use super::pci::ConfigSpace;
use crate::simulation::NodeHost;
use crate::simulation::network::capture::Capture;
use crate::simulation::on_demand::{ANSWER_CYCLES, OnDemand, pieces};

/// Why an access fails.
const NOT_MASTER: &str = "bus mastering is off in its command register";

/// What a NIC has around it: its client's memory and interrupts, and its configuration space.
pub(super) struct Function {
    pub(super) host: Host,
    pub(super) config: ConfigSpace,
    /// The process of the client that uses it.
    pub(super) owner: Option<u32>,
}

impl HostBus for Function {
    fn read(&mut self, address: u64, data: &mut [u8]) -> Result<(), HostReadError> {
        if self.config.is_master() {
            return self.host.read(address, data);
        }
        self.host.fault(address, data.len(), false, NOT_MASTER.into());
        Err(HostReadError { address })
    }

    fn write(&mut self, address: u64, data: &[u8]) {
        if self.config.is_master() {
            self.host.write(address, data);
        } else {
            self.host.fault(address, data.len(), true, NOT_MASTER.into());
        }
    }
}

impl NodeHost for Function {
    fn take_busy(&mut self) -> bool {
        self.host.take_busy()
    }
}

/// See the module.
pub(super) struct Engine {
    simulation: OnDemand<Function>,
    new_device: DeviceFactory,
}

impl Engine {
    pub(super) fn new(
        nodes: u8,
        latency: u64,
        faults: &Faults,
        mut new_device: DeviceFactory,
        notifier: &Arc<Notifier>,
    ) -> Self {
        let function = |number| {
            let host = Host::new(Arc::clone(notifier));
            let function = Function { host, config: ConfigSpace::new(number, nodes), owner: None };
            (new_device(number), function)
        };
        let functions: Vec<_> = (0..nodes).map(function).collect();
        Self { simulation: OnDemand::new(latency, faults, functions), new_device }
    }

    /// Writes the frames of the network to a file.
    pub(super) fn capture(&mut self, capture: &Capture) {
        self.simulation.wrap_network(|network| capture.tap(network));
    }

    /// Cycles run so far.
    pub(super) const fn now(&self) -> u64 {
        self.simulation.now()
    }

    /// Whether the clock runs.
    pub(super) const fn is_running(&self) -> bool {
        self.simulation.is_running()
    }

    /// Whether nothing happened in the last run.
    pub(super) const fn is_idle(&self) -> bool {
        self.simulation.is_idle()
    }

    /// Runs some cycles of every node.
    pub(super) fn run(&mut self, cycles: u64) {
        self.simulation.run(cycles);
    }

    /// What the nodes have around their devices, in order.
    pub(super) fn functions(&mut self) -> impl Iterator<Item = &mut Function> {
        self.simulation.hosts()
    }

    /// What a node has around its device.
    pub(super) fn function(&mut self, node: usize) -> &mut Function {
        self.simulation.host(node)
    }

    /// Gives a node to a client, a process.
    pub(super) fn own(&mut self, node: usize, process: u32) {
        self.function(node).owner = Some(process);
        self.simulation.set_used(node, true);
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
        self.simulation.read(node, bar, offset, length).ok_or(errno::IO)
    }

    /// Writes bytes of a BAR.
    pub(super) fn write(&mut self, node: usize, bar: u8, offset: u64, data: &[u8]) {
        for (at, piece) in pieces(offset, data) {
            let enables = |value: &[u8; 4]| {
                csr::CONTROL(u32::from_le_bytes(*value)).get(csr::CONTROL::ENABLE) != 0
            };
            let is_control = bar == REGISTER_BAR && at == u64::from(csr::CONTROL::OFFSET);
            if is_control && piece.first_chunk().is_some_and(enables) {
                self.program_vectors(node, 0..MSIX_VECTOR_COUNT);
            }
            self.simulation.write(node, bar, at, piece);
        }
    }

    /// Programs those of the device's interrupts for which its client has eventfds. A client that goes through VFIO
    /// cannot: what it writes to the table stays with its kernel.
    pub(super) fn program_vectors(&mut self, node: usize, vectors: Range<usize>) {
        for vector in vectors {
            if !self.function(node).host.has_vector(vector) {
                continue;
            }
            let number = u32::try_from(vector).unwrap_or(0);
            let entry = u64::from(csr::msix_entry(number));
            let (low, high) = (MSI_BASE & 0xffff_ffff, MSI_BASE >> 32);
            let words = [low, high, number.into(), 0].map(|word| word.to_le_bytes());
            for (at, word) in (entry..).step_by(4).zip(words) {
                self.simulation.write_quietly(node, REGISTER_BAR, at, &word[..4]);
            }
        }
        self.simulation.rest();
    }

    /// Resets a device and its configuration space.
    pub(super) fn reset(&mut self, node: usize) {
        self.function(node).config.reset();
        let reset = csr::CONTROL::RESET.with(csr::CONTROL::SOFT_RESET, 1);
        let status = csr::STATUS::OFFSET.into();
        // After power-on the device drops writes until it is ready.
        let mut ready = false;
        for _ in 0..2 {
            ready = self.wait_ready(node, status);
            if !ready {
                break;
            }
            let offset = csr::CONTROL::OFFSET.into();
            self.simulation.write(node, REGISTER_BAR, offset, &reset.0.to_le_bytes());
        }
        if !ready || !self.wait_ready(node, status) {
            let number = u8::try_from(node).unwrap_or(0);
            self.simulation.replace(node, (self.new_device)(number));
        }
        self.simulation.reset_timers(node);
    }

    fn wait_ready(&mut self, node: usize, status: u64) -> bool {
        let end = self.now() + ANSWER_CYCLES;
        while self.now() < end {
            match self.read(node, REGISTER_BAR, status, 4) {
                Ok(value) if value & u64::from(csr::STATUS::READY.mask()) != 0 => return true,
                Ok(_) => self.run(16),
                Err(_) => return false,
            }
        }
        false
    }

    /// Takes a device from a client that has left: nothing of the client is touched any more, and
    /// whoever sends to the node is notified that its channel is closed.
    pub(super) fn release(&mut self, node: usize) {
        self.function(node).owner = None;
        self.simulation.set_used(node, false);
        self.function(node).host.clear();
        self.reset(node);
        let number = u32::try_from(node).unwrap_or(0);
        let enable = csr::CONTROL::RESET.with(csr::CONTROL::ENABLE, 1);
        for (offset, value) in [(csr::NODE::OFFSET, number), (csr::CONTROL::OFFSET, enable.0)] {
            self.write(node, REGISTER_BAR, offset.into(), &value.to_le_bytes());
        }
        self.simulation.run_until_noticed();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use nic_model::Model;
    use nic_model::device::{Device, Link};
    use rustix::event::{EventfdFlags, eventfd};

    use super::*;

    fn engine(nodes: u8, device: DeviceFactory) -> Engine {
        Engine::new(nodes, 20, &Faults::default(), device, &Notifier::start().unwrap())
    }

    fn set(engine: &mut Engine, node: usize, register: u32, value: u32) {
        engine.write(node, REGISTER_BAR, register.into(), &value.to_le_bytes());
    }

    /// Cycles until the clock stands still, of so many at most.
    fn rest(engine: &mut Engine, most: u64) -> Option<u64> {
        let start = engine.now();
        while engine.is_running() && engine.now() < start + most {
            engine.run(64);
        }
        (!engine.is_running()).then(|| engine.now() - start)
    }

    #[test]
    fn timers_of_clients_that_are_gone_do_not_keep_the_clock_running() {
        let mut engine = engine(2, Box::new(|_| Box::new(Model::default())));
        let patient = |engine: &mut Engine, node| {
            engine.release(node);
            engine.own(node, 1);
            set(engine, node, csr::KEEPALIVE::OFFSET, u32::MAX);
            set(engine, node, csr::RETRY_LIMIT::OFFSET, 15);
            set(engine, node, csr::RETRY_TIMEOUT::OFFSET, 0xff_ffff);
            assert_eq!(rest(engine, 10_000), None, "it may have something outstanding");
        };
        patient(&mut engine, 0);
        engine.release(0);
        assert!(rest(&mut engine, 1_000_000).is_some(), "nobody is there");
        // A reset forgets timers too.
        patient(&mut engine, 0);
        engine.reset(0);
        assert!(rest(&mut engine, 1_000_000).is_some(), "as after power-on");
        // What one that is there was to notice is nothing to one that went too.
        patient(&mut engine, 0);
        patient(&mut engine, 1);
        engine.release(0);
        assert_eq!(rest(&mut engine, 10_000), None, "the other one is to notice");
        engine.release(1);
        assert!(rest(&mut engine, 1_000_000).is_some(), "nobody is there again");
    }

    #[test]
    fn who_is_there_has_time_to_notice_who_went() {
        let mut engine = engine(3, Box::new(|_| Box::new(Model::default())));
        for node in 0..3 {
            engine.release(node);
            engine.own(node, 1);
        }
        set(&mut engine, 1, csr::KEEPALIVE::OFFSET, 600_000);
        engine.release(0);
        // The next client does not take that time away.
        engine.reset(0);
        engine.own(0, 2);
        assert!(rest(&mut engine, 2_000_000).is_some_and(|cycles| cycles > 600_000));
    }

    /// A device that takes a write each cycle; the longest that its queue was, and all its writes.
    #[derive(Debug, Default)]
    struct Slow {
        queue: u64,
        read: bool,
        seen: Arc<Mutex<(u64, u64)>>,
    }

    impl Device for Slow {
        fn bar_write(&mut self, _bar: u8, _offset: u64, _data: &[u8]) {
            self.queue += 1;
            let mut seen = self.seen.lock().unwrap();
            *seen = (seen.0.max(self.queue), seen.1 + 1);
        }

        fn bar_read(&mut self, _bar: u8, _offset: u64, _length: usize) {
            self.read = true;
        }

        fn bar_response(&mut self) -> Option<u64> {
            (self.queue == 0 && core::mem::take(&mut self.read)).then_some(1)
        }

        fn step(&mut self, _now: u64, _host: &mut dyn HostBus, _link: &mut dyn Link) {
            self.queue = self.queue.saturating_sub(1);
        }

        fn busy(&self) -> bool {
            self.queue > 0
        }
    }

    #[test]
    fn interrupts_that_are_set_again_and_again_wait_for_the_device() {
        let seen = Arc::new(Mutex::new((0, 0)));
        let theirs = Arc::clone(&seen);
        let device = move |_| {
            Box::new(Slow { seen: Arc::clone(&theirs), ..Slow::default() })
                as Box<dyn Device + Send>
        };
        let mut engine = engine(1, Box::new(device));
        let event = eventfd(0, EventfdFlags::NONBLOCK).unwrap();
        for vector in 0..MSIX_VECTOR_COUNT {
            let fd = event.try_clone().unwrap();
            engine.function(0).host.set_vector(vector, Some(fd));
        }
        (0..1000).for_each(|_| engine.program_vectors(0, 3..4));
        let (longest, writes) = *seen.lock().unwrap();
        assert_eq!(writes, 4_000, "only what changed");
        assert!(longest <= 256, "{longest}");
        set(&mut engine, 0, csr::CONTROL::OFFSET, 1);
        assert_eq!(seen.lock().unwrap().1, 4_000 + 4 * 32 + 1, "all of them");
    }
}
