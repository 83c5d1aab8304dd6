//! What a guest kernel sees of the NICs that it has, printed in lines `ADDRESS NAME VALUE...`, in
//! hexadecimal; then each is bound to VFIO and reset. `cargo xtask guest` runs it as root of a guest.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "its output is its purpose")]

use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use nic_regs::csr;
use nic_regs::pci::{DEVICE_ID, VENDOR_ID};

/// PCI functions of this system.
const DEVICES: &str = "/sys/bus/pci/devices";
/// Where the list of capabilities begins, in configuration space.
const CAPABILITIES: usize = 0x34;
/// Capabilities: PCI Express and MSI-X.
const EXPRESS: u8 = 0x10;
const MSIX: u8 = 0x11;
/// Written to MODERATION, to see what a reset does.
const SIGN: u32 = 0x4d;

fn main() -> ExitCode {
    let printed = nics().and_then(|nics| {
        if nics.is_empty() {
            let text = format!("no PCI device {VENDOR_ID:04x}:{DEVICE_ID:04x} is here");
            return Err(io::Error::other(text));
        }
        nics.iter().try_for_each(tell)
    });
    match printed {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A NIC as sysfs shows it.
#[derive(Debug)]
struct Nic {
    folder: PathBuf,
    address: String,
}

/// The NICs, by address.
fn nics() -> io::Result<Vec<Nic>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(DEVICES)? {
        let entry = entry?;
        let address = entry.file_name().to_string_lossy().into_owned();
        let nic = Nic { folder: entry.path(), address };
        let ids = (nic.number("vendor")?, nic.number("device")?);
        if ids == (VENDOR_ID.into(), DEVICE_ID.into()) {
            found.push(nic);
        }
    }
    found.sort_by(|a, b| a.address.cmp(&b.address));
    Ok(found)
}

impl Nic {
    fn tell(&self, name: &str, values: &[u64]) {
        let values: String = values.iter().map(|value| format!(" {value:x}")).collect();
        println!("{} {name}{values}", self.address);
    }

    fn text(&self, name: &str) -> io::Result<String> {
        let text = fs::read_to_string(self.folder.join(name)).map_err(|error| at(name, &error))?;
        Ok(text.trim().to_owned())
    }

    fn number(&self, name: &str) -> io::Result<u64> {
        hexadecimal(&self.text(name)?)
    }

    fn put(&self, name: &str, text: &str) -> io::Result<()> {
        fs::write(self.folder.join(name), text).map_err(|error| at(name, &error))
    }

    /// The kernel's view of the BARs: first address and size of each that there is.
    fn bars(&self) -> io::Result<Vec<(usize, u64, u64)>> {
        let text = self.text("resource")?;
        let mut found = Vec::new();
        for (number, line) in text.lines().take(6).enumerate() {
            let mut words = line.split_whitespace().map(hexadecimal);
            let mut word = || words.next().unwrap_or_else(|| Err(at(line, &"no resource")));
            let (first, last) = (word()?, word()?);
            if last > first {
                found.push((number, first, last - first + 1));
            }
        }
        Ok(found)
    }
}

fn at(name: &str, error: &dyn core::fmt::Display) -> io::Error {
    io::Error::other(format!("{name}: {error}"))
}

fn hexadecimal(text: &str) -> io::Result<u64> {
    u64::from_str_radix(text.trim().trim_start_matches("0x").trim_start_matches("0X"), 16)
        .map_err(|error| at(text, &error))
}

/// Reads a register, or writes it first. Programs of the guest have no other way to a BAR that needs
/// no driver.
fn register(address: u64, value: Option<u32>) -> io::Result<u64> {
    let mut command = Command::new("/bin/busybox");
    command.args(["devmem", &format!("{address:#x}"), "32"]);
    if let Some(value) = value {
        command.arg(format!("{value:#x}"));
        let status = command.status()?;
        if !status.success() {
            return Err(at("devmem", &status));
        }
        return register(address, None);
    }
    let output = command.output()?;
    hexadecimal(&String::from_utf8_lossy(&output.stdout))
}

fn tell(nic: &Nic) -> io::Result<()> {
    nic.tell("ids", &[nic.number("vendor")?, nic.number("device")?, nic.number("class")?]);
    nic.tell("subsystem", &[nic.number("subsystem_vendor")?, nic.number("subsystem_device")?]);
    let bars = nic.bars()?;
    for (number, first, size) in &bars {
        nic.tell("bar", &[*number as u64, *first, *size]);
    }
    capabilities(nic)?;

    let registers = bars.iter().find(|(number, ..)| *number == 0);
    let (_, base, _) = *registers.ok_or_else(|| at("resource", &"there is no BAR0"))?;
    nic.put("enable", "1")?;
    let of = |offset: u32| base + u64::from(offset);
    let known = [csr::ID::OFFSET, csr::STATUS::OFFSET, csr::CLOCK::OFFSET].map(of);
    let known: io::Result<Vec<u64>> = known.iter().map(|at| register(*at, None)).collect();
    nic.tell("registers", &known?);
    nic.tell("written", &[register(of(csr::MODERATION::OFFSET), Some(SIGN))?]);
    bind(nic)?;

    println!("{} reset_method {}", nic.address, nic.text("reset_method")?);
    nic.put("reset", "1")?;
    nic.tell("reset", &[register(of(csr::MODERATION::OFFSET), None)?]);
    let again = [csr::ID::OFFSET, csr::STATUS::OFFSET].map(of);
    let again: io::Result<Vec<u64>> = again.iter().map(|at| register(*at, None)).collect();
    nic.tell("again", &again?);
    Ok(())
}

/// Prints the capabilities, of configuration space as the kernel reads it.
fn capabilities(nic: &Nic) -> io::Result<()> {
    let space = fs::read(nic.folder.join("config"))?;
    nic.tell("config_bytes", &[space.len() as u64]);
    let word = |offset: usize| {
        let bytes = space.get(offset..).and_then(|rest| rest.first_chunk());
        u64::from(u32::from_le_bytes(bytes.copied().unwrap_or_default()))
    };
    let mut at = (word(CAPABILITIES) & 0xff) as usize;
    // As many as fit: a list that runs in a circle ends too.
    for _ in 0..48 {
        if at == 0 {
            return Ok(());
        }
        match (word(at) & 0xff).try_into() {
            // Device capabilities: bit 28 is function-level reset.
            Ok(EXPRESS) => nic.tell("express", &[word(at + 4) >> 28 & 1]),
            // Vectors; where the table and the pending bits are: offset and, below it, BAR.
            Ok(MSIX) => {
                let vectors = (word(at) >> 16 & 0x7ff) + 1;
                nic.tell("msix", &[vectors, word(at + 4), word(at + 8)]);
            }
            _ => nic.tell("capability", &[word(at) & 0xff]),
        }
        at = (word(at) >> 8 & 0xff) as usize;
    }
    Err(self::at("config", &"the list of capabilities has no end"))
}

/// Gives the NIC to the driver with which programs reach devices.
fn bind(nic: &Nic) -> io::Result<()> {
    nic.put("driver_override", "vfio-pci")?;
    fs::write("/sys/bus/pci/drivers_probe", &nic.address)?;
    let name = |link: &str| {
        let to = fs::read_link(nic.folder.join(link)).map_err(|error| at(link, &error))?;
        Ok::<_, io::Error>(to.file_name().unwrap_or_default().to_string_lossy().into_owned())
    };
    let group = name("iommu_group")?;
    println!("{} driver {}", nic.address, name("driver")?);
    let device = Path::new("/dev/vfio").join(&group);
    let kind = fs::metadata(&device).map_err(|error| at(&group, &error))?.file_type();
    println!("{} group {group} {}", nic.address, kind.is_char_device());
    Ok(())
}
