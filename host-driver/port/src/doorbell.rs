//! Doorbells: what a work queue rings when a descriptor is posted.
//!
//! Two kinds, so that posting to hardware costs a store and posting to anything else a call: a
//! [`MappedDoorbell`] is a register of the device in mapped memory, which takes a token as
//! `nic_regs::doorbell` lays it out; a [`Ring`] is implemented by the port.

use core::fmt::Debug;
use std::sync::Arc;

use nic_regs::doorbell::{PUSH_DATA_BYTES, PUSH_HEADER_WORDS, PushControl, Queue, Token};
use nic_regs::tpt::Handle;

use crate::memory::{RegisterLine, Words};

/// Most data bytes that travel with a doorbell.
pub const INLINE_BYTES: usize = PUSH_DATA_BYTES;
/// The same in double words.
const INLINE_WORDS: usize = INLINE_BYTES / 8;

/// A descriptor that was posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Post {
    /// Virtual address of the descriptor.
    pub address: u64,
    /// Region that it lies in.
    pub region: Handle,
    /// Its distance from the region's first byte rounded down to 64 bytes, in units of 64 bytes.
    pub line: u32,
    /// Its segment count, as the program wrote it.
    pub segments: u32,
}

impl Post {
    /// The token that names the descriptor to a device that has `nic_regs`' doorbells.
    #[must_use]
    #[inline(always)]
    pub const fn token(&self, vi: u16, queue: Queue) -> Token {
        let segments = (self.segments & 0x1f) as u8;
        Token { vi, region: self.region.index(), offset_64: self.line, segments, queue }
    }
}

/// Data and immediate data of a short send, which travel with its doorbell. The descriptor carries
/// the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InlineData {
    words: [u64; INLINE_WORDS],
    length: usize,
    /// Immediate data.
    pub immediate: Option<u32>,
}

impl InlineData {
    /// These bytes, unless they are more than [`INLINE_BYTES`].
    #[must_use]
    pub fn new(data: &[u8], immediate: Option<u32>) -> Option<Self> {
        let mut words = [[0; 8]; INLINE_WORDS];
        words.as_flattened_mut().get_mut(..data.len())?.copy_from_slice(data);
        Some(Self { words: words.map(u64::from_le_bytes), length: data.len(), immediate })
    }

    /// The bytes.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        let bytes = self.words.map(u64::to_le_bytes);
        bytes.as_flattened()[..self.length].to_vec()
    }

    /// Number of bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.length
    }

    /// Whether there are no bytes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The double words that hold the bytes.
    #[must_use]
    #[inline]
    pub fn words(&self) -> &[u64] {
        self.words.get(..self.length.div_ceil(8)).unwrap_or(&[])
    }
}

/// A doorbell that is called.
pub trait Ring: Debug + Send + Sync {
    /// A descriptor was posted; what was stored in it before is visible to the port.
    fn ring(&self, post: &Post);

    /// A program asks whether the oldest descriptor of the queue is done, and it is not: what a port
    /// does by itself it need not do here.
    fn poll(&self) {}

    /// Sends a message from memory that need not be registered, in turn behind what was posted before,
    /// if that can be done during the call: true, and the memory may be used again. False: nothing has
    /// happened, and a descriptor does it.
    fn send_now(&self, data: &[u8], immediate: Option<u32>) -> bool {
        let _ = (data, immediate);
        false
    }

    /// A send was posted whose data is known here. A port may ignore the data: the descriptor names
    /// the same bytes.
    fn ring_with_data(&self, post: &Post, data: &InlineData) {
        let _ = data;
        self.ring(post);
    }
}

/// The doorbell of one queue of a VI.
#[derive(Debug)]
pub enum Doorbell {
    /// A register in mapped memory.
    Mapped(MappedDoorbell),
    /// A call.
    Call(Arc<dyn Ring>),
}

impl Doorbell {
    /// A doorbell that leads nowhere.
    #[must_use]
    pub fn nowhere() -> Self {
        #[derive(Debug)]
        struct Nowhere;
        impl Ring for Nowhere {
            fn ring(&self, _post: &Post) {}
        }
        Self::Call(Arc::new(Nowhere))
    }

    /// Rings.
    #[inline]
    pub fn ring(&self, post: &Post) {
        match self {
            Self::Mapped(mapped) => mapped.ring(post),
            Self::Call(call) => call.ring(post),
        }
    }

    /// Sends a message without a descriptor, if the port can ([`Ring::send_now`]).
    #[inline]
    pub fn send_now(&self, data: &[u8], immediate: Option<u32>) -> bool {
        match self {
            Self::Mapped(_) => false,
            Self::Call(call) => call.send_now(data, immediate),
        }
    }

    /// Rings, with the data of a short send where it may travel along.
    #[inline]
    pub fn ring_with_data(&self, post: &Post, InlineSource { data, immediate }: InlineSource<'_>) {
        match self {
            Self::Mapped(mapped) => mapped.ring_with_data(post, InlineSource { data, immediate }),
            Self::Call(call) => {
                let mut words = [0; INLINE_WORDS];
                data.read(|at, word| words[at] = word);
                call.ring_with_data(post, &InlineData { words, length: data.len(), immediate });
            }
        }
    }
}

/// Data and immediate data of a short send, where they lie: at most [`INLINE_BYTES`].
#[derive(Clone, Copy, Debug)]
pub struct InlineSource<'a> {
    /// The data.
    pub data: Words<'a>,
    /// Immediate data.
    pub immediate: Option<u32>,
}

/// A mapped line that takes a push (`nic_regs::doorbell::PushControl`).
#[derive(Debug)]
pub struct PushLine {
    /// The line. No other queue writes it.
    pub line: RegisterLine,
    /// Keeps the line this queue's own.
    pub owner: Box<dyn Owner>,
}

/// What a doorbell keeps until it is dropped.
pub trait Owner: Debug + Send + Sync {}

/// A doorbell that is rung by a store to mapped memory.
#[derive(Debug)]
pub struct MappedDoorbell {
    /// The line of registers whose first double word takes the token.
    pub register: RegisterLine,
    /// Bits of the token that are the same for every post of the queue.
    pub token: u64,
    /// Where data goes; None: it does not travel with the doorbell.
    pub push: Option<PushLine>,
}

impl MappedDoorbell {
    #[inline(always)]
    const fn token(&self, post: &Post) -> u64 {
        self.token | post.token(0, Queue::Send).to_bits()
    }

    #[inline(always)]
    pub(crate) fn ring(&self, post: &Post) {
        self.register.store(0, self.token(post));
    }

    #[inline(always)]
    pub(crate) fn ring_with_data(&self, post: &Post, source: InlineSource<'_>) {
        let Some(PushLine { line, .. }) = &self.push else { return self.ring(post) };
        let InlineSource { data, immediate } = source;
        #[expect(clippy::cast_possible_truncation, reason = "at most INLINE_BYTES")]
        let length = data.len() as u8;
        line.store(0, self.token(post));
        line.store(1, PushControl { length, immediate }.to_bits());
        line.store(2, 0);
        data.read(|at, word| line.store(PUSH_HEADER_WORDS + at, word));
        line.finish();
    }
}
