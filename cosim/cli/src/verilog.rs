//! `viaduct verilog`: the RTL as Verilog.

use crate::Failure;
use crate::synth::ports_of;
use clap::Args;
use hdl::{
    admin, anatomy, blocks, channel, counter, csr, error_log, event, leaf, pcie, recv, send, top,
    tpt, vi,
};
use rust_hdl::prelude::{Block, generate_verilog};
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

/// Name of the emitted top module.
pub(crate) const TOP: &str = "top";
/// A block lives on the stack while it is built, and the NIC is large.
const STACK_BYTES: usize = 512 << 20;

/// Write the RTL as Verilog, with a README of its ports.
#[derive(Debug, Args)]
#[command(after_help = "Example: viaduct verilog -o rtl/")]
pub(crate) struct Arguments {
    /// Folder to write `viaduct.v` and `README.md` into; made if missing.
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
}

/// The Verilog of the whole NIC.
pub(crate) fn nic() -> Result<String, Failure> {
    block("top")
}

/// The Verilog of a block of `hdl::blocks!`; its top module is [`TOP`].
pub(crate) fn block(name: &str) -> Result<String, Failure> {
    macro_rules! emitters {
        ($($block:ident: $kind:ty $([$($option:ident),*])?;)*) => {
            [$((stringify!($block), emit::<$kind> as fn() -> String)),*]
        };
    }
    let emitters = blocks!(emitters);
    let Some((_, emitter)) = emitters.iter().find(|(known, _)| *known == name) else {
        let known: Vec<&str> = emitters.iter().map(|(known, _)| *known).collect();
        return Err(format!("no block {name:?}; known are {}", known.join(", ")).into());
    };
    let emitter = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(*emitter)?;
    emitter.join().map_err(|_| "the RTL does not emit (see the panic above)".into())
}

fn emit<B: Block + Default>() -> String {
    let mut block = Box::new(B::default());
    block.connect_all();
    generate_verilog(&*block)
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let folder = &arguments.output;
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    fs::create_dir_all(folder).map_err(failed)?;
    let verilog = nic()?;
    let mut readme = String::from(README_HEAD);
    for port in ports_of(&verilog, TOP).map_err(|error| error.to_string())? {
        let direction = if port.input { "input" } else { "output" };
        writeln!(
            readme,
            "| `{}` | {direction} | {} | {} |",
            port.name,
            port.width,
            about(&port.name)
        )?;
    }
    fs::write(folder.join("viaduct.v"), &verilog).map_err(failed)?;
    fs::write(folder.join("README.md"), readme).map_err(failed)?;
    println!(
        "{}: {} lines, top module `{TOP}`; {}: its ports",
        folder.join("viaduct.v").display(),
        verilog.lines().count(),
        folder.join("README.md").display()
    );
    Ok(())
}

const README_HEAD: &str = "# The Viaduct NIC

`viaduct.v` is plain Verilog 2005, top module `top`, one clock, synchronous active-high reset. A
beat moves in a cycle with valid and ready high; `last` marks the last beat of a TLP or frame. TLP
beats are laid out as in the crate `nic-regs`, module `tlp`, frames as in module `frame`. There are
no vendor primitives: memories are inferred.

| port | direction | bits | what |
|---|---|---|---|
";

fn about(port: &str) -> &'static str {
    match port.split('_').next().unwrap_or(port) {
        "clock" => "core clock, rising edge",
        "reset" => "synchronous, active high",
        "cq" => "requests of the host (BAR accesses); `cq_bar` with the first beat",
        "cc" => "completions to the host",
        "rq" => "requests of the NIC (host reads and writes, interrupts)",
        "rc" => "completions to the NIC; never held off",
        "tx" => "link, to the peer",
        "rx" => "link, from the peer; never held off",
        _ => "",
    }
}
