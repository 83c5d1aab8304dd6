//! The RTL as Verilated C++: what Verilator makes of the Verilog that `hdl` emits. This is the
//! design that counts.
//!
//! [`blocks`] has a module for each line of `hdl::blocks!`, with the structures of its ports:
//! ```
//! # #[cfg(feature = "blocks")] {
//! use cosim::verilated::blocks::skid_64;
//!
//! let mut skid = skid_64::Model::new();
//! skid.inputs.in_valid = 1;
//! skid.inputs.in_data = 7;
//! skid.cycle(); // The beat enters.
//! skid.inputs.in_valid = 0;
//! skid.cycle();
//! assert_eq!((skid.outputs.out_valid, skid.outputs.out_data), (1, 7));
//! # }
//! ```
//! Code for any block uses the trait [`Verilated`] instead, with ports by index and values as
//! 64-bit words: [`blocks::ALL`] opens all of them.
//!
//! # Cycles
//! [`Simulator::cycle`] applies the inputs with the clock low, settles the logic, copies the
//! outputs, and raises the clock. So `outputs` are what a neighbour would sample at that same edge:
//! combinational outputs already follow the inputs of this cycle, registered ones show the state
//! before the edge.
//!
//! # Waveforms
//! In a build with the feature `trace`, a block with the option `traced` writes VCD
//! (`open_trace("x.vcd")`), or, with the feature `fst`, the much smaller FST instead
//! (`open_trace("x.fst")`). A model is Verilated for one of the two.
#![expect(unsafe_code, reason = "calls into the Verilated C++")]

pub mod ffi;
mod simulator;

pub use simulator::Simulator;

use std::io;
use std::path::Path;

/// The blocks of `hdl::blocks!`.
#[allow(clippy::cast_possible_truncation, reason = "the shim masks every input to its width")]
pub mod blocks {
    use super::Entry;

    include!(concat!(env!("OUT_DIR"), "/blocks.rs"));
}

/// One port of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port {
    /// The field of `In` or `Out`.
    pub name: &'static str,
    /// Its width.
    pub bits: usize,
}

impl Port {
    /// 64-bit words that hold a value.
    #[must_use]
    pub const fn words(&self) -> usize {
        self.bits.div_ceil(64)
    }
}

/// The inputs of a block, by index.
pub trait Inputs: Default + Clone + std::fmt::Debug + Send {
    /// In the order of the index.
    const PORTS: &'static [Port];
    /// Sets one input; bits above its width are ignored.
    ///
    /// # Panics
    /// If there is no such input, or `words` is too short for it.
    fn set(&mut self, index: usize, words: &[u64]);
}

/// The outputs of a block, by index.
pub trait Outputs: Default + Clone + std::fmt::Debug + Send {
    /// In the order of the index.
    const PORTS: &'static [Port];
    /// Copies one output into the first [`Port::words`] of `words`.
    ///
    /// # Panics
    /// If there is no such output, or `words` is too short for it.
    fn get(&self, index: usize, words: &mut [u64]);
}

/// Any Verilated block.
pub trait Verilated: Send {
    /// The name in `hdl::blocks!`.
    fn name(&self) -> &'static str;
    /// Inputs without clocks.
    fn inputs(&self) -> &'static [Port];
    /// Outputs.
    fn outputs(&self) -> &'static [Port];
    /// Sets an input for the next `eval` or `cycle`; it holds until set again. See [`Inputs::set`].
    fn set(&mut self, input: usize, words: &[u64]);
    /// An output as of the last `eval` or `cycle`. See [`Outputs::get`].
    fn get(&self, output: usize, words: &mut [u64]);
    /// See [`Simulator::eval`].
    fn eval(&mut self);
    /// See [`Simulator::cycle`].
    fn cycle(&mut self);
    /// See [`Simulator::open_trace`].
    ///
    /// # Errors
    /// If the block is not traced, this build does not write that format, or the file cannot be
    /// written.
    fn open_trace(&mut self, path: &Path) -> io::Result<()>;
}

/// One line of the table of blocks.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The name in `hdl::blocks!`.
    pub name: &'static str,
    /// Makes a model in its power-up state.
    pub open: fn() -> Box<dyn Verilated>,
}

#[cfg(all(test, feature = "blocks"))]
mod tests {
    use super::blocks::{ALL, crc32_step, fifo_64x4};
    use super::*;
    use std::fs;
    use std::path::PathBuf;

    fn scratch(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("viaduct-{}-{name}", std::process::id()))
    }

    #[test]
    fn every_block_runs_by_index() {
        for entry in ALL {
            let mut block = (entry.open)();
            assert_eq!(block.name(), entry.name);
            for (index, port) in block.inputs().iter().enumerate() {
                block.set(index, &vec![u64::MAX; port.words()]);
            }
            block.cycle();
            block.eval();
            for (index, port) in block.outputs().iter().enumerate() {
                let mut words = vec![0; port.words()];
                block.get(index, &mut words);
                let unused = 64 * port.words() - port.bits;
                let top = words[port.words() - 1];
                assert_eq!(top, top << unused >> unused, "{}.{}", entry.name, port.name);
            }
        }
    }

    #[test]
    fn crc_by_name() {
        let mut crc = crc32_step::Model::new();
        let mut state = u32::MAX;
        for beat in [*b"01234567", *b"89abcdef"] {
            crc.inputs.state = state;
            crc.inputs.data = u64::from_le_bytes(beat);
            crc.eval();
            state = crc.outputs.result;
        }
        assert_eq!(!state, 0x68C4_F033);
    }

    fn write_waves(path: &Path) -> io::Result<()> {
        let mut fifo = fifo_64x4::Model::new();
        fifo.open_trace(path)?;
        for word in 0..20 {
            fifo.inputs.write = 1;
            fifo.inputs.data_in = word;
            fifo.cycle();
        }
        assert_eq!(fifo.cycles(), 20);
        assert_eq!((fifo.outputs.full, fifo.outputs.fault), (1, 1));
        assert_eq!(fifo.open_trace(path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        Ok(())
    }

    #[test]
    fn waveforms() {
        let (own, other) = if cfg!(feature = "fst") { ("fst", "vcd") } else { ("vcd", "fst") };
        let path = scratch(&format!("waves.{own}"));
        write_waves(&path).unwrap();
        let waves = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        if own == "vcd" {
            let text = String::from_utf8(waves).unwrap();
            assert!(text.contains("almost_full"), "{text}");
            // 20 cycles of 4 ns, with two instants each.
            let timescale = text.split("$end").find(|part| part.contains("$timescale"));
            let words: Vec<_> = timescale.unwrap_or("").split_whitespace().collect();
            assert_eq!(words, ["$timescale", "1ns"]);
            assert!(text.contains("\n#78\n") && !text.contains("\n#80\n"), "{text}");
        } else {
            assert!(waves.len() > 100);
        }
        let refused = write_waves(&scratch(&format!("waves.{other}"))).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::Unsupported);
        assert!(refused.to_string().contains("feature `fst`"));
    }

    #[test]
    fn refused_waveforms() {
        let kind = |path: &str| fifo_64x4::Model::new().open_trace(path).unwrap_err().kind();
        assert_eq!(kind("waves.txt"), io::ErrorKind::InvalidInput);
        let own = if cfg!(feature = "fst") { "fst" } else { "vcd" };
        let missing = scratch("no-such-folder").join("waves").with_extension(own);
        assert!(fifo_64x4::Model::new().open_trace(missing).is_err());
        let untraced = crc32_step::Model::new().open_trace("waves.vcd").unwrap_err();
        assert_eq!(untraced.kind(), io::ErrorKind::Unsupported);
    }
}
