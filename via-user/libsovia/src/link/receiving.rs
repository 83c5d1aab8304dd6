//! What a side receives: first by TCP, from the marker on by VIA.

use core::ffi::c_int;
use core::sync::atomic::Ordering;
use std::io::{ErrorKind, Read};
use std::net::Shutdown;

use port::sync::lock;
use sovia::preload::status::Direction;

use super::{ATTACHED_AT_ONCE, Link, NOTHING, Step};
use crate::buffers::Buffers;
use crate::kernel;

#[derive(Debug)]
pub(super) enum State {
    /// The other side has not said that it has the stream, or nothing since.
    Tcp,
    /// It has said where it moves.
    Until(u64),
    Via,
    Over,
}

impl State {
    const fn shown(&self) -> Direction {
        match self {
            Self::Tcp => Direction::Tcp,
            Self::Until(_) => Direction::Moving,
            Self::Via => Direction::Via,
            Self::Over => Direction::Over,
        }
    }
}

#[derive(Debug)]
pub(super) struct Receiving {
    pub(super) state: State,
    /// Bytes of TCP that were read too early: they come after those of VIA.
    pub(super) early: Vec<u8>,
    /// Bytes of P that have come.
    pub(super) place: Vec<u8>,
}

impl Link {
    pub(super) fn set_receiving(&self, receiving: &mut Receiving, next: State) {
        if let Some(record) = &self.record {
            record.receives(next.shown());
        }
        self.receives_by_via.store(matches!(next, State::Via), Ordering::Release);
        receiving.state = next;
    }

    /// Takes what the other side says before it moves.
    pub(super) fn listen(&self, receiving: &mut Receiving) {
        while let State::Tcp = receiving.state {
            let mut byte = [0];
            match (&self.stream).read(&mut byte) {
                Ok(1)
                    if self.other.load(Ordering::Acquire) == NOTHING
                        && Self::is_attached(byte[0]) =>
                {
                    self.other.store(byte[0], Ordering::Release);
                }
                Ok(1) => {
                    receiving.place.extend(byte);
                    if let Ok(place) = <[u8; 8]>::try_from(receiving.place.as_slice()) {
                        let place = u64::from_be_bytes(place);
                        self.set_receiving(receiving, State::Until(place));
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // It has not moved, so all is by TCP.
                _ => self.end_receiving(receiving),
            }
        }
    }

    pub(super) fn end_receiving(&self, receiving: &mut Receiving) {
        self.set_receiving(receiving, State::Over);
        self.is_left.store(true, Ordering::Release);
    }

    /// Receives bytes. `has_readers`: other threads read by TCP without this link's knowledge.
    pub(crate) fn receive(
        &self,
        fd: c_int,
        buffers: &mut Buffers,
        peeks: bool,
        has_readers: bool,
    ) -> Result<Step, c_int> {
        if self.is_quiet() {
            return Ok(Step::Via);
        }
        let receiving = &mut *lock(&self.receive);
        loop {
            self.listen(receiving);
            match receiving.state {
                State::Via => {
                    let target = buffers.target();
                    let read = if peeks { self.peek(target) } else { (&self.stream).read(target) };
                    match read {
                        Ok(0) => self.end_receiving(receiving),
                        Ok(count) => {
                            if let Some(record) = &self.record
                                && !peeks
                            {
                                record.received(count);
                            }
                            return Ok(Step::Done(count));
                        }
                        Err(error) if error.kind() == ErrorKind::WouldBlock => {
                            return Ok(Step::Via);
                        }
                        Err(_) if self.has_all(fd) => self.end_receiving(receiving),
                        Err(_) => return Err(libc::ECONNRESET),
                    }
                }
                State::Over if !receiving.early.is_empty() => {
                    let target = buffers.target();
                    let count = target.len().min(receiving.early.len());
                    target[..count].copy_from_slice(&receiving.early[..count]);
                    if !peeks {
                        receiving.early.drain(..count);
                    }
                    return Ok(Step::Done(count));
                }
                State::Over => return Ok(Step::Over),
                State::Tcp | State::Until(_) if has_readers => return Ok(Step::Soon),
                State::Tcp => return self.receive_before(fd, receiving, buffers, peeks),
                State::Until(place) => {
                    if let Some(step) = self.receive_until(fd, place, receiving, buffers, peeks)? {
                        return Ok(step);
                    }
                }
            }
        }
    }

    /// Whether a stream that has broken has brought all that the other side has sent, and TCP says how the
    /// connection ends.
    fn has_all(&self, fd: c_int) -> bool {
        self.other.load(Ordering::Acquire) == ATTACHED_AT_ONCE && Self::has_ended(fd)
    }

    /// Looks at what a read by VIA would give.
    fn peek(&self, target: &mut [u8]) -> std::io::Result<usize> {
        let ready = self.stream.ready();
        if ready.bytes > 0 {
            self.stream.peek(target)
        } else if ready.reads {
            // The end or an error: neither takes a byte.
            (&self.stream).read(&mut [0])
        } else {
            Err(ErrorKind::WouldBlock.into())
        }
    }

    /// Reads by TCP while the other side has not said that it moves: it may, meanwhile.
    fn receive_before(
        &self,
        fd: c_int,
        receiving: &mut Receiving,
        buffers: &mut Buffers,
        peeks: bool,
    ) -> Result<Step, c_int> {
        let flags = libc::MSG_PEEK;
        let seen = match kernel::take(fd, buffers.target(), flags) {
            Ok(seen) => seen,
            Err(libc::EAGAIN) => return Ok(Step::Events(libc::POLLIN)),
            Err(error) => return Err(error),
        };
        // Where it moves is known before its marker can be seen.
        self.listen(receiving);
        if !matches!(receiving.state, State::Tcp) {
            return Ok(Step::Soon);
        }
        if peeks {
            return Ok(Step::Done(seen));
        }
        // What was seen is all before the marker.
        let target = &mut buffers.target()[..seen];
        kernel::take(fd, target, 0).map(Step::Done)
    }

    /// Reads by TCP up to where the other side has moved. None: it is there.
    fn receive_until(
        &self,
        fd: c_int,
        place: u64,
        receiving: &mut Receiving,
        buffers: &mut Buffers,
        peeks: bool,
    ) -> Result<Option<Step>, c_int> {
        let read = kernel::read_so_far(fd, place + 1).ok_or(libc::ECONNRESET)?;
        let left = usize::try_from(place.saturating_sub(read)).unwrap_or(usize::MAX);
        let mut marker = [0];
        let taken = if left > 0 {
            let target = buffers.target();
            let length = left.min(target.len());
            let flags = if peeks { libc::MSG_PEEK } else { 0 };
            kernel::take(fd, &mut target[..length], flags)
        } else if read == place {
            kernel::take(fd, &mut marker, 0)
        } else {
            Ok(1)
        };
        match taken {
            Ok(count) if left > 0 || count == 0 => Ok(Some(Step::Done(count))),
            Ok(_) => {
                self.set_receiving(receiving, State::Via);
                Ok(None)
            }
            Err(libc::EAGAIN) => Ok(Some(Step::Events(libc::POLLIN))),
            Err(error) => Err(error),
        }
    }

    /// A thread that read by TCP without this link's knowledge has got so many bytes, and nobody else
    /// does so. How many of them the program gets.
    pub(crate) fn received_by_tcp(&self, fd: c_int, bytes: &[u8]) -> usize {
        let receiving = &mut *lock(&self.receive);
        self.listen(receiving);
        let State::Until(place) = receiving.state else { return bytes.len() };
        let Some(read) = kernel::read_so_far(fd, place + 1) else { return bytes.len() };
        if read <= place {
            return bytes.len();
        }
        let early = usize::try_from(read - place - 1).unwrap_or(0).min(bytes.len());
        let (ours, early) = bytes.split_at(bytes.len() - early);
        receiving.early.extend(early);
        self.set_receiving(receiving, State::Via);
        // Without the marker.
        ours.len().saturating_sub(1)
    }

    /// The program reads no more.
    pub(crate) fn stop_receiving(&self) {
        let receiving = lock(&self.receive);
        if matches!(receiving.state, State::Via) {
            let _ = self.stream.shutdown(Shutdown::Read);
        }
    }

    /// Takes what has come by VIA until its end, once nobody sends by it any more; for who goes on with
    /// TCP. None: it has not ended yet.
    pub(crate) fn drain(&self, fd: c_int, into: &mut Vec<u8>) -> Result<bool, c_int> {
        let mut chunk = vec![0u8; 64 << 10];
        loop {
            let mut buffers = Buffers::one(chunk.as_mut_ptr().cast(), chunk.len());
            let receiving = lock(&self.receive);
            if matches!(receiving.state, State::Over) && receiving.early.is_empty() {
                return Ok(true);
            }
            drop(receiving);
            match self.receive(fd, &mut buffers, false, false)? {
                Step::Done(0) | Step::Over => return Ok(true),
                Step::Done(count) => into.extend(&chunk[..count]),
                _ => return Ok(false),
            }
        }
    }

    /// Whether bytes have come by VIA that are not read.
    pub(crate) fn has_unread(&self) -> bool {
        let receiving = &*lock(&self.receive);
        match receiving.state {
            State::Via => self.stream.ready().bytes > 0,
            State::Over => !receiving.early.is_empty(),
            State::Tcp | State::Until(_) => false,
        }
    }

    /// Bytes that have come and are not read; None if TCP has the answer.
    pub(crate) fn unread(&self, fd: c_int) -> Option<u64> {
        let receiving = &mut *lock(&self.receive);
        self.listen(receiving);
        self.pass_marker(fd, receiving);
        match receiving.state {
            State::Via => Some(self.stream.ready().bytes as u64),
            State::Over if !receiving.early.is_empty() => Some(receiving.early.len() as u64),
            State::Until(place) => {
                let read = kernel::read_so_far(fd, place + 1)?;
                let unread = kernel::unread(fd)?;
                Some(unread.min(place.saturating_sub(read)))
            }
            State::Tcp | State::Over => None,
        }
    }

    /// Takes the marker off TCP if nothing else is before it.
    pub(super) fn pass_marker(&self, fd: c_int, receiving: &mut Receiving) {
        let State::Until(place) = receiving.state else { return };
        if kernel::read_so_far(fd, place + 1) == Some(place)
            && matches!(kernel::take(fd, &mut [0], 0), Ok(1))
        {
            self.set_receiving(receiving, State::Via);
        }
    }
}
