//! Regions of other nodes, as this process accesses them.

use core::sync::atomic::Ordering;
use std::fs::File;
use std::sync::Arc;

use port::DmaMemory;
use port::clan::{ClanEvent, DmaError, DmaQueue, DmaRequest, Remote};

use super::event::Queue;
use super::fence;
use super::grant::{Gate, Grant};

/// A region of another node, or of another domain of this one.
#[derive(Debug)]
pub(super) struct ShmRemote {
    grant: Arc<Grant>,
    gate: Arc<Gate>,
}

impl ShmRemote {
    pub(super) fn new(grant: Arc<Grant>) -> Self {
        let gate = grant.gate();
        Self { grant, gate }
    }

    /// Carries out one access of `length` bytes at `offset`.
    #[inline]
    fn access(
        &mut self,
        (offset, length): (u64, u64),
        is_write: bool,
        act: impl FnOnce(&Grant) -> Result<(), DmaError>,
    ) -> Result<(), DmaError> {
        let grant = &*self.grant;
        let right = if is_write { grant.rights.write } else { grant.rights.read };
        if !right || offset > grant.length || length > grant.length - offset {
            return Err(DmaError::Refused);
        }
        self.gate.enter()?;
        let done = act(grant);
        fence::light();
        let control = &grant.owner.control;
        if control.tripwires(grant.region).load(Ordering::Relaxed) != 0 {
            control.fire(grant.region, offset, length, is_write);
        }
        self.gate.leave();
        done
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

    fn store(&mut self, offset: u64, words: &[u64]) -> Result<(), DmaError> {
        if !offset.is_multiple_of(8) {
            return Err(DmaError::Refused);
        }
        self.access((offset, 8 * words.len() as u64), true, |grant| match &grant.memory {
            Some(memory) => {
                let base = place(offset);
                words
                    .iter()
                    .enumerate()
                    .for_each(|(i, word)| memory.store_u64(base + 8 * i, *word));
                Ok(())
            }
            None => {
                let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
                put(&grant.owner.space, grant.start + offset, &bytes)
            }
        })
    }

    fn write(&mut self, offset: u64, source: &DmaMemory) -> Result<(), DmaError> {
        self.access((offset, source.len() as u64), true, |grant| match &grant.memory {
            Some(memory) => {
                memory.copy_memory(place(offset), source);
                Ok(())
            }
            None => pieces(source.len()).try_for_each(|(at, length)| {
                let piece = source.to_vec(at, length);
                put(&grant.owner.space, grant.start + offset + at as u64, &piece)
            }),
        })
    }

    fn read(&mut self, offset: u64, target: &DmaMemory, _bound_ns: u64) -> Result<(), DmaError> {
        // It never waits: the owner's program has no part in it.
        self.access((offset, target.len() as u64), false, |grant| match &grant.memory {
            Some(memory) => {
                let source = memory.slice(place(offset), target.len());
                target.copy_memory(0, &source.map_err(|_| DmaError::Refused)?);
                Ok(())
            }
            None => pieces(target.len()).try_for_each(|(at, length)| {
                let mut piece = vec![0; length];
                let from = grant.start + offset + at as u64;
                match rustix::io::pread(&grant.owner.space, &mut piece, from) {
                    Ok(count) if count == length => target.copy_from(at, &piece),
                    _ => return Err(DmaError::Lost),
                }
                Ok(())
            }),
        })
    }
}

/// An offset in mapped memory.
fn place(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}

/// Bytes that go through a buffer at a time.
const PIECE_BYTES: usize = 64 << 10;

fn pieces(length: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..length).step_by(PIECE_BYTES).map(move |at| (at, PIECE_BYTES.min(length - at)))
}

fn put(space: &File, address: u64, bytes: &[u8]) -> Result<(), DmaError> {
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
