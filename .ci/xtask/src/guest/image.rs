//! The guest's file system: a cpio archive with a shell, the modules of VFIO and the program.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::tools::guest as tools;

/// Its name in the folder of a run.
pub(super) const NAME: &str = "initrd";
/// What the guest says on its console when the program has ended; the exit code follows.
pub(super) const EXIT: &str = "viaduct guest: exit ";

const FOLDER: u32 = 0o040_755;
const EXECUTABLE: u32 = 0o100_755;

/// A cpio archive in the form `newc`, which the kernel unpacks.
#[derive(Default)]
struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

impl Archive {
    /// Adds a file or folder; folders come before what is in them.
    fn add(&mut self, name: &str, mode: u32, data: &[u8]) {
        self.entries += 1;
        let length = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let fields = [
            self.entries,
            mode,
            0,
            0,
            1,
            0,
            length(data.len()),
            0,
            0,
            0,
            0,
            length(name.len() + 1),
            0,
        ];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(data);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    fn finish(mut self) -> Vec<u8> {
        self.add("TRAILER!!!", 0, &[]);
        self.bytes
    }
}

/// What a program needs beside itself: the libraries of one that is linked dynamically, at their own
/// paths.
fn libraries(program: &Path) -> Result<Vec<PathBuf>, String> {
    let output = Command::new("ldd").arg(program).output();
    let output = output.map_err(|error| format!("cannot run ldd: {error}"))?;
    // One that is linked statically has none: ldd says so, and fails.
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let path = |line: &str| {
        let words = line.split_whitespace();
        words.into_iter().find(|word| word.starts_with('/')).map(PathBuf::from)
    };
    if let Some(line) = text.lines().find(|line| line.ends_with("not found")) {
        return Err(format!("a library of {} is missing: {}", program.display(), line.trim()));
    }
    Ok(text.lines().filter_map(path).collect())
}

/// A program or library without what only debuggers read, which is most of it. The guest unpacks it into
/// its memory.
fn stripped(folder: &Path, file: &Path) -> Result<Vec<u8>, String> {
    let small = folder.join("stripped");
    let done = Command::new("strip").arg("-o").arg(&small).arg(file).output();
    let is_done = done.is_ok_and(|output| output.status.success());
    let file = if is_done { &small } else { file };
    fs::read(file).map_err(|error| format!("cannot read {}: {error}", file.display()))
}

/// Writes the file system of a run into its folder. With `bind`, programs find the NICs with the
/// kernel's driver for VFIO.
pub(super) fn write(
    folder: &Path,
    program: &Path,
    args: &[String],
    bind: bool,
) -> Result<(), String> {
    let from = tools::folder();
    let read = |path: &Path| {
        fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
    };
    let mut archive = Archive::default();
    for name in ["bin", "dev", "proc", "sys", "tmp", "modules"] {
        archive.add(name, FOLDER, &[]);
    }
    archive.add("bin/busybox", EXECUTABLE, &read(&from.join("busybox"))?);
    for module in tools::MODULES {
        let name = format!("modules/{module}.ko");
        archive.add(&name, EXECUTABLE, &read(&from.join(&name))?);
    }
    let mut folders = BTreeSet::new();
    for library in libraries(program)? {
        let parents: Vec<&Path> = library.ancestors().skip(1).collect();
        for parent in parents.into_iter().rev() {
            let name = inside(parent);
            if !name.is_empty() && folders.insert(name.clone()) {
                archive.add(&name, FOLDER, &[]);
            }
        }
        archive.add(&inside(&library), EXECUTABLE, &stripped(folder, &library)?);
    }
    archive.add("program", EXECUTABLE, &stripped(folder, program)?);
    archive.add("init", EXECUTABLE, script(args, bind).as_bytes());
    let path = folder.join(NAME);
    fs::write(&path, archive.finish())
        .map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// The name of an absolute path in the archive.
fn inside(path: &Path) -> String {
    path.to_string_lossy().trim_start_matches('/').to_owned()
}

/// Binds the NICs to the driver for VFIO, as `viaduct device bind` does.
const BIND: &str = "\
for card in /sys/bus/pci/devices/*; do
  if [ $(cat $card/vendor)$(cat $card/device) = 0x51a70x0001 ]; then
    echo vfio-pci > $card/driver_override
    echo ${card##*/} > /sys/bus/pci/drivers_probe
  fi
done
";

/// What the kernel starts. The console is the first serial port; the second one carries the
/// program's output and nothing else.
fn script(args: &[String], bind: bool) -> String {
    let args: String = args.iter().map(|arg| format!(" {}", quote(arg))).collect();
    let modules = tools::MODULES.join(" ");
    let bind = if bind { BIND } else { "" };
    format!(
        "#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/shm
mount -t tmpfs shm /dev/shm
for module in {modules}; do insmod /modules/$module.ko; done
{bind}stty -F /dev/ttyS1 raw
/program{args} > /dev/ttyS1 2>&1
echo \"{EXIT}$?\"
reboot -f
"
    )
}

/// A text as one word of the shell.
fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_aligned_and_end_with_the_trailer() {
        let mut archive = Archive::default();
        archive.add("bin", FOLDER, &[]);
        archive.add("bin/x", EXECUTABLE, b"abcde");
        let bytes = archive.finish();
        // Name and data begin at multiples of 4 behind headers of 110 bytes.
        let second = 116;
        assert_eq!(&bytes[second..second + 6], b"070701");
        assert_eq!(&bytes[second + 110..second + 116], b"bin/x\0");
        assert_eq!(&bytes[second + 116..second + 121], b"abcde");
        assert_eq!(&bytes[second + 54..second + 62], b"00000005", "size of the data");
        let text = String::from_utf8_lossy(&bytes);
        assert!(bytes.len().is_multiple_of(4) && text.contains("TRAILER!!!"));
    }

    #[test]
    fn arguments_stay_as_they_are() {
        let text = script(&["a b".to_owned(), "it's".to_owned()], false);
        assert!(text.contains("/program 'a b' 'it'\\''s' > "), "{text}");
    }
}
