//! The two VIPL programs of the demo: a sender and a receiver, with credits because VIA has no flow
//! control.
//!
//! ```text
//! sender                                    receiver
//!   connect_request  ---------------------->  connect_wait, accept; receives are posted before
//!   message 0: length of the file, 8 bytes
//!   message n: bytes, immediate = n  ------>  every WINDOW / 2 messages: empty message, immediate = messages taken
//! ```

use super::Failure;
use super::ends::Ends;
use crate::progress::Bar;
use cosim::simulation::seeded::Slot;
use std::collections::VecDeque;
use vipl::{
    Descriptor, DmaMemory, MemAttributes, Nic, Region, Reliability, Vi, ViAttributes, VipReturn,
};

/// Messages that may be under way.
const WINDOW: usize = 8;
/// Bytes in front of the data of each buffer, for the descriptor.
const DATA_OFFSET: usize = 64;
/// The service that the receiver offers.
const SERVICE: &[u8] = b"viaduct-demo";

/// What to do.
pub(crate) struct Job<'a> {
    /// Sender and receiver.
    pub(crate) ends: &'a Ends<'a>,
    /// Level of the connection.
    pub(crate) level: Reliability,
    /// Bytes of a message.
    pub(crate) message_bytes: usize,
    /// The file.
    pub(crate) data: &'a [u8],
    /// Moves with the receiver.
    pub(crate) progress: &'a Bar,
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The file as it arrived.
    pub(crate) received: Vec<u8>,
    /// Messages sent.
    pub(crate) messages: usize,
    /// Messages that did not arrive.
    pub(crate) missing: usize,
    /// When the first message was posted, and when the last one had arrived: cycles of the simulation,
    /// or nanoseconds.
    pub(crate) time: (u64, u64),
}

pub(crate) fn run(job: &Job<'_>) -> Result<Outcome, Failure> {
    let [sender_slot, receiver_slot] = job.ends.slots();
    let (sent, received) = std::thread::scope(|scope| {
        let sender = scope.spawn(move || {
            let _token = sender_slot.map(Slot::enter);
            send(job).map_err(|error| format!("sender: {error}"))
        });
        let receiver = scope.spawn(move || {
            let _token = receiver_slot.map(Slot::enter);
            receive(job).map_err(|error| format!("receiver: {error}"))
        });
        (sender.join(), receiver.join())
    });
    let sent = sent.map_err(|_| "the sender panicked")??;
    let (received, taken, last) = received.map_err(|_| "the receiver panicked")??;
    Ok(Outcome {
        received,
        messages: sent.0,
        missing: sent.0.saturating_sub(taken),
        time: (sent.1, last),
    })
}

/// A VI with its buffers: one region each, a descriptor in front of the data.
struct End {
    nic: Nic,
    vi: Vi,
    buffers: Vec<Region>,
}

impl End {
    fn open(
        job: &Job<'_>,
        node: usize,
        buffer_bytes: usize,
        count: usize,
    ) -> Result<Self, Failure> {
        let nic = job.ends.nic(node)?;
        let tag = nic.create_ptag()?;
        let vi = nic.create_vi(ViAttributes::new(job.level, tag), None, None)?;
        let mut buffers = Vec::new();
        for _ in 0..count {
            let memory = DmaMemory::new(DATA_OFFSET + buffer_bytes.max(1))?;
            buffers.push(nic.register_mem(&memory, MemAttributes::new(tag))?);
        }
        job.ends.sample(node, &vi);
        Ok(Self { nic, vi, buffers })
    }

    fn descriptor(
        &self,
        buffer: usize,
        bytes: usize,
        word: Option<u32>,
    ) -> Result<Descriptor, Failure> {
        let region = &self.buffers[buffer];
        let descriptor = region.descriptor(0, 1)?;
        descriptor.prepare(&[region.segment(DATA_OFFSET, u32::try_from(bytes)?)], word)?;
        Ok(descriptor)
    }
}

fn send(job: &Job<'_>) -> Result<(usize, u64), Failure> {
    // Buffers 0..WINDOW carry messages, the rest take credits.
    let end = End::open(job, 0, job.message_bytes.max(8), 2 * WINDOW)?;
    let mut credit_receives = VecDeque::new();
    for buffer in WINDOW..2 * WINDOW {
        let descriptor = end.descriptor(buffer, 0, None)?;
        end.vi.post_recv(&descriptor)?;
        credit_receives.push_back(descriptor);
    }
    let local = job.ends.address(0, b"");
    let remote = job.ends.address(1, SERVICE);
    loop {
        match end.vi.connect_request(&local, &remote, job.ends.patience()) {
            Err(error) if error.code == VipReturn::NoMatch => {}
            other => {
                other?;
                break;
            }
        };
    }
    let start = job.ends.now();
    let count = job.data.len().div_ceil(job.message_bytes);
    let mut credit = Credit { end: &end, receives: credit_receives, taken: 0, job };
    for n in 0..=count {
        while n >= credit.taken + WINDOW {
            credit.wait(n)?;
        }
        let buffer = n % WINDOW;
        if n >= WINDOW {
            // The send that used this buffer before.
            end.vi.send_wait(job.ends.patience())?;
        }
        let memory = end.buffers[buffer].memory();
        let bytes: &[u8] = if n == 0 {
            &(job.data.len() as u64).to_le_bytes()
        } else {
            let from = (n - 1) * job.message_bytes;
            &job.data[from..job.data.len().min(from + job.message_bytes)]
        };
        memory.copy_from(DATA_OFFSET, bytes);
        let descriptor = end.descriptor(buffer, bytes.len(), Some(u32::try_from(n)?))?;
        end.vi.post_send(&descriptor)?;
    }
    for _ in 0..WINDOW.min(count + 1) {
        end.vi.send_wait(job.ends.patience())?;
    }
    // The receiver's last credit says that it has everything.
    while credit.taken <= count {
        credit.wait(count + 1)?;
    }
    end.vi.disconnect()?;
    Ok((count + 1, start))
}

/// The sender's count of what the receiver has taken.
struct Credit<'a> {
    end: &'a End,
    receives: VecDeque<Descriptor>,
    taken: usize,
    job: &'a Job<'a>,
}

impl Credit<'_> {
    /// Waits for the next credit. On an unreliable VI a credit that does not come counts as
    /// `assumed`.
    fn wait(&mut self, assumed: usize) -> Result<(), Failure> {
        match self.end.vi.recv_wait(self.job.ends.patience()) {
            Ok(credit) => {
                self.taken = self.taken.max(credit.immediate() as usize);
                let next = self.receives.pop_front().ok_or("a credit too many")?;
                self.end.vi.post_recv(&next)?;
                self.receives.push_back(credit);
            }
            Err(_) if self.job.level == Reliability::Unreliable => self.taken = assumed,
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}

fn receive(job: &Job<'_>) -> Result<(Vec<u8>, usize, u64), Failure> {
    // Buffers 0..WINDOW take messages, the last ones send credits.
    let end = End::open(job, 1, job.message_bytes.max(8), WINDOW + 2)?;
    let mut receives = VecDeque::new();
    for buffer in 0..WINDOW {
        let descriptor = end.descriptor(buffer, job.message_bytes.max(8), None)?;
        end.vi.post_recv(&descriptor)?;
        receives.push_back((buffer, descriptor));
    }
    let request = end.nic.connect_wait(&job.ends.address(1, SERVICE), job.ends.patience())?;
    request.accept(&end.vi)?;
    if job.level == Reliability::Unreliable {
        end.nic.error_callback(Some(std::sync::Arc::new(|_| {})));
    }
    let mut file = Vec::new();
    let (mut taken, mut last_cycle) = (0, job.ends.now());
    let mut total = None;
    loop {
        let done = match end.vi.recv_wait(job.ends.patience()) {
            Ok(done) => done,
            // Silence, or the sender has left: what is missing does not come any more.
            Err(_) if job.level == Reliability::Unreliable => break,
            Err(error) => return Err(error.into()),
        };
        last_cycle = job.ends.now();
        let (buffer, _) = receives.pop_front().ok_or("a receive too many")?;
        let bytes = end.buffers[buffer].memory().to_vec(DATA_OFFSET, done.length() as usize);
        let number = done.immediate() as usize;
        taken += 1;
        if number == 0 {
            let length = bytes.try_into().map_err(|_| "the first message has no length")?;
            let length = usize::try_from(u64::from_le_bytes(length))?;
            total = Some(length);
            file.resize(length, 0);
        } else {
            let from = (number - 1) * job.message_bytes;
            if file.len() < from + bytes.len() {
                file.resize(from + bytes.len(), 0);
            }
            file[from..from + bytes.len()].copy_from_slice(&bytes);
            job.progress.set((from + bytes.len()) as u64);
        }
        let again = end.descriptor(buffer, job.message_bytes.max(8), None)?;
        end.vi.post_recv(&again)?;
        receives.push_back((buffer, again));
        let complete = total.is_some_and(|total| number == total.div_ceil(job.message_bytes));
        if taken % (WINDOW / 2) == 0 || complete {
            let slot = WINDOW + (taken / (WINDOW / 2)) % 2;
            let credit = end.descriptor(slot, 0, Some(u32::try_from(number + 1)?))?;
            end.vi.post_send(&credit)?;
            end.vi.send_wait(job.ends.patience())?;
        }
        if complete {
            break;
        }
    }
    // The sender disconnects when it has the last credit; its end is not an error here.
    end.nic.error_callback(Some(std::sync::Arc::new(|_| {})));
    let _ = end.vi.recv_wait(job.ends.patience());
    end.vi.disconnect()?;
    Ok((file, taken, last_cycle))
}
