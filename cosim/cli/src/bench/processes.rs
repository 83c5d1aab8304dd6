//! Two processes, each on a processor of its own: this one, and one that does what this one says.
//!
//! The other one is this command with the hidden subcommand `bench peer`. It reads a request a line and
//! answers each with a line: `open LARGEST PLACE KIND`, `pong TRANSPORT LENGTH ROUNDS`, `sink TRANSPORT
//! LENGTH COUNT WINDOW`, `stamps TRANSPORT LENGTH ROUNDS STAGE STAGE`, whose answer has a line for each
//! round, and an end like its beginning. It ends with its input.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use port::stamp::{Stage, Stamps};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::stamped;
use super::transport::{self, Kind, Transport};
use crate::Failure;

/// Bytes of a credit.
const CREDIT: usize = 4;

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
        Ok(Self { peer, transports: Vec::new(), are_apart, allowed })
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
        self.peer.request(&format!("pong {number} {length} {rounds}"))?;
        let transport = &mut self.transports[number].1;
        // The first ones find caches cold.
        let warm = (rounds / 8).max(1);
        ping(&mut **transport, length, warm)?;
        let start = Instant::now();
        ping(&mut **transport, length, rounds - warm)?;
        let time = nanoseconds(start.elapsed());
        self.peer.answer()?;
        Ok(time / 2.0 / f64::from(rounds - warm))
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

    /// Sends `count` messages, of which `window` may be under way; the time of one, in nanoseconds.
    pub(crate) fn stream(
        &mut self,
        number: usize,
        length: usize,
        count: u32,
        window: u32,
    ) -> Result<f64, Failure> {
        self.peer.request(&format!("sink {number} {length} {count} {window}"))?;
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
        self.peer.answer()?;
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
        match serve(&line?, &mut transports) {
            Ok(()) => println!("ok"),
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
        _ => return Err(unknown().into()),
    }
    Ok(())
}
