//! A TCP connection's stream of VIA, and how each direction moves to it and back.
//!
//! ```text
//!  sender:    Tcp ──'from byte P on' by VIA──► Settling ──sent──► Marker ──one byte by TCP──► Via ──► Over
//!  receiver:  Tcp ──'from byte P on' read────► Until(P) ──P + 1 bytes read by TCP───────────► Via ──► Over
//! ```
//!
//! A side moves what it sends when the other one has said that it has the stream, too. P is what it has
//! written by TCP so far. The marker is the last byte by TCP; it wakes whoever waits for TCP in the
//! kernel, and the program never sees it. The end of the stream means 'go on with TCP', so that an end
//! of the connection, data and resets after it are the kernel's. A stream that breaks without an end is
//! a connection that was reset: never an end.

use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, Ordering};
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::sync::{Arc, Mutex, TryLockError};
use std::time::Duration;

use port::sync::lock;
use sovia::preload::status::{Direction, Record};
use sovia::{Ready, TcpStream};
use vipl::Nic;

use crate::buffers::Buffers;
use crate::kernel;
use crate::patience::until;
use crate::view::View;

/// What each side says first: it has the stream.
const ATTACHED: u8 = b'A';

/// How long who leaves VIA waits for room for a marker.
const MARKER: Duration = Duration::from_secs(5);
/// How long an end may take to leave.
const END: Duration = Duration::from_millis(200);

/// See the module.
#[derive(Debug)]
pub(crate) struct Link {
    stream: TcpStream,
    /// Number of this process among its forked ancestors: in others there is no stream.
    generation: u32,
    send: Mutex<Sending>,
    receive: Mutex<Receiving>,
    /// The other side has the stream.
    is_shared: AtomicBool,
    /// What is sent goes by VIA, or is about to: nobody sends by TCP any more.
    sends_by_via: AtomicBool,
    /// The other side has left the stream.
    is_left: AtomicBool,
    /// Where it is shown; each direction under its lock.
    record: Option<Arc<Record>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sending {
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

#[derive(Debug)]
enum State {
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
struct Receiving {
    state: State,
    /// Bytes of TCP that were read too early: they come after those of VIA.
    early: Vec<u8>,
    /// Bytes of P that have come.
    place: Vec<u8>,
}

/// How far a call came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// So many bytes; 0 for the end of what comes.
    Done(usize),
    /// TCP has it, so far: the kernel's call does the rest.
    Kernel,
    /// TCP has it for good.
    Over,
    /// It waits for VIA.
    Via,
    /// It waits for these events of the TCP socket.
    Events(i16),
    /// It waits for something that comes soon.
    Soon,
}

impl Link {
    /// A link on a stream. `is_shared`: the other side has said that it has it.
    pub(crate) fn new(stream: TcpStream, is_shared: bool, record: Option<Arc<Record>>) -> Self {
        // Neither fails.
        let _ = stream.set_nonblocking(true);
        let _ = stream.set_nodelay(true);
        Self {
            stream,
            generation: port::fork::generation(),
            send: Mutex::new(Sending::Silent),
            receive: Mutex::new(Receiving {
                state: State::Tcp,
                early: Vec::new(),
                place: Vec::new(),
            }),
            is_shared: AtomicBool::new(is_shared),
            sends_by_via: AtomicBool::new(false),
            is_left: AtomicBool::new(false),
            record,
        }
    }

    fn set_sending(&self, sending: &mut Sending, next: Sending) {
        *sending = next;
        if let Some(record) = &self.record {
            record.sends(next.shown());
        }
    }

    fn set_receiving(&self, receiving: &mut Receiving, next: State) {
        if let Some(record) = &self.record {
            record.receives(next.shown());
        }
        receiving.state = next;
    }

    /// Whether this process has it, and not one that it was forked from.
    pub(crate) fn is_own(&self) -> bool {
        self.generation == port::fork::generation()
    }

    /// Says that this side has the stream. False: the stream is of no use.
    pub(crate) fn share(&self) -> bool {
        let sending = &mut *lock(&self.send);
        let is_said = *sending == Sending::Silent && (&self.stream).write(&[ATTACHED]).is_ok();
        if is_said {
            self.set_sending(sending, Sending::Tcp);
        }
        is_said
    }

    /// Whether a stream that this side has asked for is accepted: its first byte has come.
    pub(crate) fn is_accepted(stream: &TcpStream) -> Option<bool> {
        let mut byte = [0];
        let mut stream = stream;
        match stream.read(&mut byte) {
            Ok(count) => Some(count == 1 && byte[0] == ATTACHED),
            Err(error) if error.kind() == ErrorKind::WouldBlock => None,
            Err(_) => Some(false),
        }
    }

    /// Nobody sends by TCP any more.
    pub(crate) fn sends_by_via(&self) -> bool {
        self.sends_by_via.load(Ordering::SeqCst)
    }

    /// Takes what the other side says before it moves.
    fn listen(&self, receiving: &mut Receiving) {
        while let State::Tcp = receiving.state {
            let mut byte = [0];
            match (&self.stream).read(&mut byte) {
                Ok(1) if !self.is_shared.load(Ordering::Acquire) => {
                    self.is_shared.store(true, Ordering::Release);
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

    fn end_receiving(&self, receiving: &mut Receiving) {
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
                Sending::Settling if self.stream.has_sent_all() => {
                    self.set_sending(sending, Sending::Marker);
                }
                Sending::Settling => return Ok(Step::Soon),
                Sending::Marker => match kernel::send_marker(fd) {
                    Ok(()) => self.set_sending(sending, Sending::Via),
                    Err(libc::EAGAIN) => return Ok(Step::Events(libc::POLLOUT)),
                    Err(error) => return Err(error),
                },
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
                        Err(_) => Err(libc::ECONNRESET),
                    };
                }
                Sending::Over => return Ok(Step::Over),
            }
        }
    }

    /// The other side has the stream.
    fn is_shared(&self) -> bool {
        if !self.is_shared.load(Ordering::Acquire) {
            match self.receive.try_lock() {
                Ok(mut receiving) => self.listen(&mut receiving),
                Err(TryLockError::Poisoned(receiving)) => self.listen(&mut receiving.into_inner()),
                Err(TryLockError::WouldBlock) => {}
            }
        }
        self.is_shared.load(Ordering::Acquire)
    }

    /// Says where this side moves. False: it stays with TCP.
    fn say_where(&self, fd: c_int) -> bool {
        let Some(info) = kernel::info(fd) else { return false };
        info.state == kernel::ESTABLISHED
            && matches!((&self.stream).write(&info.written.to_be_bytes()), Ok(8))
    }

    /// The other side has left the stream, and does not end the connection: it wants all by TCP again.
    fn is_given_back(&self, fd: c_int) -> bool {
        self.is_left.load(Ordering::Acquire) && !kernel::has_ended(fd)
    }

    /// Ends the stream. Nobody may call this side for long: so its end is on its way before this returns,
    /// unless the other side has no room for it.
    fn end_sending(&self, sending: &mut Sending) {
        if *sending == Sending::Over {
            return;
        }
        let _ = self.stream.shutdown(Shutdown::Write);
        self.set_sending(sending, Sending::Over);
        let _ = until(END, || self.stream.has_sent_all());
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

    /// The program reads no more.
    pub(crate) fn stop_receiving(&self) {
        let receiving = lock(&self.receive);
        if matches!(receiving.state, State::Via) {
            let _ = self.stream.shutdown(Shutdown::Read);
        }
    }

    /// The stream, to wait for what it brings.
    pub(crate) const fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// The NIC that it is on.
    pub(crate) fn nic(&self) -> &Nic {
        self.stream.device().nic()
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
    fn pass_marker(&self, fd: c_int, receiving: &mut Receiving) {
        let State::Until(place) = receiving.state else { return };
        if kernel::read_so_far(fd, place + 1) == Some(place)
            && matches!(kernel::take(fd, &mut [0], 0), Ok(1))
        {
            self.set_receiving(receiving, State::Via);
        }
    }

    /// See [`View`].
    pub(crate) fn view(&self, fd: c_int, has_readers: bool) -> View {
        let sends = *lock(&self.send) == Sending::Via;
        let receiving = &mut *lock(&self.receive);
        self.listen(receiving);
        if !has_readers {
            self.pass_marker(fd, receiving);
        }
        if matches!(receiving.state, State::Via) {
            let ready = self.stream.ready();
            // The end of VIA is none of the connection: the kernel says whether there is more.
            if ready.reads && ready.bytes == 0 && matches!((&self.stream).read(&mut [0]), Ok(0)) {
                self.end_receiving(receiving);
            }
        }
        let receives = matches!(receiving.state, State::Via);
        let early = matches!(receiving.state, State::Over) && !receiving.early.is_empty();
        if !sends && !receives {
            return View { reads: early.then_some(true), writes: None, arrived: 0 };
        }
        let Ready { reads, writes, arrived, .. } = self.stream.ready();
        let reads = if receives { Some(reads) } else { early.then_some(true) };
        View { reads, writes: sends.then_some(writes), arrived }
    }
}
