//! Regions of other nodes, as this process accesses them.
//!
//! A large access is carried out in pieces, each of which passes the gate: a revocation, and the
//! node that waits for it, waits for one piece at most. An access that is refused in the middle has
//! written a part, and fires no tripwire.

use std::sync::Arc;

use port::DmaMemory;
use port::clan::{ClanEvent, DmaError, DmaQueue, DmaRequest, EventQueue as _, Remote};
use port::own::OwnFd;

use super::event::Queue;
use super::fence;
use super::grant::{Gate, Grant};

/// A region of another node, or of another domain of this one.
#[derive(Debug)]
pub(super) struct ShmRemote {
    grant: Arc<Grant>,
    gate: Arc<Gate>,
}

/// Bytes that are copied at a time: mapped, and through a buffer.
const MAPPED_PIECE: usize = 256 << 10;
const BUFFER_PIECE: usize = 64 << 10;

impl ShmRemote {
    pub(super) fn new(grant: Arc<Grant>) -> Self {
        let gate = grant.gate();
        Self { grant, gate }
    }

    /// Whether the cookie allows an access.
    #[inline]
    fn check(&self, offset: u64, length: usize, is_write: bool) -> Result<(), DmaError> {
        let (grant, bytes) = (&*self.grant, length as u64);
        let right = if is_write { grant.rights.write } else { grant.rights.read };
        let is_inside = offset <= grant.length && bytes <= grant.length - offset;
        if right && is_inside { Ok(()) } else { Err(DmaError::Refused) }
    }

    /// Fires the tripwires of an access that was carried out just now.
    #[inline]
    fn fire(&self, offset: u64, length: usize, is_write: bool) {
        fence::light();
        let control = &self.grant.owner.control;
        if offset / 8 < control.tripwires_end(self.grant.region) {
            control.fire(self.grant.region, offset, length as u64, is_write);
        }
    }

    /// Carries out an access of `length` bytes at `offset`. `act` gets the start and the length of
    /// each piece, relative to `offset`.
    #[inline]
    fn access(
        &mut self,
        (offset, length): (u64, usize),
        is_write: bool,
        act: impl Fn(&Grant, usize, usize) -> Result<(), DmaError>,
    ) -> Result<(), DmaError> {
        self.check(offset, length, is_write)?;
        let grant = &*self.grant;
        let piece = if grant.memory.is_some() { MAPPED_PIECE } else { BUFFER_PIECE };
        let mut at = 0;
        while length - at > piece {
            let _entered = self.gate.enter()?;
            act(grant, at, piece)?;
            at += piece;
        }
        let _entered = self.gate.enter()?;
        let done = act(grant, at, length - at);
        self.fire(offset, length, is_write);
        done
    }

    /// Stores where double words are none: the owner may register what begins anywhere, and what
    /// nobody else can map.
    #[cold]
    fn store_bytes(&mut self, offset: u64, words: &[u64]) -> Result<(), DmaError> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.write_bytes(offset, &bytes)
    }
}

impl Remote for ShmRemote {
    fn length(&self) -> u64 {
        self.grant.length
    }

    fn is_mapped(&self) -> bool {
        self.grant.memory.is_some()
    }

    fn duplicate(&self) -> Box<dyn Remote> {
        Box::new(Self::new(Arc::clone(&self.grant)))
    }

    #[inline]
    fn store(&mut self, offset: u64, words: &[u64]) -> Result<(), DmaError> {
        if !offset.is_multiple_of(8) {
            return Err(DmaError::Refused);
        }
        let Some(memory) = self.grant.memory.as_ref().filter(|_| self.grant.has_words) else {
            return self.store_bytes(offset, words);
        };
        let length = 8 * words.len();
        self.check(offset, length, true)?;
        let _entered = self.gate.enter()?;
        memory.store_words(place(offset), words);
        self.fire(offset, length, true);
        Ok(())
    }

    fn write_part(
        &mut self,
        offset: u64,
        source: &DmaMemory,
        start: usize,
        length: usize,
    ) -> Result<(), DmaError> {
        self.access((offset, length), true, |grant, at, length| match &grant.memory {
            Some(memory) => {
                memory.copy_part(place(offset) + at, source, start + at, length);
                Ok(())
            }
            None => {
                let piece = source.to_vec(start + at, length);
                put(&grant.owner.space, grant.start + offset + at as u64, &piece)
            }
        })
    }

    fn write_bytes(&mut self, offset: u64, bytes: &[u8]) -> Result<(), DmaError> {
        self.access((offset, bytes.len()), true, |grant, at, length| {
            let piece = &bytes[at..at + length];
            match &grant.memory {
                Some(memory) => {
                    memory.copy_from(place(offset) + at, piece);
                    Ok(())
                }
                None => put(&grant.owner.space, grant.start + offset + at as u64, piece),
            }
        })
    }

    fn read(&mut self, offset: u64, target: &DmaMemory, _bound_ns: u64) -> Result<(), DmaError> {
        // It never waits: the owner's program has no part in it.
        self.access((offset, target.len()), false, |grant, at, length| match &grant.memory {
            Some(memory) => {
                target.copy_part(at, memory, place(offset) + at, length);
                Ok(())
            }
            None => {
                let mut piece = vec![0; length];
                let from = grant.start + offset + at as u64;
                match rustix::io::pread(&grant.owner.space, &mut piece, from) {
                    Ok(count) if count == length => target.copy_from(at, &piece),
                    _ => return Err(DmaError::Lost),
                }
                Ok(())
            }
        })
    }
}

/// An offset in mapped memory.
fn place(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}

fn put(space: &OwnFd, address: u64, bytes: &[u8]) -> Result<(), DmaError> {
    match rustix::io::pwrite(space, bytes, address) {
        Ok(count) if count == bytes.len() => Ok(()),
        _ => Err(DmaError::Lost),
    }
}

/// A DMA queue: whoever submits a request has the time to carry it out.
#[derive(Debug)]
pub(super) struct ShmDma {
    pub(super) queue: Arc<Queue>,
}

impl DmaQueue for ShmDma {
    fn submit(&mut self, remote: &mut dyn Remote, request: DmaRequest) -> port::Result<()> {
        if !self.queue.is_own() {
            return Err(super::forked());
        }
        if self.queue.is_destroyed() {
            let index = self.queue.number().into();
            return Err(port::Error::NoSuch { what: "event queue", index });
        }
        if !self.queue.has_room() {
            return Err(port::Error::Exhausted { what: "room in the event queue", limit: 4096 });
        }
        let result = remote.write(request.offset, &request.source);
        if request.notify.is_some() || result.is_err() {
            self.queue.push(ClanEvent::Dma { tag: request.notify.unwrap_or(0), result });
        }
        Ok(())
    }
}
