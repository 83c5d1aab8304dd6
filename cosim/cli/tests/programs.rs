//! Programs that were never compiled for us, by TCP and by VIA: `tests/programs`, one file each.
//!
//! Each says the same both times, and connections of it move to VIA the second time. `PROGRAMS=nginx`
//! runs one. The programs are Debian's (`cargo xtask setup programs`); one that is absent fails. Some also
//! run on other devices than the default one, which they name: a URL for both ends, or `sim:model` and
//! `sim:rtl` for a simulated NIC each, the latter with the feature `rtl`. `DEVICES='udp:'` runs each on that,
//! too.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// How long a program may take.
const BOUND: &str = "120";

/// What a script says of itself in its first lines.
fn header<'a>(text: &'a str, name: &str) -> &'a str {
    let prefix = format!("# {name}:");
    text.lines().find_map(|line| line.strip_prefix(&prefix)).unwrap_or("").trim()
}

fn free_port() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("it is bound").port().to_string()
}

/// What is put before the programs of a script: those that listen, and those that connect.
type Before = [String; 2];

/// A simulator that serves a NIC for each end. It ends with this.
struct Simulator(Child);

impl Simulator {
    /// Starts one; also what its NICs are called.
    fn start(device: &str, folder: &Path) -> (Self, [String; 2]) {
        let place = folder.to_str().expect("text");
        let mut served = Command::new(env!("CARGO_BIN_EXE_viaduct"))
            .args(["cosim", "serve", "--nodes", "2", "--device", device, "--dir", place])
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let output = BufReader::new(served.stdout.take().expect("its output"));
        let simulator = Self(served);
        let mut lines = output.lines().map_while(Result::ok);
        assert!(lines.any(|line| line == "ready"), "the NICs are there");
        (simulator, [0, 1].map(|number| format!("vfio-user:{place}/nic{number}.sock")))
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A run of a script: what it printed, and how long it took.
fn run(script: &Path, folder: &Path, [server, client]: &Before) -> (Output, Duration) {
    let (scratch, runtime) = (folder.join("scratch"), folder.join("run"));
    for folder in [&scratch, &runtime] {
        let _ = fs::remove_dir_all(folder);
        fs::create_dir_all(folder).expect("a folder");
    }
    let began = Instant::now();
    let output = Command::new("timeout")
        .args(["--kill-after=5", BOUND, "bash"])
        .arg(script)
        .env("RUN", server)
        .env("CLIENT", client)
        .env("PORT", free_port())
        .env("FOLDER", &scratch)
        .env("XDG_RUNTIME_DIR", &runtime)
        .output()
        .expect("bash starts");
    (output, began.elapsed())
}

/// The same by VIA, on a device.
fn run_by_via(script: &Path, folder: &Path, device: &str) -> (Output, Duration) {
    let viaduct = format!("{} run --verbose --stats", env!("CARGO_BIN_EXE_viaduct"));
    let on = |url: &String| format!("{viaduct} --device {url}");
    match device.strip_prefix("sim:") {
        Some(name) => {
            let (_simulator, urls) = Simulator::start(name, &folder.join(name));
            run(script, folder, &urls.each_ref().map(on))
        }
        None if device.is_empty() => run(script, folder, &[viaduct.clone(), viaduct]),
        None => run(script, folder, &[on(&device.to_owned()), on(&device.to_owned())]),
    }
}

/// Bytes that programs received by VIA, as `--stats` says of each.
fn received(said: &str) -> u64 {
    let numbers = said.lines().filter_map(|line| {
        // `6 bytes`, or `403.89 kB (403892 bytes)`.
        let number = line.trim().strip_prefix("received by VIA")?.strip_suffix(" bytes)");
        let number = number.or_else(|| line.trim().strip_suffix(" bytes"))?;
        number.rsplit(['(', ' ']).next()?.parse::<u64>().ok()
    });
    numbers.sum()
}

/// What a script did by TCP, and by VIA.
fn compare(
    script: &str,
    (by_tcp, tcp_time): &(Output, Duration),
    (by_via, via_time): &(Output, Duration),
) -> Result<String, String> {
    let said = String::from_utf8_lossy(&by_via.stderr).into_owned();
    let links = said.matches("goes by VIA").count();
    let least: usize = header(script, "links").parse().unwrap_or(1);
    let bytes = received(&said);
    let least_bytes: u64 = header(script, "bytes").parse().unwrap_or(0);
    let [tcp, via] = [by_tcp, by_via].map(|it| String::from_utf8_lossy(&it.stdout).into_owned());
    if !by_tcp.status.success() {
        let needs = header(script, "needs");
        let why = String::from_utf8_lossy(&by_tcp.stderr).into_owned();
        Err(format!("fails by TCP ({}); it needs {needs}\n{tcp}{why}", by_tcp.status))
    } else if !by_via.status.success() || tcp != via {
        Err(format!("differs ({})\nby TCP:\n{tcp}\nby VIA:\n{via}\n{said}", by_via.status))
    } else if links < least {
        Err(format!("{links} ends of connections moved, not {least}\n{said}"))
    } else if bytes < least_bytes {
        Err(format!("{bytes} bytes went by VIA, not {least_bytes}\n{said}"))
    } else {
        let times = format!("{tcp_time:.1?}, {via_time:.1?}");
        Ok(format!("the same; {links} ends moved; {bytes} bytes by VIA; {times}"))
    }
}

#[test]
fn programs_do_the_same_by_via_as_by_tcp() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/programs");
    let [wanted, devices] =
        ["PROGRAMS", "DEVICES"].map(|name| std::env::var(name).unwrap_or_default());
    let mut scripts: Vec<PathBuf> = fs::read_dir(&folder)
        .expect("programs")
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "sh"))
        .filter(|path| path.to_string_lossy().contains(&wanted))
        .collect();
    scripts.sort();
    assert!(!scripts.is_empty(), "no program is named {wanted}");
    let base = std::env::temp_dir().join(format!("viaduct-programs-{}", std::process::id()));
    let mut failures = Vec::new();
    for script in &scripts {
        let text = fs::read_to_string(script).expect("it can be read");
        let name = script.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let place = base.join(&name);
        let by_tcp = run(script, &place, &Before::default());
        let others = header(&text, "also").split_whitespace().chain(devices.split_whitespace());
        let others = others.filter(|device| cfg!(feature = "rtl") || *device != "sim:rtl");
        for device in std::iter::once("").chain(others) {
            let by_via = run_by_via(script, &place, device);
            match compare(&text, &by_tcp, &by_via) {
                #[expect(clippy::print_stdout, reason = "a table of what was run")]
                Ok(same) => println!("{name} {device}: {same}"),
                Err(why) => failures.push(format!("{name} {device} {why}")),
            }
        }
    }
    let _ = fs::remove_dir_all(&base);
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}
