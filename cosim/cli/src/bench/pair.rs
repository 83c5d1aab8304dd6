//! Two NICs on a wire, brought up by the driver, with VIs, memory and probes.
//!
//! Work is posted in batches while simulated time stands still, so the program never holds up the
//! NICs.
//!
//! ```text
//! memory of a node   descriptors, 64 bytes each | data of sends | data of receives
//! an RDMA            the other's data of receives is written, its data of sends is read
//! ```

use super::Job;
use crate::Failure;
use crate::demo::DeviceKind;
use crate::progress::Progress;
use cosim::probe::tap::Tap;
use cosim::probe::{Probe, Record};
use cosim::root_complex::HostSettings;
use cosim::simulation::SimulatedDevice;
use cosim::simulation::seeded::{SeededSimulation, SimulationConfig};
use host_driver::HardwarePort;
use host_driver::error::Error;
use host_driver::nic::{Capabilities, Nic, NicConfig};
use nic_model::link::Wire;
use nic_regs::admin::{Opcode, PeerState};
use nic_regs::desc::{ALIGNMENT, CONTROL_BYTES, ControlSegment, DataSegment, control, status};
use nic_regs::doorbell::{PUSH_DATA_BYTES, PUSH_WORDS, Queue};
use nic_regs::limits::{CREDITS_MAX, MAX_TRANSFER_BYTES};
use nic_regs::tpt::Handle;
use nic_regs::vi::{Reliability, rdma};
use port::doorbell::{INLINE_BYTES, InlineSource};
use port::work_queue::{Head, Slot, WorkQueue, WorkQueueConfig};
use port::{
    CompletionOps, CompletionQueue, DmaMemory, Doorbell, MemoryOps, RdmaAccess, ViOps, ViSettings,
};
use std::sync::Arc;

/// Node numbers.
const NODES: [u8; 2] = [1, 2];
/// Bytes of a descriptor with one segment, and the distance of two.
const DESCRIPTOR_BYTES: usize = 64;
/// Descriptors of a node.
const DESCRIPTORS: usize = 16_384;
/// Bytes for the data of sends, and the same for receives; messages share them.
const DATA_BYTES: usize = 512 << 10;
/// Cycles after which a run that does not come to rest has hung.
const PATIENCE: u64 = 100_000_000;
/// Cycles between two signs of life.
const CHUNK: u64 = 20_000;

/// How a send is posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// The doorbell names the descriptor, which the NIC fetches, and then the data.
    Token,
    /// The data comes with the doorbell; at most [`PUSH_DATA_BYTES`].
    Push,
}

impl Form {
    /// The push doorbell, if the device has one.
    pub(crate) fn push(capabilities: &Capabilities) -> Option<Self> {
        capabilities.push.then_some(Self::Push)
    }

    /// The fastest form that the device has.
    pub(crate) fn fastest(capabilities: &Capabilities) -> Self {
        Self::push(capabilities).unwrap_or(Self::Token)
    }

    /// Bytes of a single message: the largest that the rows allow, and what fills a push line.
    pub(crate) const fn bytes(self) -> usize {
        match self {
            Self::Token => 64,
            Self::Push => PUSH_DATA_BYTES,
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::Push => "push",
        }
    }
}

/// What differs from pair to pair.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    /// Cycles that the hosts take to answer a read.
    pub(crate) host_latency: u64,
    /// Cycles from one end of the wire to the other.
    pub(crate) wire_latency: u64,
    /// VIs on each node, connected in pairs; at most all that the device has.
    pub(crate) vis: usize,
    /// One completion queue on each node takes what all queues complete.
    pub(crate) completion_queue: bool,
    /// Whether the pins are watched.
    pub(crate) probed: bool,
    /// Words of a push line that the processor merges into one write.
    pub(crate) line_words: usize,
    /// Cycles that each NIC runs on a thread of its own, see [`SimulationConfig::stretch`].
    pub(crate) stretch: u64,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            host_latency: 0,
            wire_latency: 0,
            vis: 1,
            completion_queue: false,
            probed: true,
            line_words: PUSH_WORDS,
            stretch: 1,
        }
    }
}

/// A VI of a node.
#[derive(Debug)]
pub(crate) struct Vi {
    /// Its number.
    pub(crate) number: u16,
    send: WorkQueue,
    recv: WorkQueue,
    /// Rung with data, whether or not the queue is idle.
    push: Doorbell,
}

impl Vi {
    fn queue(&mut self, queue: Queue) -> &mut WorkQueue {
        match queue {
            Queue::Send => &mut self.send,
            Queue::Recv => &mut self.recv,
        }
    }
}

/// A node.
#[derive(Debug)]
pub(crate) struct End {
    /// Its driver.
    pub(crate) driver: Arc<Nic>,
    /// What crosses its pins.
    pub(crate) probe: Probe,
    /// Its VIs.
    pub(crate) vis: Vec<Vi>,
    /// The program's door to the NIC.
    pub(crate) port: Arc<HardwarePort>,
    queue: Option<Arc<dyn CompletionQueue>>,
    memory: DmaMemory,
    handle: Handle,
    next_descriptor: usize,
    /// Bytes of data handed out to each queue.
    used: [usize; 2],
}

/// Two nodes.
#[derive(Debug)]
pub(crate) struct Pair<'a> {
    pub(crate) simulation: SeededSimulation,
    pub(crate) ends: [End; 2],
    progress: &'a Progress,
}

fn number(value: usize) -> u32 {
    u32::try_from(value).expect("a small number")
}

impl End {
    fn open(bus: Arc<dyn host_driver::bus::Bus>, node: usize, probe: Probe) -> Result<Self, Error> {
        // As many credits as the only peer can have: the driver's own choice is for several peers.
        let credits = u8::try_from(CREDITS_MAX).expect("a credit field has 8 bits");
        let config = NicConfig {
            credits,
            ..NicConfig::new(NODES[node], &[NODES[1 - node]]).with_seed(1 + node as u64)
        };
        let driver = Nic::open(bus, &config)?;
        let port = HardwarePort::open(Arc::clone(&driver))?;
        let memory = DmaMemory::new(DESCRIPTORS * DESCRIPTOR_BYTES + 2 * DATA_BYTES)?;
        // A pattern that differs between the nodes; receives start empty.
        let data: Vec<u8> =
            (0..DATA_BYTES).map(|i| (i * 7 + i / 251 + node).to_le_bytes()[0]).collect();
        memory.copy_from(DESCRIPTORS * DESCRIPTOR_BYTES, &data);
        let tag = port.create_tag()?;
        let handle = port.register(&memory, tag, RdmaAccess { write: true, read: true })?;
        let (next_descriptor, used) = (0, [0; 2]);
        let (vis, queue) = (Vec::new(), None);
        let end = Self { driver, probe, vis, port, queue, memory, handle, next_descriptor, used };
        Ok(end)
    }

    fn create(&mut self, setup: &Setup, tag: u16) -> Result<(), Error> {
        if setup.completion_queue {
            self.queue = Some(self.port.create_queue(1 << 15)?);
        }
        let queue = self.queue.as_ref().map(|queue| queue.number());
        for _ in 0..setup.vis.min(self.driver.capabilities().vis.into()) {
            let number = self.port.create_vi(ViSettings {
                reliability: Reliability::Delivery,
                tag,
                max_transfer: MAX_TRANSFER_BYTES,
                send_queue: queue,
                recv_queue: queue,
                rdma: RdmaAccess {
                    write: self.driver.capabilities().rdma_write,
                    read: self.driver.capabilities().rdma_read,
                },
                extensions: port::Extensions::default(),
            })?;
            let work = |queue| {
                let doorbell = self.port.doorbell(number, queue);
                let (limit, operations, push) = (DESCRIPTORS, u8::MAX, false);
                WorkQueue::new(WorkQueueConfig { queue, limit, operations, push, doorbell })
            };
            let (send, recv) = (work(Queue::Send), work(Queue::Recv));
            let push = self.port.doorbell(number, Queue::Send);
            self.vis.push(Vi { number, send, recv, push });
        }
        Ok(())
    }

    /// A new descriptor for a message of `bytes`, and where its data is in memory. The n-th send of
    /// one node and the n-th receive of the other have their data at the same place. `remote`: an
    /// RDMA (`control::OP_*`) with this memory of the peer.
    fn slot(
        &mut self,
        queue: Queue,
        bytes: usize,
        remote: Option<(u16, DataSegment)>,
    ) -> Result<(Slot, usize), Error> {
        let offset = self.next_descriptor * DESCRIPTOR_BYTES;
        self.next_descriptor = (self.next_descriptor + 1) % DESCRIPTORS;
        let used = &mut self.used[queue as usize];
        let stride = bytes.max(1).next_multiple_of(usize::try_from(ALIGNMENT).expect("small"));
        let place = *used % (DATA_BYTES / stride * stride);
        *used += stride;
        let data = DESCRIPTORS * DESCRIPTOR_BYTES + queue as usize * DATA_BYTES + place;
        let mut control = ControlSegment { seg_count: 1, ..ControlSegment::default() };
        let segment = DataSegment {
            address: self.memory.address() + data as u64,
            handle: self.handle.0,
            length: number(bytes),
        };
        let mut segments = segment.to_bytes().to_vec();
        if let Some((operation, remote)) = remote {
            (control.control, control.seg_count) = (operation, 2);
            segments.splice(0..0, remote.to_bytes());
        }
        self.memory.copy_from(offset, &control.to_bytes());
        let control_bytes = usize::try_from(CONTROL_BYTES).expect("small");
        self.memory.copy_from(offset + control_bytes, &segments);
        let slot = Slot::new(&self.memory, self.handle, offset, DESCRIPTOR_BYTES)?;
        Ok((slot, data))
    }

    /// Posts a send.
    pub(crate) fn send(&mut self, vi: usize, bytes: usize, form: Form) -> Result<(), Error> {
        let (slot, data) = self.slot(Queue::Send, bytes, None)?;
        let vi = &mut self.vis[vi];
        let post = vi.send.enter_slot(&slot)?;
        match (form, self.memory.words(data, bytes)) {
            (Form::Push, Some(data)) if bytes <= INLINE_BYTES => {
                vi.push.ring_with_data(&post, InlineSource { data, immediate: None });
            }
            _ => vi.push.ring(&post),
        }
        Ok(())
    }

    /// Posts a receive.
    pub(crate) fn receive(&mut self, vi: usize, bytes: usize) -> Result<(), Error> {
        self.post(vi, Queue::Recv, bytes)
    }

    fn post(&mut self, vi: usize, queue: Queue, bytes: usize) -> Result<(), Error> {
        let (slot, _) = self.slot(queue, bytes, None)?;
        Ok(self.vis[vi].queue(queue).post_slot(&slot, &|_| None)?)
    }

    /// Takes back what is done; gives the number.
    pub(crate) fn reap(&mut self, vi: usize, queue: Queue) -> Result<usize, Failure> {
        let mut taken = 0;
        loop {
            match self.vis[vi].queue(queue).take() {
                Head::Done((_, status)) if status & status::ERROR_MASK == 0 => taken += 1,
                Head::Done((_, status)) => {
                    return Err(format!("a message ended with status {status:#x}").into());
                }
                Head::Empty | Head::NotDone => return Ok(taken),
            }
        }
    }

    /// Consumes the records of the completion queue.
    fn drain(&self) {
        while self.queue.as_ref().is_some_and(|queue| queue.poll().is_some()) {}
    }
}

impl<'a> Pair<'a> {
    /// Two NICs, ready to send.
    pub(crate) fn new(job: &Job, progress: &'a Progress, setup: &Setup) -> Result<Self, Failure> {
        let (devices, probes): (Vec<_>, Vec<_>) =
            [device(job, setup)?, device(job, setup)?].into_iter().unzip();
        let Ok(devices) = devices.try_into() else { unreachable!("two devices") };
        let wire = Wire::new(setup.wire_latency);
        let (line_words, stretch) = (setup.line_words, setup.stretch);
        let simulation = SimulationConfig { line_words, stretch, ..SimulationConfig::default() };
        let (simulation, buses, _) = SeededSimulation::pair(simulation, devices, wire);
        let mut ends = Vec::new();
        for ((node, bus), probe) in buses.into_iter().enumerate().zip(probes) {
            ends.push(End::open(bus, node, probe)?);
        }
        let Ok(ends) = ends.try_into() else { unreachable!("two ends") };
        let mut pair = Self { simulation, ends, progress };
        pair.connect(setup)?;
        pair.settle()?;
        pair.records();
        Ok(pair)
    }

    fn connect(&mut self, setup: &Setup) -> Result<(), Failure> {
        for node in 0..2 {
            let (admin, peer) = (self.ends[node].driver.admin(), NODES[1 - node]);
            for tries in 0.. {
                let state = admin.execute(Opcode::PeerQuery, peer.into(), &[])? & 0xf;
                if state == PeerState::Open as u32 {
                    break;
                }
                if tries == 10_000 {
                    return Err(format!("no channel to node {peer}").into());
                }
            }
            // The first tag of a port is that of its region.
            let tag = 1;
            self.ends[node].create(setup, tag)?;
        }
        for vi in 0..self.ends[0].vis.len() {
            for node in 0..2 {
                let (own, other) = (&self.ends[node], &self.ends[1 - node]);
                let (local, remote) = (own.vis[vi].number, other.vis[vi].number);
                let allows = allowed(self.capabilities());
                own.driver.admin().vi_connect(local, NODES[1 - node], remote, 1, allows)?;
            }
            self.progress.tick(|| format!("{vi} VIs are connected"));
        }
        Ok(())
    }

    /// Runs until everything that was posted is done.
    pub(crate) fn settle(&self) -> Result<(), Failure> {
        let start = self.simulation.now();
        loop {
            for end in &self.ends {
                end.drain();
            }
            match self.simulation.run_until_idle(CHUNK) {
                Err(Error::StillBusy { .. }) if self.simulation.now() - start < PATIENCE => {
                    let cycles = self.simulation.now() - start;
                    self.progress.tick(|| format!("{cycles} cycles so far"));
                }
                other => return other.map(|_| ()).map_err(Failure::from),
            }
        }
    }

    /// Takes back `count` messages of each VI from node `from` to the other, which must be done,
    /// and looks whether the data is what was sent.
    pub(crate) fn check(&mut self, from: usize, count: usize) -> Result<(), Failure> {
        for (node, queue) in [(from, Queue::Send), (1 - from, Queue::Recv)] {
            for vi in 0..self.ends[node].vis.len() {
                let done = self.ends[node].reap(vi, queue)?;
                if done != count {
                    return Err(
                        format!("{done} of {count} of VI {vi}'s {queue:?}s are done").into()
                    );
                }
            }
        }
        let (sender, receiver) = (&self.ends[from], &self.ends[1 - from]);
        let length = receiver.used[Queue::Recv as usize].min(DATA_BYTES);
        let data = |end: &End, queue: Queue| {
            let start = DESCRIPTORS * DESCRIPTOR_BYTES + queue as usize * DATA_BYTES;
            end.memory.to_vec(start, length)
        };
        let (sent, received) = (data(sender, Queue::Send), data(receiver, Queue::Recv));
        // Of a message shorter than its stride only the beginning is copied.
        let wrong = sent.iter().zip(&received).position(|(a, b)| a != b && *b != 0);
        match wrong {
            Some(at) => Err(format!("byte {at} arrived wrong").into()),
            None => Ok(()),
        }
    }

    /// One RDMA of node 0 (`control::OP_*`), looked at; gives what crossed the pins.
    pub(crate) fn rdma(
        &mut self,
        operation: u16,
        bytes: usize,
    ) -> Result<[Vec<Record>; 2], Failure> {
        let (own, other) = match operation {
            control::OP_RDMA_WRITE => (Queue::Send, Queue::Recv),
            _ => (Queue::Recv, Queue::Send),
        };
        let [near, far] = &mut self.ends;
        let place = DESCRIPTORS * DESCRIPTOR_BYTES + other as usize * DATA_BYTES;
        let address = far.memory.address() + place as u64;
        let remote = DataSegment { address, handle: far.handle.0, length: 0 };
        let (slot, data) = near.slot(own, bytes, Some((operation, remote)))?;
        near.vis[0].queue(Queue::Send).post_slot(&slot, &|_| None)?;
        self.settle()?;
        if self.ends[0].reap(0, Queue::Send)? != 1 {
            return Err("the RDMA is not done".into());
        }
        let [near, far] = &self.ends;
        if near.memory.to_vec(data, bytes) != far.memory.to_vec(place, bytes) {
            return Err("the RDMA's bytes arrived wrong".into());
        }
        Ok(self.records())
    }

    /// What crossed the pins of each node since the last call.
    pub(crate) fn records(&self) -> [Vec<Record>; 2] {
        [0, 1].map(|node| self.ends[node].probe.take())
    }

    /// The driver's view of the device.
    pub(crate) fn capabilities(&self) -> &Capabilities {
        self.ends[0].driver.capabilities()
    }
}

/// RDMA that the VIs allow: all that the device has.
fn allowed(capabilities: &Capabilities) -> u32 {
    let write = if capabilities.rdma_write { rdma::WRITE } else { 0 };
    let read = if capabilities.rdma_read { rdma::READ } else { 0 };
    write | read
}

type Probed = (SimulatedDevice, Probe);

fn device(job: &Job, setup: &Setup) -> Result<Probed, Failure> {
    match job.device {
        DeviceKind::Model if setup.probed => {
            let tap = Tap::new(nic_model::Model::new());
            let probe = tap.probe();
            Ok((Box::new(tap), probe))
        }
        DeviceKind::Model => Ok((Box::new(nic_model::Model::new()), Probe::default())),
        DeviceKind::Rtl => rtl(setup),
    }
}

#[cfg(feature = "rtl")]
#[allow(clippy::unnecessary_wraps, reason = "a build without RTL fails")]
fn rtl(setup: &Setup) -> Result<Probed, Failure> {
    let host = HostSettings { latency: setup.host_latency, ..HostSettings::default() };
    let mut nic = cosim::rtl::RtlNic::new(host);
    let probe = if setup.probed { nic.attach_probe() } else { Probe::default() };
    Ok((Box::new(nic), probe))
}

#[cfg(not(feature = "rtl"))]
fn rtl(setup: &Setup) -> Result<Probed, Failure> {
    let _ = HostSettings { latency: setup.host_latency, ..HostSettings::default() };
    Err("this build has no RTL; run it as `cargo viaduct bench hw`, which sets up Verilator and \
         builds with the feature `rtl`, or use --device model"
        .into())
}
