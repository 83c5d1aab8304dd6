//! Two processes, each on a processor of its own: this one, and one that does what this one says.
//!
//! The other one is this command with the hidden subcommand `bench peer`. It reads a request a line and
//! answers each with a line: `open LARGEST PLACE KIND`, `run TRANSPORT JOB` ([`Exchange`]), `threads TRANSPORT
//! COUNT JOB`, which is the job on so many transports at once, `stamps TRANSPORT LENGTH ROUNDS STAGE
//! STAGE`, whose answer has a line for each round, and an end like its beginning. An answer is `error`
//! and why, or `ok` and the processor time that the request took, in nanoseconds. It ends with its input.

use core::ops::Range;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use port::stamp::{Stage, Stamps};
use rustix::time::{ClockId, clock_gettime};

use super::affinity::Allowed;
use super::exchange::{Exchange, nanoseconds, ping};
use super::transport::{self, Kind, Transport};
use super::{file, stamped, threads};
use crate::Failure;

/// How long the other process may take to end.
const END_BOUND: Duration = Duration::from_secs(2);

/// Another process, of this command or of a program in C, which answers each line with a line.
pub(super) struct Peer {
    process: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Peer {
    /// Starts it with these arguments.
    pub(super) fn start(arguments: &[&str]) -> Result<Self, Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(arguments);
        Self::spawn(command)
    }

    pub(super) fn spawn(mut command: Command) -> Result<Self, Failure> {
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let requests = process.stdin.take();
        let answers = process.stdout.take().ok_or("no output of the other process")?;
        Ok(Self { process, requests, answers: BufReader::new(answers) })
    }

    pub(super) fn request(&mut self, line: &str) -> Result<(), Failure> {
        let requests = self.requests.as_mut().ok_or("the other process has ended")?;
        writeln!(requests, "{line}")?;
        Ok(requests.flush()?)
    }

    fn line(&mut self) -> Result<String, Failure> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        Ok(line)
    }

    pub(super) fn answer(&mut self) -> Result<String, Failure> {
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
    allowed: Allowed,
    /// Processor time of both processes during the last measurement, in nanoseconds.
    pub(crate) processor_time: f64,
    /// That of this process when the measurement began.
    own_before: f64,
}

impl Drop for Processes {
    fn drop(&mut self) {
        self.allowed.restore();
    }
}

impl Processes {
    /// Starts the other process.
    pub(crate) fn start() -> Result<Self, Failure> {
        Self::start_as(Command::new(std::env::current_exe()?))
    }

    /// Starts the other process without variables of the environment of this one.
    pub(super) fn start_without(variables: &[&str]) -> Result<Self, Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        for variable in variables {
            command.env_remove(variable);
        }
        Self::start_as(command)
    }

    fn start_as(mut command: Command) -> Result<Self, Failure> {
        let allowed = Allowed::now()?;
        command.args(["bench", "peer"]);
        // The other one inherits what this one may use, so it begins before this one is pinned.
        let mut peer = Peer::spawn(command)?;
        let are_apart = peer.answer()? == "apart";
        allowed.pin(0)?;
        let (transports, processor_time, own_before) = (Vec::new(), 0.0, 0.0);
        Ok(Self { peer, transports, are_apart, allowed, processor_time, own_before })
    }

    /// Does something that inherits the processors that this thread may use, before it was pinned.
    pub(super) fn unpinned<T>(
        &self,
        act: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.allowed.restore();
        let done = act();
        self.allowed.pin(0)?;
        done
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

    /// The time of a message of an exchange, in nanoseconds: one way if each comes back.
    pub(super) fn measure(&mut self, number: usize, exchange: Exchange) -> Result<f64, Failure> {
        match exchange {
            Exchange::Pong { length, rounds } => self.one_way(number, length, rounds),
            _ => self.timed(number, exchange, |transport| exchange.first(transport)),
        }
    }

    /// Copies a file that [`file::source`] made to the other process; the time, in nanoseconds.
    pub(super) fn copy(
        &mut self,
        number: usize,
        source: &File,
        (length, bytes): (usize, u32),
    ) -> Result<f64, Failure> {
        let exchange = Exchange::File { length, bytes };
        self.timed(number, exchange, |transport| file::send(transport, source, length, bytes))
    }

    /// Exchanges `rounds` messages there and back; the time of one way, in nanoseconds.
    pub(crate) fn one_way(
        &mut self,
        number: usize,
        length: usize,
        rounds: u32,
    ) -> Result<f64, Failure> {
        self.begin(number, Exchange::Pong { length, rounds })?;
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
        self.begin(number, Exchange::Pong { length, rounds: warm + rounds })?;
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
        self.timed(number, Exchange::Pong { length, rounds }, |transport| {
            let ahead = outstanding.min(rounds);
            for stamp in 0..ahead {
                transport.send(length, stamp)?;
            }
            for stamp in ahead..rounds {
                transport.receive(length)?;
                transport.send(length, stamp)?;
            }
            (0..ahead).try_for_each(|_| transport.receive(length).map(drop))
        })
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
        self.timed(number, Exchange::Pong { length, rounds }, |transport| {
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
            Ok(())
        })
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
        self.measure(number, Exchange::Both { length, count, window })
    }

    /// Sends `count` messages, of which `window` may be under way; the time of one, in nanoseconds.
    pub(crate) fn stream(
        &mut self,
        number: usize,
        length: usize,
        count: u32,
        window: u32,
    ) -> Result<f64, Failure> {
        self.measure(number, Exchange::Sink { length, count, window })
    }

    /// The time of a message of a job, in nanoseconds, of which `act` is this end.
    fn timed(
        &mut self,
        number: usize,
        job: Exchange,
        act: impl FnOnce(&mut dyn Transport) -> Result<(), Failure>,
    ) -> Result<f64, Failure> {
        self.begin(number, job)?;
        let start = Instant::now();
        act(&mut *self.transports[number].1)?;
        let time = nanoseconds(start.elapsed());
        self.end()?;
        Ok(time / f64::from(job.count()))
    }

    /// Runs a job on each of these transports at once, with a thread for each in both processes; the
    /// time of all, in nanoseconds.
    pub(crate) fn together(
        &mut self,
        numbers: Range<usize>,
        job: Exchange,
    ) -> Result<f64, Failure> {
        let (first, count, text) = (numbers.start, numbers.len(), job.to_text());
        self.peer.request(&format!("threads {first} {count} {text}"))?;
        let transports = self.transports[numbers]
            .iter_mut()
            .map(|(_, transport)| &mut **transport as _)
            .collect();
        let time = threads::first(transports, &self.allowed, job);
        // If both fail, this end's reason follows from the other one's, or is as good.
        self.peer.answer()?;
        time
    }

    fn begin(&mut self, number: usize, job: Exchange) -> Result<(), Failure> {
        self.own_before = processor_time();
        self.peer.request(&format!("run {number} {}", job.to_text()))
    }

    fn end(&mut self) -> Result<(), Failure> {
        let peer: f64 = self.peer.answer()?.parse()?;
        self.processor_time = processor_time() - self.own_before + peer;
        Ok(())
    }
}

/// Processor time of this process so far, in nanoseconds.
fn processor_time() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// What the other process does.
pub(crate) fn peer() -> Result<(), Failure> {
    let allowed = Allowed::now()?;
    allowed.pin(1)?;
    println!("ok {}", if allowed.count() > 1 { "apart" } else { "together" });
    let mut transports: Vec<Box<dyn Transport>> = Vec::new();
    for line in std::io::stdin().lines() {
        let (line, before) = (line?, processor_time());
        match serve(&line, &mut transports, &allowed) {
            Ok(()) => println!("ok {:.0}", processor_time() - before),
            Err(why) => println!("error {}", why.to_string().replace('\n', " ")),
        }
    }
    Ok(())
}

fn serve(
    line: &str,
    transports: &mut Vec<Box<dyn Transport>>,
    allowed: &Allowed,
) -> Result<(), Failure> {
    let unknown = || format!("`{line}` is no request");
    if let Some(rest) = line.strip_prefix("open ") {
        let words: Vec<&str> = rest.splitn(3, '\t').collect();
        let [largest, place, kind] = words[..] else { return Err(unknown().into()) };
        transports.push(transport::join(&kind.parse()?, largest.parse()?, place)?);
        return Ok(());
    }
    let words: Vec<&str> = line.split(' ').collect();
    let [request, number, rest @ ..] = &words[..] else { return Err(unknown().into()) };
    let transports = transports.get_mut(number.parse::<usize>()?..).ok_or_else(unknown)?;
    let (transport, _) = transports.split_first_mut().ok_or_else(unknown)?;
    match (*request, rest) {
        ("run", job) => Exchange::from_words(job).ok_or_else(unknown)?.second(&mut **transport),
        ("threads", [count, job @ ..]) => {
            let transports = transports.get_mut(..count.parse()?).ok_or_else(unknown)?;
            threads::second(transports, allowed, Exchange::from_words(job).ok_or_else(unknown)?)
        }
        ("stamps", [length, rounds, one, other]) => {
            let rounds = (length.parse()?, rounds.parse()?);
            let wanted = [stamped::stage(one.parse()?)?, stamped::stage(other.parse()?)?];
            let all = stamped::exchange(&mut **transport, false, rounds, wanted)?;
            println!("ok");
            all.iter().for_each(|stamps| println!("{}", stamped::to_line(stamps)));
            Ok(())
        }
        _ => Err(unknown().into()),
    }
}
