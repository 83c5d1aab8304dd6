//! The distributed message queue (CLAN paper 3.3.1, figure 4): a ring of slots in the receiver's
//! memory, which the sender stores into.
//!
//! ```text
//!   sender                                   receiver's region
//!   written    --- store: body, number --->  slots (64 bytes: 7 double words of body, 1 of number)
//!              --- store: written      --->  write pointer, for tripwires
//!   sender's region
//!   read (lazy)  <--- store: read -----      read
//! ```
//! A slot carries the number of its message, so a receiver that polls looks at one line, and takes
//! it from the sender's cache once. The write pointer is a word of its own because it stays where it
//! is: a tripwire on it fires for every message. The receiver returns its read pointer now and then
//! (lazily), not for each message.
//!
//! Both ends check what they find: a number that does not fit is no message, and a read pointer that
//! cannot be is not taken.

use super::event::DmaError;
use super::remote::Remote;
use crate::memory::DmaMemory;

/// Bytes of a slot.
pub const SLOT_BYTES: usize = 64;
/// Double words of a message.
pub const BODY_WORDS: usize = 7;

/// A message.
pub type Body = [u64; BODY_WORDS];

/// Where the parts of a queue are in the regions of its two ends, and how large it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Offset of the slots, a multiple of 64, in the receiver's region.
    pub slots: usize,
    /// Their count, a power of two.
    pub count: usize,
    /// Offset of the write pointer, in the receiver's region, if the receiver has use for one.
    pub written: Option<usize>,
    /// Offset of the read pointer, in the sender's region.
    pub read: usize,
}

/// The sending end. The receiver's region is given with each call, since it may serve several queues.
#[derive(Debug)]
pub struct Sender {
    layout: Layout,
    memory: DmaMemory,
    /// Messages sent, from the number on at which the queue began.
    written: u64,
    /// Messages that the receiver is known to have taken.
    read: u64,
}

impl Sender {
    /// The end of a queue whose messages are numbered from `start` on, which both ends agree on.
    /// `memory` is the sender's region.
    ///
    /// # Panics
    /// If the read pointer is not inside it.
    #[must_use]
    pub fn new(layout: Layout, memory: DmaMemory, start: u64) -> Self {
        memory.store_u64(layout.read, start);
        Self { layout, memory, written: start, read: start }
    }

    /// Messages for which there is room.
    #[inline]
    pub fn room(&mut self) -> usize {
        let mut used = self.written - self.read;
        if used >= self.layout.count as u64 {
            used = self.written - self.taken();
        }
        self.layout.count - usize::try_from(used).unwrap_or(self.layout.count)
    }

    /// Number of the next message that the receiver has not taken, as far as it has said.
    #[inline]
    pub fn taken(&mut self) -> u64 {
        let read = self.memory.load_u64(self.layout.read);
        if read > self.read && read <= self.written {
            self.read = read;
        }
        self.read
    }

    /// Number of the message that is sent next.
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.written
    }

    /// Sends a message, for which there is [`Sender::room`].
    ///
    /// # Errors
    /// The receiver's region cannot be written any more.
    #[inline]
    pub fn send(&mut self, to: &mut dyn Remote, body: &Body) -> Result<(), DmaError> {
        debug_assert!(self.room() > 0);
        let [a, b, c, d, e, f, g] = *body;
        let number = self.written + 1;
        let slot = self.layout.slot(self.written) as u64;
        to.store(slot, &[a, b, c, d, e, f, g, number])?;
        if let Some(written) = self.layout.written {
            to.store(written as u64, &[number])?;
        }
        self.written = number;
        Ok(())
    }
}

impl Layout {
    #[inline]
    fn slot(&self, number: u64) -> usize {
        debug_assert!(self.count.is_power_of_two());
        let index = usize::try_from(number & (self.count as u64 - 1)).unwrap_or(0);
        self.slots + SLOT_BYTES * index
    }
}

/// The receiving end.
#[derive(Debug)]
pub struct Receiver {
    layout: Layout,
    memory: DmaMemory,
    /// Messages taken.
    read: u64,
    /// What the sender knows of that.
    returned: u64,
}

impl Receiver {
    /// The other end of [`Sender::new`]. `memory` is the receiver's region, in which nothing is left
    /// of messages with later numbers.
    #[must_use]
    pub const fn new(layout: Layout, memory: DmaMemory, start: u64) -> Self {
        Self { layout, memory, read: start, returned: start }
    }

    /// The oldest message, if there is one. It stays until [`Receiver::take`].
    #[inline]
    #[must_use]
    pub fn peek(&self) -> Option<Body> {
        self.peek_behind(0)
    }

    /// Whether there is a message.
    #[inline]
    #[expect(clippy::must_use_candidate, reason = "a look alone has the processor fetch it")]
    pub fn is_there(&self) -> bool {
        let number = self.memory.load_u64(self.layout.slot(self.read) + 8 * BODY_WORDS);
        number == self.read + 1
    }

    /// A message behind the oldest one, if it is there.
    #[must_use]
    #[inline]
    pub fn peek_behind(&self, distance: u64) -> Option<Body> {
        let number = self.read + distance;
        // A line on its own, as the layout says.
        let slot = self.memory.line(self.layout.slot(number))?;
        if slot.load_u64(8 * BODY_WORDS) != number + 1 {
            return None;
        }
        Some(core::array::from_fn(|i| slot.load_u64(8 * i)))
    }

    /// Number of the oldest message.
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.read
    }

    /// Takes the oldest message; the sender learns of it some time later ([`Receiver::give_back`]).
    #[inline]
    pub fn take(&mut self) {
        self.read += 1;
    }

    /// Reports to the sender which slots are free, if they are so many that it is worth it.
    ///
    /// # Errors
    /// The sender's region cannot be written any more.
    #[inline]
    pub fn give_back(&mut self, to: &mut dyn Remote) -> Result<(), DmaError> {
        if self.read - self.returned < (self.layout.count / 4) as u64 {
            return Ok(());
        }
        self.give_back_all(to)
    }

    /// Reports to the sender which slots are free.
    ///
    /// # Errors
    /// As [`Receiver::give_back`].
    pub fn give_back_all(&mut self, to: &mut dyn Remote) -> Result<(), DmaError> {
        if self.read != self.returned {
            to.store(self.layout.read as u64, &[self.read])?;
            self.returned = self.read;
        }
        Ok(())
    }
}
