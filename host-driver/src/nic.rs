//! Bring-up of a NIC, and what all its users share: admin ring, numbers, error and message events,
//! peers, connections.

mod control;
mod sleep;

use core::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, Weak};

use nic_regs::admin::PeerState;
use nic_regs::counter::Counter;
use nic_regs::csr;
use nic_regs::limits::{ABI, MAGIC, PEER_COUNT};

use crate::admin::{Admin, EventSetup};
use crate::bus::{Bus, REGISTER_BAR, Wait};
use crate::dma::DmaMemory;
use crate::doorbell::DoorbellPage;
use crate::error::{Error, Result};
use crate::event::EventRing;
use crate::peer::Epochs;
use crate::presence::{Presence, read, reset, wait_ready};
use crate::sync::lock_relaxed;
use crate::tpt::Regions;
use crate::vi::Owned;
use control::Control;
use port::connection::ConnectionCounters;
use port::events::EventList;

/// Default of [`NicConfig::presence_ns`].
const PRESENCE_NS: u64 = 10_000_000;
/// Default of [`NicConfig::command_ns`].
const COMMAND_NS: u64 = 100_000_000;
/// Bound of an interrupt that was asked for.
const INTERRUPT_NS: u64 = 10_000_000;
/// [`NicConfig::time_scale`] of a device that a simulator computes while wall-clock time passes.
pub const SIMULATED_TIME_SCALE: u64 = 100;
/// How long other nodes have to answer a search: an opening channel tries again after 1 ms.
const DISCOVERY_NS: u64 = 3_000_000;
/// How long what was sent may take to arrive at the end. A channel whose peer is silent is closed
/// after 2 ms of retransmissions.
const SENDING_NS: u64 = 3_000_000;
/// Log2 of the entries of the error ring and of the message ring.
const CONTROL_LOG2: u8 = 8;
/// The driver's own domain: error events and connection messages.
const CONTROL_DOMAIN: u8 = 0;
/// Vector of all event queues: the driver's own and those of programs.
pub(crate) const CONTROL_VECTOR: u8 = 0;

/// Settings of a NIC.
#[derive(Clone, Debug)]
pub struct NicConfig {
    /// Own node number, 0 to 63.
    pub node: u8,
    /// Nodes whose channels are opened at once, and kept open.
    pub peers: Vec<u8>,
    /// Seed of epochs and exchange numbers; None takes one from the operating system.
    pub seed: Option<u64>,
    /// The most credits that a peer is granted, 1 to 64. 64 are all of the staging memory and four
    /// full frames in flight. The memory is divided among `peers`; those that come later get what is
    /// left, or one frame's worth, and then frames may find no room and are sent again.
    pub credits: u8,
    /// Largest PCIe payload: 128 << n bytes, n 0 to 2.
    pub max_payload: u8,
    /// Largest PCIe read request: 128 << n bytes, n 0 to 2.
    pub max_read: u8,
    /// Requester id of the function.
    pub requester: u16,
    /// Registers written before the device is enabled (offset, value): time-outs and the like.
    pub registers: Vec<(u32, u32)>,
    /// Time between two looks whether the card is still there, in nanoseconds of a board. Each costs
    /// whoever polls or waits at that moment one register read, and wakes whoever sleeps.
    pub presence_ns: u64,
    /// Bound of an admin command, in nanoseconds of a board. A card that takes longer is reset, and
    /// lost. The longest good one is a fence that waits for a read that is never answered (register
    /// READ_TIMEOUT, 10 ms).
    pub command_ns: u64,
    /// How many times longer than a board this device may take: the factor of every bound of the
    /// driver's own waits. 1 for a board; [`SIMULATED_TIME_SCALE`] where wall-clock time passes
    /// while a simulator computes.
    pub time_scale: u64,
}

impl NicConfig {
    /// Defaults for node `node` with these peers.
    #[must_use]
    pub fn new(node: u8, peers: &[u8]) -> Self {
        Self {
            node,
            peers: peers.to_vec(),
            seed: None,
            credits: 64,
            max_payload: 2,
            max_read: 2,
            requester: 0x0100,
            registers: Vec::new(),
            presence_ns: PRESENCE_NS,
            command_ns: COMMAND_NS,
            time_scale: 1,
        }
    }

    /// Defaults for node `node` of a simulation of `nodes` nodes, all others as peers.
    #[must_use]
    pub fn simulated(node: u8, nodes: u8) -> Self {
        let peers: Vec<u8> = (0..nodes).filter(|peer| *peer != node).collect();
        Self { time_scale: SIMULATED_TIME_SCALE, ..Self::new(node, &peers) }
    }

    /// The same with a seed, for runs that can be repeated.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        Self { seed: Some(seed), ..self }
    }
}

/// What the device says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// VIs.
    pub vis: u16,
    /// Regions.
    pub regions: u16,
    /// Event queues.
    pub event_queues: u16,
    /// Peers.
    pub peers: u8,
    /// Domains.
    pub domains: u8,
    /// Link payload, in bytes.
    pub link_payload: u16,
    /// Data segments of a descriptor.
    pub segments: u8,
    /// MSI-X vectors.
    pub vectors: u8,
    /// Longest message, in bytes.
    pub max_transfer: u32,
    /// Clock, in kHz.
    pub clock_khz: u32,
    /// Push doorbells.
    pub push: bool,
    /// RDMA writes.
    pub rdma_write: bool,
    /// RDMA reads.
    pub rdma_read: bool,
}

/// A NIC after bring-up. Programs use it through ports ([`crate::HardwarePort`]).
pub struct Nic {
    pub(crate) bus: Arc<dyn Bus>,
    pub(crate) admin: Admin,
    pub(crate) presence: Arc<Presence>,
    pub(crate) node: u8,
    pub(crate) capabilities: Capabilities,
    /// See [`NicConfig::time_scale`].
    pub(crate) time_scale: u64,
    pub(crate) regions: Regions,
    pub(crate) vis: Owned,
    pub(crate) queues: Owned,
    pub(crate) tags: Owned,
    pub(crate) domains: Owned,
    pub(crate) events: Vec<EventList>,
    /// Before the rings: their memory is out of the device's reach first, and then freed.
    _mappings: [Mapping; 2],
    errors: EventRing,
    messages: EventRing,
    /// May be held across `relax`.
    control: Mutex<Control>,
    /// Time at which `control` has something to do.
    deadline: AtomicU64,
    sleepers: sleep::Sleepers,
    /// Goes last: then the device is released.
    ownership: Arc<()>,
}

impl core::fmt::Debug for Nic {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Nic(node {})", self.node)
    }
}

fn write(bus: &dyn Bus, offset: u32, value: u32) {
    bus.write32(REGISTER_BAR, offset.into(), value);
}

/// Identity and ABI.
pub(crate) fn check_identity(bus: &dyn Bus) -> Result<()> {
    let id = csr::ID(read(bus, csr::ID::OFFSET)?);
    let half = |value: u32| u16::try_from(value).unwrap_or(u16::MAX);
    let found = half(id.get(csr::ID::MAGIC));
    if found != MAGIC {
        return Err(Error::WrongDevice { found, expected: MAGIC });
    }
    let device = half(id.get(csr::ID::ABI));
    if device != ABI {
        return Err(Error::WrongAbi { device, driver: ABI });
    }
    Ok(())
}

#[expect(clippy::cast_possible_truncation, reason = "fields are as wide as the types")]
pub(crate) fn read_capabilities(bus: &dyn Bus) -> Result<Capabilities> {
    let caps0 = csr::CAPS0(read(bus, csr::CAPS0::OFFSET)?);
    let caps1 = csr::CAPS1(read(bus, csr::CAPS1::OFFSET)?);
    let caps2 = csr::CAPS2(read(bus, csr::CAPS2::OFFSET)?);
    let caps3 = csr::CAPS3(read(bus, csr::CAPS3::OFFSET)?);
    Ok(Capabilities {
        vis: caps0.get(csr::CAPS0::VIS) as u16,
        regions: caps0.get(csr::CAPS0::REGIONS) as u16,
        event_queues: caps1.get(csr::CAPS1::EVENT_QUEUES) as u16,
        peers: caps1.get(csr::CAPS1::PEERS) as u8,
        domains: caps1.get(csr::CAPS1::DOMAINS) as u8,
        link_payload: caps2.get(csr::CAPS2::LINK_PAYLOAD) as u16,
        segments: caps2.get(csr::CAPS2::SEGMENTS) as u8,
        vectors: caps2.get(csr::CAPS2::VECTORS) as u8,
        max_transfer: caps3.get(csr::CAPS3::MAX_TRANSFER),
        clock_khz: read(bus, csr::CLOCK::OFFSET)?,
        push: caps3.get(csr::CAPS3::PUSH) != 0,
        rdma_write: caps3.get(csr::CAPS3::RDMA_WRITE) != 0,
        rdma_read: caps3.get(csr::CAPS3::RDMA_READ) != 0,
    })
}

pub(crate) fn read_counter(bus: &dyn Bus, counter: Counter) -> Result<u32> {
    read(bus, csr::COUNTER_OFFSET + 4 * counter as u32)
}

/// Memory that the device reaches until this is dropped.
struct Mapping {
    bus: Arc<dyn Bus>,
    address: u64,
}

impl Drop for Mapping {
    fn drop(&mut self) {
        self.bus.unmap(self.address);
    }
}

/// Creates one of the driver's own event queues.
fn control_ring(
    bus: &Arc<dyn Bus>,
    admin: &Admin,
    presence: &Arc<Presence>,
    index: u16,
    wide: bool,
) -> Result<(EventRing, Mapping)> {
    let ring = DmaMemory::new(EventRing::bytes(CONTROL_LOG2, wide))?;
    let base = bus.map(&ring)?;
    let mapping = Mapping { bus: Arc::clone(bus), address: base };
    let (log2, domain, vector) = (CONTROL_LOG2, CONTROL_DOMAIN, CONTROL_VECTOR);
    admin.event_create(index, EventSetup { base, log2, wide, domain, vector })?;
    let doorbell = DoorbellPage::new(Arc::clone(bus), CONTROL_DOMAIN);
    Ok((EventRing::new(index, ring, log2, wide, doorbell, Arc::clone(presence)), mapping))
}

/// Has the device interrupt once: nobody who sleeps would be woken by one that cannot.
fn check_interrupts(bus: &dyn Bus, ring: &EventRing, time_scale: u64) -> Result<()> {
    let bound_ns = INTERRUPT_NS.saturating_mul(time_scale);
    ring.provoke();
    let wait = Wait::bounded("the first interrupt of event queue", ring.index().into());
    let came = bus.wait_interrupt(CONTROL_VECTOR.into(), bound_ns, wait);
    ring.publish(false);
    if came { Ok(()) } else { Err(Error::NoInterrupt { device: bus.name(), bound_ns }) }
}

impl Nic {
    /// Brings a device up: identity, reset, sizes, admin ring, vectors, events, channels.
    ///
    /// # Errors
    /// No device, another device or another ABI; a device that does not answer; settings out of
    /// range.
    pub fn open(bus: Arc<dyn Bus>, config: &NicConfig) -> Result<Arc<Self>> {
        if usize::from(config.node) >= PEER_COUNT {
            let value = config.node.into();
            return Err(port::Error::BadArgument { what: "node number", value }.into());
        }
        check_identity(&*bus)?;
        // After power-on the device drops writes until it is ready, so it is waited for on both
        // sides of the reset.
        wait_ready(&*bus, config.time_scale)?;
        reset(&*bus, config.time_scale)?;
        let capabilities = read_capabilities(&*bus)?;
        let sizes = csr::PCIE(0)
            .with(csr::PCIE::MAX_PAYLOAD, config.max_payload.min(2).into())
            .with(csr::PCIE::MAX_READ, config.max_read.min(2).into());
        write(&*bus, csr::PCIE::OFFSET, sizes.0);
        write(&*bus, csr::NODE::OFFSET, config.node.into());
        write(&*bus, csr::REQUESTER::OFFSET, config.requester.into());
        for (offset, value) in &config.registers {
            write(&*bus, *offset, *value);
        }
        // A look wakes whoever sleeps, and on a slow bus what follows costs as much more.
        let presence = Arc::new(Presence::new(bus.now_ns(), config.presence_ns, config.time_scale));
        let command_ns = config.command_ns.saturating_mul(config.time_scale);
        let admin = Admin::new(Arc::clone(&bus), Arc::clone(&presence), command_ns)?;
        bus.connect(&*bus, capabilities.vectors.into())?;
        let enable = csr::CONTROL::RESET.with(csr::CONTROL::ENABLE, 1);
        write(&*bus, csr::CONTROL::OFFSET, enable.0);

        let queues = Owned::new("event queue", 0, capabilities.event_queues.into());
        let error_queue = queues.take(CONTROL_DOMAIN)?;
        let message_queue = queues.take(CONTROL_DOMAIN)?;
        let (errors, error_mapping) = control_ring(&bus, &admin, &presence, error_queue, false)?;
        let (messages, message_mapping) =
            control_ring(&bus, &admin, &presence, message_queue, true)?;
        check_interrupts(&*bus, &errors, config.time_scale)?;
        let error_queue = csr::ERROR_QUEUE(error_queue.into()).with(csr::ERROR_QUEUE::VALID, 1);
        write(&*bus, csr::ERROR_QUEUE::OFFSET, error_queue.0);
        admin.message_queue(CONTROL_DOMAIN, Some(message_queue))?;

        let seed = config.seed.unwrap_or_else(Epochs::os_seed);
        let mut control = Control::new(seed, config);
        for peer in &config.peers {
            control.peers.want(&admin, *peer)?;
        }
        let domains = capabilities.domains.into();
        Ok(Arc::new(Self {
            regions: Regions::new(capabilities.regions),
            vis: Owned::new("VI", 0, capabilities.vis.into()),
            queues,
            // Tag 0 stays unused, so that a zeroed table entry matches nothing.
            tags: Owned::new("protection tag", 1, 1 << 16),
            domains: Owned::new("domain", u16::from(CONTROL_DOMAIN) + 1, domains),
            events: (0..domains).map(|_| EventList::default()).collect(),
            bus,
            admin,
            presence,
            node: config.node,
            capabilities,
            time_scale: config.time_scale,
            _mappings: [error_mapping, message_mapping],
            errors,
            messages,
            control: Mutex::new(control),
            deadline: AtomicU64::new(0),
            sleepers: sleep::Sleepers::default(),
            ownership: Arc::default(),
        }))
    }

    /// What is there until the device is released, also while it is being released.
    #[must_use]
    pub fn ownership(&self) -> Weak<()> {
        Arc::downgrade(&self.ownership)
    }

    /// Own node number.
    #[must_use]
    pub const fn node(&self) -> u8 {
        self.node
    }

    /// What the device says of itself.
    #[must_use]
    pub const fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    /// The bus to the device.
    #[must_use]
    pub fn bus(&self) -> &Arc<dyn Bus> {
        &self.bus
    }

    /// The admin ring, for tools and tests.
    #[must_use]
    pub const fn admin(&self) -> &Admin {
        &self.admin
    }

    /// One of the device's counters.
    ///
    /// # Errors
    /// A device that does not answer, or a card that is absent.
    pub fn counter(&self, counter: Counter) -> Result<u32> {
        read_counter(&*self.bus, counter)
    }

    /// A register, by its offset in `nic_regs::csr`.
    ///
    /// # Errors
    /// A device that does not answer, or a card that is absent.
    pub fn register(&self, offset: u32) -> Result<u32> {
        read(&*self.bus, offset)
    }

    /// Writes a register; for measurement (sampling) and tests.
    pub fn set_register(&self, offset: u32, value: u32) {
        write(&*self.bus, offset, value);
    }

    /// What the connection manager has seen.
    #[must_use]
    pub fn connection_counters(&self) -> ConnectionCounters {
        self.control().connections.counters()
    }

    /// Closes the channel to a node; every VI to it stops.
    ///
    /// # Errors
    /// A failed command.
    pub fn close_peer(&self, node: u8) -> Result<()> {
        let mut control = self.control();
        control.peers.close(&self.admin, node)
    }

    /// The nodes that answer, in rising order: those whose channel is open, after all others were
    /// tried. Channels that nobody wants and that do not answer are closed again.
    ///
    /// # Errors
    /// The card is absent, or a failed command.
    pub(crate) fn discover(&self) -> Result<Vec<u8>> {
        let others = || (0..self.capabilities.peers).filter(|node| *node != self.node);
        let mut tried = Vec::new();
        for node in others() {
            let mut control = self.control();
            if !control.peers.is_wanted(node) {
                control.peers.open(&self.admin, node)?;
                tried.push(node);
            }
        }
        let end = self.bus.now_ns().saturating_add(DISCOVERY_NS);
        while self.bus.now_ns() < end {
            self.bus.relax(Wait::bounded("answers of other nodes to node", self.node.into()));
            self.progress();
        }
        let mut control = self.control();
        self.run(&mut control);
        let open = |control: &Control, node| control.peers.state(node) == PeerState::Open;
        for node in tried {
            if open(&control, node) {
                control.peers.want(&self.admin, node)?;
            } else if !control.peers.is_wanted(node) {
                // No request of another thread is for it.
                control.peers.close(&self.admin, node)?;
            }
        }
        self.presence.check(&*self.bus)?;
        Ok(others().filter(|node| open(&control, *node)).collect())
    }

    /// Waits until what was sent has arrived, for a while at most: a send is complete before that, and
    /// whoever gives the card to another program resets it (contract 1.2).
    fn finish_sending(&self) {
        let end = self.bus.now_ns().saturating_add(SENDING_NS.saturating_mul(self.time_scale));
        let sending = || {
            let status = read(&*self.bus, csr::STATUS::OFFSET).map(csr::STATUS);
            status.is_ok_and(|status| status.get(csr::STATUS::SENDING) != 0)
        };
        while sending() && self.bus.now_ns() < end {
            self.bus.relax(Wait::bounded("the last frames of node", self.node.into()));
        }
    }

    /// Looks whether the card is there, and still has what it was given. To a child of this process it is
    /// not.
    #[must_use]
    pub fn is_present(&self) -> bool {
        self.presence.look(&*self.bus).is_ok()
    }

    pub(crate) fn control(&self) -> std::sync::MutexGuard<'_, Control> {
        lock_relaxed(&self.control, &*self.bus, "the NIC's control state")
    }
}

impl Drop for Nic {
    fn drop(&mut self) {
        // One that is lost has nothing under way, and may be another driver's by now.
        if self.is_present() {
            // If a command fails the device is reset, and what is unmapped is out of its reach in any
            // case.
            if !std::thread::panicking() {
                let _ = self.admin.message_queue(CONTROL_DOMAIN, None);
                for ring in [&self.errors, &self.messages] {
                    let _ = self.admin.event_destroy(ring.index());
                }
                self.finish_sending();
            }
            write(&*self.bus, csr::CONTROL::OFFSET, csr::CONTROL::RESET.0);
            // A read behind the write.
            let _ = read(&*self.bus, csr::STATUS::OFFSET);
        }
    }
}
