//! Ends of connections under `viaduct run` that are killed at any moment, again and again, beside a pair
//! that goes on: nobody hangs, the pair is not disturbed, and nothing is left behind.
//!
//! Each end is this command with the hidden subcommand `bench end`: `serve` accepts one connection and
//! sends back what comes, `ask PORT` sends blocks and checks what comes back. An end writes a line when it
//! begins, its process and port, and exits with code 0 when the other one has ended; with another one if
//! bytes are wrong, or none come for [`SILENCE`]. It stops by itself when its input ends.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use cosim::random::Random;
use rustix::process::{Pid, Signal, kill_process};
use sovia::preload;

use super::group::Job;
use super::{Bar, Row, Spec};
use crate::Failure;
use crate::progress::Progress;

/// The row.
pub(super) const NAME: &str = "sovia.kills";
/// Rounds, and of a quick run.
const ROUNDS: (u32, u32) = (1000, 50);
/// All of the rounds.
pub(super) const BAR: Bar = Bar::AtLeast(ROUNDS.0 as f64);
/// How long an end waits for bytes of one that lives.
const SILENCE: Duration = Duration::from_secs(10);
/// How long an end may take to notice that the other one was killed, and to end.
const NOTICE: Duration = Duration::from_secs(5);
/// Longest life of an end that is killed, in milliseconds; connections move after some of them.
const LIFE: u64 = 60;
/// Bytes of a block.
const BLOCK: usize = 4000;

/// What a process is that is an end.
#[derive(Clone, Copy, Debug, clap::Subcommand)]
pub(crate) enum Role {
    Serve,
    Ask { port: u16 },
}

/// One end of a connection.
#[derive(Debug)]
struct End {
    process: Child,
    pid: Pid,
    port: u16,
}

impl End {
    fn start(arguments: &[&str]) -> Result<Self, Failure> {
        let own = std::env::current_exe()?;
        let mut process = Command::new(&own)
            .arg("run")
            .arg(&own)
            .args(["bench", "end"])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        let output = process.stdout.take().ok_or("an end without output")?;
        BufReader::new(output).read_line(&mut line)?;
        let mut words = line.split_whitespace().map(str::parse::<u16>);
        let pid = line.split_whitespace().next().and_then(|pid| pid.parse().ok());
        let pid = pid.and_then(Pid::from_raw);
        let (Some(pid), Some(Ok(port))) = (pid, words.nth(1)) else {
            return Err(format!("an end that says `{}`", line.trim()).into());
        };
        Ok(Self { process, pid, port })
    }

    /// A server, and a client of it.
    fn pair() -> Result<[Self; 2], Failure> {
        let server = Self::start(&["serve"])?;
        let client = Self::start(&["ask", &server.port.to_string()])?;
        Ok([server, client])
    }

    fn kill(&self) -> Result<(), Failure> {
        Ok(kill_process(self.pid, Signal::KILL)?)
    }

    /// Its exit code, once it has ended.
    fn ended(&mut self, bound: Duration) -> Result<i32, Failure> {
        let end = Instant::now() + bound;
        loop {
            if let Some(status) = self.process.try_wait()? {
                return Ok(status.code().unwrap_or(-1));
            }
            if Instant::now() > end {
                let _ = self.kill();
                let _ = self.process.wait();
                return Err(format!("has not ended after {} s", bound.as_secs()).into());
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// What is left in the folder of connections by processes that are no more.
fn left_behind() -> usize {
    let files = |folder: &Path| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_dir())).count()
    };
    let folder = preload::folder();
    files(&folder) + files(&folder.join("status"))
}

/// A round: a pair of which one end is killed. How many milliseconds the other one took to end.
fn round(random: &mut Random) -> Result<u128, Failure> {
    let mut pair = End::pair()?;
    thread::sleep(Duration::from_micros(random.below(1000 * LIFE)));
    let victim = usize::from(random.below(2) == 1);
    pair[victim].kill()?;
    let killed = Instant::now();
    let _ = pair[victim].ended(NOTICE)?;
    let name = ["the server", "the client"][1 - victim];
    match pair[1 - victim].ended(NOTICE).map_err(|why| format!("{name} {why}"))? {
        0 => Ok(killed.elapsed().as_millis()),
        code => Err(format!("{name} ended with code {code}").into()),
    }
}

/// Measures the row.
pub(super) fn measure(specs: &[Spec], job: &Job, progress: &Progress) -> Result<Vec<Row>, Failure> {
    let spec = specs.iter().find(|spec| spec.name == NAME).ok_or("no such row")?;
    progress.start(NAME);
    let rounds = if job.quick { ROUNDS.1 } else { ROUNDS.0 };
    let before = left_behind();
    let mut third = End::pair()?;
    let mut random = Random::new(1);
    let (mut good, mut longest, mut why) = (0, 0, None);
    for number in 0..rounds {
        progress.tick(|| format!("round {number} of {rounds}"));
        let third_lives = third.iter_mut().all(|end| matches!(end.process.try_wait(), Ok(None)));
        match round(&mut random) {
            Ok(took) if third_lives => (good, longest) = (good + 1, longest.max(took)),
            Ok(_) => why = Some("the pair beside it was disturbed".to_owned()),
            Err(failure) => why = Some(format!("round {number}: {failure}")),
        }
    }
    let [mut server, mut client] = third;
    drop(client.process.stdin.take());
    let codes = [client.ended(NOTICE)?, server.ended(NOTICE)?];
    if codes != [0, 0] {
        why = Some(format!("the pair beside it ended with codes {codes:?}"));
    }
    // Who comes next removes what two killed ones left.
    let [mut server, mut client] = End::pair()?;
    thread::sleep(Duration::from_millis(10 * LIFE));
    drop(client.process.stdin.take());
    let _ = (client.ended(NOTICE)?, server.ended(NOTICE)?);
    let left = left_behind().saturating_sub(before);
    let value = f64::from(good) * f64::from(ROUNDS.0) / f64::from(rounds);
    let ok = spec.bar.holds(value) && left == 0 && why.is_none();
    let mut note = format!("{good} of {rounds} rounds, the longest end {longest} ms, {left} left");
    if let Some(why) = why {
        note += &format!("; {why}");
    }
    Ok(vec![Row {
        name: NAME,
        value: Some(value),
        unit: spec.unit,
        bar: spec.bar,
        ok: Some(ok),
        note,
    }])
}

/// A process that is an end.
pub(crate) fn end(role: &Role) -> Result<(), Failure> {
    let stops = Arc::new(AtomicBool::new(false));
    let stop = Arc::clone(&stops);
    let begins = |port| println!("{} {port}", std::process::id());
    let stream = match role {
        Role::Ask { port } => {
            let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, *port))?;
            begins(stream.local_addr()?.port());
            stream
        }
        Role::Serve => {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
            begins(listener.local_addr()?.port());
            listener.accept()?.0
        }
    };
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(SILENCE))?;
    thread::spawn(move || {
        let _ = std::io::stdin().read(&mut [0]);
        stop.store(true, Ordering::Relaxed);
    });
    match role {
        Role::Ask { .. } => ask(stream, &stops),
        Role::Serve => serve(stream),
    }
}

/// Whether the other end is no more, as far as a call says. An error if it is silent.
fn has_ended<T>(result: std::io::Result<T>) -> Result<bool, Failure> {
    match result {
        Ok(_) => Ok(false),
        Err(error) if error.kind() == ErrorKind::WouldBlock => {
            Err(format!("nothing came for {} s", SILENCE.as_secs()).into())
        }
        Err(_) => Ok(true),
    }
}

fn serve(mut stream: TcpStream) -> Result<(), Failure> {
    let mut block = [0; BLOCK];
    loop {
        let read = stream.read(&mut block);
        let count = *read.as_ref().unwrap_or(&0);
        if has_ended(read)? || count == 0 || has_ended(stream.write_all(&block[..count]))? {
            return Ok(());
        }
    }
}

fn ask(mut stream: TcpStream, stops: &AtomicBool) -> Result<(), Failure> {
    let mut block = [0; BLOCK];
    for number in 0_u64.. {
        if stops.load(Ordering::Relaxed) {
            break;
        }
        let length = 1 + usize::try_from(number * 37 % BLOCK as u64)?;
        let wanted: Vec<u8> = (0..length).map(|at| (at as u64 + number).to_le_bytes()[0]).collect();
        if has_ended(stream.write_all(&wanted))?
            || has_ended(stream.read_exact(&mut block[..length]))?
        {
            break;
        }
        if block[..length] != wanted {
            return Err(format!("block {number} came back as another one").into());
        }
    }
    Ok(())
}
