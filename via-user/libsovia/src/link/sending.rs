//! What a side sends: how it moves to VIA, and back.

use core::ffi::c_int;
use core::sync::atomic::Ordering;
use std::io::{ErrorKind, Write};
use std::net::Shutdown;
use std::sync::TryLockError;
use std::time::Duration;

use port::sync::lock;
use sovia::preload::status::Direction;

use super::{ATTACHED, ATTACHED_AT_ONCE, END, Link, NOTHING, Step};
use crate::kernel;
use crate::patience::until;

/// How long who leaves VIA waits for room for a marker.
const MARKER: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sending {
    /// This side has not said that it has the stream, which is the first that it says.
    Silent,
    Tcp,
    Settling,
    Marker,
    Via,
    Over,
}

impl Sending {
    const fn shown(self) -> Direction {
        match self {
            Self::Silent | Self::Tcp => Direction::Tcp,
            Self::Settling | Self::Marker => Direction::Moving,
            Self::Via => Direction::Via,
            Self::Over => Direction::Over,
        }
    }
}

impl Link {
    fn set_sending(&self, sending: &mut Sending, next: Sending) {
        *sending = next;
        if let Some(record) = &self.record {
            record.sends(next.shown());
        }
    }

    /// Says that this side has the stream. False: the stream is of no use.
    pub(crate) fn share(&self) -> bool {
        let sending = &mut *lock(&self.send);
        let first = if self.stream.sends_at_once() { ATTACHED_AT_ONCE } else { ATTACHED };
        let is_said = *sending == Sending::Silent && (&self.stream).write(&[first]).is_ok();
        if is_said {
            self.set_sending(sending, Sending::Tcp);
        }
        is_said
    }

    /// Nobody sends by TCP any more.
    pub(crate) fn sends_by_via(&self) -> bool {
        self.sends_by_via.load(Ordering::SeqCst)
    }

    /// Sends bytes. `has_writers`: other threads are sending by TCP.
    pub(crate) fn send(
        &self,
        fd: c_int,
        bytes: &[u8],
        has_writers: impl Fn() -> bool,
    ) -> Result<Step, c_int> {
        let sending = &mut *lock(&self.send);
        loop {
            match *sending {
                Sending::Silent => return Ok(Step::Kernel),
                Sending::Tcp => {
                    if !self.is_shared() {
                        return Ok(Step::Kernel);
                    }
                    self.sends_by_via.store(true, Ordering::SeqCst);
                    let moved = !has_writers() && self.say_where(fd);
                    if !moved {
                        self.sends_by_via.store(false, Ordering::SeqCst);
                        return Ok(Step::Kernel);
                    }
                    self.set_sending(sending, Sending::Settling);
                }
                Sending::Settling | Sending::Marker => {
                    if let Some(step) = self.settle(fd, sending)? {
                        return Ok(step);
                    }
                }
                Sending::Via => {
                    if self.is_given_back(fd) {
                        self.end_sending(sending);
                        return Ok(Step::Over);
                    }
                    return match (&self.stream).write(bytes) {
                        Ok(count) => {
                            if let Some(record) = &self.record {
                                record.sent(count, self.stream.credits());
                            }
                            Ok(Step::Done(count))
                        }
                        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(Step::Via),
                        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(libc::EPIPE),
                        Err(_) if Self::has_ended(fd) => {
                            self.set_sending(sending, Sending::Over);
                            Ok(Step::Over)
                        }
                        Err(_) => Err(libc::ECONNRESET),
                    };
                }
                Sending::Over => return Ok(Step::Over),
            }
        }
    }

    /// Takes what is sent on to VIA once the other side knows where. What it waits for; None: nothing, or it
    /// does not move.
    pub(super) fn settle(&self, fd: c_int, sending: &mut Sending) -> Result<Option<Step>, c_int> {
        if *sending == Sending::Settling {
            if self.stream.has_sent_all() {
                self.set_sending(sending, Sending::Marker);
            } else if !self.is_broken() {
                return Ok(Some(Step::Soon));
            } else if Self::has_ended(fd) {
                self.set_sending(sending, Sending::Over);
            } else {
                return Err(libc::ECONNRESET);
            }
        }
        if *sending == Sending::Marker {
            match kernel::send_marker(fd) {
                Ok(()) => self.set_sending(sending, Sending::Via),
                Err(libc::EAGAIN) => return Ok(Some(Step::Events(libc::POLLOUT))),
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Each side has said that it has the stream, so that this one can move what it sends.
    pub(crate) fn is_common(&self) -> bool {
        *lock(&self.send) != Sending::Silent && self.is_shared()
    }

    /// The other side has the stream.
    fn is_shared(&self) -> bool {
        let has_said = || self.other.load(Ordering::Acquire) != NOTHING;
        if !has_said() {
            match self.receive.try_lock() {
                Ok(mut receiving) => self.listen(&mut receiving),
                Err(TryLockError::Poisoned(receiving)) => self.listen(&mut receiving.into_inner()),
                Err(TryLockError::WouldBlock) => {}
            }
        }
        has_said()
    }

    /// Says where this side moves. False: it stays with TCP.
    fn say_where(&self, fd: c_int) -> bool {
        let Some(info) = kernel::info(fd) else { return false };
        info.state == kernel::ESTABLISHED
            && matches!((&self.stream).write(&info.written.to_be_bytes()), Ok(8))
    }

    fn is_broken(&self) -> bool {
        self.stream.take_error().is_ok_and(|error| error.is_some())
    }

    /// The other side has left the stream, and does not end the connection: it wants all by TCP again.
    fn is_given_back(&self, fd: c_int) -> bool {
        self.is_left.load(Ordering::Acquire) && !kernel::has_ended(fd)
    }

    /// Ends the stream. Nobody may call this side for long: so its end is on its way before this returns,
    /// unless the other side has no room for it, or is no more.
    fn end_sending(&self, sending: &mut Sending) {
        if *sending == Sending::Over {
            return;
        }
        let _ = self.stream.shutdown(Shutdown::Write);
        self.set_sending(sending, Sending::Over);
        let _ = until(END, || self.stream.has_sent_all() || self.is_broken());
    }

    /// This side sends no more by VIA: TCP has the rest. Whoever waits for the marker gets it before, since
    /// it would take the next byte for it.
    pub(crate) fn stop_sending(&self, fd: c_int) {
        let sending = &mut *lock(&self.send);
        if matches!(*sending, Sending::Settling | Sending::Marker) {
            let _ = until(MARKER, || {
                self.stream.has_sent_all() && kernel::send_marker(fd) != Err(libc::EAGAIN)
            });
        }
        self.end_sending(sending);
        // Who sends next asks the link, which says that TCP has it; who waits to send looks again.
        self.sends_by_via.store(true, Ordering::SeqCst);
        self.nic().port().wake();
    }

    /// This side sends no more at all.
    pub(crate) fn close_sending(&self) {
        self.end_sending(&mut lock(&self.send));
        self.sends_by_via.store(true, Ordering::SeqCst);
    }
}
