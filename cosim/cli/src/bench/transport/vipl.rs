//! VIPL on a device, with memory that the program has anyway, as SOVIA or an old VIA program uses it.

use std::collections::BTreeMap;
use std::time::Instant;

use port::DmaMemory;
use port::stamp::{self, Stage};
use port::work_queue::Head;
use vipl::queue_pair;
use vipl::{
    Cq, Descriptor, INFINITE, MemAttributes, NetAddress, Nic, Queue, Region, Reliability, Status,
    Vi, ViAttributes, VipReturn, Waiting,
};

use super::choice::Choice;
use super::{BOUND, Offered, Transport, poll};
use crate::Failure;

/// Bytes of descriptors, and of buffers, up to which as many as [`MOST`] are there.
const MEMORY: usize = 8 << 20;
/// Most and fewest receives that are posted, and most sends.
const MOST: usize = 64;
const FEWEST: usize = 8;
/// Bytes between two descriptors of one segment.
const DESCRIPTOR: usize = 64;
/// Discriminator of the addresses.
const SERVICE: &[u8] = b"bench";

/// A NIC and registered memory, cut into places for a descriptor and its data.
pub(super) struct Station {
    pub(super) nic: Nic,
    memory: DmaMemory,
    region: Region,
    pub(super) attributes: ViAttributes,
    largest: usize,
}

impl Station {
    /// With so many places; `places` is given the size of the largest piece of a message.
    pub(super) fn open(
        device: &str,
        waiting: Waiting,
        largest: usize,
        places: impl FnOnce(usize) -> usize,
    ) -> Result<Self, Failure> {
        let nic = Nic::open_with(device::open(device)?, waiting);
        let tag = nic.create_ptag()?;
        let largest = largest.clamp(64, nic.query().max_transfer_size as usize);
        let memory = DmaMemory::new(places(largest) * (DESCRIPTOR + largest))?;
        memory.fill(1);
        let region = nic.register_mem(&memory, MemAttributes::new(tag))?;
        let attributes = ViAttributes::new(Reliability::Delivery, tag);
        Ok(Self { nic, memory, region, attributes, largest })
    }

    fn data(&self, place: usize) -> usize {
        self.places() * DESCRIPTOR + place * self.largest
    }

    fn places(&self) -> usize {
        self.memory.len() / (DESCRIPTOR + self.largest)
    }

    fn descriptor(&self, place: usize, length: usize) -> Result<Descriptor, Failure> {
        let descriptor = self.region.descriptor(place * DESCRIPTOR, 1)?;
        self.prepare(&descriptor, place, length)?;
        Ok(descriptor)
    }

    fn prepare(&self, descriptor: &Descriptor, place: usize, length: usize) -> Result<(), Failure> {
        let segment = self.region.segment(self.data(place), u32::try_from(length)?);
        Ok(descriptor.prepare(&[segment], None)?)
    }

    pub(super) fn host(&self) -> Vec<u8> {
        self.nic.query().local_address
    }

    pub(super) fn accept(&self, vi: &Vi, service: &[u8]) -> Result<(), Failure> {
        let local = NetAddress::new(&self.host(), service);
        Ok(self.nic.connect_wait(&local, BOUND)?.accept(vi)?)
    }

    pub(super) fn connect(&self, vi: &Vi, host: &[u8], service: &[u8]) -> Result<(), Failure> {
        let local = NetAddress::new(&self.host(), b"");
        let remote = NetAddress::new(host, service);
        let end = Instant::now() + BOUND;
        loop {
            match vi.connect_request(&local, &remote, BOUND) {
                Ok(_) => return Ok(()),
                Err(error) if error.code == VipReturn::NoMatch && Instant::now() < end => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(super) fn unhex(text: &str) -> Result<Vec<u8>, Failure> {
    let digits: Vec<char> = text.chars().collect();
    let byte = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16);
    Ok(digits.chunks(2).map(byte).collect::<Result<_, _>>()?)
}

/// Turns between two looks at what happened on the NIC, which a thread of the C library does.
const LOOK: u32 = 4096;

/// A VI that is used as the C library does: by the work queue, and by the VI only if that is not enough.
struct Lane {
    vi: Vi,
    nic: Nic,
    /// Of the memory with its descriptors.
    handle: u32,
}

impl Lane {
    fn new(station: &Station, cq: Option<&Cq>) -> Result<Self, Failure> {
        let vi = station.nic.create_vi(station.attributes, None, cq)?;
        let handle = station.region.segment(0, 0).handle;
        Ok(Self { vi, nic: station.nic.clone(), handle })
    }

    #[inline]
    fn post(&self, queue: Queue, descriptor: &Descriptor) -> Result<(), Failure> {
        let (address, handle) = (descriptor.address(), self.handle);
        let work = queue_pair::queue(self.vi.slot(), queue).ok_or("a VI without queues")?;
        if work.lock().post(address, port::Handle(handle)).is_err() {
            self.vi.post_at(queue, address, handle)?;
        }
        Ok(())
    }

    /// Waits for the oldest descriptor of a queue.
    #[inline]
    fn poll(&self, queue: Queue) -> Result<(), Failure> {
        let work = queue_pair::queue(self.vi.slot(), queue).ok_or("a VI without queues")?;
        let mut turn = 0_u32;
        poll(|| match work.lock().poll_address() {
            Head::Done((_, status)) if Status(status).is_error() => {
                Err(format!("a descriptor ended with {:?}", Status(status)).into())
            }
            Head::Done(_) => Ok(Some(())),
            Head::Empty => Err("nothing is posted".into()),
            Head::NotDone => {
                turn += 1;
                if turn.is_multiple_of(LOOK) {
                    self.nic.progress();
                }
                Ok(None)
            }
        })
    }
}

/// One VI.
struct One {
    station: Station,
    lane: Lane,
    blocking: bool,
    /// Receives, and the places behind them for sends.
    receives: usize,
    /// Numbers of the next receive, the next send, the next send that is to be done.
    next_receive: usize,
    /// Receives that were posted again.
    posted: usize,
    next_send: usize,
    done: usize,
    /// Of receives, and of sends, with the length that each has now.
    descriptors: Vec<(Descriptor, usize)>,
}

impl One {
    fn new(device: &str, blocking: bool, largest: usize) -> Result<Self, Failure> {
        let waiting = if blocking {
            Waiting::Sleep { after: core::time::Duration::ZERO }
        } else {
            Waiting::Poll
        };
        let half = |largest: usize| (MEMORY / largest).clamp(FEWEST, MOST);
        let station = Station::open(device, waiting, largest, |largest| 2 * half(largest))?;
        let receives = half(station.largest);
        let lane = Lane::new(&station, None)?;
        let largest = station.largest;
        let descriptor = |place| Ok::<_, Failure>((station.descriptor(place, largest)?, largest));
        let descriptors: Vec<_> = (0..2 * receives).map(descriptor).collect::<Result<_, _>>()?;
        for (descriptor, _) in &descriptors[..receives] {
            lane.vi.post_recv(descriptor)?;
        }
        Ok(Self {
            station,
            lane,
            blocking,
            receives,
            next_receive: 0,
            posted: 0,
            next_send: 0,
            done: 0,
            descriptors,
        })
    }

    fn finish_send(&mut self) -> Result<(), Failure> {
        if self.blocking {
            self.lane.vi.send_wait(INFINITE)?;
        } else {
            self.lane.poll(Queue::Send)?;
        }
        self.done += 1;
        Ok(())
    }

    #[inline]
    fn send_piece(&mut self, length: usize, stamp: u32) -> Result<(), Failure> {
        // The descriptor and the buffer are free again.
        while self.next_send - self.done >= self.receives {
            self.finish_send()?;
        }
        let place = self.receives + self.next_send % self.receives;
        self.station.memory.store_u32(self.station.data(place), stamp);
        let (descriptor, prepared) = &mut self.descriptors[place];
        if *prepared != length {
            self.station.prepare(descriptor, place, length)?;
            *prepared = length;
        }
        stamp::stamp(Stage::Program);
        self.lane.post(Queue::Send, &self.descriptors[place].0)?;
        stamp::stamp(Stage::Return);
        self.next_send += 1;
        self.repost()?;
        stamp::stamp(Stage::Repost);
        Ok(())
    }

    #[inline]
    fn receive_piece(&mut self) -> Result<u32, Failure> {
        self.repost()?;
        if self.blocking {
            self.lane.vi.recv_wait(BOUND)?;
        } else {
            self.lane.poll(Queue::Recv)?;
        }
        stamp::stamp(Stage::Poll);
        let place = self.next_receive % self.receives;
        let stamp = self.station.memory.load_u32(self.station.data(place));
        self.next_receive += 1;
        Ok(stamp)
    }

    /// Posts the receives that are done again, which programs that answer do behind the answer.
    #[inline]
    fn repost(&mut self) -> Result<(), Failure> {
        while self.posted < self.next_receive {
            // Receives are done in the order in which they were posted.
            self.lane.post(Queue::Recv, &self.descriptors[self.posted % self.receives].0)?;
            self.posted += 1;
        }
        Ok(())
    }
}

impl Transport for One {
    fn send(&mut self, length: usize, stamp: u32) -> Result<(), Failure> {
        let mut left = length;
        loop {
            let piece = left.min(self.station.largest);
            self.send_piece(piece, stamp)?;
            left -= piece;
            if left == 0 {
                return Ok(());
            }
        }
    }

    fn receive(&mut self, length: usize) -> Result<u32, Failure> {
        let mut left = length;
        loop {
            let stamp = self.receive_piece()?;
            left = left.saturating_sub(self.station.largest);
            if left == 0 {
                return Ok(stamp);
            }
        }
    }
}

impl Drop for One {
    fn drop(&mut self) {
        self.station.nic.clone().close();
    }
}

pub(super) fn offer(device: &str, blocking: bool, largest: usize) -> Result<Offered, Failure> {
    let one = One::new(device, blocking, largest)?;
    let place = hex(&one.station.host());
    let accept = move || -> Result<Box<dyn Transport>, Failure> {
        one.station.accept(&one.lane.vi, SERVICE)?;
        Ok(Box::new(one))
    };
    Ok(Offered { place, accept: Box::new(accept) })
}

pub(super) fn join(
    device: &str,
    blocking: bool,
    largest: usize,
    place: &str,
) -> Result<Box<dyn Transport>, Failure> {
    let one = One::new(device, blocking, largest)?;
    one.station.connect(&one.lane.vi, &unhex(place)?, SERVICE)?;
    Ok(Box::new(one))
}

/// Many VIs, whose receives one completion queue reports. Each has one receive and one send. The end
/// that asks takes one by chance on which no request is under way; the other answers where it was
/// asked.
struct Many {
    station: Station,
    lanes: Vec<Lane>,
    /// A receive of each VI, then a send of each with the length that it has now.
    receives: Vec<Descriptor>,
    sends: Vec<(Descriptor, usize)>,
    cq: Cq,
    choice: Choice,
    by_number: BTreeMap<u16, usize>,
    /// Looks at the completion queue in vain.
    turn: u32,
}

impl Many {
    fn new(device: &str, vis: usize, largest: usize, answers: bool) -> Result<Self, Failure> {
        let station = Station::open(device, Waiting::Poll, largest, |_| 2 * vis)?;
        let cq = station.nic.create_cq(u32::try_from(2 * vis)?)?;
        let lane = |_| Lane::new(&station, Some(&cq));
        let lanes: Vec<Lane> = (0..vis).map(lane).collect::<Result<_, _>>()?;
        let largest = station.largest;
        let receive = |place| station.descriptor(place, largest);
        let receives: Vec<Descriptor> = (0..vis).map(receive).collect::<Result<_, _>>()?;
        let send = |place| Ok::<_, Failure>((station.descriptor(place, largest)?, largest));
        let sends = (vis..2 * vis).map(send).collect::<Result<_, _>>()?;
        for (lane, receive) in lanes.iter().zip(&receives) {
            lane.vi.post_recv(receive)?;
        }
        let by_number = lanes.iter().enumerate().map(|(at, lane)| (lane.vi.number(), at)).collect();
        let choice = Choice::new(vis, answers);
        Ok(Self { station, lanes, receives, sends, cq, choice, by_number, turn: 0 })
    }

    /// Service of each VI, so that those of both ends are the same.
    fn service(at: usize) -> Vec<u8> {
        format!("bench {at}").into_bytes()
    }
}

impl Transport for Many {
    fn send(&mut self, length: usize, stamp: u32) -> Result<(), Failure> {
        let at = self.choice.next()?;
        let place = self.lanes.len() + at;
        self.station.memory.store_u32(self.station.data(place), stamp);
        let (descriptor, prepared) = &mut self.sends[at];
        if *prepared != length {
            self.station.prepare(descriptor, place, length)?;
            *prepared = length;
        }
        self.lanes[at].post(Queue::Send, descriptor)?;
        self.lanes[at].poll(Queue::Send)
    }

    fn receive(&mut self, length: usize) -> Result<u32, Failure> {
        poll(|| self.poll_receive(length))
    }

    #[inline]
    fn poll_receive(&mut self, _length: usize) -> Result<Option<u32>, Failure> {
        let entry = match self.cq.poll() {
            Ok(entry) => entry,
            Err(VipReturn::NotDone) => {
                self.turn = self.turn.wrapping_add(1);
                if self.turn.is_multiple_of(LOOK) {
                    self.station.nic.progress();
                }
                return Ok(None);
            }
            Err(code) => return Err(format!("the completion queue: {code}").into()),
        };
        let at = *self.by_number.get(&entry.vi.number()).ok_or("a completion of no VI")?;
        self.lanes[at].poll(Queue::Recv)?;
        let stamp = self.station.memory.load_u32(self.station.data(at));
        self.lanes[at].post(Queue::Recv, &self.receives[at])?;
        self.choice.received(at);
        Ok(Some(stamp))
    }
}

impl Drop for Many {
    fn drop(&mut self) {
        self.station.nic.clone().close();
    }
}

pub(super) fn offer_many(device: &str, vis: usize, largest: usize) -> Result<Offered, Failure> {
    let many = Many::new(device, vis, largest, false)?;
    let place = hex(&many.station.host());
    let accept = move || -> Result<Box<dyn Transport>, Failure> {
        for (at, lane) in many.lanes.iter().enumerate() {
            many.station.accept(&lane.vi, &Many::service(at))?;
        }
        Ok(Box::new(many))
    };
    Ok(Offered { place, accept: Box::new(accept) })
}

pub(super) fn join_many(
    device: &str,
    vis: usize,
    largest: usize,
    place: &str,
) -> Result<Box<dyn Transport>, Failure> {
    let many = Many::new(device, vis, largest, true)?;
    let host = unhex(place)?;
    for (at, lane) in many.lanes.iter().enumerate() {
        many.station.connect(&lane.vi, &host, &Many::service(at))?;
    }
    Ok(Box::new(many))
}
