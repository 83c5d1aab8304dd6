//! The device: joins the engines, and has the order of their steps.

use std::collections::VecDeque;

use nic_regs::admin::PeerState;
use nic_regs::counter::Counter;
use nic_regs::limits::{EVENT_QUEUE_COUNT, PEER_COUNT, VI_COUNT};
use nic_regs::tlp::{MEM_READ, MEM_WRITE};

use crate::admin::AdminRing;
use crate::bits::{small8, small16};
use crate::channel::Channels;
use crate::context::Context;
use crate::counter::Monitor;
use crate::csr::{Csr, Engines, bad_tlp};
use crate::device::{Device, Features, HostBus, Link};
use crate::doorbell::Doorbells;
use crate::frame::Assembler;
use crate::recv::RecvEngine;
use crate::send::SendEngine;
use crate::trace::{Observer, Snapshot, ViSnapshot};
use crate::work_queue::WorkQueues;

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
    inbox: VecDeque<Access>,
    answer: Option<u64>,
    csr: Csr,
    pub(crate) monitor: Monitor,
    admin: AdminRing,
    doorbells: Doorbells,
    pub(crate) queues: WorkQueues,
    pub(crate) channels: Channels,
    assembler: Assembler,
}

impl Default for Model {
    fn default() -> Self {
        Self::with_features(Features::ALL)
    }
}

impl Model {
    /// A device at power-on, with all features.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A device at power-on that may lack features.
    #[must_use]
    pub fn with_features(features: Features) -> Self {
        Self {
            inbox: VecDeque::new(),
            answer: None,
            csr: Csr::default(),
            monitor: Monitor::default(),
            admin: AdminRing::default(),
            doorbells: Doorbells::default(),
            queues: WorkQueues::new(features),
            channels: Channels::default(),
            assembler: Assembler::default(),
        }
    }

    /// Reports what happens from now on to `observer`.
    pub fn observe(&mut self, observer: Box<dyn Observer>) {
        self.monitor.observe(observer);
    }

    /// Value of a counter.
    #[must_use]
    pub fn counter(&self, counter: Counter) -> u32 {
        self.monitor.counters()[counter as usize]
    }

    /// State of the channel to a peer below 64.
    #[must_use]
    pub fn peer_state(&self, node: u8) -> PeerState {
        self.channels.peer(node).state
    }

    /// Visible state of a VI below 1,024.
    #[must_use]
    pub fn vi_snapshot(&self, vi: u16) -> ViSnapshot {
        self.queues.vis.snapshot(vi)
    }

    /// Visible state of the device.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let queue = |q| self.queues.events.get(q).map(|q| (q.producer, q.consumer));
        Snapshot {
            vis: (0..small16(VI_COUNT)).map(|vi| self.vi_snapshot(vi)).collect(),
            peers: (0..small8(PEER_COUNT)).map(|node| self.peer_state(node)).collect(),
            counters: *self.monitor.counters(),
            events: (0..small16(EVENT_QUEUE_COUNT)).map(queue).collect(),
            admin_head: self.admin.head,
        }
    }

    /// Everything but the host's accesses that wait, and the observer, is as after power-on.
    fn reset(&mut self, now: u64) {
        self.csr = Csr::after_reset(now);
        self.monitor.reset(now);
        self.admin = AdminRing::default();
        self.doorbells = Doorbells::default();
        self.queues = WorkQueues::new(self.queues.features);
        self.channels = self.channels.after_reset();
        self.assembler.skip_current();
    }

    /// An access of the host takes effect.
    fn access(&mut self, access: Access, now: u64, host: &mut dyn HostBus) {
        let engines = Engines {
            admin: &mut self.admin,
            doorbells: &mut self.doorbells,
            queues: &mut self.queues,
            channels: &mut self.channels,
            cx: &mut Context { now, host, monitor: &mut self.monitor },
        };
        match access {
            Access::Write(0, offset, data) => {
                if self.csr.write(offset, &data, engines) {
                    self.reset(now);
                }
            }
            Access::Write(2, offset, data) => {
                if self.csr.is_enabled() {
                    engines.doorbells.write(offset, &data, engines.queues, engines.cx);
                }
            }
            Access::Write(_, offset, data) => bad_tlp(MEM_WRITE, offset, data.len(), engines.cx),
            Access::Read(0, offset, length) => {
                self.answer = Some(self.csr.read(offset, length, engines).into());
            }
            Access::Read(2, _, _) => self.answer = Some(0),
            Access::Read(_, offset, length) => {
                bad_tlp(MEM_READ, offset, length, engines.cx);
                self.answer = Some(0);
            }
        }
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
        self.csr.step(now);
        if let Some(access) = self.inbox.pop_front() {
            self.access(access, now, host);
        }
        let (queues, channels) = (&mut self.queues, &mut self.channels);
        let cx = &mut Context { now, host, monitor: &mut self.monitor };
        self.doorbells.step(queues, cx);
        let beat = link.receive(now);
        let arrived = beat.and_then(|beat| self.assembler.push(now, beat));
        if let Some(assembled) = arrived.filter(|_| self.csr.is_enabled()) {
            channels.accept(assembled, queues, cx);
        }
        if let Some(staged) = channels.staging.pop() {
            let refused = RecvEngine { queues, cx }.take(&staged);
            channels.consumed(&staged, refused, cx);
        }
        if self.csr.is_enabled() && self.admin.is_busy() {
            self.admin.step(queues, channels, cx);
        }
        if queues.vis.is_any_ready() {
            SendEngine { queues, channels, cx }.step();
        }
        channels.timer_step(queues, cx);
        queues.events.vectors.step(cx);
        if channels.is_busy() {
            channels.transmit_step(link, &mut queues.vis, cx);
        }
    }

    fn busy(&self) -> bool {
        !self.csr.is_ready()
            || !self.inbox.is_empty()
            || self.doorbells.is_busy()
            || !self.channels.staging.is_empty()
            || (self.csr.is_enabled() && self.admin.is_busy())
            || self.queues.vis.is_any_ready()
            || self.channels.is_busy()
    }
}
