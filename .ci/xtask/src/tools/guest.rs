//! A machine that a NIC is attached to: QEMU, a kernel with VFIO, a shell. See `crate::guest`.
//!
//! QEMU attaches to vfio-user sockets from version 10.1 on, which no release of Debian has: it is
//! of the backports, with every library that it needs, and runs by its own loader, so that this
//! system may be older. The suites are what is pinned: the archive keeps no older versions of a
//! package.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::archive::{self, Archive};
use super::{dir, shims, write_executable};

/// The release of the kernel, and where QEMU is.
const SUITE: &str = "trixie";
const BACKPORTS: &str = "trixie-backports";
/// What is fetched: with all that it needs; a name for the kernel of the day; as it is.
const QEMU: &str = "qemu-system-x86";
const KERNEL: &str = "linux-image-cloud-amd64";
const SHELL: &str = "busybox-static";
/// The first QEMU that ends with the process that started it.
const QEMU_LEAST: (u32, u32) = (10, 2);

/// Modules of VFIO, in the order in which they are loaded.
pub(crate) const MODULES: [&str; 5] =
    ["irqbypass", "vfio", "vfio_iommu_type1", "vfio-pci-core", "vfio-pci"];

/// What is fetched, for the stamp and for the reader.
pub(super) const PINS: &[&str] = &[
    "trixie-backports/qemu-system-x86",
    "trixie/linux-image-cloud-amd64",
    "trixie/busybox-static",
];

/// Where it all is.
pub(crate) fn folder() -> PathBuf {
    dir().join("guest")
}

/// The command that is QEMU.
pub(crate) fn qemu() -> PathBuf {
    dir().join("bin/qemu-system-x86_64")
}

/// Fetches and unpacks everything.
pub(super) fn install() -> Result<(), String> {
    let folder = folder();
    let _ = fs::remove_dir_all(&folder);
    archive::make_folder(&folder.join("modules"))?;
    println!("  fetching {} (80 MB)", PINS.join(", "));
    let debian = Archive::open(&folder.join("apt"), &[SUITE, BACKPORTS])?;
    debian.unpack_whole(BACKPORTS, QEMU, &folder.join("qemu"))?;
    // Of no use to a program that is only run.
    for unused in ["doc", "man", "locale", "perl5"] {
        let _ = fs::remove_dir_all(folder.join("qemu/usr/share").join(unused));
    }
    let kernel = debian.dependency(KERNEL)?;
    let unpacked = folder.join("kernel");
    debian.unpack(&[&kernel, SHELL], &unpacked)?;
    take_kernel(&unpacked, &folder)?;
    let _ = fs::remove_dir_all(&unpacked);
    write_qemu(&folder.join("qemu"))?;
    check_qemu()?;
    println!("  {kernel}");
    Ok(())
}

/// Takes the shell, the kernel and the modules out of unpacked packages.
fn take_kernel(unpacked: &Path, into: &Path) -> Result<(), String> {
    let all = files(unpacked);
    // Whole last parts of the path: other files of the packages have the same names.
    let find = |end: &str| all.iter().find(|path| path.ends_with(end));
    let take = |from: Option<&PathBuf>, what: &str, to: &Path| {
        let from = from.ok_or_else(|| format!("{what} is not in its package"))?;
        fs::copy(from, to).map_err(|error| format!("cannot write {}: {error}", to.display()))
    };
    let shell = into.join("busybox");
    take(find("bin/busybox"), "busybox", &shell)?;
    let kernel = all.iter().find(|path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("vmlinuz-"))
    });
    take(kernel, "the kernel", &into.join("vmlinuz"))?;
    for module in MODULES {
        let (plain, packed) = (format!("{module}.ko"), format!("{module}.ko.xz"));
        let folder = into.join("modules");
        if find(&packed).is_none() {
            take(find(&plain), module, &folder.join(&plain))?;
            continue;
        }
        take(find(&packed), module, &folder.join(&packed))?;
        // The shell of the guest runs here too, and can unpack them.
        archive::run(Command::new(&shell).arg("unxz").arg(folder.join(&packed)))?;
    }
    Ok(())
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .flat_map(|entry| match entry.file_type() {
            Ok(kind) if kind.is_dir() => files(&entry.path()),
            Ok(kind) if kind.is_file() => vec![entry.path()],
            _ => Vec::new(),
        })
        .collect()
}

/// The command that runs QEMU with its own loader and libraries.
fn write_qemu(root: &Path) -> Result<(), String> {
    let script = format!(
        "#!/bin/sh\nR={root}\nL=\"$R/usr/lib/x86_64-linux-gnu\"\nexport QEMU_MODULE_DIR=\"$L/qemu\"\n\
         exec \"$R/usr/lib64/ld-linux-x86-64.so.2\" --library-path \"$L\" \
         \"$R/usr/bin/qemu-system-x86_64\" -L \"$R/usr/share/qemu\" -L \"$R/usr/share/seabios\" \
         \"$@\"\n",
        root = shims::quote(root),
    );
    archive::make_folder(&dir().join("bin"))?;
    write_executable(&qemu(), &script)
}

fn check_qemu() -> Result<(), String> {
    let output = archive::run(Command::new(qemu()).arg("--version"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().next().unwrap_or_default();
    match version(line) {
        Some(found) if found >= QEMU_LEAST => {
            println!("  {line}");
            Ok(())
        }
        _ => Err(format!("QEMU {QEMU_LEAST:?} or later is needed; {BACKPORTS} has: {line}")),
    }
}

/// The first two numbers of QEMU's version.
fn version(line: &str) -> Option<(u32, u32)> {
    let mut numbers = line.strip_prefix("QEMU emulator version ")?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        let of = |text| version(&format!("QEMU emulator version {text}"));
        assert_eq!(of("11.1.3 (Debian 1:11.1.3)"), Some((11, 1)));
        assert!(of("9.2.0").is_some_and(|old| old < QEMU_LEAST));
        assert_eq!(version("something else 11.1.3"), None);
    }

    #[test]
    fn pins_name_what_is_fetched() {
        let names = [(BACKPORTS, QEMU), (SUITE, KERNEL), (SUITE, SHELL)];
        let names = names.map(|(suite, name)| format!("{suite}/{name}"));
        assert_eq!(PINS, names);
    }
}
