//! Verilator and the C++ compiler: one static library for each block.
//!
//! A library stands in a folder of the target directory that is named by a digest of all that goes
//! into it. So an edit of one RTL block costs the rebuild of the models that contain it, and no
//! others; and `cargo clippy`, `cargo test` and both profiles, which each run this build script for
//! themselves, build a library once. Different blocks are built side by side.
use crate::clocks;
use crate::coverage;
use crate::emit::Design;
use crate::mutants::{self, Mutants};
use crate::shim;
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Speed first: no assertions, and nothing random at reset, which would also cost reproducibility.
const FLAGS: &[&str] = &[
    "--cc",
    "-O3",
    "--top-module",
    "top",
    "--x-assign",
    "fast",
    "--x-initial",
    "fast",
    "--noassert",
    "--no-timing",
    "-Wno-fatal",
    "-Wno-lint",
    "-Wno-style",
    "--quiet",
    "--default-language",
    "1364-2005",
];

/// The sources of Verilator's run-time that the crate `verilated` does not compile.
const RUN_TIME: &[&str] = &["verilated_threads.cpp"];

/// Parts of the names of C++ files that run at construction alone, or only while there is a waveform:
/// optimizing them costs as much time as the rest, and gives nothing.
const COLD: &[&str] = &["Slow", "Trace"];

/// Where Verilator is, and what is wanted of it.
pub(crate) struct Tools {
    root: PathBuf,
    program: PathBuf,
    /// Where libraries are, in the target directory.
    libraries: PathBuf,
    /// Waveforms are FST instead of VCD.
    fst: bool,
    /// Models count what ran.
    coverage: bool,
    /// Edits, of which programs choose one.
    mutants: Option<Mutants>,
}

impl Tools {
    /// Finds Verilator by the environment.
    ///
    /// # Panics
    /// With instructions, if there is none.
    pub(crate) fn from_env() -> Self {
        for name in ["VERILATOR_ROOT", "PATH", "CXX", "CXXFLAGS"] {
            println!("cargo:rerun-if-env-changed={name}");
        }
        let root = env::var_os("VERILATOR_ROOT").map(PathBuf::from).unwrap_or_else(|| {
            panic!("the feature `rtl` needs VERILATOR_ROOT: use `cargo xtask`, which sets it up")
        });
        let inside = root.join("bin/verilator_bin");
        let program = if inside.is_file() { inside } else { "verilator_bin".into() };
        let feature = |name: &str| env::var_os(format!("CARGO_FEATURE_{name}")).is_some();
        let (fst, coverage) = (feature("FST"), feature("COVERAGE"));
        let libraries = target_dir().join("verilated");
        let tools = Self { root, program, libraries, fst, coverage, mutants: None };
        if tools.fst {
            tools.check_fst();
        }
        tools
    }

    /// Fails early and clearly if the libraries behind FST are missing.
    fn check_fst(&self) {
        fs::create_dir_all(&self.libraries).expect("a folder in the target directory");
        let probe = self.libraries.join("fst_probe.cpp");
        crate::write(&probe, "#include <lz4.h>\n#include <zlib.h>\n");
        let compiler = self.compiler().get_compiler();
        let found = compiler
            .to_command()
            .arg("-fsyntax-only")
            .arg(&probe)
            .output()
            .is_ok_and(|output| output.status.success());
        assert!(found, "the feature `fst` needs the packages liblz4-dev and zlib1g-dev");
    }

    /// Builds every design and the rest of the run-time, and has cargo link them.
    pub(crate) fn build_all(&mut self, designs: &[Design]) {
        self.mutants = Mutants::from_env(designs);
        self.build_each(designs);
    }

    fn build_each(&self, designs: &[Design]) {
        let jobs = env::var("NUM_JOBS").ok().and_then(|jobs| jobs.parse().ok()).unwrap_or(1);
        // Large models first: they take longest. Index `designs.len()` stands for the run-time.
        let mut order: Vec<usize> = (0..=designs.len()).collect();
        order.sort_by_key(|&at| !designs.get(at).is_some_and(|design| design.large));
        let taken = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..jobs {
                scope.spawn(|| {
                    while let Some(&at) = order.get(taken.fetch_add(1, Ordering::Relaxed)) {
                        match designs.get(at) {
                            Some(design) => self.build(design),
                            None => self.build_run_time(),
                        }
                    }
                });
            }
        });
        for design in designs {
            println!("cargo:rustc-link-lib=static={}", design.class());
        }
        println!("cargo:rustc-link-lib=static=viaduct_run_time");
        println!("cargo:rustc-link-lib=stdc++");
        if self.fst {
            println!("cargo:rustc-link-lib=lz4");
            println!("cargo:rustc-link-lib=z");
        }
    }

    fn build(&self, design: &Design) {
        let mutants = self.mutants.as_ref().map(|mutants| mutants.apply(design));
        let marked = self.coverage.then(|| coverage::mark(&design.verilog)).or(mutants);
        let text = &clocks::mark(marked.as_ref().unwrap_or(&design.verilog));
        let stamp = [
            self.stamp().as_str(),
            clocks::HEADER,
            shim::COMMON,
            &shim::text(design, &[]),
            &format!(
                "{FLAGS:?} {COLD:?} {:?} {:?}\n",
                self.trace_flag(design),
                self.coverage_flags()
            ),
            text,
        ]
        .concat();
        self.library(&design.class(), &stamp, |dir, folder| {
            // Not in a folder that is renamed: what coverage counts is named by file and line.
            let verilog = folder.with_extension("v");
            crate::write(&verilog, text);
            crate::write(&dir.join("shim_common.h"), shim::COMMON);
            self.verilate(design, dir, &verilog);
            let sources = sources(dir);
            let file = dir.join("shim.cc");
            crate::write(&file, &shim::text(design, &sources));
            let mut compiler = self.compiler();
            compiler.out_dir(dir).include(dir);
            let mutants = self.mutants.is_some().then_some(("mutants.h", mutants::HEADER));
            for (name, text) in [("clocks.h", clocks::HEADER)].into_iter().chain(mutants) {
                let header = dir.join(name);
                crate::write(&header, text);
                compiler.flag("-include").flag(header);
            }
            if design.traced {
                let format = if self.fst { "VIADUCT_FST" } else { "VIADUCT_VCD" };
                compiler.define(format, "1").define("VM_TRACE", "1");
                let kind = if self.fst { "VM_TRACE_FST" } else { "VM_TRACE_VCD" };
                compiler.define(kind, "1");
            }
            if self.coverage {
                compiler.define("VM_COVERAGE", "1");
            }
            if design.large {
                let (cold, hot): (Vec<_>, Vec<_>) = sources
                    .iter()
                    .partition(|source| COLD.iter().any(|part| source.contains(part)));
                let mut cheap = compiler.clone();
                cheap.opt_level(1).files(cold.iter().map(|source| dir.join(source)));
                compiler.files(hot.iter().map(|source| dir.join(source)));
                for object in cheap.compile_intermediates() {
                    compiler.object(object);
                }
            }
            compiler.file(&file);
            compiler.compile(&design.class());
        });
    }

    fn verilate(&self, design: &Design, dir: &Path, verilog: &Path) {
        let mut command = Command::new(&self.program);
        command.env("VERILATOR_ROOT", &self.root).args(FLAGS);
        command.args(self.trace_flag(design)).args(self.coverage_flags());
        command.arg("--prefix").arg(design.class()).arg("--Mdir").arg(dir).arg(verilog);
        let output = command
            .output()
            .unwrap_or_else(|error| panic!("cannot run {}: {error}", self.program.display()));
        assert!(
            output.status.success(),
            "Verilator refuses block {} ({}):\n{}",
            design.name,
            verilog.display(),
            String::from_utf8_lossy(&output.stderr)
        );
    }

    fn trace_flag(&self, design: &Design) -> Option<&'static str> {
        design.traced.then_some(if self.fst { "--trace-fst" } else { "--trace-vcd" })
    }

    const fn coverage_flags(&self) -> &'static [&'static str] {
        if self.coverage { &["--coverage-toggle"] } else { &[] }
    }

    fn build_run_time(&self) {
        let mut files: Vec<&str> = RUN_TIME.to_vec();
        if self.fst {
            files.push("verilated_fst_c.cpp");
        }
        if self.coverage {
            files.push("verilated_cov.cpp");
        }
        let stamp = format!("{}{files:?}\n", self.stamp());
        self.library("viaduct_run_time", &stamp, |dir, _| {
            let include = self.root.join("include");
            let mut compiler = self.compiler();
            compiler.out_dir(dir);
            compiler.files(files.iter().map(|file| include.join(file)));
            if self.mutants.is_some() {
                let source = dir.join("mutants.cc");
                crate::write(&source, mutants::SOURCE);
                compiler.file(source);
            }
            compiler.compile("viaduct_run_time");
        });
    }

    /// The flags of every C++ file. Debug information would double the build time.
    fn compiler(&self) -> cc::Build {
        let include = self.root.join("include");
        let mut compiler = cc::Build::new();
        compiler
            .cpp(true)
            .std("gnu++17")
            .opt_level(3)
            .debug(false)
            .warnings(false)
            .cargo_metadata(false)
            .include(include.join("vltstd"))
            .include(include);
        compiler
    }

    /// Builds the library `name` in a folder of its own, unless there is one that was made from the
    /// same `stamp`, and has it linked. `build` gets the folder in which it is made, and that folder's later name.
    fn library(&self, name: &str, stamp: &str, build: impl FnOnce(&Path, &Path)) {
        let mut digest = DefaultHasher::new();
        stamp.hash(&mut digest);
        let folder = self.libraries.join(format!("{name}-{:016x}", digest.finish()));
        println!("cargo:rustc-link-search=native={}", folder.display());
        if fs::read_to_string(folder.join("stamp")).is_ok_and(|old| old == stamp) {
            return;
        }
        // It gets its name when it is complete: a build may be interrupted, and another one may run.
        let unfinished = self.libraries.join(format!("{name}.{}", std::process::id()));
        let _ = fs::remove_dir_all(&unfinished);
        fs::create_dir_all(&unfinished).expect("a folder in the target directory");
        build(&unfinished, &folder);
        crate::write(&unfinished.join("stamp"), stamp);
        let _ = fs::remove_dir_all(&folder);
        if let Err(error) = fs::rename(&unfinished, &folder) {
            panic!("cannot rename {} to {}: {error}", unfinished.display(), folder.display());
        }
    }

    /// What every library depends on.
    fn stamp(&self) -> String {
        let environment = ["CXX", "CXXFLAGS"].map(|name| env::var_os(name).unwrap_or_default());
        // The folder distinguishes one installed version of Verilator from another; its version text does
        // not.
        let header = fs::metadata(self.root.join("include/verilated.h"))
            .and_then(|data| data.modified())
            .ok();
        let (fst, coverage) = (self.fst, self.coverage);
        let mutants = if self.mutants.is_some() { " mutants" } else { "" };
        format!("{} {header:?} {environment:?} {fst} {coverage}{mutants}\n", self.root.display())
    }
}

/// Cargo's target directory: the one above `OUT_DIR` that cargo has marked as a cache. It marks only
/// what it has made itself; in a folder that was there before, `OUT_DIR` is four below.
pub(crate) fn target_dir() -> PathBuf {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let target = out.ancestors().find(|folder| folder.join("CACHEDIR.TAG").is_file());
    target.or_else(|| out.ancestors().nth(4)).unwrap_or(&out).to_owned()
}

/// The C++ files that Verilator has made, in a fixed order.
fn sources(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .expect("the folder of the model")
        .map(|entry| entry.expect("an entry of the folder of the model").path())
        .filter(|path| path.extension() == Some(OsStr::new("cpp")))
        .filter_map(|path| path.file_name()?.to_str().map(str::to_owned))
        .collect();
    names.sort();
    names
}
