//! Writes the Verilog of every block of `hdl::blocks!` into a folder, for the linter.
#![expect(clippy::print_stderr, reason = "a command-line tool")]

use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;

use hdl::*;
use rust_hdl::prelude::{Block, generate_verilog};

/// Blocks live on the stack while they are built, and a wide one is large.
const STACK_BYTES: usize = 512 << 20;

fn main() -> ExitCode {
    let Some(folder) = env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: emit FOLDER");
        return ExitCode::FAILURE;
    };
    let emitter = thread::Builder::new().stack_size(STACK_BYTES).spawn(move || {
        if let Err(error) = emit_all(&folder) {
            eprintln!("error: {}: {error}", folder.display());
            return ExitCode::FAILURE;
        }
        ExitCode::SUCCESS
    });
    // A panic has been printed by then.
    emitter.map_or(ExitCode::FAILURE, |thread| thread.join().unwrap_or(ExitCode::FAILURE))
}

fn emit_all(folder: &Path) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(folder)?;
    macro_rules! emit_each {
        ($($name:ident: $block:ty $([$($option:ident),*])?;)*) => {
            $(emit::<$block>(folder, stringify!($name))?;)*
        };
    }
    blocks!(emit_each);
    Ok(())
}

/// Also checks what RustHDL can check by itself: that every input is driven, for example.
fn emit<B: Block + Default>(folder: &Path, name: &str) -> Result<(), Box<dyn Error>> {
    let mut top = B::default();
    top.connect_all();
    fs::write(folder.join(name).with_extension("v"), generate_verilog(&top))?;
    Ok(())
}
