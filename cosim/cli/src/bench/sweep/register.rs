//! Registration of memory: a region is registered and deregistered.

use std::time::Instant;

use port::DmaMemory;
use vipl::{MemAttributes, Nic, Waiting};

use super::super::machine;
use super::{Clock, Failure, Options, Place, Point, Sweep, axis, rounds};

/// Bytes of regions.
pub(crate) const SIZES: [usize; 7] = [4096, 16_384, 65_536, 262_144, 1 << 20, 4 << 20, 16 << 20];

/// Measures every size on every device, and a copy of as many bytes: what a program does instead.
pub(crate) fn measure(options: &Options) -> Result<Vec<Point>, Failure> {
    let mut sweep = Sweep::start(options, "register")?;
    for device in options.wall() {
        let nic = Nic::open_with(device::open(device)?, Waiting::Poll);
        let result = on_device(&mut sweep, device, &nic);
        nic.close();
        result?;
    }
    for &size in options.sizes.iter().filter(|size| options.references && **size > 0) {
        let copies = rounds(options.turn_time(), axis(size) / 20.0, (2, 1_000));
        let turns = 0..options.turns();
        let times: Vec<f64> = turns.map(|_| machine::memcpy(size, copies) / 1e3).collect();
        let (x, transport) = (axis(size), "memcpy");
        let place = Place { figure: "register", transport, x, x_unit: "B", unit: "us" };
        sweep.point(place, &times, &times, Clock::Wall);
    }
    sweep.end()
}

fn on_device(sweep: &mut Sweep<'_>, transport: &str, nic: &Nic) -> Result<(), Failure> {
    let options = sweep.options;
    let attributes = MemAttributes::new(nic.create_ptag()?);
    for &size in options.sizes.iter().filter(|size| **size > 0) {
        sweep.progress.tick(|| format!("{transport}, {size} B"));
        let memory = DmaMemory::new(size)?;
        // The pages are there before they are registered.
        memory.fill(1);
        let once = || -> Result<f64, Failure> {
            let start = Instant::now();
            let region = nic.register_mem(&memory, attributes)?;
            nic.deregister_mem(&region)?;
            Ok(start.elapsed().as_secs_f64() * 1e6)
        };
        let each = once()?.max(once()?);
        let count = rounds(options.turn_time(), each * 1e3, (8, 2_000));
        let (mut turns, mut singles) = (Vec::new(), Vec::new());
        for _ in 0..options.turns() {
            let times = (0..count).map(|_| once()).collect::<Result<Vec<f64>, _>>()?;
            turns.push(times.iter().sum::<f64>() / f64::from(count));
            singles.extend(times);
        }
        let place = Place { figure: "register", transport, x: axis(size), x_unit: "B", unit: "us" };
        sweep.point(place, &turns, &singles, Clock::Wall);
    }
    Ok(())
}
