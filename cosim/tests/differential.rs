//! Every block of `hdl::blocks!` twice, under the same random stimulus: RustHDL's own simulation
//! against the Verilated Verilog. Outputs are compared on every cycle before the clock edge,
//! meaningful or not.
//!
//! A block gets its test from its line in the table; nothing is written per block. What random
//! stimulus cannot reach is listed in [`UNMOVED`], so that a test which sees nothing is not taken
//! for one that passes.

use cosim::verilated::ffi::Block as Shim;
use cosim::verilated::{Inputs, Outputs, Port, Simulator};
use rust_hdl::prelude::*;
use std::fmt;
use stimulus::Stimulus;

mod stimulus;

const SEEDS: u64 = 8;
const CYCLES: u64 = 20_000;
/// Enough for wide blocks in unoptimised builds.
const STACK: usize = 256 << 20;

/// Outputs (block, port) that keep one value under random stimulus. An entry that does move is an
/// error too.
const UNMOVED: &[(&str, &str)] = &[
    // An entry and its completion have one length each; a message needs two good bytes.
    ("admin", "read_req_length"),
    ("admin", "write_length"),
    ("admin", "message_valid"),
];

/// RustHDL's simulation of a block, by port index. Generated for every block of the table.
trait Drive: Block + Default {
    fn set(&mut self, index: usize, words: &[u64]);
    fn get(&self, index: usize, words: &mut [u64]);
    fn clock(&mut self, level: bool);
}

include!(concat!(env!("OUT_DIR"), "/reference.rs"));

/// A value as 64-bit words, the lowest first.
trait Words: Copy {
    fn from_words(words: &[u64]) -> Self;
    fn to_words(self, words: &mut [u64]);
}

fn put<T: Words>(next: &mut T, words: &[u64]) {
    *next = T::from_words(words);
}

fn take<T: Words>(value: T, words: &mut [u64]) {
    value.to_words(words);
}

impl Words for bool {
    fn from_words(words: &[u64]) -> Self {
        words[0] & 1 == 1
    }
    fn to_words(self, words: &mut [u64]) {
        words[0] = self.into();
    }
}

impl<const N: usize> Words for Bits<N> {
    fn from_words(words: &[u64]) -> Self {
        if N <= 64 {
            return words[0].into();
        }
        (0..N.div_ceil(64)).rev().fold(Self::default(), |sum, at| {
            let word: Self = words[at].into();
            (sum << 64) | word
        })
    }
    fn to_words(self, words: &mut [u64]) {
        if N <= 64 {
            words[0] = bit_cast::<64, N>(self).to_u64();
            return;
        }
        for (at, word) in words.iter_mut().enumerate().take(N.div_ceil(64)) {
            *word = self.get_bits::<64>(64 * at).to_u64();
        }
    }
}

impl<const N: usize> Words for Signed<N> {
    fn from_words(words: &[u64]) -> Self {
        signed_cast(Bits::from_words(words))
    }
    fn to_words(self, words: &mut [u64]) {
        self.inner().to_words(words);
    }
}

/// The first difference of a run.
#[derive(Debug)]
struct Mismatch {
    block: &'static str,
    seed: u64,
    cycle: u64,
    port: &'static str,
    rust_hdl: Vec<u64>,
    verilated: Vec<u64>,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { block, seed, cycle, port, rust_hdl, verilated } = self;
        write!(
            f,
            "block {block}, seed {seed}, cycle {cycle}, port {port}: RustHDL says {rust_hdl:x?}, \
             the Verilog says {verilated:x?} (64-bit words, lowest first)"
        )
    }
}

/// Runs both for `cycles`; returns which outputs took more than one value.
fn run<R: Drive, B: Shim>(seed: u64, cycles: u64) -> Result<Vec<bool>, Mismatch> {
    let mut rust = R::default();
    rust.connect_all();
    let mut verilated = Simulator::<B>::new();
    let mut stimulus = Stimulus::new(seed, B::In::PORTS);
    let outputs = B::Out::PORTS;
    let mut first: Vec<Option<Vec<u64>>> = vec![None; outputs.len()];
    let mut moved = vec![false; outputs.len()];
    for cycle in 0..cycles {
        for (index, words) in stimulus.next(cycle).iter().enumerate() {
            rust.set(index, words);
            verilated.inputs.set(index, words);
        }
        rust.clock(false);
        settle(&mut rust, B::NAME);
        verilated.cycle();
        for (index, port) in outputs.iter().enumerate() {
            let mut ours = vec![0; port.words()];
            let mut theirs = vec![0; port.words()];
            rust.get(index, &mut ours);
            verilated.outputs.get(index, &mut theirs);
            if ours != theirs {
                return Err(Mismatch {
                    block: B::NAME,
                    seed,
                    cycle,
                    port: port.name,
                    rust_hdl: ours,
                    verilated: theirs,
                });
            }
            moved[index] |= first[index].get_or_insert_with(|| theirs.clone()) != &theirs;
        }
        rust.clock(true);
        settle(&mut rust, B::NAME);
    }
    Ok(moved)
}

fn settle<R: Block>(rust: &mut R, name: &str) {
    assert!(simulate(rust, 1_000), "block {name}: RustHDL's simulation does not settle");
}

/// All seeds of one block, and whether they looked at anything.
fn differential<R: Drive, B: Shim>() {
    on_large_stack(|| {
        let mut moved = vec![false; B::Out::PORTS.len()];
        for seed in 0..SEEDS {
            match run::<R, B>(seed, CYCLES) {
                Ok(now) => moved.iter_mut().zip(now).for_each(|(all, now)| *all |= now),
                Err(mismatch) => panic!("{mismatch}"),
            }
        }
        for (port, moved) in B::Out::PORTS.iter().zip(moved) {
            let listed = UNMOVED.contains(&(B::NAME, port.name));
            let (block, port) = (B::NAME, port.name);
            assert!(moved || listed, "block {block}: output {port} never moved: see UNMOVED");
            assert!(!(moved && listed), "block {block}: output {port} moves: see UNMOVED");
        }
    });
}

fn on_large_stack(job: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(job).expect("a thread");
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

/// The model of a RAM that returns the new word on a collision: wrong on purpose.
#[derive(LogicBlock)]
struct ReadsNewWord {
    clock: Signal<In, Clock>,
    read_address: Signal<In, Bits<10>>,
    read_data: Signal<Out, Bits<64>>,
    write_address: Signal<In, Bits<10>>,
    write_data: Signal<In, Bits<64>>,
    write_enable: Signal<In, Bit>,
    _words: Vec<Bits<64>>,
}

impl Default for ReadsNewWord {
    fn default() -> Self {
        Self {
            clock: Default::default(),
            read_address: Default::default(),
            read_data: Default::default(),
            write_address: Default::default(),
            write_data: Default::default(),
            write_enable: Default::default(),
            _words: vec![Default::default(); 1024],
        }
    }
}

impl Logic for ReadsNewWord {
    fn update(&mut self) {
        if self.clock.pos_edge() {
            if self.write_enable.val() {
                self._words[self.write_address.val().index()] = self.write_data.val();
            }
            self.read_data.next = self._words[self.read_address.val().index()];
        }
    }
    fn connect(&mut self) {
        self.read_data.connect();
    }
}

impl Drive for ReadsNewWord {
    fn set(&mut self, index: usize, words: &[u64]) {
        match index {
            0 => put(&mut self.read_address.next, words),
            1 => put(&mut self.write_address.next, words),
            2 => put(&mut self.write_data.next, words),
            _ => put(&mut self.write_enable.next, words),
        }
    }
    fn get(&self, _: usize, words: &mut [u64]) {
        take(self.read_data.val(), words);
    }
    fn clock(&mut self, level: bool) {
        self.clock.next = level.into();
    }
}

/// The comparison finds a wrong collision policy with every seed, and says where.
#[test]
fn a_wrong_model_is_found() {
    on_large_stack(|| {
        for seed in 0..SEEDS {
            let mismatch =
                run::<ReadsNewWord, cosim::verilated::blocks::sdp_ram_64x10::Kind>(seed, CYCLES)
                    .expect_err("the models differ on a collision");
            assert_eq!(mismatch.block, "sdp_ram_64x10");
            assert_eq!(mismatch.port, "read_data");
            assert_ne!(mismatch.rust_hdl, mismatch.verilated);
        }
    });
}

/// The same seed gives the same stimulus, so that a reported seed is worth something.
#[test]
fn stimulus_is_reproducible() {
    const PORTS: &[Port] = &[Port { name: "data", bits: 100 }, Port { name: "valid", bits: 1 }];
    let mut left = Stimulus::new(7, PORTS);
    let mut right = Stimulus::new(7, PORTS);
    for cycle in 0..2_000 {
        let now = left.next(cycle);
        assert_eq!(now, right.next(cycle));
        assert!(now[0][1] >> 36 == 0 && now[1][0] <= 1, "values fit their ports");
    }
}
