//! Sets of descriptors that the program waits for with `epoll`.
//!
//! The program's set in the kernel stays, and is what threads sleep in. What this adds for connections
//! that have a link: in the kernel they carry a tag instead of the program's word, so that what the
//! kernel reports of them can be corrected; the NIC's wake descriptor is in the set, too; and each wait
//! looks at the links. A set that is in another one is a member as such a connection is.

use core::ffi::c_int;
use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::collections::HashMap;
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use libc::{epoll_event, sigset_t};
use port::sync::lock;
use vipl::Nic;

use crate::errno;
use crate::real;
use crate::service;
use crate::view::{View, WRITES, bits};
use crate::wait::{Dozing, End, Polling};

/// The upper half of the word of a connection with a link in the kernel's set.
const TAG: u64 = 0x5c71_a3d9_0000_0000;
/// The word of the NIC's wake descriptor.
const WAKE: u64 = TAG | 0xffff_ffff;
/// How long a wait sleeps where the NIC cannot wake it, or the kernel reports what is not to be reported.
const NAP: Duration = Duration::from_millis(1);
/// How long a wait without a bound sleeps at a time.
const LONG: Duration = Duration::from_secs(3600);

const EDGE: u32 = bits(libc::EPOLLET);
const ONCE: u32 = bits(libc::EPOLLONESHOT);

/// What the program wants to know of a TCP socket.
#[derive(Clone, Copy, Debug)]
struct Interest {
    events: u32,
    word: u64,
    /// One-shot interests are not after their event.
    is_armed: bool,
    /// The kernel has the tag.
    is_tagged: bool,
    /// What the kernel watches.
    watched: u32,
    /// What had arrived by VIA when it was last reported.
    reported: Option<u64>,
    /// Whether that a write would not wait was reported.
    was_writable: bool,
}

impl Interest {
    const fn new(event: epoll_event) -> Self {
        Self {
            events: event.events,
            word: event.u64,
            is_armed: true,
            is_tagged: false,
            watched: event.events,
            reported: None,
            was_writable: false,
        }
    }

    /// Whether waits look at its link.
    const fn is_linked(&self) -> bool {
        self.is_tagged && self.is_armed
    }

    const fn has(&self, flags: u32) -> bool {
        self.events & flags != 0
    }

    /// What the link has to report.
    fn of_link(&mut self, view: View) -> u32 {
        let mut found = 0;
        if !self.has(EDGE) || self.reported != Some(view.arrived) {
            found |= view.readable(self.events);
        }
        if view.reads == Some(true) {
            self.reported = Some(view.arrived);
        }
        if !(self.has(EDGE) && self.was_writable) {
            found |= view.writable(self.events);
        }
        if let Some(writable) = view.writes {
            self.was_writable = writable;
        }
        found
    }

    /// Has the kernel not report again and again what the link knows better: that TCP has room.
    fn watch(&mut self, set: c_int, fd: c_int, view: View) {
        if self.has(EDGE) {
            return;
        }
        let wanted = if view.writes.is_some() { self.events & !WRITES } else { self.events };
        if wanted != self.watched && change(set, libc::EPOLL_CTL_MOD, fd, wanted, tag(fd)).is_ok() {
            self.watched = wanted;
        }
    }
}

/// What a descriptor is for a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Member {
    /// Never a connection with a link.
    Other,
    Tcp,
    Linked,
}

/// What links say, by descriptors.
type Views<'a> = &'a dyn Fn(c_int) -> Option<View>;

/// A call that waits for a set.
pub(crate) struct Wait<'a> {
    /// The descriptor of the set.
    pub(crate) set: c_int,
    pub(crate) end: End,
    /// The signal mask of the wait, or none.
    pub(crate) mask: *const sigset_t,
    pub(crate) view: Views<'a>,
}

impl fmt::Debug for Wait<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "wait for the set {} ({:?})", self.set, self.end)
    }
}

/// A set.
#[derive(Debug)]
pub(crate) struct Epoll {
    /// Not held while links are looked at: what that runs may close descriptors of its own, and a close
    /// looks here.
    interests: Mutex<HashMap<c_int, Interest>>,
    /// Connections with a link are in it.
    is_active: AtomicBool,
    /// It is in another set, to which the NIC's wake descriptor would make it look ready.
    is_nested: AtomicBool,
    /// The NIC's wake descriptor is in it.
    has_wake: AtomicBool,
    /// Threads that wait.
    waiters: AtomicU32,
}

/// All sets.
static ALL: Mutex<Vec<(c_int, Weak<Epoll>)>> = Mutex::new(Vec::new());
/// How many there are.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// The program has made a set.
pub(crate) fn created(epoll: c_int) -> Arc<Epoll> {
    let set = Arc::new(Epoll {
        interests: Mutex::default(),
        is_active: AtomicBool::new(false),
        is_nested: AtomicBool::new(false),
        has_wake: AtomicBool::new(false),
        waiters: AtomicU32::new(0),
    });
    let mut all = lock(&ALL);
    all.retain(|(_, set)| set.strong_count() > 0);
    all.push((epoll, Arc::downgrade(&set)));
    COUNT.store(all.len(), Ordering::Release);
    drop(all);
    set
}

fn each(mut act: impl FnMut(c_int, &Epoll) -> bool) -> bool {
    if COUNT.load(Ordering::Acquire) == 0 {
        return true;
    }
    let all: Vec<_> =
        lock(&ALL).iter().filter_map(|(fd, set)| Some((*fd, set.upgrade()?))).collect();
    all.iter().all(|(fd, set)| act(*fd, set))
}

/// A descriptor is closed: the kernel takes it out of all sets.
pub(crate) fn forget(fd: c_int) {
    let _ = each(|_, set| {
        lock(&set.interests).remove(&fd);
        true
    });
}

/// A connection with this descriptor gets a link. False: it is in a set that cannot follow.
pub(crate) fn linked(fd: c_int) -> bool {
    each(|epoll, set| set.follow(epoll, fd))
}

fn change(epoll: c_int, command: c_int, fd: c_int, events: u32, word: u64) -> Result<(), c_int> {
    let mut event = epoll_event { events, u64: word };
    let result = real::epoll_ctl(epoll, command, fd, &raw mut event);
    errno::counted(isize::try_from(result).unwrap_or(-1)).map(drop)
}

fn tag(fd: c_int) -> u64 {
    TAG | u64::from(fd.cast_unsigned())
}

/// The descriptor of a tag.
fn tagged(word: u64) -> Option<c_int> {
    let low = u32::try_from(word & 0xffff_ffff).ok()?;
    (word & !0xffff_ffff == TAG && word != WAKE).then(|| low.cast_signed())
}

impl Epoll {
    fn is_active(&self) -> bool {
        self.is_active.load(Ordering::SeqCst)
    }

    /// It is in another set, which wakes whoever waits.
    pub(crate) fn nest(&self, epoll: c_int) {
        self.is_nested.store(true, Ordering::SeqCst);
        if let Some(service) = service::current()
            && self.has_wake.swap(false, Ordering::SeqCst)
            && let Some(wake) = service.nic().port().wake_descriptor()
        {
            let _ = change(epoll, libc::EPOLL_CTL_DEL, wake.as_raw_fd(), 0, WAKE);
        }
    }

    /// The program changes the set.
    pub(crate) fn control(
        &self,
        epoll: c_int,
        command: c_int,
        fd: c_int,
        event: Option<epoll_event>,
        member: Member,
    ) -> Result<(), c_int> {
        let mut interests = lock(&self.interests);
        if command == libc::EPOLL_CTL_DEL {
            interests.remove(&fd);
        }
        let is_kept = command != libc::EPOLL_CTL_DEL && member != Member::Other;
        let Some(event) = event.filter(|_| is_kept) else {
            let (events, word) = event.map_or((0, 0), |event| (event.events, event.u64));
            return change(epoll, command, fd, events, word);
        };
        let mut interest = Interest::new(event);
        interest.is_tagged = member == Member::Linked && self.activate(epoll);
        let word = if interest.is_tagged { tag(fd) } else { event.u64 };
        change(epoll, command, fd, event.events, word)?;
        interests.insert(fd, interest);
        Ok(())
    }

    /// Has waits look at links, too.
    fn activate(&self, epoll: c_int) -> bool {
        if self.is_active() {
            return true;
        }
        // Without a service there are bytes that another process has left, and no links.
        let Some(service) = service::current() else {
            self.is_active.store(true, Ordering::SeqCst);
            return true;
        };
        if !self.add_wake(epoll, service.nic()) {
            return false;
        }
        self.is_active.store(true, Ordering::SeqCst);
        // A thread that waits in the kernel already looks now.
        let _dozing = Dozing::new(service.nic());
        service.nic().port().wake();
        true
    }

    /// Has the NIC wake who waits in the kernel. False: it cannot.
    fn add_wake(&self, epoll: c_int, nic: &Nic) -> bool {
        let has_one = self.is_nested.load(Ordering::SeqCst) || self.has_wake.load(Ordering::SeqCst);
        let Some(wake) = nic.port().wake_descriptor().filter(|_| !has_one) else { return true };
        let events = bits(libc::EPOLLIN) | EDGE;
        let added = change(epoll, libc::EPOLL_CTL_ADD, wake.as_raw_fd(), events, WAKE);
        // Another thread may have been faster.
        let is_there = matches!(added, Ok(()) | Err(libc::EEXIST));
        self.has_wake.store(is_there, Ordering::SeqCst);
        is_there
    }

    /// A connection of the set has a link. False: the set cannot follow.
    fn follow(&self, epoll: c_int, fd: c_int) -> bool {
        let mut interests = lock(&self.interests);
        let Some(interest) = interests.get_mut(&fd) else { return true };
        if !self.activate(epoll) {
            return false;
        }
        let events = if interest.is_armed { interest.events } else { 0 };
        match change(epoll, libc::EPOLL_CTL_MOD, fd, events, tag(fd)) {
            Ok(()) => interest.is_tagged = true,
            // It is another descriptor by now.
            Err(libc::ENOENT | libc::EBADF) => drop(interests.remove(&fd)),
            Err(_) => return false,
        }
        true
    }

    /// What the links of the set say to who waits for the set itself: that there is something to report, or
    /// nothing that the kernel does not know.
    pub(crate) fn view(&self, set: c_int, views: Views<'_>) -> View {
        let mut all = View::KERNEL;
        if !self.is_active() {
            return all;
        }
        let interests = lock(&self.interests).clone();
        for (fd, mut interest) in interests.into_iter().filter(|(_, interest)| interest.is_linked())
        {
            let Some(view) = views(fd) else { continue };
            if let Some(kept) = lock(&self.interests).get_mut(&fd) {
                kept.watch(set, fd, view);
            }
            all.arrived = all.arrived.wrapping_add(view.arrived);
            if interest.of_link(view) != 0 {
                all.reads = Some(true);
            }
        }
        all
    }

    /// The program waits.
    pub(crate) fn wait(&self, wait: &Wait<'_>, events: &mut [epoll_event]) -> Result<usize, c_int> {
        loop {
            let found = match service::current().filter(|_| self.is_active()) {
                Some(service) => self.wait_for_links(service.nic(), wait, events)?,
                None => {
                    let of_links = self.links(wait, events);
                    if of_links > 0 {
                        return Ok(of_links);
                    }
                    let found = wait.ask(events, wait.end.left())?;
                    self.correct(wait, events, found)
                }
            };
            if found > 0 || wait.end.is_over() {
                return Ok(found);
            }
        }
    }

    fn wait_for_links(
        &self,
        nic: &Nic,
        wait: &Wait<'_>,
        events: &mut [epoll_event],
    ) -> Result<usize, c_int> {
        let _ = self.add_wake(wait.set, nic);
        let mut polling = None;
        loop {
            nic.progress();
            let found = self.look(wait, events, Duration::ZERO)?;
            if found > 0 {
                polling.iter().for_each(Polling::paid);
            }
            if found > 0 || wait.end.is_over() {
                return Ok(found);
            }
            // Not for what is there already.
            if polling.get_or_insert_with(|| Polling::new(nic)).is_over() {
                break;
            }
        }
        self.waiters.fetch_add(1, Ordering::SeqCst);
        let dozing = Dozing::new(nic);
        let is_armed = nic.arm_own_queue() && self.has_wake.load(Ordering::SeqCst);
        nic.progress();
        let left = wait.end.left().unwrap_or(LONG);
        let found = self.look(wait, events, if is_armed { left } else { left.min(NAP) });
        drop(dozing);
        if self.waiters.fetch_sub(1, Ordering::SeqCst) > 1 {
            // What comes next is for another thread.
            let _ = nic.arm_own_queue();
            nic.port().wake();
        }
        found
    }

    /// Looks at links and asks the kernel, which may take so long if no link has anything.
    fn look(
        &self,
        wait: &Wait<'_>,
        events: &mut [epoll_event],
        bound: Duration,
    ) -> Result<usize, c_int> {
        let of_links = self.links(wait, events);
        let bound = if of_links > 0 { Duration::ZERO } else { bound };
        let (_, of_kernel) = events.split_at_mut(of_links);
        if of_kernel.is_empty() {
            return Ok(of_links);
        }
        let found = match wait.ask(of_kernel, Some(bound)) {
            Err(_) if of_links > 0 => 0,
            found => found?,
        };
        let is_wake = of_kernel[..found].iter().any(|event| { event.u64 } == WAKE);
        let all = of_links + self.correct(wait, of_kernel, found);
        if all == 0 && found > 0 && !bound.is_zero() && !is_wake {
            std::thread::sleep(NAP);
        }
        Ok(all)
    }

    /// What links have to report.
    fn links(&self, wait: &Wait<'_>, events: &mut [epoll_event]) -> usize {
        let interests = lock(&self.interests);
        let linked = interests.iter().filter(|(_, interest)| interest.is_linked());
        let linked: Vec<c_int> = linked.map(|(fd, _)| *fd).collect();
        drop(interests);
        let mut found = 0;
        for fd in linked {
            let Some(view) = (wait.view)(fd) else { continue };
            let mut interests = lock(&self.interests);
            let Some(interest) = interests.get_mut(&fd).filter(|it| it.is_linked()) else {
                continue;
            };
            interest.watch(wait.set, fd, view);
            if found == events.len() {
                break;
            }
            let of_link = interest.of_link(view);
            if of_link != 0 {
                events[found] = epoll_event { events: of_link, u64: interest.word };
                found += 1;
                if interest.has(ONCE) {
                    interest.is_armed = false;
                    let _ = change(wait.set, libc::EPOLL_CTL_MOD, fd, ONCE, tag(fd));
                }
            }
        }
        found
    }

    /// Corrects the first events, which the kernel has reported. Gives how many are left.
    fn correct(&self, wait: &Wait<'_>, events: &mut [epoll_event], found: usize) -> usize {
        if !self.is_active() {
            return found;
        }
        let mut kept = 0;
        for index in 0..found {
            let mut event = events[index];
            if event.u64 == WAKE {
                continue;
            }
            if let Some(fd) = tagged(event.u64) {
                let view = (wait.view)(fd).unwrap_or(View::KERNEL);
                let mut interests = lock(&self.interests);
                let Some(interest) = interests.get_mut(&fd) else { continue };
                event.u64 = interest.word;
                event.events = view.correct(event.events);
                if event.events == 0 {
                    if interest.has(ONCE) && interest.is_armed {
                        let watched = interest.watched;
                        let _ = change(wait.set, libc::EPOLL_CTL_MOD, fd, watched, tag(fd));
                    }
                    continue;
                }
                if interest.has(ONCE) {
                    interest.is_armed = false;
                }
            }
            events[kept] = event;
            kept += 1;
        }
        kept
    }
}

impl Wait<'_> {
    /// Waits in the kernel.
    fn ask(&self, events: &mut [epoll_event], bound: Option<Duration>) -> Result<usize, c_int> {
        let count = c_int::try_from(events.len()).unwrap_or(c_int::MAX);
        let ms = match bound {
            None => -1,
            // Rounded up, as the kernel does for what is not its unit.
            Some(bound) => {
                c_int::try_from(bound.as_nanos().div_ceil(1_000_000)).unwrap_or(c_int::MAX)
            }
        };
        let result = real::epoll_pwait(self.set, events.as_mut_ptr(), count, ms, self.mask);
        errno::counted(isize::try_from(result).unwrap_or(-1))
    }
}
