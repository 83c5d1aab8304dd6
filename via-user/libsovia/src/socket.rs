//! A TCP connection of the program, and how it comes to have a [`Link`].
//!
//! ```text
//!  Plain ──some calls──► Claimed ──the other end, too──► Wanted ──by a thread──► Offered ──► linked
//!    └───────────────────────┴───── shared with another process, no device, … ─────┴──► Tcp, for good
//! ```
//! A process opens the device, which takes threads, for the first connection that is wanted.

use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use arc_swap::ArcSwapOption;
use port::fork;
use port::sync::lock;
use sovia::preload::status::{Phase as Shown, Record};

use crate::borrowed::Borrowed;
use crate::claim;
use crate::kernel;
use crate::key::Key;
use crate::link::Link;
use crate::log;
use crate::status;

/// Calls on a connection before it is claimed: short ones are over by then.
const CALLS: u32 = 4;
/// Calls that each look whether the other end wants it, once it is claimed; of those up to the second number
/// every fourth does, and of others fewer and fewer.
const LOOKS: [u32; 2] = [16, 64];

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Phase {
    Plain,
    Claimed,
    /// Both ends have claimed it.
    Wanted,
    Offered,
    /// It stays by TCP.
    Tcp,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Socket {
    pub(crate) key: Key,
    phase: AtomicU8,
    calls: AtomicU32,
    /// The program has asked for VIA, and no call has waited for it.
    asks: AtomicBool,
    /// Others may have it as well: it is claimed before the next call.
    may_be_shared: AtomicBool,
    /// It has a claim of this process: of this number among forked ancestors, counted from 1.
    claimed_in: AtomicU32,
    /// The process whose state this is, by the same number.
    generation: AtomicU32,
    is_connecting: AtomicBool,
    link: ArcSwapOption<Link>,
    /// Where it is shown.
    record: ArcSwapOption<Record>,
    /// Descriptors of this process that it has.
    held: AtomicUsize,
    /// Threads that read and send by TCP without the link's knowledge.
    readers: AtomicU32,
    writers: AtomicU32,
    is_nonblocking: AtomicBool,
    receive_limit: AtomicU64,
    send_limit: AtomicU64,
    /// Bytes that its former owner had received and not read.
    left: Mutex<Vec<u8>>,
    has_left: AtomicBool,
    leaving: Mutex<()>,
}

/// Sockets by their keys: several descriptors may be one, and the other end asks for them.
static ALL: Mutex<Option<HashMap<Key, Weak<Socket>>>> = Mutex::new(None);

/// Looks at [`ALL`]. No child after a fork finds it locked.
fn with_all<T>(act: impl FnOnce(&mut HashMap<Key, Weak<Socket>>) -> T) -> T {
    fork::without_forks(|| act(lock(&ALL).get_or_insert_default()))
}

/// The socket of a key.
pub(crate) fn by_key(key: &Key) -> Option<Arc<Socket>> {
    with_all(|all| all.get(key)?.upgrade())
}

/// All sockets.
pub(crate) fn all() -> Vec<Arc<Socket>> {
    with_all(|all| all.values().filter_map(Weak::upgrade).collect())
}

/// The socket of a key, or a new one: which this process has made, and for which it has asked for VIA, or
/// not.
pub(crate) fn of_key(key: Key, fd: c_int, is_new: bool, asks: bool) -> Arc<Socket> {
    let new = Arc::new(Socket::new(key, fd, is_new, asks));
    with_all(|all| match all.get(&key).and_then(Weak::upgrade) {
        Some(socket) => socket,
        None => {
            all.insert(key, Arc::downgrade(&new));
            new
        }
    })
}

impl Socket {
    fn new(key: Key, fd: c_int, is_new: bool, asks: bool) -> Self {
        Self {
            key,
            phase: AtomicU8::new(Phase::Plain as u8),
            // A connection that was asked for moves with its first call.
            calls: AtomicU32::new(if asks { CALLS - 1 } else { 0 }),
            asks: AtomicBool::new(asks),
            may_be_shared: AtomicBool::new(!is_new),
            claimed_in: AtomicU32::new(0),
            generation: AtomicU32::new(fork::generation()),
            is_connecting: AtomicBool::new(false),
            link: ArcSwapOption::const_empty(),
            record: ArcSwapOption::const_empty(),
            held: AtomicUsize::new(0),
            readers: AtomicU32::new(0),
            writers: AtomicU32::new(0),
            is_nonblocking: AtomicBool::new(kernel::is_nonblocking(fd)),
            receive_limit: AtomicU64::new(kernel::time_limit(fd, libc::SO_RCVTIMEO)),
            send_limit: AtomicU64::new(kernel::time_limit(fd, libc::SO_SNDTIMEO)),
            left: Mutex::default(),
            has_left: AtomicBool::new(false),
            leaving: Mutex::default(),
        }
    }

    fn is_in(&self, phase: Phase) -> bool {
        self.phase.load(Ordering::Acquire) == phase as u8
    }

    /// One more descriptor.
    pub(crate) fn hold(&self) {
        self.held.fetch_add(1, Ordering::AcqRel);
    }

    /// One descriptor less. True: it was the last one.
    pub(crate) fn let_go(&self) -> bool {
        self.held.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Whether it has a descriptor.
    pub(crate) fn is_held(&self) -> bool {
        self.held.load(Ordering::Acquire) > 0
    }

    /// Where this process shows it, if it has a place for that.
    pub(crate) fn record(&self) -> Option<Arc<Record>> {
        self.record.load_full().filter(|record| record.is_own())
    }

    /// Shows it, if that is not done.
    pub(crate) fn show(&self) {
        if self.record().is_some() {
            return;
        }
        let Some(status) = status::get() else { return };
        // Of two threads one does it.
        with_all(|_| {
            if self.record().is_none() {
                let new = Record::new(&status, self.key.local(), self.key.remote());
                self.record.store(new.map(Arc::new));
            }
        });
    }

    /// This process is done with it before it has moved, or had a reason not to.
    pub(crate) fn stay_unmoved(&self) {
        let shown = if self.is_in(Phase::Plain) {
            Shown::Plain
        } else if self.may_move() && self.link().is_none() {
            Shown::Offered
        } else {
            return;
        };
        if let Some(why) = shown.why_unmoved() {
            self.stay(why);
        }
    }

    /// This process is done with it.
    pub(crate) fn remove(&self) {
        self.leave();
        self.release();
        with_all(|all| {
            if all.get(&self.key).is_some_and(|it| core::ptr::eq(it.as_ptr(), self)) {
                all.remove(&self.key);
            }
        });
    }

    /// Other processes may have it from now on. Allocates nothing.
    pub(crate) fn share(&self) {
        self.may_be_shared.store(true, Ordering::Release);
    }

    /// Whether other processes may have it.
    pub(crate) fn may_be_shared(&self) -> bool {
        self.may_be_shared.load(Ordering::Acquire)
    }

    /// One thread at a time has it leave VIA.
    pub(crate) const fn leaving(&self) -> &Mutex<()> {
        &self.leaving
    }

    /// Its link, if it has one.
    #[inline]
    pub(crate) fn link(&self) -> Option<Borrowed<Link>> {
        Borrowed::of(&self.link).filter(|link| link.is_own())
    }

    /// Whether more than the kernel knows what there is to read or room to send.
    pub(crate) fn has_view(&self) -> bool {
        self.has_left() || self.link().is_some()
    }

    /// Gives it a link. False: it has one, or stays by TCP.
    pub(crate) fn attach(&self, link: Arc<Link>) -> bool {
        if !self.is_in(Phase::Offered) {
            return false;
        }
        let none: Option<Arc<Link>> = None;
        self.link.compare_and_swap(&none, Some(link)).is_none()
    }

    /// Drops the link, after which the other side finds its end.
    pub(crate) fn leave(&self) {
        self.phase.store(Phase::Tcp as u8, Ordering::Release);
        let Some(link) = self.link.swap(None) else { return };
        if link.is_own() {
            // Threads that wait may have it for a while.
            link.close_sending();
        } else {
            // It is the parent's: its locks may be held for ever here.
            core::mem::forget(link);
        }
    }

    /// Takes back what it has claimed.
    pub(crate) fn release(&self) {
        if self.is_claimed() {
            claim::release(&self.key);
        }
    }

    /// This side connects it to the other one, or does not any more.
    pub(crate) fn set_connecting(&self, connecting: bool) {
        self.is_connecting.store(connecting, Ordering::SeqCst);
    }

    /// See [`Socket::set_connecting`].
    pub(crate) fn is_connecting(&self) -> bool {
        self.is_connecting.load(Ordering::SeqCst)
    }

    /// It stays by TCP, or goes back to it, for the first reason that is given.
    pub(crate) fn stay(&self, why: &str) {
        let before = self.phase.swap(Phase::Tcp as u8, Ordering::AcqRel);
        // What another process did with it, which this one was forked from, is that one's.
        if before != Phase::Tcp as u8
            && self.generation.load(Ordering::Acquire) == fork::generation()
        {
            self.note(why);
        }
    }

    /// Says why it goes by TCP.
    pub(crate) fn note(&self, why: &str) {
        if let Some(record) = self.record() {
            record.stay(why);
        }
        let how = if self.link().is_some() { "goes back to" } else { "stays" };
        log::verbose(format_args!("{} {how} TCP: {why}", self.key));
    }

    /// Whether this process has claimed it.
    pub(crate) fn is_claimed(&self) -> bool {
        self.claimed_in.load(Ordering::Acquire) == fork::generation() + 1
    }

    /// This process has claimed it.
    pub(crate) fn claimed(&self) {
        self.claimed_in.store(fork::generation() + 1, Ordering::Release);
    }

    fn go_on(&self, from: Phase, to: Phase) -> bool {
        let (from, to) = (from as u8, to as u8);
        self.phase.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// The other end may ask for it.
    pub(crate) fn offered(&self) {
        self.claimed();
        self.phase.store(Phase::Offered as u8, Ordering::Release);
    }

    /// This process would move it, and has said so. False: it stays by TCP.
    pub(crate) fn wants(&self) -> bool {
        let is_new = self.go_on(Phase::Plain, Phase::Claimed);
        if let Some(record) = self.record().filter(|_| is_new) {
            record.offer();
        }
        is_new || self.is_in(Phase::Claimed)
    }

    /// The other end would move it, too. True: nobody else has seen that.
    pub(crate) fn is_wanted(&self) -> bool {
        self.go_on(Phase::Claimed, Phase::Wanted)
    }

    /// A call of the program on a connection without a link. True: it looks for the other end.
    pub(crate) fn count(&self) -> bool {
        if !self.is_in(Phase::Plain) && !self.is_in(Phase::Claimed) {
            return false;
        }
        let calls = self.calls.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        let [all, some] = LOOKS;
        match calls {
            ..CALLS => false,
            _ if calls <= all => true,
            _ if calls <= some => calls.is_multiple_of(4),
            _ => calls.is_power_of_two(),
        }
    }

    /// Whether this call waits until the connection has a link: the first of a program that has asked for
    /// VIA and whose calls wait.
    pub(crate) fn is_asked_for(&self) -> bool {
        self.asks.swap(false, Ordering::AcqRel) && !self.is_nonblocking()
    }

    /// Whether it has not moved, and may yet.
    pub(crate) fn may_move(&self) -> bool {
        !self.is_in(Phase::Tcp)
    }

    /// Forgets what another process, which this one was forked from, did with it.
    pub(crate) fn begin(&self) {
        let generation = fork::generation();
        if self.generation.swap(generation, Ordering::AcqRel) != generation {
            self.leave();
            self.calls.store(0, Ordering::Relaxed);
            self.readers.store(0, Ordering::SeqCst);
            self.writers.store(0, Ordering::SeqCst);
            self.phase.store(Phase::Plain as u8, Ordering::Release);
            self.show();
        }
    }

    /// Nobody else has it, or whoever has it knows of this process.
    pub(crate) fn settle(&self) {
        self.may_be_shared.store(false, Ordering::Release);
    }

    /// Bytes that are to be read before those of TCP.
    pub(crate) fn leave_unread(&self, left: Vec<u8>) {
        if !left.is_empty() {
            *lock(&self.left) = left;
            self.has_left.store(true, Ordering::Release);
        }
    }

    /// Whether its former owner left bytes.
    pub(crate) fn has_left(&self) -> bool {
        self.has_left.load(Ordering::Acquire)
    }

    /// Bytes that its former owner left.
    pub(crate) fn left(&self) -> usize {
        lock(&self.left).len()
    }

    /// Takes bytes that its former owner left.
    pub(crate) fn take_left(&self, out: &mut [u8], peeks: bool) -> usize {
        let mut left = lock(&self.left);
        let count = left.len().min(out.len());
        out[..count].copy_from_slice(&left[..count]);
        if !peeks {
            left.drain(..count);
            self.has_left.store(!left.is_empty(), Ordering::Release);
        }
        count
    }

    /// A thread reads by TCP.
    pub(crate) fn reading(&self) -> Busy<'_> {
        Busy::new(&self.readers)
    }

    /// A thread sends by TCP.
    pub(crate) fn writing(&self) -> Busy<'_> {
        Busy::new(&self.writers)
    }

    /// Threads that read by TCP.
    pub(crate) fn readers(&self) -> u32 {
        self.readers.load(Ordering::SeqCst)
    }

    pub(crate) fn has_readers(&self) -> bool {
        self.readers.load(Ordering::SeqCst) > 0
    }

    pub(crate) fn has_writers(&self) -> bool {
        self.writers.load(Ordering::SeqCst) > 0
    }

    pub(crate) fn is_nonblocking(&self) -> bool {
        self.is_nonblocking.load(Ordering::Acquire)
    }

    pub(crate) fn set_nonblocking(&self, nonblocking: bool) {
        self.is_nonblocking.store(nonblocking, Ordering::Release);
    }

    /// Nanoseconds that receives and sends wait at most; 0: no limit.
    pub(crate) fn limits(&self) -> [u64; 2] {
        [&self.receive_limit, &self.send_limit].map(|limit| limit.load(Ordering::Acquire))
    }

    /// The program has set time limits.
    pub(crate) fn look_at_limits(&self, fd: c_int) {
        self.receive_limit.store(kernel::time_limit(fd, libc::SO_RCVTIMEO), Ordering::Release);
        self.send_limit.store(kernel::time_limit(fd, libc::SO_SNDTIMEO), Ordering::Release);
    }
}

/// A thread in a call of the kernel.
#[derive(Debug)]
pub(crate) struct Busy<'a>(&'a AtomicU32);

impl<'a> Busy<'a> {
    fn new(count: &'a AtomicU32) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
