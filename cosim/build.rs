//! With the feature `rtl`: emits the Verilog of every block in `hdl::blocks!`, runs Verilator on
//! it, compiles the C++ with a small shim, and writes the Rust side. Without the feature it does
//! nothing.
//!
//! It needs `VERILATOR_ROOT` and more of the environment: `cargo xtask cargo ...` provides it.
//!
//! | file | from | to |
//! |---|---|---|
//! | `build/emit.rs` | blocks in RustHDL | Verilog and ports |
//! | `build/clocks.rs` | Verilog | the same with clocks that a bench may move on |
//! | `build/coverage.rs` | Verilog | the same with marks: what coverage counts |
//! | `build/mutants.rs` | Verilog | the same with edits, of which a program chooses one |
//! | `build/planted.rs` | | the planted bugs, which are such edits |
//! | `build/ports.rs` | a block | its ports |
//! | `build/shim.rs` | ports | the C++ between Rust and the model |
//! | `build/bindings.rs` | ports | the Rust structures that match the shim |
//! | `build/reference.rs` | ports | the differential test's glue to RustHDL's simulation |
//! | `build/verilate.rs` | Verilog and shim | one library per block; unchanged ones are kept |

#[cfg(feature = "rtl")]
#[path = "build/bindings.rs"]
mod bindings;
#[cfg(feature = "rtl")]
#[path = "build/cases.rs"]
mod cases;
#[cfg(feature = "rtl")]
#[path = "build/clocks.rs"]
mod clocks;
#[cfg(feature = "rtl")]
#[path = "build/coverage.rs"]
mod coverage;
#[cfg(feature = "rtl")]
#[path = "build/emit.rs"]
mod emit;
#[cfg(feature = "rtl")]
#[path = "build/mutants.rs"]
mod mutants;
#[cfg(feature = "rtl")]
#[path = "build/planted.rs"]
#[expect(dead_code, reason = "xtask needs the rest")]
mod planted;
#[cfg(feature = "rtl")]
#[path = "build/ports.rs"]
mod ports;
#[cfg(feature = "rtl")]
#[path = "src/random.rs"]
#[expect(dead_code, unreachable_pub, reason = "of the crate, of which mutants need a part")]
mod random;
#[cfg(feature = "rtl")]
#[path = "build/reference.rs"]
mod reference;
#[cfg(feature = "rtl")]
#[path = "build/shim.rs"]
mod shim;
#[cfg(feature = "rtl")]
#[path = "build/verilate.rs"]
mod verilate;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=build");
    println!("cargo:rerun-if-changed=src/random.rs");
    println!("cargo:rerun-if-env-changed=VIADUCT_BLOCKS");
    println!("cargo:rustc-check-cfg=cfg(viaduct_nic)");
    #[cfg(feature = "rtl")]
    rtl();
}

#[cfg(feature = "rtl")]
fn rtl() {
    let out = std::path::PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let mut tools = verilate::Tools::from_env();
    let designs = emit::all();
    if designs.iter().any(|design| design.name == emit::NIC) {
        println!("cargo:rustc-cfg=viaduct_nic");
    }
    write_verilog(&designs);
    tools.build_all(&designs);
    write(&out.join("blocks.rs"), &bindings::text(&designs));
    write(&out.join("reference.rs"), &reference::text(&designs));
}

/// Writes the Verilog of each block into `verilog` in the target directory, for linters and for who
/// wants to read it. A build of all blocks removes what is left of others.
#[cfg(feature = "rtl")]
fn write_verilog(designs: &[emit::Design]) {
    let folder = verilate::target_dir().join("verilog");
    std::fs::create_dir_all(&folder).expect("a folder in the target directory");
    if emit::is_complete() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let stem = entry.path().file_stem().unwrap_or_default().to_owned();
            if designs.iter().all(|design| *design.name != *stem) {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }
    for design in designs {
        write(&folder.join(design.name).with_extension("v"), &design.verilog);
    }
}

/// Writes a file unless it already says so, which keeps time stamps and with them later
/// compilations.
#[cfg(feature = "rtl")]
fn write(path: &std::path::Path, text: &str) {
    if std::fs::read_to_string(path).is_ok_and(|old| old == text) {
        return;
    }
    std::fs::write(path, text)
        .unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
}
