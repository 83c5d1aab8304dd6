//! Programs in C against `vipl.h`, compiled where they are needed.

use crate::Failure;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The repository as it was built: where sources and the header are.
pub(crate) fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The folder of this program.
pub(crate) fn folder() -> Result<PathBuf, Failure> {
    let own = env::current_exe()?;
    Ok(own.parent().ok_or("this program is in no folder")?.to_owned())
}

/// Variable with the folder of libraries that were built apart from this program, in the profile in which they
/// are installed.
const LIBRARIES: &str = "VIADUCT_LIBRARIES";

/// A library for other programs, `libvipl`, `libsovia` or `libviarpc`: as [`LIBRARIES`] says, as it was built with
/// this program, or as it was installed with it.
pub(crate) fn library(name: &str) -> Result<PathBuf, Failure> {
    let folder = folder()?;
    let built = format!("{name}_c.so");
    let apart = env::var_os(LIBRARIES).map(|folder| PathBuf::from(folder).join(&built));
    let places = [
        // A test binary lies one folder deeper.
        folder.join("deps").join(&built),
        folder.join(&built),
        folder.join("../lib").join(format!("{name}.so")),
    ];
    let found = apart.into_iter().chain(places).find(|path| path.exists());
    Ok(found.ok_or_else(|| format!("{name} is not here; build it with `cargo build -p {name}`"))?)
}

/// The functions that `vipl.h` declares.
pub(crate) fn functions() -> Result<Vec<String>, Failure> {
    let header = fs::read_to_string(root().join("via-user/include/vipl.h"))?;
    let declarations = header.lines().filter_map(|line| line.strip_prefix("VIP_RETURN "));
    Ok(declarations.filter_map(|line| line.split('(').next()).map(str::to_owned).collect())
}

/// The C compiler.
pub(crate) fn compiler() -> OsString {
    env::var_os("CC").unwrap_or_else(|| "cc".into())
}

/// Compiles a program beside this one, against a build of `libvipl`. The linker takes `__wrap_F` of
/// the program for each function `F` of `wrapped`.
pub(crate) fn compile(
    name: &str,
    library: &Path,
    sources: &[PathBuf],
    wrapped: &[String],
) -> Result<PathBuf, Failure> {
    let libraries = [(library, "libvipl.so"), (library, "libvipl.so.1")];
    build(name, &libraries, |command| {
        command.args(["-std=c11", "-O1"]).args(sources).args(["-lvipl", "-lpthread"]);
        command.args(wrapped.iter().map(|function| format!("-Wl,--wrap={function}")));
    })
}

/// Compiles a program beside this one with libraries, each under the name by which the program finds it.
pub(crate) fn build(
    name: &str,
    libraries: &[(&Path, &str)],
    add: impl FnOnce(&mut Command),
) -> Result<PathBuf, Failure> {
    let build = folder()?.join(name);
    fs::create_dir_all(&build)?;
    // Other processes may compile and run the same program now: each file is made under a name of
    // this process and then renamed.
    let own = |file: &str| build.join(format!("{file}.{}", std::process::id()));
    for (library, file) in libraries {
        let _ = fs::remove_file(own(file));
        std::os::unix::fs::symlink(library, own(file))?;
        fs::rename(own(file), build.join(file))?;
    }
    let program = build.join(name);
    let mut command = Command::new(compiler());
    command.args(["-g", "-Wall", "-Wextra", "-Werror"]);
    command.arg("-I").arg(root().join("via-user/include"));
    command.arg("-o").arg(own(name)).arg("-L").arg(&build);
    add(&mut command);
    command.arg(format!("-Wl,-rpath,{}", build.canonicalize()?.display()));
    let status = command.status().map_err(|error| format!("cannot run the C compiler: {error}"))?;
    if !status.success() {
        return Err(format!("{name} does not compile").into());
    }
    fs::rename(own(name), &program)?;
    Ok(program)
}
