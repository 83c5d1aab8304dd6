//! The name service: host names and addresses, from a hosts file and from the network itself.
//!
//! # The hosts file
//!
//! Text, a host a line:
//!
//! ```text
//! # address   names
//! 1           left left.example.org
//! 2           right            # comments go to the end of the line
//! 02:56:49:41:00:02  right     # the same, written as an address
//! ```
//!
//! The address is a node number (decimal, 0 to 63) or a host address as hex bytes with colons between
//! them (2 to 16 bytes). One name or more follow, at most 255 bytes each, after spaces or tabs; upper
//! and lower case are the same. A name may stand in several lines: it then has several addresses, in
//! that order. Of the names of an address the first is the one that a look-up by address gives.
//!
//! The file is the one that [`Nic::ns_init`] is given; else the one that `VIADUCT_HOSTS` names; else
//! the first of `$XDG_CONFIG_HOME/viaduct/hosts` (`$HOME/.config/viaduct/hosts`) and
//! `/etc/viaduct/hosts` that exists; else there is none, which is no error.
//!
//! # Names without a file
//!
//! `node0` to `node63` are the nodes of the network; the short host name of this machine is the own
//! node. What the file says comes first.

use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};

use port::NetAddress;
use port::address::HOST_ADDRESS_MAX;
use port::sync::lock;

use crate::error::{HostsError, Result, VipReturn};
use crate::objects::{Names, Nic};

/// Variable that names the hosts file.
pub const HOSTS_VARIABLE: &str = "VIADUCT_HOSTS";
/// Hosts file of the machine.
const SYSTEM_HOSTS: &str = "/etc/viaduct/hosts";
/// Longest name, in bytes.
const NAME_MAX: usize = 255;
/// Longest hosts file, in bytes.
const FILE_MAX: u64 = 1 << 20;

/// Finds the host address of a node number.
type Numbered<'a> = dyn Fn(u8) -> Option<Vec<u8>> + 'a;

impl Names {
    /// Reads the lines of a hosts file.
    fn parse(text: &str, numbered: &Numbered<'_>) -> core::result::Result<Self, (usize, String)> {
        let mut names = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.split('#').next().unwrap_or_default();
            let mut words = line.split_ascii_whitespace();
            let Some(address) = words.next() else { continue };
            let host = parse_address(address, numbered).map_err(|problem| (number, problem))?;
            let before = names.len();
            for name in words {
                let bad = name.len() > NAME_MAX || name.chars().any(char::is_control);
                if bad {
                    let name: String =
                        name.chars().take(32).flat_map(char::escape_default).collect();
                    let problem = format!(
                        "'{name}' is no name: at most {NAME_MAX} bytes without control characters"
                    );
                    return Err((number, problem));
                }
                names.push((name.to_owned(), host.clone()));
            }
            if names.len() == before {
                let problem = format!("'{address}' has no name: write at least one after it");
                return Err((number, problem));
            }
        }
        Ok(Self(names))
    }

    fn read(file: &Path, numbered: &Numbered<'_>) -> core::result::Result<Self, HostsError> {
        let error = |line, problem| HostsError { file: file.to_owned(), line, problem };
        let io = |e: std::io::Error| error(None, format!("cannot be read: {e}"));
        // Of a file without a size (a pipe, a device) no more is read either.
        let mut bytes = Vec::new();
        let opened = std::fs::File::open(file).map_err(io)?;
        opened.take(FILE_MAX + 1).read_to_end(&mut bytes).map_err(io)?;
        if bytes.len() as u64 > FILE_MAX {
            let problem = format!("is too long: at most {FILE_MAX} bytes are read");
            return Err(error(None, problem));
        }
        let text = core::str::from_utf8(&bytes).map_err(|e| {
            let good = bytes.get(..e.valid_up_to()).unwrap_or_default();
            let line = 1 + good.iter().filter(|byte| **byte == b'\n').count();
            error(Some(line), "is no UTF-8 text".to_owned())
        })?;
        Self::parse(text, numbered).map_err(|(line, problem)| error(Some(line), problem))
    }

    /// The addresses of a name, each once, in order.
    fn addresses(&self, name: &str) -> Vec<Vec<u8>> {
        let mut found: Vec<Vec<u8>> = Vec::new();
        for (known, host) in &self.0 {
            if known.eq_ignore_ascii_case(name) && !found.contains(host) {
                found.push(host.clone());
            }
        }
        found
    }

    fn name(&self, host: &[u8]) -> Option<&str> {
        self.0.iter().find(|(_, known)| known == host).map(|(name, _)| name.as_str())
    }
}

/// A node number, or hex bytes with colons.
fn parse_address(text: &str, numbered: &Numbered<'_>) -> core::result::Result<Vec<u8>, String> {
    let shown: String = text.chars().take(64).flat_map(char::escape_default).collect();
    let bad = |what: &str| {
        Err(format!(
            "'{shown}' is no address: {what}; write a node number of this network or hex bytes \
             like 02:56:49:41:00:01"
        ))
    };
    if !text.contains(':') {
        let number = text.parse().ok().filter(|_| !text.starts_with('+'));
        return number.and_then(numbered).map_or_else(|| bad("not a node number"), Ok);
    }
    let byte = |part: &str| {
        let hex = matches!(part.len(), 1 | 2) && part.chars().all(|c| c.is_ascii_hexdigit());
        hex.then(|| u8::from_str_radix(part, 16).ok()).flatten()
    };
    match text.split(':').map(byte).collect::<Option<Vec<u8>>>() {
        Some(bytes) if bytes.len() <= HOST_ADDRESS_MAX => Ok(bytes),
        Some(_) => bad("more than 16 bytes"),
        None => bad("not hex bytes"),
    }
}

/// The hosts file to read where none is named; None if there is none. `environment` gives variables.
fn default_file(environment: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let variable = |name: &str| environment(name).filter(|value| !value.is_empty());
    // A file that was asked for must be there; reading it says so if it is not.
    if let Some(file) = variable(HOSTS_VARIABLE) {
        return Some(file.into());
    }
    let config = variable("XDG_CONFIG_HOME").map(PathBuf::from);
    let config = config.or_else(|| variable("HOME").map(|home| Path::new(&home).join(".config")));
    let own = config.map(|folder| folder.join("viaduct").join("hosts"));
    own.into_iter().chain([PathBuf::from(SYSTEM_HOSTS)]).find(|file| file.exists())
}

/// The name of this machine, up to its first dot.
fn short_host_name() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    let short = name.trim().split('.').next()?;
    (!short.is_empty()).then(|| short.to_owned())
}

impl Nic {
    /// Starts the name service, or starts it again with another file.
    ///
    /// # Errors
    /// [`VipReturn::ErrorNameService`] with a [`HostsError`] if the hosts file cannot be read or is
    /// wrong; what was known before stays. [`VipReturn::InvalidParameter`] if the NIC is closed.
    #[doc(alias = "VipNSInit")]
    pub fn ns_init(&self, hosts: Option<&Path>) -> Result<()> {
        self.check_open()?;
        let file =
            hosts.map(Path::to_owned).or_else(|| default_file(|name| std::env::var_os(name)));
        let numbered = |number| self.port().host_of_number(number);
        let names = file.map_or(Ok(Names::default()), |file| Names::read(&file, &numbered));
        *lock(&self.inner().names) = Some(names?);
        Ok(())
    }

    /// The `index`th address of a host, from 0, without a discriminator.
    ///
    /// # Errors
    /// [`VipReturn::ErrorNameService`] if the host is not known or has not so many addresses, and
    /// without [`Nic::ns_init`]; [`VipReturn::InvalidParameter`] for an empty or too long name, or if
    /// the NIC is closed.
    #[doc(alias = "VipNSGetHostByName")]
    pub fn ns_host_by_name(&self, name: &str, index: u32) -> Result<NetAddress> {
        self.check_open()?;
        if name.is_empty() || name.len() > NAME_MAX {
            return Err(VipReturn::InvalidParameter.into());
        }
        let known = lock(&self.inner().names).as_ref().map(|names| names.addresses(name));
        let mut found = known.ok_or(VipReturn::ErrorNameService)?;
        let own = short_host_name().filter(|own| own.eq_ignore_ascii_case(name));
        let without_file = [
            self.port().host_of_name(name),
            own.map(|_| self.port().attributes().host_address.clone()),
        ];
        for host in without_file.into_iter().flatten() {
            if !found.contains(&host) {
                found.push(host);
            }
        }
        let host = usize::try_from(index).ok().and_then(|index| found.get(index));
        let host = host.ok_or(VipReturn::ErrorNameService)?;
        Ok(NetAddress::new(host, &[]))
    }

    /// The name of the host of an address; its discriminator does not matter.
    ///
    /// # Errors
    /// [`VipReturn::ErrorNameService`] if the host has no name, and without [`Nic::ns_init`];
    /// [`VipReturn::InvalidParameter`] for an address without a host part or with one that is too
    /// long, or if the NIC is closed.
    #[doc(alias = "VipNSGetHostByAddr")]
    pub fn ns_host_by_addr(&self, address: &NetAddress) -> Result<String> {
        self.check_open()?;
        if address.host.is_empty() || address.host.len() > HOST_ADDRESS_MAX {
            return Err(VipReturn::InvalidParameter.into());
        }
        let names = lock(&self.inner().names);
        let names = names.as_ref().ok_or(VipReturn::ErrorNameService)?;
        if let Some(name) = names.name(&address.host) {
            return Ok(name.to_owned());
        }
        let own = address.host == self.port().attributes().host_address;
        if let Some(name) = own.then(short_host_name).flatten() {
            return Ok(name);
        }
        let name = self.port().name_of_host(&address.host);
        name.ok_or_else(|| VipReturn::ErrorNameService.into())
    }

    /// Ends the name service. Harmless if it was not started.
    ///
    /// # Errors
    /// [`VipReturn::InvalidParameter`] if the NIC is closed.
    #[doc(alias = "VipNSShutdown")]
    pub fn ns_shutdown(&self) -> Result<()> {
        self.check_open()?;
        lock(&self.inner().names).take();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(number: u8) -> Option<Vec<u8>> {
        (number < 64).then(|| vec![2, b'V', b'I', b'A', 0, number])
    }

    #[test]
    fn lines_are_read_and_comments_are_not() {
        let text = "# nothing\n\n 1\tleft Left.Example # more\r\n02:56:49:41:0:02 right\n2 right\n\
                    a:B:ff right";
        let names = Names::parse(text, &host).unwrap();
        let (one, two) = (host(1).unwrap(), host(2).unwrap());
        assert_eq!(names.addresses("LEFT"), std::slice::from_ref(&one));
        assert_eq!(names.addresses("left.example"), std::slice::from_ref(&one));
        assert_eq!(names.addresses("right"), [two.clone(), vec![10, 11, 255]]);
        assert_eq!(names.addresses("more"), Vec::<Vec<u8>>::new());
        assert_eq!((names.name(&one), names.name(&two)), (Some("left"), Some("right")));
        assert_eq!(Names::parse("", &host), Ok(Names::default()));
    }

    #[test]
    fn mistakes_are_reported_with_their_line() {
        let long = format!("1 {}", "x".repeat(256));
        let bytes = ["00"; 17].join(":");
        let cases = [
            ("1 a\n64 b", 2, "'64' is no address: not a node number"),
            ("-1 b", 1, "'-1' is no address: not a node number"),
            ("+1 b", 1, "'+1' is no address: not a node number"),
            ("left 1", 1, "'left' is no address: not a node number"),
            ("0x2 b", 1, "'0x2' is no address: not a node number"),
            ("\n\n1:g b", 3, "'1:g' is no address: not hex bytes"),
            ("1::2 b", 1, "'1::2' is no address: not hex bytes"),
            ("001:2 b", 1, "'001:2' is no address: not hex bytes"),
            ("1 # b", 1, "'1' has no name"),
            ("1 a\u{1}", 1, "'a\\u{1}' is no name"),
            (long.as_str(), 1, "is no name: at most 255 bytes"),
            (bytes.as_str(), 1, "more than 16 bytes"),
        ];
        for (text, line, problem) in cases {
            let error = Names::parse(text, &host).unwrap_err();
            assert_eq!(error.0, line, "{text}");
            assert!(error.1.contains(problem), "{}", error.1);
        }
    }

    #[test]
    fn files_that_cannot_be_read_are_named() {
        let missing = Names::read(Path::new("no/such/hosts"), &host).unwrap_err().to_string();
        assert!(missing.starts_with("hosts file no/such/hosts: cannot be read: "), "{missing}");
        let folder = Names::read(Path::new(env!("CARGO_MANIFEST_DIR")), &host).unwrap_err();
        assert_eq!(folder.line, None);
        let endless = Names::read(Path::new("/dev/zero"), &host).unwrap_err();
        assert!(endless.problem.starts_with("is too long"), "{endless}");
        let file = std::env::temp_dir().join(format!("viaduct-hosts-{}", std::process::id()));
        std::fs::write(&file, b"1 a\n2 \xff").unwrap();
        let text = Names::read(&file, &host).unwrap_err();
        std::fs::write(&file, b"1 a\n\n7").unwrap();
        let named = Names::read(&file, &host).unwrap_err().to_string();
        std::fs::remove_file(&file).unwrap();
        assert_eq!((text.line, text.problem.as_str()), (Some(2), "is no UTF-8 text"));
        assert!(named.contains(", line 3: '7' has no name"), "{named}");
    }

    #[test]
    fn the_environment_says_where_the_file_is() {
        let folder = std::env::temp_dir().join(format!("viaduct-config-{}", std::process::id()));
        let home = folder.join(".config").join("viaduct");
        std::fs::create_dir_all(&home).unwrap();
        let file = |set: &[(&str, &Path)]| {
            default_file(|name| {
                let found = set.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| value.as_os_str().to_owned())
            })
        };
        // The file of the machine, if there is one.
        let system = Some(PathBuf::from(SYSTEM_HOSTS)).filter(|file| file.exists());
        assert_eq!(file(&[("HOME", &folder)]), system);
        let hosts = home.join("hosts");
        std::fs::write(&hosts, "").unwrap();
        assert_eq!(file(&[("HOME", &folder)]).as_ref(), Some(&hosts));
        let config = folder.join(".config");
        assert_eq!(file(&[("XDG_CONFIG_HOME", &config)]).as_ref(), Some(&hosts));
        let empty = Path::new("");
        let set = [("XDG_CONFIG_HOME", empty), ("HOME", folder.as_path()), (HOSTS_VARIABLE, empty)];
        assert_eq!(file(&set).as_ref(), Some(&hosts));
        // A file that was asked for is read, or missed.
        let asked = Path::new("no/such/hosts");
        let set = [("XDG_CONFIG_HOME", config.as_path()), (HOSTS_VARIABLE, asked)];
        assert_eq!(file(&set).as_deref(), Some(asked));
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(file(&[("HOME", &folder)]), system);
    }
}
