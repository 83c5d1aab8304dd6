//! Programs that were never compiled for us, by TCP and by VIA: `tests/programs`, one file each.
//!
//! Each says the same both times, and connections of it move to VIA the second time. `PROGRAMS=nginx`
//! runs one. The programs are Debian's (`cargo xtask setup programs`); one that is absent fails. Some also
//! run on other devices than the default one, whose URLs they name.

use std::ffi::OsStr;
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

/// A run of a script: what it printed, and how long it took.
fn run(script: &Path, folder: &Path, before: &str) -> (Output, Duration) {
    let (scratch, runtime) = (folder.join("scratch"), folder.join("run"));
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(&scratch).expect("a folder");
    fs::create_dir_all(&runtime).expect("a folder");
    let began = Instant::now();
    let output = Command::new("timeout")
        .args(["--kill-after=5", BOUND, "bash"])
        .arg(script)
        .env("RUN", before)
        .env("PORT", free_port())
        .env("FOLDER", &scratch)
        .env("XDG_RUNTIME_DIR", &runtime)
        .output()
        .expect("bash starts");
    (output, began.elapsed())
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
    let [tcp, via] = [by_tcp, by_via].map(|it| String::from_utf8_lossy(&it.stdout).into_owned());
    if !by_tcp.status.success() {
        let needs = header(script, "needs");
        let why = String::from_utf8_lossy(&by_tcp.stderr).into_owned();
        Err(format!("fails by TCP ({}); it needs {needs}\n{tcp}{why}", by_tcp.status))
    } else if !by_via.status.success() || tcp != via {
        Err(format!("differs ({})\nby TCP:\n{tcp}\nby VIA:\n{via}\n{said}", by_via.status))
    } else if links < least {
        Err(format!("{links} ends of connections moved, not {least}\n{said}"))
    } else {
        Ok(format!("the same; {links} ends moved; {tcp_time:.1?}, {via_time:.1?}"))
    }
}

#[test]
fn programs_do_the_same_by_via_as_by_tcp() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/programs");
    let wanted = std::env::var("PROGRAMS").unwrap_or_default();
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
    let viaduct = format!("{} run --verbose", env!("CARGO_BIN_EXE_viaduct"));
    let mut failures = Vec::new();
    for script in &scripts {
        let text = fs::read_to_string(script).expect("it can be read");
        let name = script.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let place = base.join(&name);
        let by_tcp = run(script, &place, "");
        let others = header(&text, "also").split_whitespace().map(|url| format!(" --device {url}"));
        for device in std::iter::once(String::new()).chain(others) {
            let by_via = run(script, &place, &format!("{viaduct}{device}"));
            match compare(&text, &by_tcp, &by_via) {
                #[expect(clippy::print_stdout, reason = "a table of what was run")]
                Ok(same) => println!("{name}{device}: {same}"),
                Err(why) => failures.push(format!("{name}{device} {why}")),
            }
        }
    }
    let _ = fs::remove_dir_all(&base);
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// A process that is killed with this.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What `stdio` prints of some lines to itself; each end is behind some words.
fn stdio(program: &Path, before: [&[&str]; 2], runtime: &Path) -> Output {
    let port = free_port();
    let command = |words: &[&str], role: &str| {
        let all = words.iter().copied().map(OsStr::new).chain([program.as_os_str()]);
        let mut command = Command::new("timeout");
        command.arg(BOUND).args(all).args([role, &port]).env("XDG_RUNTIME_DIR", runtime);
        command
    };
    let _server = Killed(command(before[0], "serve").spawn().expect("it starts"));
    let listens = format!("{:04X} 00000000:0000 0A", port.parse::<u16>().expect("a port"));
    let end = Instant::now() + Duration::from_secs(30);
    while !fs::read_to_string("/proc/net/tcp").is_ok_and(|table| table.contains(&listens)) {
        assert!(Instant::now() < end, "nobody listens at {port}");
        std::thread::sleep(Duration::from_millis(20));
    }
    command(before[1], "ask").arg("40").output().expect("it starts")
}

#[test]
fn a_program_does_the_same_on_simulated_nics() {
    let base = std::env::temp_dir().join(format!("viaduct-nics-{}", std::process::id()));
    let (program, viaduct) = (base.join("stdio"), env!("CARGO_BIN_EXE_viaduct"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/programs/stdio.c");
    fs::create_dir_all(&base).expect("a folder");
    let compiled = Command::new("gcc").arg("-O1").arg("-o").arg(&program).arg(source).status();
    assert!(compiled.is_ok_and(|status| status.success()), "gcc, of the Debian packages");
    let by_tcp = stdio(&program, [&[], &[]], &base);
    let devices = if cfg!(feature = "rtl") { &["model", "rtl"][..] } else { &["model"] };
    for device in devices {
        let folder = base.join(device);
        let place = folder.to_str().expect("text");
        let mut served = Command::new(viaduct)
            .args(["cosim", "serve", "--nodes", "2", "--device", device, "--dir", place])
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let output = BufReader::new(served.stdout.take().expect("its output"));
        let _served = Killed(served);
        let mut lines = output.lines().map_while(Result::ok);
        assert!(lines.any(|line| line == "ready"), "the NICs are there");
        let urls = [0, 1].map(|number| format!("vfio-user:{place}/nic{number}.sock"));
        let run =
            urls.each_ref().map(|url| [viaduct, "run", "--verbose", "--device", url.as_str()]);
        let by_via = stdio(&program, [&run[0], &run[1]], &base);
        let said = String::from_utf8_lossy(&by_via.stderr).into_owned();
        assert!(by_via.status.success() && said.contains("goes by VIA"), "{device}: {said}");
        let [tcp, via] = [&by_tcp, &by_via].map(|it| String::from_utf8_lossy(&it.stdout));
        assert_eq!(tcp, via, "{device}: {said}");
    }
    let _ = fs::remove_dir_all(&base);
}
