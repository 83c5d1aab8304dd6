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
//! of the connection, data and resets after it are the kernel's. So it is where a process was killed whose
//! sends arrive during its calls. Any other stream that breaks without an end is a connection that was
//! reset: never an end.

mod receiving;
mod sending;

use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::io::{ErrorKind, Read};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use port::sync::lock;
use sovia::preload::status::Record;
use sovia::{Ready, TcpStream};
use vipl::Nic;

use receiving::{Receiving, State};
use sending::Sending;

use crate::kernel;
use crate::patience::until;
use crate::view::View;

/// What a side says first: it has the stream.
const ATTACHED: u8 = b'A';
/// The same, and what it sends has arrived when its call is over ([`TcpStream::sends_at_once`]).
const ATTACHED_AT_ONCE: u8 = b'O';
/// It has said nothing, or has not the stream.
pub(crate) const NOTHING: u8 = 0;

/// How long an end may take to leave, and to come by TCP behind that of a process.
const END: Duration = Duration::from_millis(200);

/// See the module.
#[derive(Debug)]
pub(crate) struct Link {
    stream: TcpStream,
    /// Number of this process among its forked ancestors: in others there is no stream.
    generation: u32,
    send: Mutex<Sending>,
    receive: Mutex<Receiving>,
    /// What the other side has said first.
    other: AtomicU8,
    /// What is sent goes by VIA, or is about to: nobody sends by TCP any more.
    sends_by_via: AtomicBool,
    /// What comes goes by VIA.
    receives_by_via: AtomicBool,
    /// The other side has left the stream.
    is_left: AtomicBool,
    /// Where it is shown; each direction under its lock.
    record: Option<Arc<Record>>,
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
    /// A link on a stream, of which the other side has said this ([`Link::first`]).
    pub(crate) fn new(stream: TcpStream, other: u8, record: Option<Arc<Record>>) -> Self {
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
            other: AtomicU8::new(other),
            sends_by_via: AtomicBool::new(false),
            receives_by_via: AtomicBool::new(false),
            is_left: AtomicBool::new(false),
            record,
        }
    }

    /// Whether this process has it, and not one that it was forked from.
    pub(crate) fn is_own(&self) -> bool {
        self.generation == port::fork::generation()
    }

    /// What the other side says first of a stream that this one has asked for: 0 if it does not accept it.
    /// None: it has said nothing yet.
    pub(crate) fn first(stream: &TcpStream) -> Option<u8> {
        let mut byte = [NOTHING];
        let mut stream = stream;
        match stream.read(&mut byte) {
            Ok(_) => Some(if Self::is_attached(byte[0]) { byte[0] } else { NOTHING }),
            Err(error) if error.kind() == ErrorKind::WouldBlock => None,
            Err(_) => Some(NOTHING),
        }
    }

    const fn is_attached(first: u8) -> bool {
        matches!(first, ATTACHED | ATTACHED_AT_ONCE)
    }

    /// The stream has broken, and TCP knows how the connection ends, now or soon: the process at the
    /// other end is no more.
    fn has_ended(fd: c_int) -> bool {
        until(END, || kernel::has_ended(fd))
    }

    /// The stream, to wait for what it brings.
    pub(crate) const fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// The NIC that it is on.
    pub(crate) fn nic(&self) -> &Nic {
        self.stream.device().nic()
    }

    /// Whether a short look shows that nothing has come by VIA, whence it comes.
    pub(crate) fn is_quiet(&self) -> bool {
        self.receives_by_via.load(Ordering::Acquire) && self.stream.is_quiet()
    }

    /// Whether a read by VIA would not wait.
    pub(crate) fn reads(&self) -> bool {
        !self.stream.is_quiet() && self.stream.ready().reads
    }

    /// See [`View`].
    pub(crate) fn view(&self, fd: c_int, has_readers: bool) -> View {
        let (sends, settles) = {
            let sending = &mut *lock(&self.send);
            let waits = self.settle(fd, sending);
            (*sending == Sending::Via, waits == Ok(Some(Step::Soon)))
        };
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
        // The kernel has room for what is not to go by it.
        let waits = settles.then_some(false);
        if !sends && !receives {
            return View { reads: early.then_some(true), writes: waits, arrived: 0 };
        }
        let Ready { reads, writes, arrived, .. } = self.stream.ready();
        let reads = if receives { Some(reads) } else { early.then_some(true) };
        View { reads, writes: if sends { Some(writes) } else { waits }, arrived }
    }
}
