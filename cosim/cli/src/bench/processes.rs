//! Two processes, each on a processor of its own: this one, and one that does what this one says.
//!
//! The other one is this command with the hidden subcommand `bench peer`. It reads a request a line and
//! answers each with a line: `open LARGEST PLACE KIND`, `pong TRANSPORT LENGTH ROUNDS`, `sink TRANSPORT
//! LENGTH COUNT WINDOW`, `both TRANSPORT LENGTH COUNT WINDOW`, `stamps TRANSPORT LENGTH ROUNDS STAGE
//! STAGE`, whose answer has a line for each round, and an end like its beginning. An answer is `error`
//! and why, or `ok` and the processor time that the request took, in nanoseconds. It ends with its input.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use port::stamp::{Stage, Stamps};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

use super::stamped;
use super::transport::{self, Kind, Transport};
use crate::Failure;

/// Bytes of a credit.
const CREDIT: usize = 4;

/// How long the other process may take to end.
const END_BOUND: Duration = Duration::from_secs(2);

/// The other process.
struct Peer {
    process: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Peer {
    fn start(arguments: &[&str]) -> Result<Self, Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["bench", "peer"]).args(arguments);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let requests = process.stdin.take();
        let answers = process.stdout.take().ok_or("no output of the other process")?;
        Ok(Self { process, requests, answers: BufReader::new(answers) })
    }

    fn request(&mut self, line: &str) -> Result<(), Failure> {
        let requests = self.requests.as_mut().ok_or("the other process has ended")?;
        writeln!(requests, "{line}")?;
        Ok(requests.flush()?)
    }

    fn line(&mut self) -> Result<String, Failure> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        Ok(line)
    }

    fn answer(&mut self) -> Result<String, Failure> {
        let line = self.line()?;
        match line.trim_end().split_once(' ').unwrap_or((line.trim_end(), "")) {
            ("ok", rest) => Ok(rest.to_owned()),
            ("error", why) => Err(format!("the other process: {why}").into()),
            _ => Err("the other process has ended".into()),
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        drop(self.requests.take());
        // After an error it may wait for this one for ever.
        let end = Instant::now() + END_BOUND;
        while matches!(self.process.try_wait(), Ok(None)) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// This process and the other one, with transports between them.
pub(crate) struct Processes {
    peer: Peer,
    transports: Vec<(Kind, Box<dyn Transport>)>,
    /// Whether each has a processor of its own.
    pub(crate) are_apart: bool,
    /// Processors that this thread could use before.
    allowed: CpuSet,
    /// Processor time of both processes during the last measurement, in nanoseconds.
    pub(crate) processor_time: f64,
    /// That of this process when the measurement began.
    own_before: f64,
}

impl Drop for Processes {
    fn drop(&mut self) {
        let _ = sched_setaffinity(None, &self.allowed);
    }
}

/// Puts this thread, and those that it starts, on the allowed processor with this number.
fn pin(number: usize) -> Result<bool, Failure> {
    let allowed = sched_getaffinity(None)?;
    let mut all = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu));
    let Some(cpu) = all.nth(number) else { return Ok(false) };
    let mut own = CpuSet::new();
    own.set(cpu);
    sched_setaffinity(None, &own)?;
    Ok(true)
}

impl Processes {
    /// Starts the other process.
    pub(crate) fn start() -> Result<Self, Failure> {
        let allowed = sched_getaffinity(None)?;
        // The other one inherits what this one may use, so it begins before this one is pinned.
        let mut peer = Peer::start(&[])?;
        let are_apart = peer.answer()? == "apart" && pin(0)?;
        let (transports, processor_time, own_before) = (Vec::new(), 0.0, 0.0);
        Ok(Self { peer, transports, are_apart, allowed, processor_time, own_before })
    }

    /// Opens a transport for messages of up to `largest` bytes; its number.
    pub(crate) fn open(&mut self, kind: &Kind, largest: usize) -> Result<usize, Failure> {
        let failed = |why: Failure| -> Failure { format!("{kind}: {why}").into() };
        let offered = transport::offer(kind, largest).map_err(failed)?;
        self.peer.request(&format!("open {largest}\t{}\t{kind}", offered.place))?;
        let transport = (offered.accept)();
        // The other one knows better why.
        self.peer.answer().map_err(failed)?;
        self.transports.push((kind.clone(), transport.map_err(failed)?));
        Ok(self.transports.len() - 1)
    }

    /// Exchanges `rounds` messages there and back; the time of one way, in nanoseconds.
    pub(crate) fn one_way(
        &mut self,
        number: usize,
        length: usize,
        rounds: u32,
    ) -> Result<f64, Failure> {
        self.begin(&format!("pong {number} {length} {rounds}"))?;
        let transport = &mut self.transports[number].1;
        // The first ones find caches cold.
        let warm = (rounds / 8).max(1);
        ping(&mut **transport, length, warm)?;
        let start = Instant::now();
        ping(&mut **transport, length, rounds - warm)?;
        let time = nanoseconds(start.elapsed());
        self.end()?;
        Ok(time / 2.0 / f64::from(rounds - warm))
    }

    /// Numbers of this process and of the other one.
    pub(crate) fn ids(&self) -> [u32; 2] {
        [std::process::id(), self.peer.process.id()]
    }

    /// Exchanges messages as [`Self::one_way`], with stamps of these stages; those of each round, of
    /// this process and of the other one.
    pub(crate) fn stamped(
        &mut self,
        number: usize,
        (length, rounds): (usize, u32),
        wanted: [Stage; 2],
    ) -> Result<[Vec<Stamps>; 2], Failure> {
        let [one, other] = wanted.map(|stage| stage as usize);
        self.peer.request(&format!("stamps {number} {length} {rounds} {one} {other}"))?;
        let transport = &mut *self.transports[number].1;
        let own = stamped::exchange(transport, true, (length, rounds), wanted)?;
        self.peer.answer()?;
        let theirs = (0..rounds).map(|_| stamped::from_line(&self.peer.line()?));
        let theirs = theirs.collect::<Result<_, _>>()?;
        self.peer.answer()?;
        Ok([own, theirs])
    }

    /// Exchanges `rounds` messages there and back, each timed alone; the times of one way, in
    /// nanoseconds. The clock is read once a round, which [`Self::one_way`] does not pay for.
    pub(crate) fn one_ways(
        &mut self,
        number: usize,
        length: usize,
        rounds: u32,
    ) -> Result<Vec<f64>, Failure> {
        let warm = (rounds / 8).max(1);
        self.begin(&format!("pong {number} {length} {}", warm + rounds))?;
        let transport = &mut self.transports[number].1;
        ping(&mut **transport, length, warm)?;
        let mut times = Vec::with_capacity(usize::try_from(rounds)?);
        let mut before = Instant::now();
        for _ in 0..rounds {
            ping(&mut **transport, length, 1)?;
            let now = Instant::now();
            times.push(nanoseconds(now - before) / 2.0);
            before = now;
        }
        self.end()?;
        Ok(times)
    }

    /// Sends `rounds` requests of which `outstanding` are under way, each once an answer has come;
    /// the time of one, in nanoseconds.
    pub(crate) fn requests(
        &mut self,
        number: usize,
        length: usize,
        rounds: u32,
        outstanding: u32,
    ) -> Result<f64, Failure> {
        self.begin(&format!("pong {number} {length} {rounds}"))?;
        let transport = &mut self.transports[number].1;
        let start = Instant::now();
        let ahead = outstanding.min(rounds);
        for stamp in 0..ahead {
            transport.send(length, stamp)?;
        }
        for stamp in ahead..rounds {
            transport.receive(length)?;
            transport.send(length, stamp)?;
        }
        for _ in 0..ahead {
            transport.receive(length)?;
        }
        let time = nanoseconds(start.elapsed());
        self.end()?;
        Ok(time / f64::from(rounds))
    }

    /// Sends `rounds` requests, one every `interval` nanoseconds, of which `most` may be under way: a
    /// request that is due waits for an answer; the time of one, in nanoseconds.
    pub(crate) fn offered(
        &mut self,
        number: usize,
        length: usize,
        rounds: u32,
        (interval, most): (f64, u32),
    ) -> Result<f64, Failure> {
        self.begin(&format!("pong {number} {length} {rounds}"))?;
        let transport = &mut self.transports[number].1;
        let start = Instant::now();
        let (mut sent, mut answered) = (0, 0);
        while answered < rounds {
            let due = nanoseconds(start.elapsed()) >= interval * f64::from(sent);
            if sent < rounds && due && sent - answered < most {
                transport.send(length, sent)?;
                sent += 1;
            }
            if sent > answered && transport.poll_receive(length)?.is_some() {
                answered += 1;
            }
        }
        let time = nanoseconds(start.elapsed());
        self.end()?;
        Ok(time / f64::from(rounds))
    }

    /// Both ends send `count` messages and receive as many, of which half of `window` may be under way
    /// in each direction; the time of a pair of them, in nanoseconds.
    pub(crate) fn both(
        &mut self,
        number: usize,
        length: usize,
        count: u32,
        window: u32,
    ) -> Result<f64, Failure> {
        self.begin(&format!("both {number} {length} {count} {window}"))?;
        let start = Instant::now();
        exchange(&mut *self.transports[number].1, length, count, window)?;
        let time = nanoseconds(start.elapsed());
        self.end()?;
        Ok(time / f64::from(count))
    }

    fn begin(&mut self, request: &str) -> Result<(), Failure> {
        self.own_before = processor_time();
        self.peer.request(request)
    }

    fn end(&mut self) -> Result<(), Failure> {
        let peer: f64 = self.peer.answer()?.parse()?;
        self.processor_time = processor_time() - self.own_before + peer;
        Ok(())
    }

    /// Sends `count` messages, of which `window` may be under way; the time of one, in nanoseconds.
    pub(crate) fn stream(
        &mut self,
        number: usize,
        length: usize,
        count: u32,
        window: u32,
    ) -> Result<f64, Failure> {
        self.begin(&format!("sink {number} {length} {count} {window}"))?;
        let transport = &mut self.transports[number].1;
        let start = Instant::now();
        let mut credits = window;
        for stamp in 0..count {
            if credits == 0 {
                transport.receive(CREDIT)?;
                credits += window / 2;
            }
            transport.send(length, stamp)?;
            credits -= 1;
        }
        // All are there when the other one says so.
        self.drain(number, count, window)?;
        let time = nanoseconds(start.elapsed());
        self.end()?;
        Ok(time / f64::from(count))
    }

    /// Takes the credits that are left: one for each half of a window.
    fn drain(&mut self, number: usize, count: u32, window: u32) -> Result<(), Failure> {
        let transport = &mut self.transports[number].1;
        let all = count / (window / 2);
        let taken = count.saturating_sub(window).div_ceil(window / 2);
        (taken..all).try_for_each(|_| transport.receive(CREDIT).map(drop))
    }
}

fn nanoseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e9
}

/// Processor time of this process so far, in nanoseconds.
fn processor_time() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// One end of [`Processes::both`], which is the same for both. It sends half a window, and then half a
/// window for each that it receives: so the other end has sent no more than its buffers take.
fn exchange(
    transport: &mut dyn Transport,
    length: usize,
    count: u32,
    window: u32,
) -> Result<(), Failure> {
    let half = (window / 2).max(1).min(count);
    let (mut sent, mut received) = (0, 0);
    while received < count {
        let end = count.min(received + half);
        while sent < end {
            transport.send(length, sent)?;
            sent += 1;
        }
        while received < end {
            transport.receive(length)?;
            received += 1;
        }
    }
    Ok(())
}

fn ping(transport: &mut dyn Transport, length: usize, rounds: u32) -> Result<(), Failure> {
    for stamp in 0..rounds {
        transport.send(length, stamp)?;
        let back = transport.receive(length)?;
        if length >= CREDIT && back != stamp {
            return Err(format!("message {stamp} came back as {back}").into());
        }
    }
    Ok(())
}

/// What the other process does.
pub(crate) fn peer() -> Result<(), Failure> {
    println!("ok {}", if pin(1)? { "apart" } else { "together" });
    let mut transports: Vec<Box<dyn Transport>> = Vec::new();
    for line in std::io::stdin().lines() {
        let (line, before) = (line?, processor_time());
        match serve(&line, &mut transports) {
            Ok(()) => println!("ok {:.0}", processor_time() - before),
            Err(why) => println!("error {}", why.to_string().replace('\n', " ")),
        }
    }
    Ok(())
}

fn serve(line: &str, transports: &mut Vec<Box<dyn Transport>>) -> Result<(), Failure> {
    let unknown = || format!("`{line}` is no request");
    let (request, rest) = line.split_once(' ').ok_or_else(unknown)?;
    if request == "open" {
        let words: Vec<&str> = rest.splitn(3, '\t').collect();
        let [largest, place, kind] = words[..] else { return Err(unknown().into()) };
        transports.push(transport::join(&kind.parse()?, largest.parse()?, place)?);
        return Ok(());
    }
    let numbers: Vec<usize> = rest.split(' ').map(str::parse).collect::<Result<_, _>>()?;
    let transport = numbers.first().and_then(|number| transports.get_mut(*number));
    let transport = transport.ok_or_else(unknown)?;
    match (request, &numbers[1..]) {
        ("pong", &[length, rounds]) => {
            for _ in 0..rounds {
                let stamp = transport.receive(length)?;
                transport.send(length, stamp)?;
            }
        }
        ("stamps", &[length, rounds, one, other]) => {
            let rounds = (length, u32::try_from(rounds)?);
            let wanted = [stamped::stage(one)?, stamped::stage(other)?];
            let all = stamped::exchange(&mut **transport, false, rounds, wanted)?;
            println!("ok");
            all.iter().for_each(|stamps| println!("{}", stamped::to_line(stamps)));
        }
        ("sink", &[length, count, window]) => {
            for stamp in 0..count {
                let found = transport.receive(length)?;
                if length >= CREDIT && usize::try_from(found)? != stamp {
                    return Err(format!("message {found} came instead of {stamp}").into());
                }
                if (stamp + 1).is_multiple_of(window / 2) {
                    transport.send(CREDIT, found)?;
                }
            }
        }
        ("both", &[length, count, window]) => {
            let (count, window) = (u32::try_from(count)?, u32::try_from(window)?);
            exchange(&mut **transport, length, count, window)?;
        }
        _ => return Err(unknown().into()),
    }
    Ok(())
}
