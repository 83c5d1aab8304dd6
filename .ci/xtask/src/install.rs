//! `cargo xtask install PREFIX`: the library for C programs, its header and what finds them, and the
//! command.
//!
//! ```text
//! PREFIX/lib/libvipl.so.1            the library (soname libvipl.so.1)
//! PREFIX/lib/libvipl.so -> .so.1     for -lvipl
//! PREFIX/lib/vipl.so -> .so.1        for programs that load this name
//! PREFIX/lib/libsovia.so             what `viaduct run` loads into programs
//! PREFIX/lib/libviarpc.so            remote calls for programs in C
//! PREFIX/lib/libtirpc_via.so         the same for programs of SunRPC; only where libtirpc's headers are
//! PREFIX/lib/pkgconfig/vipl.pc
//! PREFIX/include/vipl.h, clan.h, sovia.h, viarpc.h, tirpc_via.h
//! PREFIX/share/viaduct/tirpc_via.c   the source of libtirpc_via.so
//! PREFIX/share/viaduct/examples/*    their sources in C
//! PREFIX/share/viaduct/*.lua         frames and packets in Wireshark
//! PREFIX/bin/viaduct                 the command
//! PREFIX/share/man/man1/viaduct*.1
//! PREFIX/share/...                   completions for bash, zsh and fish, where each looks for them
//! ```

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::tools::{self, Toolset};
use crate::{Outcome, workspace};

const USAGE: &str = "usage: cargo xtask install PREFIX [--debug] [--rtl]";
/// Where libtirpc's headers are, on Debian and others.
const TIRPC: &str = "/usr/include/tirpc";
/// The library's version is the interface's.
const VERSION: &str = "1.0";

/// The shells that have completions, and their files.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/viaduct"),
    ("zsh", "share/zsh/site-functions/_viaduct"),
    ("fish", "share/fish/vendor_completions.d/viaduct.fish"),
];

/// Builds the library and the command and puts them there.
pub(crate) fn run(args: &[String]) -> Outcome {
    let mut prefix = None;
    let (mut debug, mut rtl) = (false, false);
    for arg in args {
        match arg.as_str() {
            "--debug" => debug = true,
            "--rtl" => rtl = true,
            option if option.starts_with('-') => return Err(format!("{option}?\n{USAGE}")),
            path if prefix.is_none() => prefix = Some(PathBuf::from(path)),
            _ => return Err(USAGE.to_owned()),
        }
    }
    let prefix = prefix.ok_or(USAGE)?;
    let [of_libraries, of_command] = if debug { ["dev", "dev"] } else { ["library", "release"] };
    let libraries = build(&["libvipl", "libsovia", "libviarpc"], of_libraries, rtl)?;
    let built = build(&["viaduct"], of_command, rtl)?;
    fs::create_dir_all(&prefix).map_err(|error| failed(&prefix, &error))?;
    // The file for pkg-config names it, so it must hold from every folder.
    let prefix = prefix.canonicalize().map_err(|error| failed(&prefix, &error))?;
    let lib = prefix.join("lib");
    copy(&libraries.join("libvipl_c.so"), &lib.join("libvipl.so.1"))?;
    copy(&libraries.join("libsovia_c.so"), &lib.join("libsovia.so"))?;
    copy(&libraries.join("libviarpc_c.so"), &lib.join("libviarpc.so"))?;
    link("libvipl.so.1", &lib.join("libvipl.so"))?;
    link("libvipl.so.1", &lib.join("vipl.so"))?;
    write(&lib.join("pkgconfig/vipl.pc"), &package(&prefix))?;
    let source = workspace::root().join("via-user");
    for header in ["vipl.h", "clan.h", "sovia.h", "viarpc.h", "tirpc_via.h"] {
        copy(&source.join("include").join(header), &prefix.join("include").join(header))?;
    }
    let has_tirpc = tirpc(&source, &prefix)?;
    let examples = source.join("examples/c");
    let entries = fs::read_dir(&examples).map_err(|error| failed(&examples, &error))?;
    for entry in entries.flatten() {
        copy(&entry.path(), &prefix.join("share/viaduct/examples").join(entry.file_name()))?;
    }
    for name in ["viaduct.lua", "viaduct_net.lua"] {
        let dissector = workspace::root().join("cosim/wireshark").join(name);
        copy(&dissector, &prefix.join("share/viaduct").join(name))?;
    }
    command(&built.join("viaduct"), &prefix)?;
    println!(
        "installed libvipl, libsovia, libviarpc{}, their headers, vipl.pc and viaduct below {}",
        if has_tirpc { ", libtirpc_via" } else { "" },
        prefix.display()
    );
    Ok(ExitCode::SUCCESS)
}

/// Installs the source of the transport for programs of SunRPC, and builds it if this machine has libtirpc.
fn tirpc(source: &Path, prefix: &Path) -> Result<bool, String> {
    let file = prefix.join("share/viaduct/tirpc_via.c");
    copy(&source.join("libviarpc/tirpc/tirpc_via.c"), &file)?;
    if !Path::new(TIRPC).join("rpc/rpc.h").exists() {
        println!(
            "no {TIRPC}/rpc/rpc.h: libtirpc_via.so is not built; install libtirpc-dev and repeat this, or \
             compile {} into programs of SunRPC",
            file.display()
        );
        return Ok(false);
    }
    let lib = prefix.join("lib");
    let mut command = Command::new("cc");
    command.args(["-O2", "-shared", "-fPIC", "-Wl,-soname,libtirpc_via.so", "-I", TIRPC, "-I"]);
    command.arg(prefix.join("include")).arg(&file).arg("-o").arg(lib.join("libtirpc_via.so"));
    command.arg("-L").arg(&lib).args(["-lviarpc", "-ltirpc", "-lpthread"]);
    let status = command.status().map_err(|error| format!("cannot run the C compiler: {error}"))?;
    if status.success() { Ok(true) } else { Err("libtirpc_via.so does not compile".to_owned()) }
}

/// Installs the command with its manual pages and completions, which it writes itself.
fn command(program: &Path, prefix: &Path) -> Result<(), String> {
    copy(program, &prefix.join("bin/viaduct"))?;
    let pages = prefix.join("share/man/man1").display().to_string();
    output(program, &["man", "--dir", &pages])?;
    COMPLETIONS.iter().try_for_each(|(shell, file)| {
        write(&prefix.join(file), &output(program, &["completions", shell])?)
    })
}

/// What the command prints.
fn output(program: &Path, args: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(args).output();
    let output = output.map_err(|error| failed(program, &error))?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        return Err(format!("viaduct {}: {}", args.join(" "), why.trim()));
    }
    String::from_utf8(output.stdout).map_err(|error| format!("viaduct {}: {error}", args.join(" ")))
}

/// Builds packages in a profile, and gives their folder.
fn build(packages: &[&str], profile: &str, rtl: bool) -> Result<PathBuf, String> {
    let mut command = workspace::cargo();
    command.current_dir(workspace::root()).args(["build", "--profile", profile]);
    command.args(packages.iter().flat_map(|package| ["--package", package]));
    if rtl {
        tools::ensure(Toolset::Sim)?;
        command.args(["--features", "rtl"]).envs(tools::env());
    }
    let status = command.status().map_err(|error| format!("cannot run cargo: {error}"))?;
    if !status.success() {
        return Err(format!("{} does not build", packages.join(" or ")));
    }
    let folder = if profile == "dev" { "debug" } else { profile };
    Ok(workspace::target_dir().join(folder))
}

fn failed(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

fn make_folder_of(path: &Path) -> Result<(), String> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder).map_err(|error| failed(folder, &error))
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    make_folder_of(to)?;
    // A program that runs keeps the old file.
    let _ = fs::remove_file(to);
    fs::copy(from, to).map(drop).map_err(|error| format!("{}: {error}", from.display()))
}

fn write(to: &Path, text: &str) -> Result<(), String> {
    make_folder_of(to)?;
    fs::write(to, text).map_err(|error| failed(to, &error))
}

fn link(target: &str, place: &Path) -> Result<(), String> {
    let _ = fs::remove_file(place);
    symlink(target, place).map_err(|error| failed(place, &error))
}

fn package(prefix: &Path) -> String {
    format!(
        "prefix={}\nincludedir=${{prefix}}/include\nlibdir=${{prefix}}/lib\n\nName: vipl\n\
         Description: VIPL, the Virtual Interface Provider Library, of Viaduct\nVersion: {VERSION}\n\
         Cflags: -I${{includedir}}\nLibs: -L${{libdir}} -lvipl\n",
        prefix.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_checked() {
        let run = |args: &[&str]| run(&args.iter().map(|&arg| arg.to_owned()).collect::<Vec<_>>());
        assert!(run(&[]).unwrap_err().contains("usage"));
        assert!(run(&["--fast", "x"]).unwrap_err().contains("--fast"));
        assert!(run(&["x", "y"]).unwrap_err().contains("usage"));
    }

    #[test]
    fn the_package_names_its_prefix() {
        let text = package(Path::new("/opt/viaduct"));
        assert!(text.starts_with("prefix=/opt/viaduct\n") && text.contains("-lvipl\n"));
    }
}
