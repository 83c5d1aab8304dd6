//! Programs in C against `vipl.h`, compiled where they are needed.

use crate::Failure;
use std::env;
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

/// `libvipl` as it was built with this program.
pub(crate) fn library() -> Option<PathBuf> {
    let folder = folder().ok()?;
    // A test binary lies one folder deeper.
    let places = [folder.join("deps/libvipl_c.so"), folder.join("libvipl_c.so")];
    places.into_iter().find(|path| path.exists())
}

/// Compiles a program beside this one.
pub(crate) fn compile(name: &str, sources: &[PathBuf]) -> Result<PathBuf, Failure> {
    let library = library().ok_or("libvipl is not here; build it with `cargo build -p libvipl`")?;
    let build = folder()?.join(name);
    fs::create_dir_all(&build)?;
    for name in ["libvipl.so", "libvipl.so.1"] {
        let link = build.join(name);
        let _ = fs::remove_file(&link);
        std::os::unix::fs::symlink(&library, &link)?;
    }
    let program = build.join(name);
    let mut command = Command::new(env::var_os("CC").unwrap_or_else(|| "cc".into()));
    command.args(["-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Werror"]);
    command.arg("-I").arg(root().join("via-user/include")).args(sources);
    command.arg("-o").arg(&program).arg("-L").arg(&build).args(["-lvipl", "-lpthread"]);
    command.arg(format!("-Wl,-rpath,{}", build.canonicalize()?.display()));
    let status = command.status().map_err(|error| format!("cannot run the C compiler: {error}"))?;
    if status.success() { Ok(program) } else { Err(format!("{name} does not compile").into()) }
}
