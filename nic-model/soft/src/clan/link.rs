//! One end of a connection: the queues to and from the VI at the other end.
//!
//! ```text
//!   this VI                                           the other one
//!   messages (transfer queue)  ----- stores ----->    its inbox
//!   rooms    (cookie queue)    ----- stores ----->    its inbox
//!   own inbox                  <----- stores -----    its messages, its rooms
//! ```

use std::collections::{BTreeMap, VecDeque};

use port::clan::message_queue::{Layout, Receiver, Sender};
use port::clan::{AccessRights, ClanPeer, ClanPort, Cookie, DmaError, RegionNumber, Remote};
use port::{DmaMemory, Extensions, Handle, RemoteAttributes, Result};

use super::inbox::{COOKIES, DATA, DATA_BYTES, Inbox, OFFERED, TRANSFER};
use super::targets::Targets;
use super::wire::{PIECES, Room, RoomPiece, Transfer, more_pieces, piece};
use crate::via::descriptor::{Piece, Pieces};
use crate::via::region::Known;

/// Regions of the peer that are kept accessible.
const REMOTES: usize = 32;

/// One end of a connection.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) peer: ClanPeer,
    pub(super) remote: RemoteAttributes,
    pub(super) inbox: Inbox,
    /// The other VI's inbox.
    pub(super) to: Box<dyn Remote>,
    pub(super) messages: Sender,
    pub(super) arrived: Receiver,
    rooms: Sender,
    pub(super) theirs: Receiver,
    data: DataRing,
    /// Bytes of the own inbox's data that were taken since the peer was last notified.
    data_taken: usize,
    /// The peer's receives take messages that are longer together.
    pub(super) splits: bool,
    /// Regions of this program that are open to the peer: for its sends, and for its RDMA.
    opened: BTreeMap<u32, Opened>,
    pub(super) targets: Targets,
    /// Regions of the peer, the one that was used last at the end.
    remotes: Vec<(Cookie, Box<dyn Remote>)>,
    /// The last one that it did not give access to.
    refused: Option<Cookie>,
}

/// What the VI at the other end asks of this one, by the extensions that it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asks {
    /// To give it messages that are longer than a receive.
    split: bool,
    /// To write the cookie queue's write pointer, for its sends that wait.
    notify: bool,
}

impl Asks {
    pub(super) const fn of(extensions: &Extensions) -> Self {
        Self { split: extensions.split_receive, notify: extensions.defer_send }
    }

    pub(super) const fn to_bits(self) -> u64 {
        self.split as u64 | (self.notify as u64) << 1
    }

    /// None for bits without a meaning.
    pub(super) const fn from_bits(bits: u64) -> Option<Self> {
        if bits > 3 {
            return None;
        }
        Some(Self { split: bits & 1 != 0, notify: bits & 2 != 0 })
    }
}

/// A region of this program.
#[derive(Clone, Copy, Debug)]
struct Opened {
    region: RegionNumber,
    sends: Option<Cookie>,
    rdma: Option<Cookie>,
}

/// The ring of data in the peer's inbox.
#[derive(Debug, Default)]
struct DataRing {
    /// Where the next data goes, and where the oldest that was not taken starts: bytes since the
    /// beginning.
    next: u64,
    oldest: u64,
    /// Ends of what was sent, with the numbers of their messages.
    sent: VecDeque<(u64, u64)>,
}

impl DataRing {
    /// A place for `length` bytes in one piece; messages before `taken` were taken.
    fn place(&mut self, length: usize, taken: u64) -> Option<(u64, usize)> {
        while let Some((number, end)) = self.sent.front().copied()
            && number < taken
        {
            self.oldest = end;
            self.sent.pop_front();
        }
        let (size, length) = (DATA_BYTES as u64, length.next_multiple_of(64) as u64);
        let at = self.next % size;
        let start = if at + length > size { self.next + size - at } else { self.next };
        let fits = start + length - self.oldest <= size;
        fits.then(|| (start + length, usize::try_from(start % size).unwrap_or(0)))
    }

    fn enter(&mut self, number: u64, end: u64) {
        self.next = end;
        self.sent.push_back((number, end));
    }
}

impl Link {
    /// One end, before anything is sent. `start` is the number that the queues of the other inbox begin
    /// with.
    pub(super) fn new(
        peer: ClanPeer,
        remote: RemoteAttributes,
        inbox: Inbox,
        to: Box<dyn Remote>,
        start: u64,
        asks: Asks,
    ) -> Self {
        let memory = || inbox.memory.clone();
        let messages = Sender::new(TRANSFER, memory(), start);
        let written = asks.notify.then_some(OFFERED);
        let rooms = Sender::new(Layout { written, ..COOKIES }, memory(), start);
        let arrived = Receiver::new(TRANSFER, memory(), inbox.start);
        let theirs = Receiver::new(COOKIES, memory(), inbox.start);
        let (data, opened, remotes) = (DataRing::default(), BTreeMap::new(), Vec::new());
        Self {
            peer,
            remote,
            inbox,
            to,
            messages,
            arrived,
            rooms,
            theirs,
            data,
            data_taken: 0,
            splits: asks.split,
            opened,
            targets: Targets::default(),
            remotes,
            refused: None,
        }
    }

    /// A number behind all that were used.
    pub(super) fn end(&self) -> u64 {
        let numbers = [
            self.messages.number(),
            self.rooms.number(),
            self.arrived.number() + TRANSFER.count as u64,
            self.theirs.number() + COOKIES.count as u64,
        ];
        numbers.into_iter().max().unwrap_or(0) + 1
    }

    /// Sends a message of the transfer queue. False: there is no room.
    pub(super) fn send(&mut self, transfer: Transfer) -> core::result::Result<bool, DmaError> {
        if self.messages.room() == 0 {
            return Ok(false);
        }
        self.messages.send(&mut *self.to, &transfer.to_body()).map(|()| true)
    }

    /// Puts the bytes from `start` on of a message into the peer's inbox, if there is room; their place
    /// there.
    #[inline]
    pub(super) fn put(
        &mut self,
        known: &Known,
        pieces: &Pieces,
        (start, length): (usize, usize),
    ) -> core::result::Result<Option<u32>, DmaError> {
        let taken = self.messages.taken();
        let Some((end, place)) = self.data.place(length, taken) else { return Ok(None) };
        let mut at = (DATA + place) as u64;
        for piece in pieces.part(start, length) {
            let memory = &known.at(piece.place).memory;
            self.to.write_part(at, memory, piece.offset, piece.length)?;
            at += piece.length as u64;
        }
        self.data.enter(self.messages.number(), end);
        Ok(u32::try_from(place).ok())
    }

    /// The oldest message is taken, and so many bytes of data with it.
    #[inline]
    pub(super) fn take(&mut self, data: usize) {
        self.arrived.take();
        self.data_taken += data;
        // A peer that does not exist any more is found lost elsewhere.
        let _ = if self.data_taken >= DATA_BYTES / 4 {
            self.data_taken = 0;
            self.arrived.give_back_all(&mut *self.to)
        } else {
            self.arrived.give_back(&mut *self.to)
        };
    }

    /// Notifies the peer of a receive descriptor. False: there is no room.
    pub(super) fn offer(
        &mut self,
        room: Room,
        pieces: &[RoomPiece],
    ) -> core::result::Result<bool, DmaError> {
        let groups = pieces.len().div_ceil(PIECES).max(1);
        if self.rooms.room() < groups {
            return Ok(false);
        }
        let (front, rest) = pieces.split_at(pieces.len().min(PIECES));
        self.rooms.send(&mut *self.to, &room.to_body(front))?;
        for pieces in rest.chunks(PIECES) {
            self.rooms.send(&mut *self.to, &more_pieces(pieces))?;
        }
        Ok(true)
    }

    /// The oldest receive descriptor of the peer, if it is here with all its pieces.
    #[inline]
    pub(super) fn room(&self) -> Option<Room> {
        let room = Room::from_body(&self.theirs.peek()?)?;
        let behind = (room.pieces as usize).div_ceil(PIECES).saturating_sub(1);
        let whole = behind == 0 || self.theirs.peek_behind(behind as u64).is_some();
        whole.then_some(room)
    }

    /// Has the processor fetch the oldest receive descriptor of the peer, for a send that may follow.
    #[inline]
    pub(super) fn look_ahead(&self) {
        self.theirs.is_there();
    }

    /// The pieces of that descriptor.
    pub(super) fn pieces(&self, room: &Room) -> Option<Vec<RoomPiece>> {
        (0..room.pieces as usize).map(|number| self.piece(number)).collect()
    }

    /// One of the pieces of that descriptor.
    pub(super) fn piece(&self, number: usize) -> Option<RoomPiece> {
        let body = self.theirs.peek_behind((number / PIECES) as u64)?;
        piece(&body, number % PIECES)
    }

    /// The descriptor is used.
    ///
    /// With the first one the region of the next is asked for: the receives of a peer mostly are in one,
    /// and a peer that is stopped before the first long message would not answer.
    #[inline]
    pub(super) fn take_room(&mut self, port: &dyn ClanPort, room: &Room) {
        for _ in 0..(room.pieces as usize).div_ceil(PIECES).max(1) {
            self.theirs.take();
        }
        // A peer that does not exist any more is found lost elsewhere.
        let _ = self.theirs.give_back(&mut *self.to);
        if self.remotes.is_empty() && self.refused.is_none() {
            self.attach_next(port);
        }
    }

    #[cold]
    fn attach_next(&mut self, port: &dyn ClanPort) {
        let next = self.room().filter(|room| room.pieces > 0).and_then(|_| self.piece(0));
        if let Some(piece) = next {
            self.remote(port, piece.cookie);
        }
    }

    /// The cookie by which the peer writes a region of this program.
    pub(super) fn cookie(
        &mut self,
        port: &dyn ClanPort,
        known: &Known,
        piece: Piece,
    ) -> Result<Cookie> {
        let handle = known.handle(piece.place).0;
        if let Some(cookie) = self.opened.get(&handle).and_then(|opened| opened.sends) {
            return Ok(cookie);
        }
        let opened = self.open(port, handle, &known.at(piece.place).memory)?;
        let cookie = port.open(opened.region, &self.peer, AccessRights::WRITE)?;
        self.opened.insert(handle, Opened { sends: Some(cookie), ..opened });
        Ok(cookie)
    }

    /// The cookie by which the peer's RDMA accesses a region of this program.
    pub(super) fn open_rdma(
        &mut self,
        port: &dyn ClanPort,
        handle: Handle,
        memory: &DmaMemory,
        rights: AccessRights,
    ) -> Result<Cookie> {
        let opened = self.open(port, handle.0, memory)?;
        if let Some(cookie) = opened.rdma.filter(|cookie| cookie.rights == rights) {
            return Ok(cookie);
        }
        let cookie = port.open(opened.region, &self.peer, rights)?;
        self.opened.insert(handle.0, Opened { rdma: Some(cookie), ..opened });
        Ok(cookie)
    }

    fn open(&mut self, port: &dyn ClanPort, handle: u32, memory: &DmaMemory) -> Result<Opened> {
        if let Some(opened) = self.opened.get(&handle) {
            return Ok(*opened);
        }
        let opened = Opened { region: port.register(memory)?, sends: None, rdma: None };
        self.opened.insert(handle, opened);
        Ok(opened)
    }

    /// Closes a region of this program to the peer.
    pub(super) fn close(&mut self, port: &dyn ClanPort, handle: Handle) -> Result<()> {
        if let Some(Opened { region, .. }) = self.opened.get(&handle.0).copied() {
            port.deregister(region)?;
            self.opened.remove(&handle.0);
        }
        Ok(())
    }

    /// Closes all regions of this program to the peer.
    pub(super) fn close_all(&mut self, port: &dyn ClanPort) -> Result<()> {
        let handles: Vec<u32> = self.opened.keys().copied().collect();
        handles.into_iter().try_for_each(|handle| self.close(port, Handle(handle)))
    }

    /// A region of the peer. None: the cookie is void.
    pub(super) fn remote(
        &mut self,
        port: &dyn ClanPort,
        cookie: Cookie,
    ) -> Option<&mut Box<dyn Remote>> {
        if self.refused == Some(cookie) {
            return None;
        }
        let known = self.remotes.iter().position(|(known, _)| *known == cookie);
        let found = match known {
            Some(place) if place + 1 == self.remotes.len() => {
                return self.remotes.last_mut().map(|(_, remote)| remote);
            }
            Some(place) => self.remotes.remove(place),
            None => {
                let attached = port.attach(&self.peer, cookie);
                let remote = attached.inspect_err(|_| self.refused = Some(cookie)).ok()?;
                (cookie, remote)
            }
        };
        if self.remotes.len() >= REMOTES {
            self.remotes.remove(0);
        }
        self.remotes.push(found);
        self.remotes.last_mut().map(|(_, remote)| remote)
    }
}
