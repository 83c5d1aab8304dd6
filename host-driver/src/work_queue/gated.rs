//! A work queue behind its gate: the fast path of posting and taking.
//!
//! Who knows the queue's key, and goes the common way, pays one atomic operation, and writes nothing
//! that another queue writes. What cannot be done so is refused with nothing done; the lock is for it.

use core::ops::{Deref, DerefMut};

use nic_regs::doorbell::Token;
use nic_regs::tpt::Handle;

use super::{AtHand, Head, Inline, Watch, WorkQueue};
use crate::dma::RegisterLine;
use crate::doorbell::{DoorbellPage, PushLine};
use crate::gate::{Gate, Key, Keyed, Locked, Staying};

/// A work queue and what posting needs besides.
#[derive(Debug, Default)]
pub struct Work {
    queue: WorkQueue,
    /// The doorbell, where it is mapped.
    doorbell: Option<RegisterLine>,
    /// The queue's own push line.
    line: Option<PushLine>,
    /// Who may post and take the common way.
    key: Option<Key>,
    /// The VI is connected: posts go to the device.
    open: bool,
    page: Option<DoorbellPage>,
}

impl Deref for Work {
    type Target = WorkQueue;

    fn deref(&self) -> &WorkQueue {
        &self.queue
    }
}

impl DerefMut for Work {
    fn deref_mut(&mut self) -> &mut WorkQueue {
        &mut self.queue
    }
}

impl Keyed for Work {
    type Sign = Watch;

    fn key(&self) -> Option<Key> {
        self.key.filter(|_| self.open && self.queue.is_plain())
    }

    fn sign(&self) -> Watch {
        self.queue.watch()
    }
}

impl Work {
    /// A queue whose doorbells are in this page, if the port has one.
    #[must_use]
    pub fn new(queue: WorkQueue, page: Option<DoorbellPage>) -> Self {
        let doorbell = page.as_ref().and_then(DoorbellPage::registers);
        let line = page.as_ref().filter(|_| queue.has_pushes()).and_then(DoorbellPage::push_line);
        Self { queue, doorbell, line, key: None, open: false, page }
    }

    /// Whether the VI is connected.
    pub const fn set_open(&mut self, open: bool) {
        self.open = open;
    }

    /// Who may post and take the common way.
    pub const fn set_key(&mut self, key: Option<Key>) {
        self.key = key;
    }
}

/// Who holds the lock of a queue.
pub type WorkGuard<'a> = Locked<'a, Work>;

/// A work queue behind its gate. All zero at first; apart from what others write.
#[derive(Debug)]
#[repr(align(64))]
pub struct GatedQueue {
    gate: Gate<Work>,
}

/// What became of a post.
#[derive(Debug)]
pub enum Posting<'a> {
    /// It is done.
    Done,
    /// Nothing has happened: [`Short::post`] does it.
    Short(Short<'a>),
    /// Nothing has happened: it cannot be done this way, the key is another, the VI is not connected,
    /// or another thread is at work at the queue.
    No,
}

/// A post whose data travels with the doorbell, if that is possible. The queue is shut until
/// [`Short::post`].
#[must_use]
#[derive(Debug)]
pub struct Short<'a> {
    staying: Staying<'a, Work>,
}

impl Short<'_> {
    /// Posts it, in the memory of `handle` and with the key, as before. False: nothing has happened,
    /// as with [`Posting::No`].
    #[must_use]
    #[inline(always)]
    pub fn post(self, key: Key, handle: u32) -> bool {
        let mut inside = self.staying.with(key);
        let (Work { queue, line: Some(line), .. }, watch) = inside.both() else { return false };
        queue.push_at_hand(Handle(handle), line, watch)
    }
}

/// What became of taking.
#[derive(Debug)]
pub enum Taking<'a> {
    /// The oldest descriptor is done: [`Ready::take`].
    Ready(Ready<'a>),
    /// There is nothing to take: [`Watch::NOT_DONE`] or [`Watch::NOTHING`].
    Found(u32),
    /// Nothing has happened, as with [`Posting::No`].
    No,
}

/// A descriptor that is done and can be taken. The queue is shut until [`Ready::take`].
#[must_use]
#[derive(Debug)]
pub struct Ready<'a> {
    staying: Staying<'a, Work>,
}

impl Ready<'_> {
    /// Takes it, with the key: its address and its status.
    #[must_use]
    #[inline(always)]
    pub fn take(self, key: Key) -> (u64, u32) {
        let mut inside = self.staying.with(key);
        let (work, watch) = inside.both();
        work.queue.take_done(watch)
    }
}

impl Default for GatedQueue {
    fn default() -> Self {
        Self::new()
    }
}

impl GatedQueue {
    /// Without a queue.
    #[must_use]
    pub const fn new() -> Self {
        Self { gate: Gate::new() }
    }

    /// Gives it a queue, in place of one that may be there.
    pub fn furnish(&self, work: Work) {
        self.gate.furnish(work);
    }

    /// Takes the lock of the queue. None if it never had one.
    #[must_use]
    pub fn lock(&self) -> Option<WorkGuard<'_>> {
        self.gate.lock()
    }

    /// The lock, for who knows the key.
    fn lock_by(&self, key: Key) -> Option<WorkGuard<'_>> {
        self.gate.lock().filter(|work| work.key == Some(key))
    }

    /// Waits a moment for a thread that is at work at the queue the common way.
    pub fn let_pass(&self) {
        self.gate.let_pass();
    }

    /// Posts the descriptor at `address`, in the memory of `handle`, the common way: the device has
    /// all operations, the descriptor lies in the region at hand, and nothing is wrong.
    #[must_use]
    #[inline(always)]
    pub fn post_at_hand(&self, key: Key, address: u64, handle: u32) -> Posting<'_> {
        let Some(mut inside) = self.gate.enter(key) else { return Posting::No };
        let (Work { queue, doorbell: Some(doorbell), .. }, watch) = inside.both() else {
            return Posting::No;
        };
        match queue.post_at_hand(address, Handle(handle), doorbell, watch) {
            AtHand::Posted => Posting::Done,
            AtHand::Short => Posting::Short(Short { staying: inside.stay() }),
            AtHand::No => Posting::No,
        }
    }

    /// The same, if nothing is wrong, and by whatever bus. None: nothing has happened. So it is if
    /// data would travel with the doorbell, the descriptor's region is at hand, and the queue has not
    /// met that of the data.
    #[must_use]
    pub fn post_at(&self, key: Key, address: u64, handle: u32) -> Option<()> {
        let mut work = self.lock_by(key).filter(|work| work.open)?;
        let Work { queue, page: Some(page), .. } = &mut *work else { return None };
        if !queue.has_met_data_of(address, Handle(handle)) {
            return None;
        }
        let ring = |token, inline: Option<&Inline>| match inline {
            Some(inline) => page.push(Token::from_bits(token), inline.data(), inline.immediate),
            None => page.ring_bits(token),
        };
        queue.post_at(address, Handle(handle), &|_| None, ring).ok()
    }

    /// Takes the oldest descriptor if it is done, the common way.
    ///
    /// It looks at a descriptor of the program, so it cannot do without the gate: another thread may
    /// take it, and its memory may go.
    #[must_use]
    #[inline(always)]
    pub fn take_at_hand(&self, key: Key) -> Taking<'_> {
        let Some(inside) = self.gate.enter(key) else { return Taking::No };
        match inside.sign().found() {
            Some(found) => Taking::Found(found),
            None => Taking::Ready(Ready { staying: inside.stay() }),
        }
    }

    /// The same, also of a VI that is not connected. None if the key is another.
    #[must_use]
    pub fn take(&self, key: Key) -> Option<Head<(u64, u32)>> {
        Some(self.lock_by(key)?.queue.take_address())
    }
}
