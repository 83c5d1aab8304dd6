//! What programs do with a connection.

use std::io::Read as _;
use std::sync::{Arc, Weak};

use super::{Connection, LOOK, Patience, Shared};
use crate::engine::Offer;
use crate::error::{Error, Result};
use crate::keeper::Kept;

/// Most receives that wait until they are posted again.
const SPENT: usize = 4;

impl Connection {
    /// Sends bytes of a message; how many were taken, which without patience may be fewer.
    pub(crate) fn write(self: &Arc<Self>, bytes: &[u8], patience: Patience) -> Result<usize> {
        let message = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let mut sent = 0;
        while sent < bytes.len() {
            let step = self.write_part(&bytes[sent..], message);
            match step {
                Ok(Some(count)) => sent += count,
                Ok(None) => match self.wait_for_room(patience) {
                    Err(Error::WouldBlock) if sent > 0 => break,
                    waited => waited?,
                },
                Err(_) if sent > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(sent)
    }

    /// Sends what there is room for. None: there is none.
    fn write_part(self: &Arc<Self>, bytes: &[u8], message: u32) -> Result<Option<usize>> {
        let mut shared = self.lock();
        if let Some(broken) = &shared.broken {
            return Err(broken.clone());
        }
        if !shared.slots.has_send(true) {
            shared.slots.reap(&self.vi)?;
            if !shared.slots.has_send(true) {
                return Ok(None);
            }
        }
        let rest = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let now = self.now();
        let starts = shared.engine.deadline().is_none();
        Ok(match shared.engine.offer(rest, message, now) {
            Offer::Combine(at) => {
                shared.slots.write(at, bytes);
                if starts && !core::mem::replace(&mut shared.watched, true) {
                    let own: Weak<Self> = Arc::downgrade(self);
                    self.device.keeper().watch(own);
                }
                Some(bytes.len())
            }
            Offer::Send { header, bytes: count, .. } => {
                self.note_credits(&shared);
                shared.slots.send_bytes(&self.vi, header, &bytes[..count as usize])?;
                if !shared.engine.policy().defers_sends {
                    shared.slots.reap(&self.vi)?;
                }
                Some(count as usize)
            }
            Offer::Wait => {
                self.absorb(&mut shared);
                self.transmit(&mut shared);
                None
            }
            Offer::Ended => return Err(Error::Ended),
        })
    }

    /// Waits until a packet of data can be sent, or something else has changed.
    fn wait_for_room(&self, mut patience: Patience) -> Result<()> {
        let mut shared = self.lock();
        if !shared.slots.has_send(true) {
            // Its end needs no packet, and none may come.
            let bound = patience.left()?.min(LOOK);
            return shared.slots.reap_one(&self.vi, bound);
        }
        drop(shared);
        self.wait_until(patience, usize::MAX, |shared| {
            self.absorb(shared);
            let _ = shared.slots.reap(&self.vi);
            (shared.engine.has_room() && shared.slots.has_send(true)).then_some(())
        })
    }

    /// Reads bytes; none at the end.
    pub(crate) fn read(&self, out: &mut [u8], patience: Patience) -> Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        if patience == Patience::None && self.is_quiet() {
            return Err(Error::WouldBlock);
        }
        let read = self.wait_until(patience, out.len(), |shared| {
            let read = self.take(shared, out);
            if read.is_none() {
                shared.engine.flush();
            }
            read
        })?;
        Ok(read)
    }

    /// Takes bytes that are there. None: there are none yet.
    fn take(&self, shared: &mut Shared, out: &mut [u8]) -> Option<usize> {
        let mut read = 0;
        if shared.discards {
            shared.absorbed.clear();
        }
        while shared.discards
            && let Some((_, range)) = shared.engine.front()
        {
            self.consume(shared, range.end - range.start);
        }
        // It may give them in two parts.
        while read < out.len() && !shared.absorbed.is_empty() {
            read += shared.absorbed.read(&mut out[read..]).unwrap_or(0);
        }
        while read < out.len() {
            let Some((slot, range)) = shared.engine.front() else { break };
            let count = (range.len()).min(out.len() - read);
            shared.slots.read(slot, range.start, &mut out[read..read + count]);
            read += count;
            self.consume(shared, u32::try_from(count).unwrap_or(u32::MAX));
        }
        if read > 0 {
            return Some(read);
        }
        (shared.discards || shared.engine.is_at_end()).then_some(0)
    }

    pub(super) fn consume(&self, shared: &mut Shared, count: u32) {
        let Some(free) = shared.engine.consume(count) else { return };
        shared.spent.push(free);
        if shared.spent.len() >= SPENT || shared.engine.is_waited_for(shared.spent.len()) {
            self.transmit(shared);
        }
    }

    /// Small messages do not wait for each other.
    pub(crate) fn set_no_delay(&self, no_delay: bool) {
        let mut shared = self.lock();
        shared.engine.set_no_delay(no_delay);
        self.transmit(&mut shared);
    }

    /// Small messages go now.
    pub(crate) fn flush(&self) {
        let mut shared = self.lock();
        shared.engine.flush();
        self.transmit(&mut shared);
    }

    /// Whether a thread of the library takes packets.
    pub(crate) fn has_handler(&self) -> bool {
        self.device.policy().handler
    }

    /// The program reads no more: what comes is thrown away.
    pub(crate) fn shut_down_reads(&self) {
        self.lock().discards = true;
        self.notify();
    }

    /// This side sends no more.
    pub(crate) fn shut_down_writes(&self) {
        let mut shared = self.lock();
        shared.engine.close();
        self.transmit(&mut shared);
    }

    /// The program is done with it. What it has sent still leaves.
    pub(crate) fn close(self: &Arc<Self>) {
        let mut shared = self.lock();
        shared.closed = true;
        self.handle(&mut shared, usize::MAX);
        // Not after an end, which it would look like: the other side is to learn of it.
        if !shared.is_unread() {
            shared.engine.close();
            self.transmit(&mut shared);
        }
        drop(shared);
        if !self.finish() {
            self.device.keeper().end(Arc::clone(self) as _);
        }
    }
}
