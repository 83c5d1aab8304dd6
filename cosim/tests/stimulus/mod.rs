//! Random inputs of any block.

use cosim::verilated::Port;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Random values for the inputs. Each input keeps its own habit for some hundred cycles.
pub(crate) struct Stimulus {
    rng: StdRng,
    ports: &'static [Port],
    habits: Vec<Habit>,
    values: Vec<Vec<u64>>,
    redraw_in: u32,
    /// Starts without reset, to compare the power-up state too.
    cold: bool,
}

#[derive(Clone, Copy)]
enum Habit {
    /// High with this probability (single bits; also the upper bits of a wide value).
    Often(f64),
    /// Below a small bound: makes addresses meet.
    Small(u64),
    /// Any value.
    Any,
    /// A step up or down from the last value.
    Step,
}

impl Stimulus {
    pub(crate) fn new(seed: u64, ports: &'static [Port]) -> Self {
        Self {
            rng: StdRng::seed_from_u64(seed),
            ports,
            habits: vec![Habit::Any; ports.len()],
            values: ports.iter().map(|port| vec![0; port.words()]).collect(),
            redraw_in: 0,
            cold: seed.is_multiple_of(2),
        }
    }

    fn habit(&mut self, port: Port) -> Habit {
        if port.name.ends_with("reset") {
            return Habit::Often(if self.rng.random_bool(0.2) { 0.02 } else { 0.0 });
        }
        if port.bits == 1 {
            let rates = [0.02, 0.1, 0.5, 0.9, 0.98, 1.0];
            return Habit::Often(rates[self.rng.random_range(0..rates.len())]);
        }
        match self.rng.random_range(0..6) {
            0 => Habit::Often(0.1),
            1 => Habit::Small(2),
            2 => Habit::Small(8),
            3 => Habit::Step,
            _ => Habit::Any,
        }
    }

    /// The values of one cycle.
    pub(crate) fn next(&mut self, cycle: u64) -> &[Vec<u64>] {
        if self.redraw_in == 0 {
            self.habits = self.ports.iter().map(|&port| self.habit(port)).collect();
            self.redraw_in = self.rng.random_range(30..1_200);
        }
        self.redraw_in -= 1;
        for (index, port) in self.ports.iter().enumerate() {
            let habit = self.habits[index];
            for at in 0..port.words() {
                let used = (port.bits - 64 * at).min(64);
                let mask = u64::MAX >> (64 - used);
                let old = self.values[index][at];
                let rng = &mut self.rng;
                let new = match habit {
                    Habit::Often(rate) => {
                        (0..used).fold(0, |sum, bit| sum | u64::from(rng.random_bool(rate)) << bit)
                    }
                    Habit::Small(bound) => rng.random_range(0..bound),
                    Habit::Any => rng.random(),
                    Habit::Step if rng.random_bool(0.5) => old.wrapping_add(1),
                    Habit::Step => old.wrapping_sub(1),
                };
                self.values[index][at] = new & mask;
            }
            if port.name == "reset" && cycle < 3 && !self.cold {
                self.values[index][0] = 1;
            }
        }
        &self.values
    }
}
