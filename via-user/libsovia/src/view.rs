//! What links say to `poll`, `select` and `epoll`, and how it corrects what the kernel says.
//!
//! The events of `poll` and `epoll` have the same bits on Linux (`linux/eventpoll.h`).

use core::ffi::c_int;

/// Events of a direction that comes.
const READS: u32 = bits(libc::EPOLLIN) | bits(libc::EPOLLRDNORM);
/// Events of a direction that is sent.
pub(crate) const WRITES: u32 = bits(libc::EPOLLOUT) | bits(libc::EPOLLWRNORM);
/// Events of the end of TCP, which comes before the last bytes by VIA are read.
pub(crate) const ENDS: u32 = bits(libc::EPOLLHUP) | bits(libc::EPOLLRDHUP);

/// The bits of a constant of the C library.
pub(crate) const fn bits(flags: c_int) -> u32 {
    flags.cast_unsigned()
}

/// What a link says: None where the kernel has the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) reads: Option<bool>,
    pub(crate) writes: Option<bool>,
    /// Another number: something may have changed.
    pub(crate) arrived: u64,
}

impl View {
    /// The kernel has all answers.
    pub(crate) const KERNEL: Self = Self { reads: None, writes: None, arrived: 0 };
    /// There is something to read, and the kernel has the other answers.
    pub(crate) const READABLE: Self = Self { reads: Some(true), ..Self::KERNEL };

    /// Which of these events the link has.
    pub(crate) const fn ready(self, events: u32) -> u32 {
        self.readable(events) | self.writable(events)
    }

    /// Which of these events of what comes the link has.
    pub(crate) const fn readable(self, events: u32) -> u32 {
        if let Some(true) = self.reads { events & READS } else { 0 }
    }

    /// Which of these events of what is sent the link has.
    pub(crate) const fn writable(self, events: u32) -> u32 {
        if let Some(true) = self.writes { events & WRITES } else { 0 }
    }

    /// Events of the kernel, less those that the link knows better.
    pub(crate) const fn correct(self, events: u32) -> u32 {
        let mut events = events;
        if self.reads.is_some() {
            events &= !(READS | ENDS);
        }
        if self.writes.is_some() {
            events &= !WRITES;
        }
        events
    }
}
