//! Doorbells: what a work queue rings when a descriptor is posted.
//!
//! Two kinds, so that posting to hardware costs a store and posting to anything else a call: a
//! [`MappedDoorbell`] is a register of the device in mapped memory, of which only the fields of the
//! stored word are known here; a [`Ring`] is implemented by the port.

use core::fmt::Debug;
use std::sync::Arc;

use nic_regs::tpt::Handle;

use crate::memory::{DmaMemory, RegisterLine};

/// Most data bytes that travel with a doorbell.
pub const INLINE_BYTES: usize = 40;
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
    #[inline(always)]
    pub fn ring(&self, post: Post) {
        match self {
            Self::Mapped(mapped) => mapped.ring(&post),
            Self::Call(call) => ring_by_call(&**call, post),
        }
    }

    /// Rings, with the data of a short send.
    #[inline]
    pub fn ring_with_data(&self, post: Post, data: InlineSource<'_>) {
        match self {
            Self::Mapped(MappedDoorbell { format, push: Some(push), .. }) => {
                push.store(format.word(&post), data);
            }
            Self::Mapped(mapped) => mapped.ring(&post),
            Self::Call(call) => {
                let mut words = [0; INLINE_WORDS];
                data.read(|at, word| words[at] = word);
                let (length, immediate) = (data.length, data.immediate);
                call.ring_with_data(&post, &InlineData { words, length, immediate });
            }
        }
    }
}

/// Keeps the call out of the code of mapped doorbells.
#[inline(never)]
fn ring_by_call(call: &dyn Ring, post: Post) {
    call.ring(&post);
}

/// Where the data of a short send lies: at most [`INLINE_BYTES`], of which whole double words are
/// inside the memory.
#[derive(Clone, Copy, Debug)]
pub struct InlineSource<'a> {
    /// Memory and offset; None: no data.
    pub memory: Option<(&'a DmaMemory, usize)>,
    /// Number of bytes.
    pub length: usize,
    /// Immediate data.
    pub immediate: Option<u32>,
}

impl InlineSource<'_> {
    #[inline(always)]
    fn read(&self, store: impl FnMut(usize, u64)) {
        if let Some((memory, offset)) = self.memory {
            memory.read_words(offset, self.length, store);
        }
    }
}

/// Fields of the double word that is stored to ring.
#[derive(Clone, Copy, Debug)]
pub struct WordFormat {
    /// Bits that are the same for every post of the queue.
    pub fixed: u64,
    /// Lowest bit of the region's index.
    pub region_lsb: u32,
    /// Lowest bit of [`Post::line`].
    pub line_lsb: u32,
    /// Lowest bit of the segment count.
    pub segments_lsb: u32,
    /// Bits of the segment count that are kept.
    pub segments_mask: u32,
}

impl WordFormat {
    #[inline(always)]
    fn word(&self, post: &Post) -> u64 {
        self.fixed
            | u64::from(post.region.index()) << self.region_lsb
            | u64::from(post.line) << self.line_lsb
            | u64::from(post.segments & self.segments_mask) << self.segments_lsb
    }
}

/// A mapped line that takes data: the doorbell's word, a control word with the length in its low
/// bits, a zero, and the data.
#[derive(Debug)]
pub struct PushLine {
    /// The line. No other queue writes it.
    pub line: RegisterLine,
    /// Flag of the control word for immediate data.
    pub immediate_flag: u64,
    /// Lowest bit of the immediate data in the control word.
    pub immediate_lsb: u32,
    /// Keeps the line this queue's own.
    pub owner: Box<dyn Owner>,
}

/// What a doorbell keeps until it is dropped.
pub trait Owner: Debug + Send + Sync {}

/// A doorbell that is rung by a store to mapped memory.
#[derive(Debug)]
pub struct MappedDoorbell {
    /// The line of registers whose first double word is stored.
    pub register: RegisterLine,
    /// The stored word.
    pub format: WordFormat,
    /// Where data goes; None: it does not travel with the doorbell.
    pub push: Option<PushLine>,
}

impl MappedDoorbell {
    #[inline(always)]
    fn ring(&self, post: &Post) {
        self.register.store(0, self.format.word(post));
    }
}

impl PushLine {
    #[inline(always)]
    fn store(&self, word: u64, data: InlineSource<'_>) {
        let mut control = data.length as u64;
        if let Some(immediate) = data.immediate {
            control |= self.immediate_flag | u64::from(immediate) << self.immediate_lsb;
        }
        self.line.store(0, word);
        self.line.store(1, control);
        self.line.store(2, 0);
        data.read(|at, word| self.line.store(3 + at, word));
        self.line.finish();
    }
}
