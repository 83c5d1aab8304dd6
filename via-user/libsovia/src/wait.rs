//! Waiting for streams of VIA and descriptors of the kernel at once: it polls for a while, then it sleeps
//! in the kernel, where the NIC wakes it by a descriptor of its own.

use core::cell::{Cell, RefCell};
use core::ffi::c_int;
use core::ptr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use libc::{pollfd, sigset_t, timespec};
use port::fork;
use rustix::event::epoll;
use vipl::{Nic, Waiting};

use crate::errno;
use crate::kernel;
use crate::link::Step;
use crate::real;

/// No signal mask.
pub(crate) const NO_MASK: *const sigset_t = ptr::null();
/// Looks between two looks at the clock and the kernel's descriptors.
const LOOKS: u32 = 32;
/// How long a thread sleeps at most where the NIC cannot wake it.
const NAP: Duration = Duration::from_micros(250);
/// How long who waits for something that comes soon sleeps.
const SOON: Duration = Duration::from_micros(20);

/// A time that a wait ends at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End(Option<Instant>);

impl End {
    /// Never.
    pub(crate) const NEVER: Self = Self(None);

    /// After so long.
    pub(crate) fn after(bound: Duration) -> Self {
        Self(Instant::now().checked_add(bound))
    }

    /// After so many milliseconds; never if they are less than 0.
    pub(crate) fn after_ms(ms: c_int) -> Self {
        u64::try_from(ms).map_or(Self::NEVER, |ms| Self::after(Duration::from_millis(ms)))
    }

    /// What is left; None: for ever.
    pub(crate) fn left(self) -> Option<Duration> {
        self.0.map(|end| end.saturating_duration_since(Instant::now()))
    }

    /// Whether it is now.
    pub(crate) fn is_over(self) -> bool {
        self.left().is_some_and(|left| left.is_zero())
    }
}

/// A time as the kernel has it.
pub(crate) fn to_timespec(time: Duration) -> timespec {
    timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(time.subsec_nanos()),
    }
}

/// A descriptor that becomes readable with each wake-up by the NIC, for one thread: it looks at the edges
/// of the NIC's, which nobody reads.
#[derive(Debug)]
struct Alarm {
    generation: u32,
    epoll: OwnedFd,
}

impl Drop for Alarm {
    fn drop(&mut self) {
        fork::remove(self.epoll.as_fd());
    }
}

thread_local! {
    static ALARM: RefCell<Option<Alarm>> = const { RefCell::new(None) };
}

/// The alarm of this thread. None: the NIC has no descriptor, or there is none to be had.
fn alarm(nic: &Nic) -> Option<c_int> {
    let wake = nic.port().wake_descriptor()?;
    let alarm = |kept: &RefCell<Option<Alarm>>| {
        let mut kept = kept.borrow_mut();
        if kept.as_ref().is_none_or(|alarm| alarm.generation != fork::generation()) {
            let epoll = fork::create(|| Ok(epoll::create(epoll::CreateFlags::CLOEXEC)?)).ok()?;
            let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
            epoll::add(&epoll, wake, epoll::EventData::new_u64(0), flags).ok()?;
            *kept = Some(Alarm { generation: fork::generation(), epoll });
        }
        kept.as_ref().map(|alarm| alarm.epoll.as_raw_fd())
    };
    ALARM.try_with(alarm).ok().flatten()
}

/// Takes the edge of an alarm.
fn hear(alarm: c_int) {
    let mut event = [libc::epoll_event { events: 0, u64: 0 }];
    let _ = real::epoll_pwait(alarm, event.as_mut_ptr(), 1, 0, NO_MASK);
}

/// Has the NIC know that a thread sleeps.
#[derive(Debug)]
pub(crate) struct Dozing<'a>(&'a Nic);

impl<'a> Dozing<'a> {
    pub(crate) fn new(nic: &'a Nic) -> Self {
        nic.port().doze(true);
        Self(nic)
    }
}

impl Drop for Dozing<'_> {
    fn drop(&mut self) {
        self.0.port().doze(false);
    }
}

/// Waits of a thread that polled in vain, before it leaves polling out; and how many it then leaves out.
const VAIN: u32 = 4;
const LEFT_OUT: u32 = 32;

thread_local! {
    /// Waits of this thread that polled in vain, one after the other, and those since that did not poll.
    static POLLED: Cell<(u32, u32)> = const { Cell::new((0, 0)) };
}

/// A wait that polls before it sleeps. What is waited for may take longer, or need the processor on which
/// this thread polls: after a few vain ones most waits sleep at once.
#[derive(Debug)]
pub(crate) struct Polling {
    started: Instant,
    bound: Duration,
}

impl Polling {
    pub(crate) fn new(nic: &Nic) -> Self {
        let bound = match nic.waiting() {
            Waiting::Poll => Duration::MAX,
            Waiting::Sleep { .. } if Self::is_left_out() => Duration::ZERO,
            Waiting::Sleep { after } => after,
        };
        Self { started: Instant::now(), bound }
    }

    fn is_left_out() -> bool {
        let (vain, left_out) = POLLED.try_with(Cell::get).unwrap_or_default();
        let leaves_out = vain >= VAIN && left_out < LEFT_OUT;
        if leaves_out {
            let _ = POLLED.try_with(|polled| polled.set((vain, left_out + 1)));
        }
        leaves_out
    }

    /// Whether the wait has polled for long enough.
    pub(crate) fn is_over(&self) -> bool {
        let is_over = self.started.elapsed() > self.bound;
        if is_over && !self.bound.is_zero() {
            let _ = POLLED.try_with(|polled| polled.set((polled.get().0.saturating_add(1), 0)));
        }
        is_over
    }

    /// What was waited for came meanwhile.
    pub(crate) fn paid(&self) {
        if !self.bound.is_zero() {
            let _ = POLLED.try_with(|polled| polled.set((0, 0)));
        }
    }
}

/// Asks the kernel for events; how many descriptors have some.
pub(crate) fn kernel_poll(
    fds: &mut [pollfd],
    bound: Option<Duration>,
    mask: *const sigset_t,
) -> Result<usize, c_int> {
    let time = bound.map(to_timespec);
    let time = time.as_ref().map_or(ptr::null(), ptr::from_ref);
    let count = libc::nfds_t::try_from(fds.len()).unwrap_or(0);
    let result = real::ppoll(fds.as_mut_ptr(), count, time, mask);
    errno::counted(isize::try_from(result).unwrap_or(-1))
}

/// Whether the kernel is to be asked for these: it knows a descriptor of them, or which signals may come.
pub(crate) fn concerns_kernel(fds: &[pollfd], mask: *const sigset_t) -> bool {
    !mask.is_null() || fds.iter().any(|fd| fd.fd >= 0)
}

/// Looks for a while without sleeping. None: what is waited for has not come.
fn poll_first(
    nic: &Nic,
    fds: &mut [pollfd],
    end: End,
    mask: *const sigset_t,
    look: &mut impl FnMut() -> bool,
) -> Result<Option<bool>, c_int> {
    nic.progress();
    if look() {
        return Ok(Some(true));
    }
    let polling = Polling::new(nic);
    loop {
        for _ in 0..LOOKS {
            if look() {
                polling.paid();
                return Ok(Some(true));
            }
            nic.progress();
            core::hint::spin_loop();
        }
        if concerns_kernel(fds, mask) && kernel_poll(fds, Some(Duration::ZERO), mask)? > 0 {
            polling.paid();
            return Ok(Some(true));
        }
        if end.is_over() {
            return Ok(Some(false));
        }
        if polling.is_over() {
            return Ok(None);
        }
    }
}

/// Sleeps until `look` is true, and goes on after signals whose handlers say so. False: the NIC has no such
/// sleep now.
///
/// # Errors
/// `EINTR`: a handler has run that wants calls to end.
fn sleep_restarting(nic: &Nic, look: &mut impl FnMut() -> bool) -> Result<bool, c_int> {
    loop {
        let seen = nic.port().wake_count();
        if !nic.arm_own_queue() {
            return Ok(false);
        }
        nic.progress();
        if look() {
            return Ok(true);
        }
        match nic.port().sleep_restarting(seen) {
            Some(false) => {}
            Some(true) => return Err(libc::EINTR),
            None => return Ok(false),
        }
    }
}

/// Waits until `look` is true or a descriptor of `fds` has an event; false if the time is over before.
/// `fds` has one more entry at its end, which is this function's.
///
/// # Errors
/// `EINTR`.
pub(crate) fn wait(
    nic: &Nic,
    fds: &mut [pollfd],
    end: End,
    mask: *const sigset_t,
    mut look: impl FnMut() -> bool,
) -> Result<bool, c_int> {
    let Some((_, theirs)) = fds.split_last_mut() else { return Ok(false) };
    match poll_first(nic, theirs, end, mask, &mut look)? {
        Some(found) => Ok(found),
        None => sleep(nic, fds, end, mask, look),
    }
}

/// What [`wait`] does once polling has found nothing.
fn sleep(
    nic: &Nic,
    fds: &mut [pollfd],
    end: End,
    mask: *const sigset_t,
    mut look: impl FnMut() -> bool,
) -> Result<bool, c_int> {
    let Some(own) = fds.last_mut() else { return Ok(false) };
    let alarm = alarm(nic);
    *own = pollfd { fd: alarm.unwrap_or(-1), events: libc::POLLIN, revents: 0 };
    let _dozing = Dozing::new(nic);
    loop {
        let is_armed = nic.arm_own_queue() && alarm.is_some();
        nic.progress();
        if look() {
            return Ok(true);
        }
        let left = end.left();
        let bound = if is_armed { left } else { Some(left.map_or(NAP, |left| left.min(NAP))) };
        kernel_poll(fds, bound, mask)?;
        if let Some(alarm) = alarm {
            hear(alarm);
        }
        nic.progress();
        let theirs = &fds[..fds.len() - 1];
        if look() || theirs.iter().any(|fd| fd.revents != 0) {
            return Ok(true);
        }
        if end.is_over() {
            return Ok(false);
        }
    }
}

/// Waits for what a call on a socket waits for.
///
/// # Errors
/// `EAGAIN` when the time is over; `EINTR` if a handler of a signal wants calls to end.
pub(crate) fn for_step(
    nic: &Nic,
    fd: c_int,
    step: Step,
    end: End,
    mut look: impl FnMut() -> bool,
) -> Result<(), c_int> {
    let nobody = pollfd { fd: -1, events: 0, revents: 0 };
    let waited = match step {
        Step::Via => match poll_first(nic, &mut [], end, NO_MASK, &mut look)? {
            Some(found) => Ok(found),
            // With a time limit a call ends, whatever the handlers say (signal(7)).
            None if end.0.is_none() && sleep_restarting(nic, &mut look)? => Ok(true),
            None => sleep(nic, &mut [nobody], end, NO_MASK, look),
        },
        Step::Events(events) => {
            let socket = pollfd { fd, events, revents: 0 };
            kernel_poll(&mut [socket], end.left(), NO_MASK).map(|count| count > 0)
        }
        _ => {
            nic.progress();
            kernel_poll(&mut [], Some(SOON), NO_MASK).map(|_| !end.is_over())
        }
    };
    match waited {
        Ok(true) => Ok(()),
        Ok(false) => Err(libc::EAGAIN),
        Err(libc::EINTR) if end.0.is_none() && kernel::all_handlers_restart() => Ok(()),
        Err(error) => Err(error),
    }
}
