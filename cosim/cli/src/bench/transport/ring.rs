//! A ring in shared memory for each direction. A message is a header of 8 bytes, its data, and room up
//! to a whole line. The header is the message's number, which the receiver polls. Small messages come
//! with one cache line; a message is copied twice.

use port::DmaMemory;

use super::{Offered, Transport, map, poll, shared};
use crate::Failure;

/// Bytes of a ring.
const RING: usize = 128 << 10;
/// Bytes of data in one piece at most.
const PIECE: usize = RING / 4;
/// Where the receiver says how far it is.
const READ: usize = RING;
/// Bytes of a ring and its words.
const BYTES: usize = RING + 4096;
const HEADER: usize = 8;
const LINE: usize = 64;

struct Ring {
    /// To the other end, and from it.
    to: DmaMemory,
    from: DmaMemory,
    buffer: DmaMemory,
    written: usize,
    /// Of the other end, as far as this one has looked.
    taken: usize,
    read: usize,
    /// What the other end was notified of.
    returned: usize,
    sent: u64,
    received: u64,
}

impl Ring {
    fn new(memory: &DmaMemory, is_first: bool, largest: usize) -> Result<Self, Failure> {
        let (first, second) = (memory.slice(0, BYTES)?, memory.slice(BYTES, BYTES)?);
        let [to, from] = if is_first { [first, second] } else { [second, first] };
        let buffer = DmaMemory::new(largest.max(LINE))?;
        buffer.fill(1);
        Ok(Self {
            to,
            from,
            buffer,
            written: 0,
            taken: 0,
            read: 0,
            returned: 0,
            sent: 0,
            received: 0,
        })
    }

    /// Where a piece begins that is at `at` or, if it does not fit there, at the start.
    fn start(at: usize, bytes: usize) -> usize {
        if at % RING + bytes > RING { at.next_multiple_of(RING) } else { at }
    }

    #[inline]
    fn put(&mut self, offset: usize, length: usize) -> Result<(), Failure> {
        let bytes = (HEADER + length).next_multiple_of(LINE);
        let start = Self::start(self.written, bytes);
        if start + bytes - self.taken > RING {
            self.taken = poll(|| {
                let taken = usize::try_from(self.to.load_u64(READ))?;
                Ok((start + bytes - taken <= RING).then_some(taken))
            })?;
        }
        let at = start % RING;
        match length {
            // A store of a known width, as a program with messages of one size would have.
            0..=4 => self.to.store_u32(at + HEADER, self.buffer.load_u32(offset)),
            _ => self.to.copy_part(at + HEADER, &self.buffer, offset, length),
        }
        self.sent += 1;
        self.to.store_u64(at, self.sent);
        self.written = start + bytes;
        Ok(())
    }

    #[inline]
    fn take(&mut self, offset: usize, length: usize) -> Result<(), Failure> {
        let bytes = (HEADER + length).next_multiple_of(LINE);
        let start = Self::start(self.read, bytes);
        let at = start % RING;
        self.received += 1;
        let number = self.received;
        poll(|| Ok((self.from.load_u64(at) == number).then_some(())))?;
        match length {
            0..=4 => self.buffer.store_u32(offset, self.from.load_u32(at + HEADER)),
            _ => self.buffer.copy_part(offset, &self.from, at + HEADER, length),
        }
        self.read = start + bytes;
        if self.read - self.returned >= RING / 4 {
            self.returned = self.read;
            self.from.store_u64(READ, self.read as u64);
        }
        Ok(())
    }
}

impl Transport for Ring {
    fn send(&mut self, length: usize, stamp: u32) -> Result<(), Failure> {
        self.buffer.store_u32(0, stamp);
        let mut at = 0;
        loop {
            let piece = (length - at).min(PIECE);
            self.put(at, piece)?;
            at += piece;
            if at == length {
                return Ok(());
            }
        }
    }

    fn receive(&mut self, length: usize) -> Result<u32, Failure> {
        let mut at = 0;
        loop {
            let piece = (length - at).min(PIECE);
            self.take(at, piece)?;
            at += piece;
            if at == length {
                return Ok(self.buffer.load_u32(0));
            }
        }
    }
}

pub(super) fn offer(largest: usize) -> Result<Offered, Failure> {
    let (memory, place) = shared(2 * BYTES)?;
    let accept = move || -> Result<Box<dyn Transport>, Failure> {
        Ok(Box::new(Ring::new(&memory, true, largest)?))
    };
    Ok(Offered { place, accept: Box::new(accept) })
}

pub(super) fn join(largest: usize, place: &str) -> Result<Box<dyn Transport>, Failure> {
    Ok(Box::new(Ring::new(&map(2 * BYTES, place)?, false, largest)?))
}
