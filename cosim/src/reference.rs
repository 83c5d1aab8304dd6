//! The model's engines as the reference of a block's testbench (decision 0024): what they do in a
//! step, in order, while memory stays as it is.

use std::sync::{Arc, Mutex};

use host_driver::sync::lock;
use nic_model::context::Context;
use nic_model::counter::Monitor;
use nic_model::device::{Features, HostBus, HostReadError};
use nic_model::trace::Trace;
use nic_model::work_queue::WorkQueues;
use nic_regs::counter::Counter;

/// What the model does in a step.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Writes host memory.
    Write(u64, Vec<u8>),
    /// Reports to its observer.
    Trace(Trace),
}

type Effects = Arc<Mutex<Vec<Effect>>>;

/// Host memory as the model uses it: its writes are noted and not done.
struct Recorder<R> {
    read: R,
    effects: Effects,
}

impl<R: FnMut(u64, &mut [u8]) -> Result<(), HostReadError>> HostBus for Recorder<R> {
    fn read(&mut self, address: u64, data: &mut [u8]) -> Result<(), HostReadError> {
        (self.read)(address, data)
    }

    fn write(&mut self, address: u64, data: &[u8]) {
        lock(&self.effects).push(Effect::Write(address, data.to_vec()));
    }
}

/// The tables of the model's engines, and what the engines record.
#[derive(Debug)]
pub struct Reference {
    /// VIs, regions, event queues.
    pub queues: WorkQueues,
    /// Counters and error log.
    pub monitor: Monitor,
    effects: Effects,
}

impl Default for Reference {
    fn default() -> Self {
        let (mut monitor, effects) = (Monitor::default(), Effects::default());
        let seen = effects.clone();
        monitor.observe(Box::new(move |_, what| lock(&seen).push(Effect::Trace(what))));
        Self { queues: WorkQueues::new(Features::ALL), monitor, effects }
    }
}

impl Reference {
    /// Runs a part of the model, which reads host memory by `read`; gives its result, and what it
    /// did.
    pub fn run<T>(
        &mut self,
        read: impl FnMut(u64, &mut [u8]) -> Result<(), HostReadError>,
        part: impl FnOnce(&mut WorkQueues, &mut Context<'_>) -> T,
    ) -> (T, Vec<Effect>) {
        let host = &mut Recorder { read, effects: self.effects.clone() };
        let cx = &mut Context { now: 0, host, monitor: &mut self.monitor };
        let result = part(&mut self.queues, cx);
        (result, std::mem::take(&mut lock(&self.effects)))
    }

    /// What the model has counted.
    #[must_use]
    pub fn counted(&self, counter: Counter) -> u64 {
        self.monitor.counters()[counter as usize].into()
    }
}
