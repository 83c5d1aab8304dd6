//! The device: its state, its step, the order of its engines.

use std::collections::VecDeque;

use nic_regs::admin::{NO_QUEUE, PeerState};
use nic_regs::counter::Counter;
use nic_regs::csr::CONTROL;
use nic_regs::limits::{DOMAIN_COUNT, EVENT_QUEUE_COUNT, PEER_COUNT, VI_COUNT};
use nic_regs::tlp::{MEM_READ, MEM_WRITE};

use crate::admin::AdminRing;
use crate::bits::{small8, small16};
use crate::channel::Channels;
use crate::counter::{Counters, ErrorLog, Sample};
use crate::csr::Csr;
use crate::device::{Device, Features, HostBus, Link};
use crate::event::Events;
use crate::frame::Assembler;
use crate::push::Pushes;
use crate::recv::RecvEngine;
use crate::send::SendEngine;
use crate::tpt::Regions;
use crate::trace::{Observer, Snapshot, Trace, ViSnapshot, Watch};
use crate::vector::Vectors;
use crate::vi::Vis;

/// Cycles that clearing the tables takes.
const CLEAR_CYCLES: u64 = 1024;

/// An access of the host that has not taken effect.
#[derive(Clone, Debug)]
enum Access {
    /// A write of these bytes.
    Write(u8, u64, Vec<u8>),
    /// A read of this length.
    Read(u8, u64, usize),
}

/// The behavioural model of the NIC.
#[derive(Debug)]
pub struct Model {
    pub(crate) features: Features,
    pub(crate) now: u64,
    /// When the last reset was.
    pub(crate) reset_at: u64,
    /// When the tables are clear; `None` before the first step after power-on.
    ready_at: Option<u64>,
    clear: bool,
    inbox: VecDeque<Access>,
    answer: Option<u64>,
    pub(crate) csr: Csr,
    pub(crate) counters: Counters,
    pub(crate) log: ErrorLog,
    pub(crate) sample: Sample,
    pub(crate) admin: AdminRing,
    pub(crate) regions: Regions,
    pub(crate) vis: Vis,
    pub(crate) events: Events,
    pub(crate) vectors: Vectors,
    pub(crate) message_queues: [u16; DOMAIN_COUNT],
    pub(crate) pushes: Pushes,
    pub(crate) send: SendEngine,
    pub(crate) recv: RecvEngine,
    pub(crate) channels: Channels,
    assembler: Assembler,
    watch: Watch,
}

impl Default for Model {
    fn default() -> Self {
        Self {
            features: Features::ALL,
            now: 0,
            reset_at: 0,
            ready_at: None,
            clear: false,
            inbox: VecDeque::new(),
            answer: None,
            csr: Csr::default(),
            counters: Counters::default(),
            log: ErrorLog::default(),
            sample: Sample::default(),
            admin: AdminRing::default(),
            regions: Regions::default(),
            vis: Vis::default(),
            events: Events::default(),
            vectors: Vectors::default(),
            message_queues: [NO_QUEUE; DOMAIN_COUNT],
            pushes: Pushes::default(),
            send: SendEngine::default(),
            recv: RecvEngine::default(),
            channels: Channels::default(),
            assembler: Assembler::default(),
            watch: Watch::default(),
        }
    }
}

impl Model {
    /// A device at power-on, with all features.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A device that may lack some.
    #[must_use]
    pub fn with_features(features: Features) -> Self {
        Self { features, ..Self::default() }
    }

    /// Has `observer` told what happens from now on.
    pub fn observe(&mut self, observer: Box<dyn Observer>) {
        self.watch = Watch(Some(observer));
    }

    /// Value of a counter.
    #[must_use]
    pub fn counter(&self, counter: Counter) -> u32 {
        self.counters.slot(counter as usize)
    }

    /// State of the channel to a peer below 64.
    #[must_use]
    pub fn peer_state(&self, node: u8) -> PeerState {
        self.channels.peer(node).state
    }

    /// Visible state of a VI below 1,024.
    #[must_use]
    pub fn vi_snapshot(&self, vi: u16) -> ViSnapshot {
        let v = self.vi(vi);
        ViSnapshot {
            state: v.state,
            reason: v.reason,
            posted: v.queues.map(|queue| queue.count),
            unannounced: v.unannounced,
            sending: self.is_sending(vi),
            receiving: v.recv.is_some(),
        }
    }

    /// Visible state of the device.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let queue = |q| self.events.get(q).map(|q| (q.producer, q.consumer));
        Snapshot {
            vis: (0..small16(VI_COUNT)).map(|vi| self.vi_snapshot(vi)).collect(),
            peers: (0..small8(PEER_COUNT)).map(|node| self.peer_state(node)).collect(),
            counters: core::array::from_fn(|slot| self.counters.slot(slot)),
            events: (0..small16(EVENT_QUEUE_COUNT)).map(queue).collect(),
            admin_head: self.admin.head,
        }
    }

    pub(crate) fn trace(&mut self, what: Trace) {
        if let Some(observer) = &mut self.watch.0 {
            observer.event(self.now, what);
        }
    }

    /// Whether a reset is still under way.
    pub(crate) const fn clearing(&self) -> bool {
        !self.clear
    }

    /// Everything but the host's accesses that wait, the time, and the observer is as after
    /// power-on.
    pub(crate) fn reset(&mut self) {
        let channels = self.channels.after_reset();
        self.assembler.skip_current();
        let old = std::mem::take(self);
        *self = Self {
            features: old.features,
            now: old.now,
            reset_at: old.now,
            ready_at: Some(old.now + CLEAR_CYCLES),
            inbox: old.inbox,
            answer: old.answer,
            assembler: old.assembler,
            watch: old.watch,
            channels,
            ..Self::default()
        };
    }

    /// One access of the host takes effect.
    fn host_step(&mut self, host: &mut dyn HostBus) {
        match self.inbox.pop_front() {
            None => {}
            Some(Access::Write(0, offset, data)) => self.csr_write(offset, &data, host),
            Some(Access::Write(2, offset, data)) => self.doorbell_write(offset, &data, host),
            Some(Access::Write(_, _, data)) => self.bad_tlp(MEM_WRITE, data.len()),
            Some(Access::Read(0, offset, length)) => {
                self.answer = Some(u64::from(self.csr_read(offset, length)));
            }
            Some(Access::Read(2, _, _)) => self.answer = Some(0),
            Some(Access::Read(_, _, length)) => {
                self.bad_tlp(MEM_READ, length);
                self.answer = Some(0);
            }
        }
    }

    /// One beat off the link.
    fn link_step(&mut self, host: &mut dyn HostBus, link: &mut dyn Link) {
        let Some(beat) = link.receive(self.now) else { return };
        let Some(assembled) = self.assembler.push(self.now, beat) else { return };
        if CONTROL(self.csr.control).get(CONTROL::ENABLE) == 1 {
            self.accept(assembled, host);
        }
    }

    fn clear_step(&mut self) {
        let ready_at = *self.ready_at.get_or_insert(self.now + CLEAR_CYCLES);
        self.clear = self.now >= ready_at;
    }
}

impl Device for Model {
    fn bar_write(&mut self, bar: u8, offset: u64, data: &[u8]) {
        self.inbox.push_back(Access::Write(bar, offset, data.to_vec()));
    }

    fn bar_read(&mut self, bar: u8, offset: u64, length: usize) {
        self.inbox.push_back(Access::Read(bar, offset, length));
    }

    fn bar_response(&mut self) -> Option<u64> {
        self.answer.take()
    }

    fn step(&mut self, now: u64, host: &mut dyn HostBus, link: &mut dyn Link) {
        self.now = now;
        if !self.clear {
            self.clear_step();
        }
        if !self.inbox.is_empty() {
            self.host_step(host);
        }
        self.push_step();
        self.link_step(host, link);
        if self.recv.busy() {
            self.recv_step(host);
        }
        if self.admin_busy() {
            self.admin_step(host);
        }
        if self.send.busy() {
            self.send_step(host);
        }
        self.timer_step(host);
        self.interrupt_step(host);
        if self.channels.busy() {
            self.transmit_step(link);
        }
    }

    fn busy(&self) -> bool {
        !self.clear
            || !self.inbox.is_empty()
            || self.pushes.busy()
            || self.recv.busy()
            || self.admin_busy()
            || self.send.busy()
            || self.channels.busy()
    }
}
