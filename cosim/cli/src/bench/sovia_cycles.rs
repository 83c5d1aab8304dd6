//! A megabyte by the stream engine and by VIPL alone, in cycles of two simulated NICs.
//!
//! Simulated time stands still while a program does something: what is measured is what the engine's
//! packets, windows and acknowledgements cost the NICs and the wire, and no processor. One thread looks at
//! both ends, and lets time pass where neither of them can do anything, so that a run always takes the
//! same number of cycles.
//!
//! The megabyte follows another one, after which windows are in use and pipes are full.

use std::io::{ErrorKind, Read, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cosim::simulation::seeded::SeededSimulation;
use host_driver::HardwarePort;
use sovia::{Device, Policy, TcpStream};
use vipl::{
    Descriptor, DmaMemory, MemAttributes, NetAddress, Nic, Queue, Reliability, Vi, ViAttributes,
    VipReturn, Waiting,
};

use super::group::row;
use super::pair::{Pair, Setup};
use super::{Job, Row, Spec};
use crate::Failure;
use crate::demo::DeviceKind;
use crate::progress::Progress;

/// The row.
pub(super) const NAME: &str = "sovia.cosim";
/// Bytes of a message of VIPL: what a packet of the engine has, too.
const MESSAGE: usize = 32 << 10;
/// Bytes that are measured, and as many before.
const MEGABYTE: usize = 1 << 20;
/// Most cycles between two looks.
const LOOK: u64 = 64;
/// Cycles after which a transfer has hung: some forty times what it takes.
const MOST: u64 = 20_000_000;
/// Bound of a connection, by the clock of the simulation.
const SOON: Duration = Duration::from_millis(20);
/// Bytes between two descriptors.
const DESCRIPTOR: usize = 64;

/// A megabyte on one kind of NIC, in cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cycles {
    vipl: u64,
    stream: u64,
}

impl Cycles {
    fn measure(device: DeviceKind, progress: &Progress) -> Result<Self, Failure> {
        let job = Job { device, quick: false, synth: PathBuf::new(), filter: String::new() };
        let setup = Setup { vis: 0, probed: false, ..Setup::default() };
        let pair = || Pair::new(&job, progress, &setup);
        Ok(Self { vipl: vipl(&pair()?)?, stream: stream(&pair()?, Policy::DACKS)? })
    }

    /// That of VIPL as a part of that of the engine.
    #[expect(clippy::cast_precision_loss, reason = "some 100,000 cycles")]
    fn ratio(self) -> f64 {
        self.vipl as f64 / self.stream as f64
    }
}

/// The row: that of the kind on which the engine costs more.
pub(super) fn measure(specs: &[Spec], progress: &Progress) -> Result<Vec<Row>, Failure> {
    let kinds: &[DeviceKind] = if cfg!(feature = "rtl") {
        &[DeviceKind::Model, DeviceKind::Rtl]
    } else {
        &[DeviceKind::Model]
    };
    let (mut least, mut notes) = (f64::MAX, Vec::new());
    for &kind in kinds {
        let cycles = Cycles::measure(kind, progress)?;
        least = least.min(cycles.ratio());
        let name = if kind == DeviceKind::Model { "sim:model" } else { "sim:rtl" };
        let Cycles { vipl, stream } = cycles;
        notes.push(format!("{name}: a megabyte in {vipl} cycles by VIPL, {stream} by DACKS"));
    }
    Ok(vec![row(specs, NAME, least, notes.join("; "))])
}

fn nics(pair: &Pair<'_>) -> Result<[Nic; 2], Failure> {
    let [a, b] = [0, 1].map(|end| -> Result<Nic, Failure> {
        let port = HardwarePort::open(Arc::clone(&pair.ends[end].driver))?;
        Ok(Nic::open_with(port, Waiting::Poll))
    });
    Ok([a?, b?])
}

fn address(nic: &Nic, name: &[u8]) -> NetAddress {
    NetAddress::new(&nic.query().local_address, name)
}

/// Has both ends meet, each on a thread in a slot of the scheduler.
fn meet<A: Send, B: Send>(
    simulation: &SeededSimulation,
    asks: impl FnOnce() -> Result<A, Failure> + Send,
    answers: impl FnOnce() -> Result<B, Failure> + Send,
) -> Result<(A, B), Failure> {
    let [one, other] = ["asks", "answers"].map(|name| simulation.slot(name));
    std::thread::scope(|scope| {
        // An error of the simulation's threads goes from thread to thread as text.
        let text = |error: Failure| error.to_string();
        let asks = scope.spawn(move || one.run(|| asks().map_err(text)));
        let answers = scope.spawn(move || other.run(|| answers().map_err(text)));
        let joined = (asks.join(), answers.join());
        let panicked = "an end of a connection panicked";
        Ok((joined.0.map_err(|_| panicked)??, joined.1.map_err(|_| panicked)??))
    })
}

/// What moves bytes when it is asked to.
trait Transfer {
    /// Does what both ends can do now. True if that was something.
    fn go(&mut self) -> Result<bool, Failure>;
    /// Bytes that the program of the receiver has.
    fn received(&self) -> usize;
}

/// Cycles of the second megabyte.
fn cycles(simulation: &SeededSimulation, transfer: &mut dyn Transfer) -> Result<u64, Failure> {
    let (begin, mut half) = (simulation.now(), None);
    while transfer.received() < 2 * MEGABYTE {
        if !transfer.go()? {
            let _ = simulation.advance(LOOK);
        }
        let now = simulation.now();
        if half.is_none() && transfer.received() >= MEGABYTE {
            half = Some(now);
        }
        if now - begin > MOST {
            let bytes = transfer.received();
            return Err(format!("{bytes} bytes in {MOST} simulated cycles: it has hung").into());
        }
    }
    Ok(simulation.now() - half.unwrap_or(begin))
}

/// The byte at a place of the transfer.
fn byte(at: usize) -> u8 {
    (at * 7 + at / 251).to_le_bytes()[0]
}

fn check(from: usize, bytes: &[u8]) -> Result<(), Failure> {
    match bytes.iter().enumerate().find(|(at, found)| **found != byte(from + at)) {
        Some((at, _)) => Err(format!("byte {} arrived wrong", from + at).into()),
        None => Ok(()),
    }
}

/// Both ends of a stream.
struct Streams {
    ends: [TcpStream; 2],
    data: Vec<u8>,
    sent: usize,
    buffer: Vec<u8>,
    received: usize,
}

/// None: it would wait.
fn now(done: std::io::Result<usize>) -> Result<Option<usize>, Failure> {
    match done {
        Ok(0) => Err("the stream has ended".into()),
        Ok(count) => Ok(Some(count)),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error.into()),
    }
}

impl Transfer for Streams {
    fn go(&mut self) -> Result<bool, Failure> {
        let end = self.data.len().min(self.sent + MESSAGE);
        let message = &self.data[self.sent..end];
        let sent = if message.is_empty() { None } else { now((&self.ends[0]).write(message))? };
        self.sent += sent.unwrap_or(0);
        let read = now((&self.ends[1]).read(&mut self.buffer))?;
        check(self.received, &self.buffer[..read.unwrap_or(0)])?;
        self.received += read.unwrap_or(0);
        Ok(sent.is_some() || read.is_some())
    }

    fn received(&self) -> usize {
        self.received
    }
}

/// A megabyte by a stream.
fn stream(pair: &Pair<'_>, policy: Policy) -> Result<u64, Failure> {
    let [near, far] = nics(pair)?;
    let (here, there) = (address(&near, b"asks"), address(&far, b"answers"));
    let (near, far) = (Device::new(near, policy)?, Device::new(far, policy)?);
    let (client, server) = meet(
        &pair.simulation,
        || Ok(TcpStream::connect_to(&near, &here, &there)?),
        || {
            let request = far.nic().connect_wait(&there, SOON)?;
            Ok(TcpStream::accept_request(&far, &there, &request)?)
        },
    )?;
    let ends = [client, server];
    for end in &ends {
        end.set_nonblocking(true)?;
    }
    let data: Vec<u8> = (0..2 * MEGABYTE).map(byte).collect();
    let buffer = vec![0; MESSAGE];
    let mut streams = Streams { ends, data, sent: 0, buffer, received: 0 };
    cycles(&pair.simulation, &mut streams)
}

/// Both ends of a VI, whose receives are all posted, and then its sends.
struct Messages {
    vis: [Vi; 2],
    memory: DmaMemory,
    /// Those that are not posted yet; they are kept until all is done.
    sends: Vec<Descriptor>,
    posted: usize,
    done: usize,
}

impl Transfer for Messages {
    fn go(&mut self) -> Result<bool, Failure> {
        let before = (self.posted, self.done);
        for send in &self.sends[self.posted..] {
            self.vis[0].post_send(send)?;
            self.posted += 1;
        }
        match self.vis[1].poll(Queue::Recv) {
            Ok(completion) => {
                let length = completion.length() as usize;
                let mut bytes = vec![0; length];
                self.memory.copy_to(data(self.done), &mut bytes);
                check(self.done * MESSAGE, &bytes)?;
                self.done += 1;
            }
            Err(error) if error.code == VipReturn::NotDone => {}
            Err(error) => return Err(error.into()),
        }
        Ok(before != (self.posted, self.done))
    }

    fn received(&self) -> usize {
        self.done * MESSAGE
    }
}

/// Messages of two megabytes, and where the data of one is.
const COUNT: usize = 2 * MEGABYTE / MESSAGE;

const fn data(message: usize) -> usize {
    COUNT * DESCRIPTOR + message * MESSAGE
}

/// A megabyte by VIPL.
fn vipl(pair: &Pair<'_>) -> Result<u64, Failure> {
    let nics = nics(pair)?;
    let mut ends = Vec::new();
    for nic in &nics {
        let tag = nic.create_ptag()?;
        let memory = DmaMemory::new(data(COUNT))?;
        let region = nic.register_mem(&memory, MemAttributes::new(tag))?;
        let attributes = ViAttributes::new(Reliability::Delivery, tag);
        let vi = nic.create_vi(attributes, None, None)?;
        let mut descriptors = Vec::new();
        for message in 0..COUNT {
            let descriptor = region.descriptor(message * DESCRIPTOR, 1)?;
            let segment = region.segment(data(message), u32::try_from(MESSAGE)?);
            descriptor.prepare(&[segment], None)?;
            descriptors.push(descriptor);
        }
        ends.push((vi, memory, descriptors));
    }
    let (Some((far, arrived, receives)), Some((near, memory, sends))) = (ends.pop(), ends.pop())
    else {
        unreachable!("two NICs");
    };
    memory.copy_from(data(0), &(0..2 * MEGABYTE).map(byte).collect::<Vec<u8>>());
    for receive in &receives {
        far.post_recv(receive)?;
    }
    let (here, there) = (address(&nics[0], b"asks"), address(&nics[1], b"answers"));
    meet(
        &pair.simulation,
        || loop {
            match near.connect_request(&here, &there, SOON) {
                // The other thread does not wait yet.
                Err(error) if error.code == VipReturn::NoMatch => {}
                done => return Ok(done.map(drop)?),
            }
        },
        || Ok(nics[1].connect_wait(&there, SOON)?.accept(&far)?),
    )?;
    let mut messages = Messages { vis: [near, far], memory: arrived, sends, posted: 0, done: 0 };
    cycles(&pair.simulation, &mut messages)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(policy: Policy) -> u64 {
        let (job, progress) = (
            Job {
                device: DeviceKind::Model,
                quick: false,
                synth: PathBuf::new(),
                filter: String::new(),
            },
            Progress::default(),
        );
        let setup = Setup { vis: 0, probed: false, ..Setup::default() };
        stream(&Pair::new(&job, &progress, &setup).unwrap(), policy).unwrap()
    }

    #[test]
    fn a_megabyte_takes_the_same_cycles_in_every_run() {
        let one = Cycles::measure(DeviceKind::Model, &Progress::default()).unwrap();
        let other = Cycles::measure(DeviceKind::Model, &Progress::default()).unwrap();
        assert_eq!(one, other);
        // 8 bytes a cycle is what the link carries.
        assert!(one.vipl >= 1 << 17 && one.stream >= 1 << 17, "{one:?}");
    }

    /// The paper's order, without the noise of processors.
    #[test]
    fn one_packet_at_a_time_takes_longer_than_a_window() {
        let [single, window, delayed] =
            [Policy::SINGLE, Policy::FLOWCTRL, Policy::DACKS].map(measured);
        assert!(single > window && window >= delayed, "{single} {window} {delayed}");
    }
}
