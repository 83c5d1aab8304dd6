//! A connection: the engine, its memory and its VI, for any number of threads.
//!
//! One thread at a time takes packets off the VI and gives them to the engine, so that they stay in order:
//! whoever holds `state`, or the leader, who waits for a packet without holding it. The others wait on
//! `changed` until the leader has one.

mod calls;
mod patience;
mod quiet;
mod ready;
#[cfg(feature = "tokio")]
mod tasks;

use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use vipl::{Completion, ConnectionRequest, Queue, Vi, VipReturn};

use crate::device::Device;
use crate::engine::{Engine, Received};
use crate::error::{Error, Result};
use crate::keeper::Kept;
use crate::packet::{Header, Kind};
use crate::policy::Policy;
use crate::slots::Slots;
use crate::state::State;
use crate::wakeup;
pub(crate) use patience::Patience;
use quiet::Quiet;
pub use ready::{Credits, Ready};

/// Most bytes that are taken out of packets before the program reads them: what TCP has room for at least.
const ABSORBED: usize = 256 << 10;
/// The longest sleep of a thread that waits for another one.
const LOOK: Duration = Duration::from_millis(100);

/// See the module.
#[derive(Debug)]
pub(crate) struct Connection {
    device: Device,
    vi: Vi,
    state: Mutex<Shared>,
    changed: Condvar,
    /// Threads that wait for `changed`: nobody else is notified, which would be a system call.
    waiters: AtomicUsize,
    /// See [`Connection::credits`].
    credits: AtomicU32,
    quiet: Quiet,
}

#[derive(Debug)]
struct Shared {
    engine: Engine,
    slots: Slots,
    /// Receives that were read and are not posted again: unless the other side may wait for them,
    /// that has time until the program has its bytes, or has sent its answer.
    spent: Vec<usize>,
    /// A thread waits for the next packet; nobody else takes one.
    is_led: bool,
    /// The other side's Wakeup has come.
    woken: bool,
    /// The program has closed it.
    closed: bool,
    /// What comes is thrown away.
    discards: bool,
    /// Packets that have come.
    arrived: u64,
    /// Bytes that were taken out of their packets, so that the other side can send more of them: those
    /// that are read next.
    absorbed: VecDeque<u8>,
    /// The keeper knows that small messages wait.
    watched: bool,
    broken: Option<Error>,
}

impl Connection {
    /// One that is not connected yet: its receives are posted.
    pub(crate) fn new(device: &Device) -> Result<Arc<Self>> {
        let policy = *device.policy();
        let vi = device.create_vi()?;
        let mut slots = Slots::new(device, &policy)?;
        slots.post_all(&vi)?;
        let engine = Engine::new(policy);
        let shared = Shared {
            engine,
            slots,
            spent: Vec::new(),
            is_led: false,
            woken: false,
            closed: false,
            discards: false,
            arrived: 0,
            absorbed: VecDeque::new(),
            watched: false,
            broken: None,
        };
        let (state, changed, waiters) = (Mutex::new(shared), Condvar::new(), AtomicUsize::new(0));
        let (device, credits, quiet) = (device.clone(), AtomicU32::new(0), Quiet::default());
        Ok(Arc::new(Self { device, vi, state, changed, waiters, credits, quiet }))
    }

    /// One of a request, which is rejected by its end if it cannot be accepted.
    pub(crate) fn accept(device: &Device, request: &ConnectionRequest) -> Result<Arc<Self>> {
        let connection = Self::new(device)?;
        request.accept(connection.vi())?;
        connection.greet()?;
        Ok(connection)
    }

    pub(crate) const fn device(&self) -> &Device {
        &self.device
    }

    pub(crate) const fn vi(&self) -> &Vi {
        &self.vi
    }

    /// Time, for policies that need it.
    fn now(&self) -> u64 {
        match self.device.policy().combine {
            Some(_) => self.device.nic().port().now_ns(),
            None => 0,
        }
    }

    fn notify(&self) {
        if self.waiters.load(Ordering::SeqCst) > 0 {
            self.changed.notify_all();
        }
    }

    /// Says what this side is set to. The first packet of a connection.
    pub(crate) fn greet(&self) -> Result<()> {
        let mut shared = self.lock();
        let policy: Policy = *shared.engine.policy();
        let bytes = wakeup::to_bytes(&policy);
        let header = Header { kind: Kind::Wakeup, acknowledged: 0 };
        shared.slots.send_bytes(&self.vi, header, &bytes)
    }

    /// Waits for the other side's settings.
    pub(crate) fn wait_for_greeting(&self, patience: Patience) -> Result<()> {
        self.wait_until(patience, usize::MAX, |shared| shared.woken.then_some(()))
    }

    /// Waits until a look at the connection gives something. No more packets are taken than have
    /// `enough` bytes.
    fn wait_until<T>(
        &self,
        mut patience: Patience,
        enough: usize,
        mut look: impl FnMut(&mut Shared) -> Option<T>,
    ) -> Result<T> {
        let mut shared = self.lock();
        // A wait takes packets that are there already.
        if patience == Patience::None {
            self.handle(&mut shared, enough);
        }
        loop {
            if let Some(found) = look(&mut shared) {
                return Ok(found);
            }
            self.transmit(&mut shared);
            if let Some(broken) = &shared.broken {
                return Err(broken.clone());
            }
            shared = self.wait(shared, &mut patience, enough)?;
        }
    }

    /// Waits for a packet, here or by the leader.
    fn wait<'a>(
        &'a self,
        mut shared: MutexGuard<'a, Shared>,
        patience: &mut Patience,
        enough: usize,
    ) -> Result<MutexGuard<'a, Shared>> {
        if *patience == Patience::None {
            self.rest(&shared);
            return Err(Error::WouldBlock);
        }
        if shared.is_led || shared.engine.policy().handler {
            let bound = patience.left()?.min(LOOK);
            // Under the lock: who changes something later sees it.
            self.waiters.fetch_add(1, Ordering::SeqCst);
            let woken = self.changed.wait_timeout(shared, bound);
            self.waiters.fetch_sub(1, Ordering::SeqCst);
            return Ok(woken.unwrap_or_else(PoisonError::into_inner).0);
        }
        shared.is_led = true;
        drop(shared);
        let look = || {
            let polled = self.vi.poll(Queue::Recv);
            let is_done = !matches!(&polled, Err(error) if error.code == VipReturn::NotDone);
            is_done.then_some(polled)
        };
        let completion = match self.device.nic().spin(look) {
            Some(completion) => Ok(completion),
            // A shutdown by another thread wakes nobody who sleeps on a VI.
            None => patience.left().map(|bound| self.vi.recv_wait(bound.min(LOOK))),
        };
        let mut shared = self.lock();
        self.lead(&mut shared, completion.as_ref().ok(), enough);
        completion.map(|_| shared)
    }

    /// The leader has a packet, or none came.
    fn lead(&self, shared: &mut Shared, completion: Option<&Completion>, enough: usize) {
        if let Some(completion) = completion {
            self.arrive(shared, completion);
            self.drain(shared, enough);
        }
        shared.is_led = false;
        self.notify();
    }

    /// Gives the engine the packets that are there, up to `enough` bytes, unless a leader does.
    fn handle(&self, shared: &mut Shared, enough: usize) {
        if shared.is_led {
            return;
        }
        if !self.drain(shared, enough) {
            // What stops VIs comes to light by it; the next look finds them.
            self.device.nic().progress();
        }
        self.notify();
    }

    /// Takes the packets that are there, up to `enough` bytes; true if there were any.
    fn drain(&self, shared: &mut Shared, enough: usize) -> bool {
        let mut found = false;
        loop {
            if shared.engine.available() >= enough {
                return true;
            }
            match self.vi.poll(Queue::Recv) {
                Err(error) if error.code == VipReturn::NotDone => return found,
                completion => {
                    found = true;
                    if !self.arrive(shared, &completion) {
                        return true;
                    }
                }
            }
        }
    }

    /// A receive is done. False: no other will be.
    fn arrive(&self, shared: &mut Shared, completion: &Completion) -> bool {
        shared.arrived += 1;
        let handled = match completion {
            Ok(done) => self.receive(shared, done.immediate(), done.length()),
            Err(error) if error.code == VipReturn::Timeout => Ok(()),
            Err(error) => Err(error.clone().into()),
        };
        if let Err(error) = handled {
            self.fail(shared, error);
            return false;
        }
        true
    }

    fn receive(&self, shared: &mut Shared, bits: u32, length: u32) -> Result<()> {
        let Some(slot) = shared.slots.completed() else { return Err(Error::Reset) };
        if !shared.woken {
            let mut bytes = [0; wakeup::BYTES];
            shared.slots.read(slot, 0, &mut bytes);
            let kind = Header::from_bits(bits).map(|header| header.kind);
            let agreed = wakeup::to_bytes(shared.engine.policy());
            if kind != Some(Kind::Wakeup) || length as usize != bytes.len() || bytes != agreed {
                return Err(Error::Incompatible);
            }
            shared.woken = true;
            return shared.slots.post_receive(&self.vi, slot);
        }
        let received = shared.engine.receive(bits, length, slot)?;
        self.note_credits(shared);
        if received == Received::Free {
            shared.slots.post_receive(&self.vi, slot)?;
        }
        Ok(())
    }

    /// Nothing will come of it any more. After an end on both sides that is as it should be.
    fn fail(&self, shared: &mut Shared, error: Error) {
        if shared.broken.is_none() {
            shared.broken = Some(error);
        }
        let _ = self.vi.disconnect();
    }

    /// Takes the bytes out of packets if many packets wait that have few: a window of packets is soon full
    /// of them, and a program that sends before it reads counts on some room in between, as TCP has it.
    fn absorb(&self, shared: &mut Shared) {
        let window = usize::from(shared.engine.policy().window);
        let is_crowded = shared.engine.fronts().count() > window / 2;
        if !is_crowded || shared.engine.available() + shared.absorbed.len() > ABSORBED {
            return;
        }
        let mut bytes = Vec::new();
        while let Some((slot, range)) = shared.engine.front() {
            bytes.resize(range.len(), 0);
            shared.slots.read(slot, range.start, &mut bytes);
            shared.absorbed.extend(&bytes);
            self.consume(shared, range.end - range.start);
        }
        self.transmit(shared);
    }

    /// Sends what is to be sent, as far as there is room.
    fn transmit(&self, shared: &mut Shared) {
        if let Err(error) = self.try_transmit(shared) {
            self.fail(shared, error);
        }
    }

    fn try_transmit(&self, shared: &mut Shared) -> Result<()> {
        let now = self.now();
        if shared.broken.is_some() {
            return Ok(());
        }
        while let Some(slot) = shared.spent.pop() {
            shared.slots.post_receive(&self.vi, slot)?;
            shared.engine.posted();
        }
        loop {
            if !shared.slots.has_send(false) {
                shared.slots.reap(&self.vi)?;
                if !shared.slots.has_send(false) {
                    return Ok(());
                }
            }
            let Some(packet) = shared.engine.transmit(now) else { return Ok(()) };
            self.note_credits(shared);
            match packet.combined {
                0 => shared.slots.send_bytes(&self.vi, packet.header, &[])?,
                length => shared.slots.send(&self.vi, packet.header, length)?,
            }
        }
    }

    /// What a thread of the library does for a connection whose policy has one: it leads.
    pub(crate) fn handle_one(&self, bound: Duration) -> bool {
        let mut shared = self.lock();
        shared.is_led = true;
        drop(shared);
        let completion = self.vi.recv_wait(bound);
        shared = self.lock();
        self.lead(&mut shared, Some(&completion), usize::MAX);
        self.transmit(&mut shared);
        shared.broken.is_none() && !shared.closed
    }
}

impl Kept for Connection {
    fn tend(&self) -> Option<Duration> {
        let mut shared = self.lock();
        self.handle(&mut shared, usize::MAX);
        self.transmit(&mut shared);
        if shared.broken.is_some() || !shared.engine.is_combining() {
            shared.watched = false;
            return None;
        }
        let deadline = shared.engine.deadline().unwrap_or(0);
        Some(Duration::from_nanos(deadline.saturating_sub(self.now())))
    }

    fn finish(&self) -> bool {
        let mut shared = self.lock();
        self.handle(&mut shared, usize::MAX);
        self.transmit(&mut shared);
        if shared.is_unread() {
            // As TCP: what nobody reads is not taken, and the other side learns of it.
            self.fail(&mut shared, Error::Reset);
        }
        let _ = shared.slots.reap(&self.vi);
        let is_over = shared.engine.state() == State::Closed && shared.slots.busy() == 0;
        is_over || shared.broken.is_some()
    }

    fn has_left(&self) -> bool {
        let shared = self.lock();
        shared.broken.is_some() || shared.engine.has_ended() && shared.slots.busy() == 0
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.vi.retire();
        self.lock().slots.release(&self.device);
    }
}
