//! Debian packages: checked by name, installed only when missing.

use std::process::Command;

use super::quiet;

/// Makes sure that the packages are there.
///
/// As root it installs what is missing, otherwise it says which command does. On a system without
/// dpkg it only checks that the programs answer: the names of the packages differ there.
pub(super) fn ensure(packages: &[&str]) -> Result<(), String> {
    if !quiet(Command::new("dpkg-query").arg("--version")) {
        return check_programs(packages);
    }
    let missing: Vec<&str> =
        packages.iter().copied().filter(|package| !is_present(package)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names = missing.join(" ");
    if !is_root() {
        return Err(format!(
            "missing Debian packages; run this and try again:\n  sudo apt-get install {names}"
        ));
    }
    println!("  apt-get install {names}");
    let apt = |args: &[&str]| {
        Command::new("apt-get")
            .args(args)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .stdin(std::process::Stdio::null())
            .output()
            .map_err(|error| format!("cannot run apt-get: {error}"))
    };
    let mut install = vec!["install", "--yes", "--no-install-recommends"];
    install.extend(&missing);
    // The package lists may be there already, and an update is slow and needs the network.
    if apt(&install)?.status.success() {
        return Ok(());
    }
    apt(&["update"])?;
    let output = apt(&install)?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!(
        "apt-get could not install {names}:\n{}",
        String::from_utf8_lossy(&output.stderr).trim()
    ))
}

/// Whether the package is installed, or something else does its work: a compiler, a Python, a
/// valgrind, tshark or chromium that did not come from Debian is as good.
fn is_present(package: &str) -> bool {
    match package {
        "python3-venv" => quiet(Command::new("python3").args(["-c", "import venv, ensurepip"])),
        "g++" | "valgrind" | "tshark" | "chromium" => quiet(Command::new(package).arg("--version")),
        _ => is_installed(package),
    }
}

fn is_installed(package: &str) -> bool {
    Command::new("dpkg-query")
        .args(["--show", "--showformat=${db:Status-Status}", package])
        .output()
        .is_ok_and(|output| output.stdout == b"installed")
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n")
}

fn check_programs(packages: &[&str]) -> Result<(), String> {
    if packages.contains(&"g++") && !quiet(Command::new("c++").arg("--version")) {
        return Err(
            "no C++ compiler: install one, and the development files of zlib and lz4".to_owned()
        );
    }
    for program in ["valgrind", "tshark", "chromium"] {
        if packages.contains(&program) && !is_present(program) {
            return Err(format!("no {program}: install it"));
        }
    }
    Ok(())
}
