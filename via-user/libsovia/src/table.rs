//! What the library knows of each descriptor of the program.
//!
//! Reads take no lock: every call of the program looks here first.

use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwapOption;

use crate::borrowed::Borrowed;
use crate::epoll::Epoll;
use crate::socket::Socket;
use crate::view::View;

/// What a descriptor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// Nobody has looked; another process may have it, too.
    Unknown,
    /// The kernel's alone.
    Other,
    /// A socket that this process has made, and nobody else has.
    New,
    /// A connection, or a set of `epoll`.
    Held,
}

impl Kind {
    const fn of(bits: u8) -> Self {
        match bits {
            1 => Self::Other,
            2 => Self::New,
            3 => Self::Held,
            _ => Self::Unknown,
        }
    }
}

#[derive(Debug)]
struct Slot {
    kind: AtomicU8,
    /// The program has asked for VIA (`SOCK_VIA`).
    asks: AtomicBool,
    socket: ArcSwapOption<Socket>,
    epoll: ArcSwapOption<Epoll>,
}

impl Slot {
    const fn new() -> Self {
        Self {
            kind: AtomicU8::new(0),
            asks: AtomicBool::new(false),
            socket: ArcSwapOption::const_empty(),
            epoll: ArcSwapOption::const_empty(),
        }
    }

    fn set_socket(&self, socket: Arc<Socket>) {
        socket.hold();
        self.socket.store(Some(socket));
        self.kind.store(Kind::Held as u8, Ordering::Release);
    }

    fn set_epoll(&self, epoll: Arc<Epoll>) {
        self.epoll.store(Some(epoll));
        self.kind.store(Kind::Held as u8, Ordering::Release);
    }
}

/// Descriptors of a chunk.
const CHUNK: usize = 1024;
type Chunk = [Slot; CHUNK];

/// The first descriptors: most programs have no others.
static FIRST: Chunk = [const { Slot::new() }; CHUNK];
/// The others, up to a million; what is above is the kernel's alone.
static MORE: [OnceLock<Box<Chunk>>; CHUNK] = [const { OnceLock::new() }; CHUNK];

fn slot(fd: c_int) -> Option<&'static Slot> {
    let fd = usize::try_from(fd).ok()?;
    if fd < CHUNK {
        return Some(&FIRST[fd]);
    }
    let chunk = MORE.get(fd / CHUNK)?.get_or_init(|| Box::new([const { Slot::new() }; CHUNK]));
    Some(&chunk[fd % CHUNK])
}

/// What a descriptor is, as far as is known.
#[inline]
pub(crate) fn kind(fd: c_int) -> Kind {
    slot(fd).map_or(Kind::Other, |slot| Kind::of(slot.kind.load(Ordering::Acquire)))
}

/// Remembers what a descriptor is that has no connection and no set.
pub(crate) fn note(fd: c_int, kind: Kind) {
    if let Some(slot) = slot(fd) {
        slot.kind.store(kind as u8, Ordering::Release);
    }
}

/// Whether the program has asked for VIA, for this descriptor.
pub(crate) fn asks(fd: c_int) -> bool {
    slot(fd).is_some_and(|slot| slot.asks.load(Ordering::Acquire))
}

/// The program asks for VIA, or does not.
pub(crate) fn set_asks(fd: c_int, asks: bool) {
    if let Some(slot) = slot(fd) {
        slot.asks.store(asks, Ordering::Release);
    }
}

/// Gives a descriptor a connection; it has none, and no set.
pub(crate) fn set_socket(fd: c_int, socket: Arc<Socket>) {
    if let Some(slot) = slot(fd) {
        slot.set_socket(socket);
    }
}

/// Gives a descriptor a set; it has none, and no connection.
pub(crate) fn set_epoll(fd: c_int, epoll: Arc<Epoll>) {
    if let Some(slot) = slot(fd) {
        slot.set_epoll(epoll);
    }
}

/// Forgets a descriptor: it is another one from now on. Gives its connection if it was its last one.
pub(crate) fn forget(fd: c_int) -> Option<Arc<Socket>> {
    let slot = slot(fd)?;
    slot.asks.store(false, Ordering::Release);
    match Kind::of(slot.kind.load(Ordering::Acquire)) {
        Kind::Unknown => None,
        Kind::Other | Kind::New => {
            slot.kind.store(Kind::Unknown as u8, Ordering::Release);
            None
        }
        Kind::Held => {
            drop(slot.epoll.swap(None));
            let old = slot.socket.swap(None);
            slot.kind.store(Kind::Unknown as u8, Ordering::Release);
            old.filter(|socket| socket.let_go())
        }
    }
}

/// The connection of a descriptor that was seen before.
#[inline]
pub(crate) fn socket(fd: c_int) -> Option<Borrowed<Socket>> {
    if kind(fd) == Kind::Held { Borrowed::of(&slot(fd)?.socket) } else { None }
}

/// The set of a descriptor.
pub(crate) fn epoll(fd: c_int) -> Option<Borrowed<Epoll>> {
    if kind(fd) == Kind::Held { Borrowed::of(&slot(fd)?.epoll) } else { None }
}

/// What the link of a descriptor says, if it has one, or those of a set.
pub(crate) fn view(fd: c_int) -> Option<View> {
    if let Some(set) = epoll(fd) {
        return Some(set.view(fd, &view));
    }
    let socket = socket(fd)?;
    if socket.has_left() {
        return Some(View::READABLE);
    }
    let link = socket.link()?;
    Some(link.view(fd, socket.has_readers()))
}

/// The descriptors of a connection.
pub(crate) fn descriptors(socket: &Socket) -> Vec<c_int> {
    let is_its =
        |fd: &c_int| self::socket(*fd).is_some_and(|it| core::ptr::eq(Arc::as_ptr(&it), socket));
    known(0, c_int::MAX).into_iter().filter(is_its).collect()
}

/// A descriptor is a copy of another one; what it was is forgotten already.
pub(crate) fn copy(from: c_int, to: c_int) {
    set_asks(to, asks(from));
    if let Some(socket) = socket(from) {
        set_socket(to, Arc::clone(&socket));
    }
    if let Some(set) = epoll(from) {
        set_epoll(to, Arc::clone(&set));
    }
}

/// All descriptors of which something is known, from `first` to `last`.
pub(crate) fn known(first: c_int, last: c_int) -> Vec<c_int> {
    let end = usize::try_from(last).unwrap_or(0).min(CHUNK * CHUNK - 1);
    let begin = usize::try_from(first).unwrap_or(0);
    let chunks = core::iter::once(Some(&FIRST))
        .chain(MORE[1..].iter().map(|chunk| chunk.get().map(|chunk| &**chunk)));
    let mut found = Vec::new();
    for (index, chunk) in chunks.enumerate() {
        let Some(chunk) = chunk else { continue };
        for (at, slot) in chunk.iter().enumerate() {
            let fd = index * CHUNK + at;
            let is_known = slot.kind.load(Ordering::Acquire) != Kind::Unknown as u8;
            if is_known && (begin..=end).contains(&fd) {
                found.extend(c_int::try_from(fd));
            }
        }
    }
    found
}

/// Other processes may have every descriptor from now on. Allocates nothing.
pub(crate) fn share_all() {
    let more = MORE.iter().filter_map(OnceLock::get).flat_map(|chunk| chunk.iter());
    for slot in FIRST.iter().chain(more) {
        let new = Kind::New as u8;
        let unknown = Kind::Unknown as u8;
        let _ = slot.kind.compare_exchange(new, unknown, Ordering::AcqRel, Ordering::Relaxed);
        if let Some(socket) = Borrowed::of(&slot.socket) {
            socket.share();
        }
    }
}
