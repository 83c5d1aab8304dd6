//! Packages of Debian's archive, fetched by apt with folders of its own and unpacked without root.
//!
//! What apt knows of this system stays as it is: nothing is installed, no script of a package runs.
//! The mirror is the one that apt has here.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Names another mirror than apt's.
pub(super) const MIRROR: &str = "VIADUCT_DEBIAN_MIRROR";
/// Where Debian keeps the keys of its archive, by the names that it had.
const KEYRINGS: [&str; 2] = [
    "/usr/share/keyrings/debian-archive-keyring.gpg",
    "/usr/share/keyrings/debian-archive-keyring.pgp",
];

/// An apt of its own in a folder, which goes when this is dropped.
pub(super) struct Archive {
    folder: PathBuf,
    suites: String,
}

impl Archive {
    /// Learns what these suites have.
    pub(super) fn open(folder: &Path, suites: &[&str]) -> Result<Self, String> {
        let architecture = run(Command::new("dpkg").arg("--print-architecture"))
            .map_err(|error| format!("{error}\nonly Debian and its like have these packages"))?;
        let architecture = String::from_utf8_lossy(&architecture.stdout).trim().to_owned();
        if architecture != "amd64" {
            return Err(format!("the guest is an x86 machine, and this is {architecture}"));
        }
        let keyring = KEYRINGS.iter().find(|path| Path::new(path).exists()).ok_or(
            "the keys of Debian's archive are not here: install debian-archive-keyring".to_owned(),
        )?;
        let mirror = mirror()?;
        let _ = fs::remove_dir_all(folder);
        let archive = Self { folder: folder.to_owned(), suites: suites.join(" and ") };
        for part in ["etc/trusted.gpg.d", "state/lists/partial", "cache/archives/partial", "files"]
        {
            make_folder(&folder.join(part))?;
        }
        let lines: String = suites
            .iter()
            .map(|suite| format!("deb [arch=amd64 signed-by={keyring}] {mirror} {suite} main\n"))
            .collect();
        write(&folder.join("etc/sources.list"), &lines)?;
        // No package is installed: so a package comes with all that it needs.
        write(&folder.join("status"), "")?;
        archive.configure()?;
        archive.run("apt-get", &["update"]).map_err(|error| {
            format!(
                "apt cannot read {} of the Debian mirror {mirror}: is it reachable, and has it \
                 these suites? Another one can be named in {MIRROR}.\n{error}",
                archive.suites
            )
        })?;
        Ok(archive)
    }

    /// Writes what apt is to know beyond this system's settings, which name proxies and the like.
    fn configure(&self) -> Result<(), String> {
        let at = |name: &str| self.folder.join(name).display().to_string();
        // Commands of this system that run after an update clean folders of this system.
        let mut text = ["APT::Update", "DPkg"]
            .map(|when| {
                ["Pre-Invoke", "Post-Invoke", "Post-Invoke-Success"]
                    .map(|what| format!("#clear {when}::{what};\n"))
                    .concat()
            })
            .concat();
        for (name, value) in [
            ("Dir::Etc", at("etc")),
            ("Dir::Etc::sourcelist", at("etc/sources.list")),
            ("Dir::Etc::sourceparts", "-".to_owned()),
            ("Dir::State", at("state")),
            ("Dir::State::status", at("status")),
            ("Dir::Cache", at("cache")),
            ("APT::Architecture", "amd64".to_owned()),
            ("APT::Architectures", "amd64".to_owned()),
            ("APT::Install-Recommends", "0".to_owned()),
            ("APT::Sandbox::User", String::new()),
            ("APT::Update::Error-Mode", "any".to_owned()),
            ("Acquire::Languages", "none".to_owned()),
            ("Acquire::Retries", "3".to_owned()),
            ("Acquire::IndexTargets::deb::DEP-11::DefaultEnabled", "false".to_owned()),
            ("Debug::NoLocking", "1".to_owned()),
        ] {
            text.push_str(&format!("{name} \"{value}\";\n"));
        }
        write(&self.settings(), &text)
    }

    fn settings(&self) -> PathBuf {
        self.folder.join("apt.conf")
    }

    /// Runs a command of apt in a folder for its files.
    fn run(&self, command: &str, args: &[&str]) -> Result<Output, String> {
        let mut apt = Command::new(command);
        apt.arg("-qq").arg("-c").arg(self.settings()).args(args);
        apt.current_dir(self.folder.join("files")).env("LC_ALL", "C");
        run(apt.stdin(std::process::Stdio::null()))
    }

    /// Fetches a package of a suite with all that it needs, and unpacks them into a folder.
    pub(super) fn unpack_whole(
        &self,
        suite: &str,
        package: &str,
        into: &Path,
    ) -> Result<(), String> {
        let args = ["--target-release", suite, "--yes", "--download-only", "install", package];
        self.run("apt-get", &args).map_err(|error| self.missing(package, &error))?;
        unpack_all(&self.folder.join("cache/archives"), into)
    }

    /// Fetches packages without what they need, and unpacks them into a folder.
    pub(super) fn unpack(&self, packages: &[&str], into: &Path) -> Result<(), String> {
        let args = [&["download"], packages].concat();
        self.run("apt-get", &args).map_err(|error| self.missing(&packages.join(", "), &error))?;
        unpack_all(&self.folder.join("files"), into)
    }

    /// The first package that a package depends on.
    pub(super) fn dependency(&self, package: &str) -> Result<String, String> {
        let args = ["show", "--no-all-versions", package];
        let shown = self.run("apt-cache", &args).map_err(|error| self.missing(package, &error))?;
        let text = String::from_utf8_lossy(&shown.stdout).into_owned();
        first_dependency(&text).ok_or_else(|| format!("{package} depends on nothing:\n{text}"))
    }

    fn missing(&self, packages: &str, error: &str) -> String {
        format!("cannot fetch {packages} of Debian's {}:\n{error}", self.suites)
    }
}

impl Drop for Archive {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn first_dependency(shown: &str) -> Option<String> {
    let line = shown.lines().find_map(|line| line.strip_prefix("Depends:"))?;
    line.split([' ', ',', '(']).find(|word| !word.is_empty()).map(str::to_owned)
}

/// The mirror that apt uses here for Debian itself.
fn mirror() -> Result<String, String> {
    if let Some(named) = env::var(MIRROR).ok().filter(|named| !named.is_empty()) {
        return Ok(named);
    }
    let targets = run(Command::new("apt-get").args([
        "indextargets",
        "--format",
        "$(REPO_URI)",
        "Created-By: Packages",
    ]))?;
    // Security updates have a mirror of their own, without the suites.
    let text = String::from_utf8_lossy(&targets.stdout).into_owned();
    let found = text.lines().find(|uri| !uri.is_empty() && !uri.contains("security"));
    found.map(str::to_owned).ok_or_else(|| {
        format!("apt knows no mirror here: name one of Debian's in the variable {MIRROR}")
    })
}

fn unpack_all(folder: &Path, into: &Path) -> Result<(), String> {
    make_folder(into)?;
    let entries = fs::read_dir(folder)
        .map_err(|error| format!("cannot read {}: {error}", folder.display()))?;
    for package in entries.flatten().map(|entry| entry.path()) {
        if package.extension().is_some_and(|extension| extension == "deb") {
            run(Command::new("dpkg-deb").arg("--extract").arg(&package).arg(into))?;
            let _ = fs::remove_file(&package);
        }
    }
    Ok(())
}

pub(super) fn make_folder(path: &Path) -> Result<(), String> {
    fs::create_dir_all(path).map_err(|error| format!("cannot make {}: {error}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// Runs a command; what it printed, if it succeeds.
pub(super) fn run(command: &mut Command) -> Result<Output, String> {
    let name = command.get_program().display().to_string();
    let output = command.output().map_err(|error| format!("cannot run {name}: {error}"))?;
    if output.status.success() {
        return Ok(output);
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    Err(format!("{name} failed ({}): {}", output.status, errors.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_is_what_the_meta_package_depends_on() {
        let shown = "Package: meta\nDepends: linux-image-6.12-cloud (= 6.12), other\nSize: 1\n";
        assert_eq!(first_dependency(shown).as_deref(), Some("linux-image-6.12-cloud"));
        assert_eq!(first_dependency("Package: meta\n"), None);
    }

    #[test]
    fn a_command_that_fails_says_why() {
        let error = run(Command::new("sh").args(["-c", "echo no such suite >&2; exit 3"]));
        let error = error.expect_err("a failure");
        assert!(error.contains("no such suite") && error.contains('3'), "{error}");
    }
}
