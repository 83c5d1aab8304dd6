//! What the machine is.

use std::hint::black_box;
use std::time::Instant;

/// A field of the first processor in `/proc/cpuinfo`.
fn field(name: &str) -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// Model of the processor.
pub(crate) fn cpu() -> String {
    field("model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}

/// Number of processors.
pub(crate) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Cycles of a processor in a nanosecond, as far as the system knows.
pub(crate) fn cycles_a_nanosecond() -> Option<f64> {
    Some(field("cpu MHz")?.parse::<f64>().ok()? / 1e3)
}

/// Time of a copy of so many bytes within this process, in nanoseconds: of many, one after the other.
pub(crate) fn memcpy(bytes: usize, copies: u32) -> f64 {
    let (from, mut to) = (vec![1_u8; bytes], vec![0_u8; bytes]);
    to.copy_from_slice(black_box(&from));
    let start = Instant::now();
    for _ in 0..copies {
        to.copy_from_slice(black_box(&from));
        black_box(&mut to);
    }
    start.elapsed().as_secs_f64() * 1e9 / f64::from(copies)
}
