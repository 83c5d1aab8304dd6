//! One model of one block.
use super::ffi::{Block, Instance};
use super::{Inputs, Outputs, Port, Verilated};
use std::ffi::CString;
use std::fmt;
use std::fs::File;
use std::io;
use std::path::Path;
use verilated::vcd::Vcd;

/// Cycles by which free-running clocks go back in a cycle of reset, so that they wrap in every run, behind a
/// NIC's bring-up.
const BACK: u64 = 5_000;

/// A Verilated model with its clock, starting in the power-up state.
pub struct Simulator<B: Block> {
    /// What the next call applies.
    pub inputs: B::In,
    /// What the last call saw.
    pub outputs: B::Out,
    instance: Instance<B>,
    cycles: u64,
    traced: bool,
}

impl<B: Block> Simulator<B> {
    /// A model in its power-up state, all inputs zero.
    #[must_use]
    pub fn new() -> Self {
        Self {
            inputs: Default::default(),
            outputs: Default::default(),
            instance: Instance::new(),
            cycles: 0,
            traced: false,
        }
    }

    /// Applies the inputs with the clock low, settles, and copies the outputs. No register moves.
    #[inline]
    pub fn eval(&mut self) {
        self.instance.eval(&self.inputs, &mut self.outputs);
    }

    /// [`Self::eval`], then a rising edge: one call into C++. `outputs` are those before the edge.
    #[inline]
    pub fn cycle(&mut self) {
        self.instance.cycle(&self.inputs, &mut self.outputs);
        self.cycles += 1;
    }

    /// A cycle in which the block's free-running clocks count `step` instead of 1 (`cosim/build/clocks.rs`).
    pub fn jump(&mut self, step: u64) {
        self.instance.jump(&self.inputs, &mut self.outputs, step);
        self.cycles += 1;
    }

    /// A cycle with the input `reset` high, in which free-running clocks go [`BACK`].
    ///
    /// # Panics
    /// If the block has no such input.
    pub fn reset(&mut self) {
        self.inputs.set(Self::reset_input(), &[1]);
        self.jump(BACK.wrapping_neg());
        self.inputs.set(Self::reset_input(), &[0]);
    }

    /// A reset as long as the NIC's (`hdl::csr`), for a block that may have been used: every other input is 0.
    ///
    /// # Panics
    /// As [`Self::reset`].
    pub fn renew(&mut self) {
        self.inputs = B::In::default();
        self.inputs.set(Self::reset_input(), &[1]);
        (0..15).for_each(|_| self.cycle());
        self.reset();
    }

    fn reset_input() -> usize {
        B::In::PORTS.iter().position(|port| port.name == "reset").expect("a reset")
    }

    /// Rising edges so far.
    #[must_use]
    pub const fn cycles(&self) -> u64 {
        self.cycles
    }

    /// Writes a waveform of every signal from now on, until the model is dropped; the extension
    /// chooses the format.
    ///
    /// # Errors
    /// If the block is not traced, a trace is already open, this build does not write that format,
    /// or the file cannot be written.
    pub fn open_trace(&mut self, path: impl AsRef<Path>) -> io::Result<()> {
        let path = path.as_ref();
        if !B::TRACED {
            let name = B::NAME;
            let text = if cfg!(feature = "trace") {
                format!("block {name} is not `traced` in hdl::blocks!")
            } else {
                "waveforms need a build with the feature `trace`".to_owned()
            };
            return Err(io::Error::new(io::ErrorKind::Unsupported, text));
        }
        if self.traced {
            let text = format!("block {} already writes a waveform", B::NAME);
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
        }
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("vcd") => self.open_vcd(path)?,
            Some("fst") => self.open_fst(path)?,
            _ => {
                let text = format!("{}: a waveform ends in .vcd or .fst", path.display());
                return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
            }
        }
        self.traced = true;
        Ok(())
    }

    fn open_vcd(&mut self, path: &Path) -> io::Result<()> {
        if !self.instance.attach(Vcd::default()) {
            self.instance.detach();
            let text = "this build writes FST only: use .fst, or build without the feature `fst`";
            return Err(io::Error::new(io::ErrorKind::Unsupported, text));
        }
        let opened = self.instance.vcd().map_or(Ok(()), |vcd| vcd.open(path));
        if opened.is_err() {
            self.instance.detach();
        }
        opened
    }

    fn open_fst(&mut self, path: &Path) -> io::Result<()> {
        let name = CString::new(path.as_os_str().as_encoded_bytes())?;
        if cfg!(feature = "fst") {
            // The writer of Verilator does not tell when it cannot make the file.
            File::create(path)?;
        }
        match self.instance.open_fst(&name) {
            Some(true) => Ok(()),
            Some(false) => Err(io::Error::other(format!("cannot write {}", path.display()))),
            None => {
                let text = "this build writes VCD only: `cargo viaduct ... --trace x.fst` builds one for \
                            FST (the feature `fst`; packages liblz4-dev and zlib1g-dev)";
                Err(io::Error::new(io::ErrorKind::Unsupported, text))
            }
        }
    }
}

impl<B: Block> Default for Simulator<B> {
    fn default() -> Self {
        Self::new()
    }
}

impl<B: Block> fmt::Debug for Simulator<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(B::NAME)
            .field("cycles", &self.cycles)
            .field("inputs", &self.inputs)
            .field("outputs", &self.outputs)
            .finish_non_exhaustive()
    }
}

impl<B: Block> Verilated for Simulator<B> {
    fn name(&self) -> &'static str {
        B::NAME
    }
    fn inputs(&self) -> &'static [Port] {
        B::In::PORTS
    }
    fn outputs(&self) -> &'static [Port] {
        B::Out::PORTS
    }
    fn set(&mut self, input: usize, words: &[u64]) {
        self.inputs.set(input, words);
    }
    fn get(&self, output: usize, words: &mut [u64]) {
        self.outputs.get(output, words);
    }
    fn eval(&mut self) {
        self.eval();
    }
    fn cycle(&mut self) {
        self.cycle();
    }
    fn open_trace(&mut self, path: &Path) -> io::Result<()> {
        self.open_trace(path)
    }
}
