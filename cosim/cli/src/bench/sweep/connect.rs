//! Connections: a VI or socket is created, connected, disconnected and destroyed.

use super::{Clock, Failure, Kind, Options, Place, Point, Sweep, processes, rounds};

/// Measures devices and, for comparison, sockets.
pub(crate) fn measure(options: &Options) -> Result<Vec<Point>, Failure> {
    let mut sweep = Sweep::start(options, "connect")?;
    let mut targets: Vec<String> = options.wall().cloned().collect();
    if options.references {
        targets.extend(["unix", "tcp"].map(str::to_owned));
    }
    let mut processes = processes(options)?;
    let mut transports = Vec::new();
    for target in targets {
        let number = processes.open(&Kind::Connect { target: target.clone() }, 4)?;
        // A round is a connection.
        let each = 2.0 * processes.one_way(number, 0, 8)?;
        transports.push((number, target, each, Vec::new()));
    }
    for turn in 0..options.turns() {
        sweep.progress.tick(|| format!("turn {turn} of {}", options.turns()));
        for (number, _, each, times) in &mut transports {
            let rounds = rounds(options.turn_time(), *each, (8, 2_000));
            times.push(2.0 * processes.one_way(*number, 0, rounds)? / 1e3);
        }
    }
    for (number, transport, each, times) in &transports {
        let rounds = rounds(20.0 * options.turn_time(), *each, (100, 2_000));
        let singles: Vec<f64> =
            processes.one_ways(*number, 0, rounds)?.iter().map(|time| 2.0 * time / 1e3).collect();
        let place = Place { figure: "connect", transport, x: 0.0, x_unit: "", unit: "us" };
        sweep.point(place, times, &singles, Clock::Wall);
        let rates: Vec<f64> = times.iter().map(|time| 1e6 / time).collect();
        let place = Place { figure: "connect_rate", unit: "connections/s", ..place };
        sweep.point(place, &rates, &rates, Clock::Wall);
    }
    // The next processes need what this thread was allowed before.
    drop(processes);
    sweep.end()
}
