//! A connection: negotiation, flow control, memory and VI of one side. It never waits for the other side:
//! whoever owns it gives it the completions of its receives, from wherever they are reported.
//!
//! ```text
//!   queue(message) ──► outbound ──fragments, as credits allow──► VI
//!   VI ──arrive(completion)──► fragments ──► inbound, until a message is whole
//!                         └──► credits ──► more of outbound leaves
//! ```

#[cfg(feature = "tarpc")]
mod tasks;

use std::collections::VecDeque;
use std::task::Waker;

use vipl::{Completion, Cq, Queue, Vi, VipReturn};

use crate::buffers::{Buffer, Buffers};
use crate::credits::Credits;
use crate::device::Device;
use crate::error::{Error, Result, Violation};
use crate::header::{Header, Kind, MESSAGE_HEADER, MessageHeader, Sequence};
use crate::inbound::Inbound;
use crate::negotiate::{Agreed, Negotiation, OFFER, Offer};
use crate::settings::Settings;
use crate::slots::Slots;

/// Bytes of answers that wait for credits, from which on a server takes no more of its client.
const BACKLOG: usize = 1 << 20;

/// What a packet has led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// Nothing that concerns the program.
    Nothing,
    /// The negotiation is over.
    Established,
    /// A message is whole: [`Connection::take_message`].
    Message(MessageHeader),
}

/// Which side this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Client,
    Server,
}

#[derive(Debug)]
enum Phase {
    Negotiation(Negotiation),
    Open { credits: Credits, offer: Offer },
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Connection {
    vi: Vi,
    role: Role,
    own: u8,
    phase: Phase,
    /// The VI is connected as far as VIPL knows on this side: before, what is sent is flushed.
    is_accepted: bool,
    slots: Slots,
    buffers: Buffers,
    /// Messages that are not sent, and how much of the first one is.
    outbound: VecDeque<Buffer>,
    sent: usize,
    queued_bytes: usize,
    inbound: Inbound,
    /// Receives of data that are not posted again yet: the other side is to wait.
    held: Vec<usize>,
    /// The program has more messages than it takes.
    is_paused: bool,
    /// Whoever waits until all messages are sent.
    flushing: Option<Waker>,
    broken: Option<Error>,
}

impl Connection {
    /// One whose VI is not connected yet: its receives are posted.
    ///
    /// # Errors
    /// The NIC has no VI left, or cannot register more memory.
    pub(crate) fn new(
        device: &Device,
        settings: &Settings,
        buffers: &Buffers,
        receives: Option<&Cq>,
        role: Role,
    ) -> Result<Self> {
        let vi = device.create_vi(receives)?;
        let mut slots = Slots::new(device, settings.credits, settings.mtu)?;
        slots.post_all(&vi)?;
        let offer = Offer::of(settings);
        let negotiation = match role {
            Role::Client => Negotiation::AwaitAccept(offer),
            Role::Server => Negotiation::AwaitHello(offer),
        };
        Ok(Self {
            vi,
            role,
            own: settings.credits,
            phase: Phase::Negotiation(negotiation),
            is_accepted: false,
            slots,
            buffers: buffers.clone(),
            outbound: VecDeque::new(),
            sent: 0,
            queued_bytes: 0,
            inbound: Inbound::default(),
            held: Vec::new(),
            is_paused: false,
            flushing: None,
            broken: None,
        })
    }

    /// The VI, to wait for its receives.
    pub(crate) const fn vi(&self) -> &Vi {
        &self.vi
    }

    pub(crate) const fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Open { .. })
    }

    /// Why the connection is of no use any more, if that is so.
    pub(crate) fn check(&self) -> Result<()> {
        self.broken.clone().map_or(Ok(()), Err)
    }

    /// The oldest receive, if it is done. None before the VI is connected on this side, too: a client's
    /// first packet may come earlier than that is known, and could not be answered.
    pub(crate) fn poll(&self) -> Option<Completion> {
        let completion = self.is_accepted.then(|| self.vi.poll(Queue::Recv))?;
        let is_done = !matches!(&completion, Err(e) if e.code == VipReturn::NotDone);
        is_done.then_some(completion)
    }

    /// The VI is connected: takes the Hello if it has come already. Whatever the client sends next comes
    /// after the answer to it, and is for whoever receives.
    pub(crate) fn accepted(&mut self) -> Result<()> {
        self.is_accepted = true;
        let hello = self.poll();
        hello.map_or(Ok(()), |hello| self.arrive(&hello).map(drop))
    }

    /// Begins the negotiation, as the client.
    pub(crate) fn hello(&mut self, settings: &Settings) -> Result<()> {
        self.send_offer(Kind::Hello, Some(Offer::of(settings)))
    }

    /// An empty buffer for a message of `length` bytes; of the sends that are done first.
    pub(crate) fn buffer(&mut self, length: usize) -> Result<Buffer> {
        self.check()?;
        self.slots.reap(&self.vi).inspect_err(|error| self.fail(error.clone()))?;
        self.buffers.take(length)
    }

    /// Queues a message, and sends of it what there are credits for.
    ///
    /// # Errors
    /// [`Error::TooLong`]: nothing was queued. Otherwise the connection is of no use any more.
    pub(crate) fn queue(&mut self, message: Buffer, call: u32) -> Result<()> {
        self.queue_as(message, call, false)
    }

    /// Queues a note that a call is not answered.
    pub(crate) fn queue_unanswered(&mut self, call: u32) -> Result<()> {
        let message = self.buffer(0)?;
        self.queue_as(message, call, true)
    }

    fn queue_as(&mut self, message: Buffer, call: u32, is_unanswered: bool) -> Result<()> {
        self.check()?;
        let Phase::Open { offer, .. } = &self.phase else { return Err(Error::Lost) };
        let (length, most) = (message.len(), offer.max_message);
        let Some(short) = u32::try_from(length).ok().filter(|length| *length <= most) else {
            return Err(Error::TooLong { length, most });
        };
        message.set_header(MessageHeader { length: short, call, is_unanswered }.to_bytes());
        self.queued_bytes += message.total();
        self.outbound.push_back(message);
        self.transmit().inspect_err(|error| self.fail(error.clone()))
    }

    /// A receive is done. Who gets an error here ends the connection.
    pub(crate) fn arrive(&mut self, completion: &Completion) -> Result<Arrival> {
        self.check()?;
        let arrival = match completion {
            Ok(done) => {
                let has_header = done.status().has_immediate();
                let header = has_header.then(|| Header::from_bits(done.immediate())).flatten();
                match header {
                    Some(header) => self.receive(header, done.length() as usize),
                    None => Err(Violation::NoHeader.into()),
                }
            }
            Err(error) => Err(error.clone().into()),
        };
        arrival.inspect_err(|error| self.fail(error.clone()))
    }

    fn receive(&mut self, header: Header, length: usize) -> Result<Arrival> {
        let slot = self.slots.completed().ok_or(Error::Lost)?;
        let Phase::Open { credits, offer } = &mut self.phase else {
            return self.negotiate(header, slot, length);
        };
        credits.receive(header)?;
        let arrival = match header.kind {
            Kind::Data => {
                let read = |at, out: &mut [u8]| self.slots.read(slot, at, out);
                let message = self.inbound.fragment(length, offer, read)?;
                self.held.push(slot);
                message.map_or(Arrival::Nothing, Arrival::Message)
            }
            kind @ (Kind::Rts | Kind::Cts) if length > 0 => {
                return Err(Violation::Control(kind).into());
            }
            Kind::Rts | Kind::Cts => {
                self.slots.post_receive(&self.vi, slot)?;
                Arrival::Nothing
            }
            kind => return Err(Violation::Late(kind).into()),
        };
        self.transmit()?;
        Ok(arrival)
    }

    fn negotiate(&mut self, header: Header, slot: usize, length: usize) -> Result<Arrival> {
        let Phase::Negotiation(negotiation) = &mut self.phase else { return Err(Error::Lost) };
        // What is longer is no offer, with or without its end.
        let mut bytes = [0; OFFER + 1];
        let bytes = &mut bytes[..length.min(OFFER + 1)];
        self.slots.read(slot, 0, bytes);
        let step = negotiation.receive(header, bytes)?;
        self.slots.post_receive(&self.vi, slot)?;
        if let Some((kind, offer)) = step.send {
            self.send_offer(kind, offer)?;
        }
        let Some(Agreed { offer, theirs }) = step.agreed else { return Ok(Arrival::Nothing) };
        self.phase = Phase::Open { credits: Credits::new(self.own, theirs), offer };
        Ok(Arrival::Established)
    }

    fn send_offer(&mut self, kind: Kind, offer: Option<Offer>) -> Result<()> {
        let start = Sequence::default();
        let header = Header { kind, sequence: start, expected: start, credits: self.own };
        let Some(offer) = offer else { return self.slots.send_control(&self.vi, header) };
        let mut buffer = self.buffers.take(OFFER)?;
        buffer.append(&offer.to_bytes())?;
        let length = u32::try_from(buffer.len()).unwrap_or(u32::MAX);
        let segment = buffer.segment(MESSAGE_HEADER, length);
        self.slots.send_data(&self.vi, header, segment, Some(buffer))
    }

    /// The bytes of the message that is whole, in exchange for a vector whose memory is used again.
    pub(crate) fn take_message(&mut self, body: &mut Vec<u8>) {
        self.inbound.take(body);
    }

    /// Posts receives again and sends messages, as far as both sides have credits.
    fn transmit(&mut self) -> Result<()> {
        let Phase::Open { credits, offer } = &mut self.phase else { return Ok(()) };
        loop {
            let is_crowded = self.role == Role::Server && self.queued_bytes > BACKLOG;
            if !is_crowded && !self.is_paused {
                while let Some(slot) = self.held.pop() {
                    self.slots.post_receive(&self.vi, slot)?;
                    credits.posted();
                }
            }
            while let Some(header) = credits.control() {
                self.slots.send_control(&self.vi, header)?;
            }
            let Some(message) = self.outbound.front() else { break };
            let Some(header) = credits.send() else { return Ok(()) };
            let rest = message.total() - self.sent;
            let length = u32::try_from(rest).unwrap_or(u32::MAX).min(offer.mtu);
            let segment = message.segment(self.sent, length);
            self.sent += length as usize;
            self.queued_bytes -= length as usize;
            let is_last = self.sent == message.total();
            let last = if is_last { self.outbound.pop_front() } else { None };
            self.sent = if is_last { 0 } else { self.sent };
            self.slots.send_data(&self.vi, header, segment, last)?;
        }
        self.flushing.take().into_iter().for_each(Waker::wake);
        Ok(())
    }

    /// Takes the packets that have come, and with their credits sends what waits. Messages are dropped. True
    /// if nothing waits any more, or for ever.
    pub(crate) fn flush(&mut self) -> bool {
        while self.broken.is_none() && !self.outbound.is_empty() {
            let Some(completion) = self.poll() else { return false };
            // An error ends the connection.
            let _ = self.arrive(&completion);
        }
        true
    }

    /// Ends the connection: nothing will come of it any more.
    pub(crate) fn fail(&mut self, error: Error) {
        if self.broken.is_some() {
            return;
        }
        self.broken = Some(error);
        // From then on the NIC touches none of its memory.
        let _ = self.vi.disconnect();
        self.outbound.clear();
        self.flushing.take().into_iter().for_each(Waker::wake);
    }

    /// Ends the connection; what is posted still arrives.
    pub(crate) fn close(&mut self) {
        if self.broken.is_none() {
            let _ = self.slots.drain(&self.vi);
        }
        self.fail(Error::Lost);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.close();
        self.vi.retire();
    }
}
