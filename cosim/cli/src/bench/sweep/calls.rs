//! Remote calls: `via-rpc` directly on VIPL, the same bytes on a stream of SOVIA, TCP and a UNIX socket (SOVIA,
//! Figure 10; Stream Sockets, Figures 9 to 12 and Table 2).

use super::super::machine;
use super::threads::{self, Task};
use super::{
    Clock, Exchange, Failure, Kind, Options, Place, Point, Sweep, axis, processes, rounds,
};

/// Bytes of arguments. Table 2 of Stream Sockets has 4 and 8,000.
pub(crate) const SIZES: [usize; 7] = [0, 4, 64, 256, 1024, 4096, 8000];
/// Largest argument of SOVIA's Figure 10.
const ARGUMENT_MOST: usize = 4096;
/// Message of several threads.
const THREADS_SIZE: usize = 64;
/// Rounds by which it is seen how fast a transport is, and that touch all buffers of its window.
const FIRST: u32 = 64;

fn kinds(options: &Options, blocking: bool) -> Vec<Kind> {
    let mut kinds = Vec::new();
    for device in options.wall() {
        let (device, policy) = (device.clone(), "DACKS".to_owned());
        kinds.push(Kind::Rpc { device: device.clone(), blocking });
        kinds.push(Kind::Sovia { device, policy, blocking });
    }
    if options.references {
        kinds.extend([Kind::Tcp { blocking }, Kind::Unix { blocking }]);
    }
    kinds
}

/// Measures everything.
///
/// # Errors
/// A simulated device, whose clock no call has.
pub(crate) fn measure(options: &Options) -> Result<Vec<Point>, Failure> {
    options.no_simulated("calls")?;
    let mut sweep = Sweep::start(options, "calls")?;
    let all = kinds(options, false);
    for &size in options.sizes.iter().filter(|size| **size <= ARGUMENT_MOST) {
        let exchange = |rounds| Exchange::Call { argument: size, rounds };
        one_size(&mut sweep, ("call", None), (size, 1.0), &exchange, &all)?;
    }
    for &size in options.sizes.iter().filter(|size| **size > 0) {
        let exchange = |rounds| Exchange::Pong { length: size, rounds };
        // The time of a round is that of one way.
        one_size(&mut sweep, ("call_echo", Some("call_cycles")), (size, 2.0), &exchange, &all)?;
    }
    if options.sizes.contains(&THREADS_SIZE) {
        let clients = options.wall().map(|device| Kind::RpcClients { device: device.clone() });
        let mut several: Vec<Kind> = clients.collect();
        several.extend(options.references.then_some(Kind::Tcp { blocking: true }));
        let (figure, kinds) = (("call_threads", "calls/s"), several.iter().collect::<Vec<_>>());
        for count in threads::COUNTS {
            threads::one(&mut sweep, figure, Task::PingPong, (THREADS_SIZE, count), &kinds)?;
        }
    }
    sweep.end()
}

/// The time of a call of all kinds in turn, and the cycles of both processes by the bytes of both directions.
fn one_size(
    sweep: &mut Sweep<'_>,
    (figure, cycles): (&str, Option<&str>),
    (size, ways): (usize, f64),
    exchange: &dyn Fn(u32) -> Exchange,
    kinds: &[Kind],
) -> Result<(), Failure> {
    struct Turns {
        number: usize,
        rounds: u32,
        times: Vec<f64>,
        cycles: Vec<f64>,
    }
    let options = sweep.options;
    let mut processes = processes(options)?;
    let mut transports = Vec::new();
    for kind in kinds {
        let number = processes.open(kind, exchange(FIRST).length())?;
        let each = ways * processes.measure(number, exchange(FIRST))?;
        let rounds = rounds(options.turn_time(), each, (FIRST, 20_000));
        transports.push(Turns { number, rounds, times: Vec::new(), cycles: Vec::new() });
    }
    let clock = machine::cycles_a_nanosecond();
    for turn in 0..options.turns() {
        sweep.progress.tick(|| format!("{size} B, turn {turn} of {}", options.turns()));
        for turns in &mut transports {
            let time = processes.measure(turns.number, exchange(turns.rounds))?;
            turns.times.push(ways * time / 1e3);
            let bytes = 2.0 * axis(size) * f64::from(turns.rounds);
            turns.cycles.extend(clock.map(|clock| processes.processor_time * clock / bytes));
        }
    }
    for (turns, kind) in transports.iter().zip(kinds) {
        let transport = &*kind.to_string();
        let place = Place { figure, transport, x: axis(size), x_unit: "B", unit: "us" };
        sweep.point(place, &turns.times, &turns.times, Clock::Wall);
        if let Some(figure) = cycles.filter(|_| !turns.cycles.is_empty()) {
            let place = Place { figure, unit: "cycles/B", ..place };
            sweep.point(place, &turns.cycles, &turns.cycles, Clock::Wall);
        }
    }
    Ok(())
}
