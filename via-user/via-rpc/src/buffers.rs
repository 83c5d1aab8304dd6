//! A cache of registered buffers, in which messages are marshalled and from which they are sent.
//!
//! ```text
//!   take: the one released last that is large enough ◄── idle, oldest first ──► evicted: the oldest
//!     │ program writes, connection sends                      ▲
//!     └────────────── dropped, or its last packet is sent ────┘
//! ```
//!
//! A call thus neither allocates nor registers memory once the cache has buffers of its size. The cache
//! of `vipl` is for memory of others, which it finds by address; here the memory is registered as long as
//! it exists, so that a buffer is found by its size alone.

use std::io;
use std::sync::{Arc, Mutex};

use port::sync::lock;
use vipl::{Region, Segment};

use crate::device::Device;
use crate::error::Result;
use crate::header::MESSAGE_HEADER;
use crate::settings::Settings;

/// Bytes of the smallest buffer. Others have powers of two.
const SMALLEST: usize = 4096;

/// What a cache has seen since it was made, and what it holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferCounters {
    /// Buffers that were there.
    pub hits: u64,
    /// Buffers that were allocated and registered.
    pub misses: u64,
    /// Buffers that were deregistered and freed, because too many were idle.
    pub evictions: u64,
    /// Buffers that nobody uses now.
    pub idle: usize,
    /// Bytes of these.
    pub idle_bytes: usize,
}

/// A cache. Clones are the same.
#[derive(Clone, Debug)]
pub struct Buffers {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    device: Device,
    most: usize,
    most_bytes: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Buffers that nobody uses, the one that was released first at the front.
    idle: Vec<Region>,
    counters: BufferCounters,
}

impl Inner {
    fn release(&self, region: Region) {
        let mut state = lock(&self.state);
        state.counters.idle_bytes += region.memory().len();
        state.idle.push(region);
        while state.idle.len() > self.most || state.counters.idle_bytes > self.most_bytes {
            let oldest = state.idle.remove(0);
            state.counters.idle_bytes -= oldest.memory().len();
            state.counters.evictions += 1;
            self.device.deregister(&oldest);
        }
        state.counters.idle = state.idle.len();
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner);
        state.idle.iter().for_each(|region| self.device.deregister(region));
    }
}

impl Buffers {
    /// An empty cache.
    pub(crate) fn new(device: &Device, settings: &Settings) -> Self {
        let (most, most_bytes) = (settings.cached_buffers, settings.cached_bytes);
        let state = Mutex::default();
        Self { inner: Arc::new(Inner { device: device.clone(), most, most_bytes, state }) }
    }

    /// What the cache has seen, and what it holds.
    #[must_use]
    pub fn counters(&self) -> BufferCounters {
        lock(&self.inner.state).counters
    }

    /// An empty buffer for a message of `length` bytes. It grows if more are written.
    ///
    /// # Errors
    /// The NIC cannot register more memory.
    pub fn take(&self, length: usize) -> Result<Buffer> {
        let region = self.inner.region(length)?;
        Ok(Buffer { cache: Arc::clone(&self.inner), region, length: 0 })
    }
}

impl Inner {
    /// Registered memory for a message of `length` bytes and its header.
    fn region(&self, length: usize) -> Result<Region> {
        let bytes = length.saturating_add(MESSAGE_HEADER).max(SMALLEST);
        let bytes = bytes.checked_next_power_of_two().unwrap_or(bytes);
        let mut state = lock(&self.state);
        let found = state.idle.iter().rposition(|region| region.memory().len() == bytes);
        if let Some(at) = found {
            let region = state.idle.remove(at);
            state.counters.hits += 1;
            state.counters.idle = state.idle.len();
            state.counters.idle_bytes -= bytes;
            return Ok(region);
        }
        state.counters.misses += 1;
        drop(state);
        self.device.register(bytes)
    }
}

/// A message being marshalled, in registered memory: write it with [`io::Write`]. Dropped, it goes back
/// to the cache.
#[derive(Debug)]
pub struct Buffer {
    cache: Arc<Inner>,
    region: Region,
    length: usize,
}

impl Buffer {
    /// Bytes written.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.length
    }

    /// Whether nothing is written.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Bytes that it takes without growing.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.region.memory().len() - MESSAGE_HEADER
    }

    /// Where the message begins, for a program in C that marshals in place: [`Buffer::capacity`] bytes,
    /// on a multiple of eight. [`Buffer::set_len`] then says how many it has written.
    #[must_use]
    pub fn pointer(&self) -> *mut u8 {
        self.region.memory().pointer(MESSAGE_HEADER, self.capacity())
    }

    /// Takes the first `length` bytes as written. Those that were not are what an earlier message left.
    ///
    /// # Panics
    /// There are not so many.
    pub fn set_len(&mut self, length: usize) {
        assert!(length <= self.capacity(), "{length} bytes in a buffer of {}", self.capacity());
        self.length = length;
    }

    /// Appends bytes; takes a larger buffer if they do not fit.
    ///
    /// # Errors
    /// The NIC cannot register more memory.
    pub fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let length = self.length.saturating_add(bytes.len());
        if length > self.capacity() {
            let larger = self.cache.region(length)?;
            let written = MESSAGE_HEADER + self.length;
            larger.memory().copy_part(0, self.region.memory(), 0, written);
            self.cache.release(core::mem::replace(&mut self.region, larger));
        }
        self.region.memory().copy_from(MESSAGE_HEADER + self.length, bytes);
        self.length = length;
        Ok(())
    }

    /// Writes what is in front of the message.
    pub(crate) fn set_header(&self, header: [u8; MESSAGE_HEADER]) {
        self.region.memory().copy_from(0, &header);
    }

    /// Bytes of the message with its header.
    pub(crate) const fn total(&self) -> usize {
        MESSAGE_HEADER + self.length
    }

    /// A part of the message with its header.
    pub(crate) fn segment(&self, at: usize, length: u32) -> Segment {
        self.region.segment(at, length)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.cache.release(self.region.clone());
    }
}

impl io::Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.append(bytes).map_err(io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
