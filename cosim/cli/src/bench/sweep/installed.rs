//! Other programs that measure the same on this machine, where they are installed: sockperf, UCX's
//! `ucx_perftest` and libfabric's `fi_pingpong`.
//!
//! Each run is a server and a client on the two processors of the sweep. A run that fails is reported on
//! standard error and is no point: what is compared with must not end a measurement.

use std::fs::File;
use std::io::Read;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Once;
use std::time::{Duration, Instant};

use super::super::affinity::Allowed;
use super::{Clock, Failure, Place, Sweep, axis};

/// How long a client may take, and how long it may be tried anew until its server is there.
const CLIENT_BOUND: Duration = Duration::from_secs(20);
const SERVER_BOUND: Duration = Duration::from_secs(5);
/// Between two looks at a client, and two attempts.
const NAP: Duration = Duration::from_millis(20);
/// Before the first attempt.
const SETTLE: Duration = Duration::from_millis(200);
/// Largest message of sockperf, in bytes; its header has the least.
const SOCKPERF_SIZES: [usize; 2] = [14, 65_507];

/// What is measured, with the figure of the sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    /// Time of one way, in us.
    Latency,
    /// Messages a second in one direction.
    Bandwidth,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Program {
    Sockperf,
    Ucx,
    Libfabric,
}

/// A program with what it sends by.
#[derive(Clone, Copy, Debug)]
struct Transport {
    program: Program,
    by: &'static str,
}

const ALL: [Transport; 5] = [
    Transport { program: Program::Sockperf, by: "tcp" },
    Transport { program: Program::Sockperf, by: "udp" },
    Transport { program: Program::Ucx, by: "shm" },
    Transport { program: Program::Ucx, by: "tcp" },
    Transport { program: Program::Libfabric, by: "shm" },
];

/// One run.
#[derive(Clone, Copy)]
struct Run {
    task: Task,
    /// Bytes of a message.
    size: usize,
    /// Messages, of programs that do not run for a time.
    count: u32,
    port: u16,
}

/// What a run has found.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Found {
    /// In us, or messages a second.
    value: f64,
    /// Of single round trips, in us, where the program has it.
    p99: Option<f64>,
}

impl Program {
    const fn file(self) -> &'static str {
        match self {
            Self::Sockperf => "sockperf",
            Self::Ucx => "ucx_perftest",
            Self::Libfabric => "fi_pingpong",
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Sockperf => "sockperf",
            Self::Ucx => "ucx",
            Self::Libfabric => "libfabric",
        }
    }

    fn path(self) -> Option<PathBuf> {
        crate::path::find(self.file())
    }

    /// The value in the output of a client.
    fn parse(self, task: Task, output: &str) -> Option<Found> {
        match self {
            Self::Sockperf => sockperf(task, output),
            Self::Ucx => ucx(task, output),
            Self::Libfabric => libfabric(output),
        }
    }
}

impl Transport {
    fn carries(self, task: Task, size: usize) -> bool {
        match self.program {
            // A sender of datagrams does not know how many have arrived.
            Program::Sockperf if task == Task::Bandwidth && self.by == "udp" => false,
            Program::Sockperf => (SOCKPERF_SIZES[0]..=SOCKPERF_SIZES[1]).contains(&size),
            Program::Ucx => true,
            // It has no stream.
            Program::Libfabric => task == Task::Latency,
        }
    }

    /// Arguments of the server, and of the client.
    fn arguments(self, run: &Run) -> [Vec<String>; 2] {
        let words = |text: String| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let Run { task, size, count, port } = *run;
        match self.program {
            Program::Sockperf => {
                let by = if self.by == "tcp" { " --tcp" } else { "" };
                let to = format!("-i 127.0.0.1 -p {port}{by}");
                match task {
                    Task::Latency => [
                        words(format!("sr {to} --nonblocked")),
                        words(format!("pp {to} --nonblocked -t 1 -m {size}")),
                    ],
                    Task::Bandwidth => {
                        [words(format!("sr {to}")), words(format!("tp {to} -t 1 -m {size}"))]
                    }
                }
            }
            Program::Ucx => {
                let test = if task == Task::Latency { "tag_lat" } else { "tag_bw" };
                let warm = count / 8;
                let what = format!("-t {test} -s {size} -n {count} -w {warm}");
                let client = format!("127.0.0.1 -p {port} {what} -f -v");
                [words(format!("-p {port} -f -v")), words(client)]
            }
            Program::Libfabric => {
                let what = format!("-p {} -e rdm -I {count} -S {size}", self.by);
                [words(format!("-B {port} {what}")), words(format!("-P {port} {what} 127.0.0.1"))]
            }
        }
    }

    fn command(self, path: &PathBuf, arguments: Vec<String>) -> Command {
        let mut command = Command::new(path);
        command.args(arguments).env("LC_ALL", "C").stdin(Stdio::null()).stderr(Stdio::null());
        if self.program == Program::Ucx {
            command.env("UCX_TLS", self.by);
        }
        command
    }
}

/// A process that ends with its owner.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a client until it ends, for at most `bound`; what it has written.
fn client(mut command: Command, bound: Duration) -> Result<String, Failure> {
    let mut child = Ends(command.stdout(Stdio::piped()).spawn()?);
    let mut output = child.0.stdout.take().ok_or("no output")?;
    let end = Instant::now() + bound;
    // What they write is less than a pipe takes.
    while child.0.try_wait()?.is_none() {
        if Instant::now() > end {
            return Err(format!("no end within {bound:?}").into());
        }
        std::thread::sleep(NAP);
    }
    let mut bytes = Vec::new();
    output.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// One run on two processors.
fn run(
    transport: Transport,
    path: &PathBuf,
    run: &Run,
    allowed: &Allowed,
) -> Result<Found, Failure> {
    let [server, arguments] = transport.arguments(run);
    allowed.pin(1)?;
    let nowhere = File::options().write(true).open("/dev/null")?;
    let mut server = Ends(transport.command(path, server).stdout(nowhere).spawn()?);
    allowed.pin(0)?;
    std::thread::sleep(SETTLE);
    let end = Instant::now() + SERVER_BOUND;
    loop {
        let output = client(transport.command(path, arguments.clone()), CLIENT_BOUND)?;
        if let Some(found) = transport.program.parse(run.task, &output) {
            return Ok(found);
        }
        let ended = server.0.try_wait()?;
        if Instant::now() > end || ended.is_some() {
            let last = output.lines().last().unwrap_or("no output").trim().to_owned();
            return Err(format!("no result: {last}").into());
        }
        std::thread::sleep(NAP);
    }
}

fn free_port() -> Result<u16, Failure> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// Reports once which of the programs are not there.
fn report_absent() {
    static REPORTED: Once = Once::new();
    REPORTED.call_once(|| {
        let programs = [Program::Sockperf, Program::Ucx, Program::Libfabric];
        let absent: Vec<&str> = programs
            .into_iter()
            .filter(|program| program.path().is_none())
            .map(Program::file)
            .collect();
        if !absent.is_empty() {
            eprintln!("not installed, so not compared with: {}", absent.join(", "));
        }
    });
}

/// Adds a point for each program that is installed and has messages of this size. `count`: messages of
/// a run, for programs that do not run for a second.
pub(super) fn measure(
    sweep: &mut Sweep<'_>,
    task: Task,
    size: usize,
    count: u32,
) -> Result<(), Failure> {
    report_absent();
    let allowed = Allowed::now()?;
    for transport in ALL.into_iter().filter(|transport| transport.carries(task, size)) {
        let Some(path) = transport.program.path() else { continue };
        let name = format!("{} {}", transport.program.name(), transport.by);
        let turns = if sweep.options.quick { 1 } else { 3 };
        sweep.progress.tick(|| format!("{size} B, {name}"));
        let runs = (0..turns).map(|_| {
            let of = Run { task, size, count, port: free_port()? };
            run(transport, &path, &of, &allowed)
        });
        let runs: Result<Vec<Found>, Failure> = runs.collect();
        allowed.restore();
        match runs {
            Ok(runs) => point(sweep, task, (&name, size), &runs),
            Err(why) => eprintln!("{name}, {size} B: {why}"),
        }
    }
    Ok(())
}

fn point(sweep: &mut Sweep<'_>, task: Task, (transport, size): (&str, usize), runs: &[Found]) {
    let (figure, unit) = match task {
        Task::Latency => ("latency", "us"),
        Task::Bandwidth => ("bandwidth", "MB/s"),
    };
    let of = |value: f64| if task == Task::Latency { value } else { value * axis(size) / 1e6 };
    let values: Vec<f64> = runs.iter().map(|found| of(found.value)).collect();
    // Without single times p99 is that of the runs.
    let singles: Vec<f64> = runs.iter().filter_map(|found| found.p99).collect();
    let singles = if singles.is_empty() { &values } else { &singles };
    let place = Place { figure, transport, x: axis(size), x_unit: "B", unit };
    sweep.point(place, &values, singles, Clock::Wall);
}

/// The number behind a text.
fn number_behind(output: &str, text: &str) -> Option<f64> {
    let rest = &output[output.find(text)? + text.len()..];
    rest.split_whitespace().next()?.parse().ok()
}

/// sockperf: sentences. Its latency is half of a round trip.
fn sockperf(task: Task, output: &str) -> Option<Found> {
    Some(match task {
        Task::Latency => Found {
            value: number_behind(output, "Summary: Latency is ")?,
            p99: number_behind(output, "percentile 99.000 ="),
        },
        Task::Bandwidth => {
            Found { value: number_behind(output, "Summary: Message Rate is ")?, p99: None }
        }
    })
}

/// `ucx_perftest -f -v`: a line of names and a line of values, separated by commas. Its latency is
/// half of a round trip; overall is the mean of the run.
fn ucx(task: Task, output: &str) -> Option<Found> {
    let column = if task == Task::Latency { "overall_lat" } else { "overall_mr" };
    let mut lines = output.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let at = lines.find_map(|line| line.iter().position(|name| *name == column))?;
    let value = lines.next()?.get(at)?.trim().parse().ok()?;
    Some(Found { value, p99: None })
}

/// `fi_pingpong`: a line of names and a line of values. A transfer is one way.
fn libfabric(output: &str) -> Option<Found> {
    let mut lines = output.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let at = lines.find_map(|line| line.iter().position(|name| *name == "usec/xfer"))?;
    let value = lines.next()?.get(at)?.parse().ok()?;
    Some(Found { value, p99: None })
}

#[cfg(test)]
mod tests;
