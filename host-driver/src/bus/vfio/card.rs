//! Cards as the kernel shows them in sysfs, and what keeps a program from using one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use nic_regs::pci::{DEVICE_ID, VENDOR_ID};

use super::{config, locked};
use crate::error::{Error, Result};
use crate::obstacle::Obstacle;

/// The kernel's driver that gives a PCI function to a program.
pub const DRIVER: &str = "vfio-pci";

/// The kernel's view of its PCI functions. Tests have one of their own.
#[derive(Clone, Debug)]
pub struct Sysfs {
    /// Where sysfs is mounted.
    pub sys: PathBuf,
    /// Where device files are.
    pub dev: PathBuf,
}

impl Default for Sysfs {
    fn default() -> Self {
        Self { sys: "/sys".into(), dev: "/dev".into() }
    }
}

/// A PCI function.
#[derive(Clone, Debug)]
pub struct Card {
    sysfs: Sysfs,
    /// Domain, bus, device and function: `0000:03:00.0`.
    pub address: String,
}

fn failed(address: &str, why: &str, mend: &str) -> Error {
    Error::Vfio { address: address.to_owned(), obstacle: Obstacle::new(why, mend) }
}

fn name_of(link: &Path) -> Option<String> {
    Some(fs::read_link(link).ok()?.file_name()?.to_string_lossy().into_owned())
}

/// Whether a text is a PCI address with its domain.
fn is_address(text: &str) -> bool {
    let digits = |text: &str, count| {
        text.len() == count && text.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let parts: Vec<&str> = text.split([':', '.']).collect();
    let shape: String = text.chars().filter(|c| matches!(c, ':' | '.')).collect();
    shape == "::." && [4, 2, 2, 1].iter().zip(parts).all(|(count, part)| digits(part, *count))
}

impl Sysfs {
    fn functions(&self) -> PathBuf {
        self.sys.join("bus/pci/devices")
    }

    /// The Viaduct NICs of this machine, by address.
    #[must_use]
    pub fn cards(&self) -> Vec<Card> {
        let entries = fs::read_dir(self.functions()).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut cards: Vec<Card> = names
            .map(|address| Card { sysfs: self.clone(), address })
            .filter(Card::is_ours)
            .collect();
        cards.sort_by(|a, b| a.address.cmp(&b.address));
        cards
    }

    /// The card at an address, with or without its domain; the only one for an empty text.
    ///
    /// # Errors
    /// [`Error::Vfio`]: there is none, it is no Viaduct NIC, or there are several.
    pub fn find(&self, address: &str) -> Result<Card> {
        if address.is_empty() {
            let mut cards = self.cards();
            let names: Vec<String> = cards.iter().map(|card| card.address.clone()).collect();
            return match (cards.pop(), &cards[..]) {
                (None, _) => Err(Error::Vfio {
                    address: "ADDRESS".to_owned(),
                    obstacle: Obstacle::no_card(),
                }),
                (Some(card), []) => Ok(card),
                _ => Err(failed(
                    address,
                    &format!("there are several cards, {}", names.join(", ")),
                    "say which one",
                )),
            };
        }
        let card = self.function(address)?;
        if !card.is_ours() {
            let found = format!("{}:{}", card.text("vendor"), card.text("device"));
            return Err(failed(
                address,
                &format!("it is {found} and no Viaduct NIC ({VENDOR_ID:#06x}:{DEVICE_ID:#06x})"),
                "`viaduct device list` shows the cards",
            ));
        }
        Ok(card)
    }

    /// Any PCI function at an address, with or without its domain.
    ///
    /// # Errors
    /// [`Error::Vfio`]: there is none.
    pub fn function(&self, address: &str) -> Result<Card> {
        let known =
            if is_address(address) { address.to_owned() } else { format!("0000:{address}") };
        if !is_address(&known) {
            return Err(failed(address, "this is no PCI address", "give one such as 0000:03:00.0"));
        }
        let card = Card { sysfs: self.clone(), address: known.to_lowercase() };
        if !card.folder().exists() {
            let mend = "`viaduct device list` shows the cards";
            return Err(failed(address, "no PCI function is there", mend));
        }
        Ok(card)
    }
}

impl Card {
    /// Where sysfs has it.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        self.sysfs.functions().join(&self.address)
    }

    fn text(&self, name: &str) -> String {
        let text = fs::read_to_string(self.folder().join(name)).unwrap_or_default();
        text.trim().to_owned()
    }

    fn is_ours(&self) -> bool {
        let number = |name| u16::from_str_radix(self.text(name).trim_start_matches("0x"), 16).ok();
        (number("vendor"), number("device")) == (Some(VENDOR_ID), Some(DEVICE_ID))
    }

    /// The kernel's driver that has it.
    #[must_use]
    pub fn driver(&self) -> Option<String> {
        name_of(&self.folder().join("driver"))
    }

    /// Number of its group: the functions that the IOMMU cannot tell apart.
    #[must_use]
    pub fn group(&self) -> Option<String> {
        name_of(&self.folder().join("iommu_group"))
    }

    /// Other functions of its group that a driver of the kernel has, with the driver.
    fn strangers(&self) -> Vec<(String, String)> {
        let folder = self.folder().join("iommu_group/devices");
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let others = names.filter(|name| *name != self.address);
        let cards = others.map(|address| Self { sysfs: self.sysfs.clone(), address });
        let has_driver = |card: Self| Some((card.address.clone(), card.driver()?));
        // Bridges and their ports may keep their driver.
        let is_strange = |(_, driver): &(String, String)| driver != DRIVER && driver != "pcieport";
        cards.filter_map(has_driver).filter(is_strange).collect()
    }

    /// What keeps a program from using it. None: nothing that is known before it is tried.
    #[must_use]
    pub fn obstacle(&self) -> Option<Obstacle> {
        let address = &self.address;
        let bind = format!("`viaduct device bind {address}` as root");
        let Some(group) = self.group() else {
            let mend = "enable it in the firmware (VT-d, AMD-Vi) and start the kernel with \
                        intel_iommu=on, or amd_iommu=on";
            return Some(Obstacle::new("the IOMMU is off", mend));
        };
        match self.driver() {
            None => return Some(Obstacle::new("no driver has it", bind)),
            Some(driver) if driver != DRIVER => {
                return Some(Obstacle::new(format!("the kernel's driver {driver} has it"), bind));
            }
            Some(_) => {}
        }
        if let [(other, driver), ..] = &self.strangers()[..] {
            return Some(Obstacle::new(
                format!("its IOMMU group {group} also has {other}, which the driver {driver} has"),
                format!(
                    "put the card into another slot, or `viaduct device bind --any {other}` as root"
                ),
            ));
        }
        let file = self.sysfs.dev.join("vfio").join(&group);
        match fs::OpenOptions::new().read(true).write(true).open(&file) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Some(Obstacle::new(
                format!("this user may not open {}", file.display()),
                format!("`chown $USER {}` as root", file.display()),
            )),
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::BUSY.raw_os_error()) => {
                Some(Obstacle {
                    is_busy: true,
                    ..Obstacle::new("another program uses it", "end that program")
                })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Some(Obstacle::new(
                format!("there is no {}", file.display()),
                "`modprobe vfio-pci` as root",
            )),
            Err(error) => {
                Some(Obstacle::new(format!("{}: {error}", file.display()), "see docs/vfio.md"))
            }
            Ok(_) => locked::obstacle(locked::limit()),
        }
    }

    /// What the kernel says of it, by name: what it does not say is not there. The payload sizes are
    /// known to root alone.
    #[must_use]
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let line = |name| Some(self.text(name)).filter(|text| !text.is_empty());
        let link = line("current_link_speed").zip(line("current_link_width"));
        let most = line("max_link_speed").zip(line("max_link_width"));
        let show = |(speed, width): (String, String)| format!("{speed}, {width} lanes");
        let config = fs::read(self.folder().join("config")).unwrap_or_default();
        let sizes = config::payload_sizes(&config);
        let facts = [
            ("driver", self.driver()),
            ("iommu_group", self.group()),
            ("numa_node", line("numa_node")),
            ("link", link.map(show)),
            ("link_max", most.map(show)),
            ("max_payload", sizes.map(|(payload, _)| format!("{payload} bytes"))),
            ("max_read_request", sizes.map(|(_, read)| format!("{read} bytes"))),
            ("locked_memory", Some(locked::text(locked::limit()))),
        ];
        facts.into_iter().filter_map(|(name, text)| Some((name, text?))).collect()
    }

    fn put(&self, path: &Path, text: &str) -> Result<()> {
        fs::write(path, text).map_err(|why| {
            let mend = match why.kind() {
                io::ErrorKind::PermissionDenied => "only root may do this",
                io::ErrorKind::NotFound => "`modprobe vfio-pci` as root",
                _ => "`dmesg` may say more",
            };
            failed(&self.address, &format!("{}: {why}", path.display()), mend)
        })
    }

    /// Has the kernel give it to programs, by its driver for VFIO; no other driver gets it until it
    /// is given back, or the machine starts anew.
    ///
    /// # Errors
    /// [`Error::Vfio`]: the kernel refuses it.
    pub fn bind(&self) -> Result<()> {
        self.rebind(DRIVER)
    }

    /// Gives it back to the driver that the kernel has for it, if it has one.
    ///
    /// # Errors
    /// As [`Card::bind`].
    pub fn unbind(&self) -> Result<()> {
        self.rebind("")
    }

    fn rebind(&self, driver: &str) -> Result<()> {
        let bus = self.sysfs.sys.join("bus/pci");
        if !driver.is_empty() && !bus.join("drivers").join(driver).exists() {
            let why = format!("the kernel has no driver {driver}");
            return Err(failed(&self.address, &why, "`modprobe vfio-pci` as root"));
        }
        // A new line alone is no driver in particular.
        self.put(&self.folder().join("driver_override"), &format!("{driver}\n"))?;
        if self.driver().is_some() {
            self.put(&self.folder().join("driver/unbind"), &self.address)?;
        }
        self.put(&bus.join("drivers_probe"), &self.address)?;
        match self.driver() {
            found if driver.is_empty() || found.as_deref() == Some(driver) => Ok(()),
            found => {
                let found = found.map_or_else(String::new, |found| format!(", but to {found}"));
                let why = format!("the kernel did not give it to {driver}{found}");
                Err(failed(&self.address, &why, "`dmesg` may say more"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_shape() {
        assert!(is_address("0000:03:00.0") && is_address("10Ab:ff:1f.7"));
        for text in ["", "03:00.0", "0000:03:00", "0000.03.00:0", "0000:03:00.00", "0000:3:0.0"] {
            assert!(!is_address(text), "{text}");
        }
    }

    /// A machine with a folder for sysfs and one for device files.
    struct Machine(Sysfs);

    impl Machine {
        fn new(name: &str) -> Self {
            let root = std::env::temp_dir().join(format!("viaduct-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&root);
            Self(Sysfs { sys: root.join("sys"), dev: root.join("dev") })
        }

        fn function(&self, address: &str, ids: (&str, &str)) {
            let folder = self.0.functions().join(address);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("vendor"), format!("{}\n", ids.0)).unwrap();
            fs::write(folder.join("device"), format!("{}\n", ids.1)).unwrap();
        }

        fn card(&self, address: &str) {
            self.function(address, (&format!("{VENDOR_ID:#06x}"), &format!("{DEVICE_ID:#06x}")));
        }

        fn link(&self, address: &str, name: &str, to: &str) {
            let link = self.0.functions().join(address).join(name);
            let _ = fs::remove_file(&link);
            std::os::unix::fs::symlink(to, link).unwrap();
        }

        /// Puts functions into a group.
        fn group(&self, number: &str, addresses: &[&str]) {
            let group = self.0.sys.join("kernel/iommu_groups").join(number);
            for address in addresses {
                fs::create_dir_all(group.join("devices").join(address)).unwrap();
                self.link(address, "iommu_group", group.to_str().unwrap());
            }
        }

        fn obstacle(&self, address: &str) -> String {
            let card = self.0.find(address).unwrap();
            card.obstacle().map(|obstacle| obstacle.to_string()).unwrap_or_default()
        }
    }

    impl Drop for Machine {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(self.0.sys.parent().unwrap());
        }
    }

    #[test]
    fn each_obstacle_is_named_with_what_mends_it() {
        let machine = Machine::new("obstacles");
        machine.card("0000:03:00.0");
        machine.function("0000:00:1f.6", ("0x8086", "0x15be"));
        let says = |wanted: &str, mend: &str| {
            let text = machine.obstacle("03:00.0");
            assert!(text.contains(wanted) && text.contains(mend), "{text}");
        };
        says("the IOMMU is off", "intel_iommu=on");
        machine.group("7", &["0000:03:00.0", "0000:00:1f.6"]);
        says("no driver has it", "viaduct device bind 0000:03:00.0");
        machine.link("0000:03:00.0", "driver", "/drivers/uio_pci_generic");
        says("the kernel's driver uio_pci_generic has it", "viaduct device bind 0000:03:00.0");
        machine.link("0000:03:00.0", "driver", "/drivers/vfio-pci");
        machine.link("0000:00:1f.6", "driver", "/drivers/e1000e");
        says(
            "its IOMMU group 7 also has 0000:00:1f.6, which the driver e1000e has",
            "another slot",
        );
        machine.link("0000:00:1f.6", "driver", "/drivers/pcieport");
        says("there is no ", "modprobe vfio-pci");
        fs::create_dir_all(machine.0.dev.join("vfio")).unwrap();
        fs::write(machine.0.dev.join("vfio/7"), "").unwrap();
        assert_eq!(machine.obstacle("03:00.0"), "");
    }

    #[test]
    fn what_keeps_a_card_from_its_driver_is_said() {
        let machine = Machine::new("bind");
        machine.card("0000:03:00.0");
        let card = machine.0.find("").unwrap();
        let fails = |wanted: &str| {
            let text = card.bind().expect_err("it cannot be bound").to_string();
            assert!(text.contains(wanted), "{text}");
        };
        fails("the kernel has no driver vfio-pci: `modprobe vfio-pci`");
        fs::create_dir_all(machine.0.sys.join("bus/pci/drivers/vfio-pci")).unwrap();
        // Nobody acts on what is written here.
        fails("the kernel did not give it to vfio-pci: `dmesg`");
        let written = |name: &str| fs::read_to_string(card.folder().join(name)).unwrap();
        assert_eq!(written("driver_override"), "vfio-pci\n");
        let probed = fs::read_to_string(machine.0.sys.join("bus/pci/drivers_probe")).unwrap();
        assert_eq!(probed, "0000:03:00.0");
        card.unbind().unwrap();
        assert_eq!(written("driver_override"), "\n");
        machine.link("0000:03:00.0", "driver", "/nonexistent/drivers/e1000e");
        fails("driver/unbind: No such file");
        assert!(machine.0.find("00:1f.6").is_err() && machine.0.function("03:00.0").is_ok());
    }

    #[test]
    fn facts_are_those_that_the_kernel_says() {
        let machine = Machine::new("facts");
        machine.card("0000:03:00.0");
        let card = machine.0.find("").unwrap();
        let limit = locked::text(locked::limit());
        let facts = |card: &Card| {
            let mut facts = card.facts();
            assert_eq!(facts.pop(), Some(("locked_memory", limit.clone())));
            facts
        };
        assert_eq!(facts(&card), []);
        machine.group("7", &["0000:03:00.0"]);
        for (name, text) in
            [("current_link_speed", "8.0 GT/s PCIe\n"), ("current_link_width", "4\n")]
        {
            fs::write(card.folder().join(name), text).unwrap();
        }
        let wanted = [("iommu_group", "7"), ("link", "8.0 GT/s PCIe, 4 lanes")];
        assert_eq!(facts(&card), wanted.map(|(name, text)| (name, text.to_owned())));
    }

    #[test]
    fn cards_are_found_by_address_or_alone() {
        let machine = Machine::new("found");
        let fails = |address: &str, wanted: &str| {
            let text = machine.0.find(address).expect_err("no such card").to_string();
            assert!(text.starts_with("vfio:") && text.contains(wanted), "{text}");
        };
        fails("", "no Viaduct NIC");
        machine.function("0000:00:1f.6", ("0x8086", "0x15be"));
        fails("", "no Viaduct NIC");
        fails("00:1f.6", "it is 0x8086:0x15be and no Viaduct NIC (0x51a7:0x0001)");
        fails("00:1f.7", "no PCI function is there");
        fails("../../etc", "this is no PCI address");
        machine.card("0000:03:00.0");
        assert_eq!(machine.0.find("").unwrap().address, "0000:03:00.0");
        machine.card("0000:0A:00.0");
        fails("", "several cards, 0000:03:00.0, 0000:0A:00.0");
        assert_eq!(machine.0.find("0000:03:00.0").unwrap().address, "0000:03:00.0");
        assert_eq!(machine.0.cards().len(), 2);
    }
}
