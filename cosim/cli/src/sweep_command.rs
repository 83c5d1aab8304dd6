//! `viaduct bench latency|bandwidth|cq|connect|register|streams|calls`: sweeps over devices and sizes.

use clap::Args;

use crate::Failure;
use crate::bench::series::{self, Point};
use crate::bench::sweep::{
    Options, bandwidth, calls, connect, cq, latency, register, streams, threads,
};

/// What all sweeps take.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// URLs of devices that two processes can open; `viaduct device list` has those that are there.
    #[arg(default_value = "shm:")]
    devices: Vec<String>,
    /// Only the devices, without what they are compared with. That is also sockperf, ucx_perftest and
    /// fi_pingpong, where they are installed (latency and bandwidth).
    #[arg(long)]
    no_references: bool,
    /// Print one JSON object a line instead of the table.
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print lines of comma-separated values instead of the table.
    #[arg(long)]
    csv: bool,
    /// Fewer and shorter turns.
    #[arg(long)]
    quick: bool,
    /// Report also if other programs keep the processors busy.
    #[arg(long)]
    anyway: bool,
}

/// What sweeps of messages take, whatever they do with them.
#[derive(Debug, Args)]
struct Messages {
    /// Bytes of messages, such as 64,4K,1M.
    #[arg(long, value_delimiter = ',', value_parser = bytes)]
    sizes: Vec<usize>,
    /// Also transports that sleep until a message comes.
    #[arg(long)]
    blocking: bool,
    /// Numbers of threads in each process, such as 1,2,4: each has a VI or socket of its own, and the
    /// figure is what they do together, by number of threads.
    ///
    /// Thread i of one process has processor 2i of the machine, its partner in the other process
    /// processor 2i+1. Where there are not so many they share processors: with two, all threads of a
    /// process have one, and threads that poll wait for each other, so add --blocking there.
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = pairs)]
    threads: Vec<usize>,
}

impl Common {
    fn options(&self, sizes: &[usize], blocking: bool) -> Options {
        Options {
            devices: self.devices.clone(),
            sizes: sizes.to_vec(),
            blocking,
            references: !self.no_references,
            quick: self.quick,
            anyway: self.anyway,
        }
    }

    /// Runs a sweep of messages, or that over numbers of threads if there are some.
    fn measure(
        &self,
        messages: &Messages,
        (sizes_of_one, one): (&[usize], impl FnOnce(&Options) -> Result<Vec<Point>, Failure>),
        (sizes_of_threads, task): (&[usize], threads::Task),
    ) -> Result<(), Failure> {
        let with_threads = !messages.threads.is_empty();
        let default = if with_threads { sizes_of_threads } else { sizes_of_one };
        let options = self.options(sizes(&messages.sizes, default), messages.blocking);
        let points = if with_threads {
            threads::measure(&options, &messages.threads, task)
        } else {
            one(&options)
        };
        self.show(&points?);
        Ok(())
    }

    fn show(&self, points: &[Point]) {
        let text = match (self.json, self.csv) {
            (true, _) => series::json(points),
            (_, true) => series::csv(points),
            _ => series::table(points),
        };
        print!("{text}");
    }
}

/// Sizes on the command line, or those of the sweep.
fn sizes<'a>(chosen: &'a [usize], default: &'a [usize]) -> &'a [usize] {
    if chosen.is_empty() { default } else { chosen }
}

/// A number of bytes, with K or M behind it for KiB or MiB.
fn bytes(text: &str) -> Result<usize, String> {
    const MOST: usize = 1 << 30;
    let (number, unit) = match text.as_bytes().last() {
        Some(b'K' | b'k') => (&text[..text.len() - 1], 1 << 10),
        Some(b'M' | b'm') => (&text[..text.len() - 1], 1 << 20),
        _ => (text, 1),
    };
    let number: Option<usize> = number.parse().ok();
    let bytes = number.and_then(|number| number.checked_mul(unit)).filter(|bytes| *bytes <= MOST);
    bytes.ok_or_else(|| "a number of bytes up to 1024M, such as 64, 4K or 1M".to_owned())
}

fn vis(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=1024).contains(number));
    number.ok_or_else(|| "a number of VIs from 1 to 1024".to_owned())
}

fn pairs(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=threads::MOST).contains(number));
    number.ok_or_else(|| format!("a number of threads from 1 to {}", threads::MOST))
}

/// Half of a round trip between two processes, by size.
///
/// Two processes, each on a processor of its own, send a message there and back. On sim:model and
/// sim:rtl the clock is that of the simulated NICs: from the doorbell to the status in host memory.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  viaduct bench latency                                 the software NIC, ring, sockets
  viaduct bench latency shm: vfio-user:nics --blocking  also a served simulator; also transports that sleep
  viaduct bench latency --sizes 0,4,40 --csv            table 1 of the CLAN paper
  viaduct bench latency sim:rtl                         the RTL, by its own clock
  viaduct bench latency --threads 1,2,4 --blocking      round trips a second of several threads together

Columns: median of the turns / the time that 99 of 100 round trips keep to ± distance of the quartiles
(docs/figures.md). Exit code 0: everything was measured. 1: not, or other programs keep the processors
busy (--anyway reports nevertheless). 2: the command line is wrong.")]
pub(crate) struct LatencyArguments {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    messages: Messages,
}

impl LatencyArguments {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let one = (&latency::SIZES[..], latency::measure);
        let together = (&threads::PING_PONG_SIZES[..], threads::Task::PingPong);
        self.common.measure(&self.messages, one, together)
    }
}

/// A stream of messages between two processes, by size.
///
/// 10 MB a turn with four messages under way, as in the CLAN paper; fewer of very small messages and on
/// slow devices. Also the cycles that both processors spend on a byte.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  viaduct bench bandwidth                         the software NIC, ring, sockets, memcpy
  viaduct bench bandwidth --bidir --sizes 1K,32K  both ends send and receive; the sum of both
  viaduct bench bandwidth --blocking --json       also transports that sleep
  viaduct bench bandwidth --threads 1,2,4         several VIs or sockets at once; the sum of all

Columns: median of the turns / the rate that 99 of 100 turns reach ± distance of the quartiles
(docs/figures.md). Exit codes as of `viaduct bench latency`.")]
pub(crate) struct BandwidthArguments {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    messages: Messages,
    /// Both ends send and receive.
    #[arg(long, conflicts_with = "threads")]
    bidir: bool,
}

impl BandwidthArguments {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let stream = |options: &Options| bandwidth::measure(options, self.bidir);
        let one = (&bandwidth::SIZES[..], stream);
        let together = (&threads::STREAM_SIZES[..], threads::Task::Stream);
        self.common.measure(&self.messages, one, together)
    }
}

/// A server with many VIs on a completion queue.
///
/// Requests of 40 bytes go to VIs by chance, of which each has at most one under way (CLAN paper,
/// section 4.3): the latency of one at a time, the throughput with one on each VI, and the throughput
/// by offered load with 64 VIs. Beside shm: a server of as many connections directly on CLAN's
/// remote memory, whose tripwires are events of one queue.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  viaduct bench cq                     from 1 to 1,024 VIs
  viaduct bench cq --vis 64 --json

Exit codes as of `viaduct bench latency`.")]
pub(crate) struct CqArguments {
    #[command(flatten)]
    common: Common,
    /// Numbers of VIs.
    #[arg(long, value_delimiter = ',', value_parser = vis)]
    vis: Vec<usize>,
}

impl CqArguments {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let options = self.common.options(sizes(&self.vis, &cq::SIZES), false);
        self.common.show(&cq::measure(&options)?);
        Ok(())
    }
}

/// Connections a second, and the time of one.
///
/// A VI is created, connected, disconnected and destroyed, one after the other; beside it sockets.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  viaduct bench connect
  viaduct bench connect shm: --no-references --csv

Exit codes as of `viaduct bench latency`.")]
pub(crate) struct ConnectArguments {
    #[command(flatten)]
    common: Common,
}

impl ConnectArguments {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        self.common.show(&connect::measure(&self.common.options(&[], false))?);
        Ok(())
    }
}

/// The time of registering and deregistering memory, by size.
///
/// One process; the memory is touched before. Beside it the time of a copy of as many bytes.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  viaduct bench register
  viaduct bench register shm: --sizes 4K,1M,16M

Exit codes as of `viaduct bench latency`.")]
pub(crate) struct RegisterArguments {
    #[command(flatten)]
    common: Common,
    /// Bytes of regions, such as 4K,1M.
    #[arg(long, value_delimiter = ',', value_parser = bytes)]
    sizes: Vec<usize>,
}

impl RegisterArguments {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let options = self.common.options(sizes(&self.sizes, &register::SIZES), false);
        self.common.show(&register::measure(&options)?);
        Ok(())
    }
}

/// Streams of SOVIA, with the policies of the papers, beside VIPL and TCP.
///
/// Half of a round trip, bandwidth one way and both ways, cycles a byte, round trips of several threads,
/// and files in memory (SOVIA, Figure 9 and Table I; Stream Sockets, Figures 3 to 7 and Table 1).
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  viaduct bench streams                           every policy, shm:
  viaduct bench streams --sizes 4,64,1K --quick   some sizes; files are sent only with size 32K among them
  viaduct bench streams udp: --json               for `viaduct report --input`

Exit codes as of `viaduct bench latency`.")]
pub(crate) struct StreamsArguments {
    #[command(flatten)]
    common: Common,
    /// Bytes of messages, such as 64,4K.
    #[arg(long, value_delimiter = ',', value_parser = bytes)]
    sizes: Vec<usize>,
}

impl StreamsArguments {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let options = self.common.options(sizes(&self.sizes, &streams::SIZES), false);
        self.common.show(&streams::measure(&options)?);
        Ok(())
    }
}

/// Remote calls by via-rpc, and the same bytes on a stream of SOVIA, TCP and a UNIX socket.
///
/// An argument and an answer as SunRPC has them, arguments that come back, cycles a byte, and calls of
/// several threads (SOVIA, Figure 10; Stream Sockets, Figures 9 to 12 and Table 2).
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  viaduct bench calls
  viaduct bench calls --sizes 0,64 --quick
  viaduct bench calls --json                      for `viaduct report --input`

Exit codes as of `viaduct bench latency`.")]
pub(crate) struct CallsArguments {
    #[command(flatten)]
    common: Common,
    /// Bytes of arguments, such as 64,4K.
    #[arg(long, value_delimiter = ',', value_parser = bytes)]
    sizes: Vec<usize>,
}

impl CallsArguments {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let options = self.common.options(sizes(&self.sizes, &calls::SIZES), false);
        self.common.show(&calls::measure(&options)?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units_and_a_bound() {
        assert_eq!(
            [bytes("0"), bytes("64"), bytes("4K"), bytes("1m")].map(Result::unwrap),
            [0, 64, 4096, 1 << 20]
        );
        for wrong in ["", "K", "-1", "4 K", "2000M", "99999999999999999999M"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
        assert!(pairs("0").is_err() && pairs("65").is_err() && pairs("64").is_ok());
        assert!(vis("0").is_err() && vis("1025").is_err() && vis("1024").is_ok());
    }
}
