//! The conformance suite on the behavioural model, in one process and in two, and a part of it on
//! the RTL; its table in the test plan; two C programs that share a simulator.

/// Why something failed, as in the command.
type Failure = Box<dyn std::error::Error>;

#[path = "../src/c_program.rs"]
mod c_program;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

fn viaduct(arguments: &[&str]) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_viaduct"))
        .arg("conformance")
        .args(arguments)
        .output()
        .expect("viaduct runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.success(), text + &String::from_utf8_lossy(&output.stderr))
}

/// Rows that ran with each end in a process of its own, by what the command says at its end.
fn apart(table: &str) -> usize {
    let line = table.lines().find(|line| line.contains("each end in a process of its own"));
    let count = line.and_then(|line| line.split(' ').next());
    count.and_then(|count| count.parse().ok()).unwrap_or_else(|| panic!("{table}"))
}

/// They are run in `bench_vipl.rs`.
#[test]
fn every_row_is_planned() {
    let (listed, rows) = viaduct(&["--list"]);
    assert!(listed, "{rows}");
    let plan = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/testplan.md");
    let plan = std::fs::read_to_string(plan).expect("the test plan is there");
    assert!(
        plan.contains(&rows),
        "the table of the conformance suite in tests/testplan.md is not that of `viaduct conformance --list`: put the \
         output of that command there"
    );
}

#[test]
fn rows_with_two_ends_pass_in_two_processes() {
    let (passed, table) = viaduct(&["--processes", "2"]);
    assert!(passed, "{table}");
    assert!(apart(&table) >= 200, "{table}");
}

/// Once in one process and once in two, in a folder of its own, so that nodes of others are not among
/// them.
#[test]
fn all_rows_pass_on_shared_memory() {
    let folder = std::env::temp_dir().join(format!("viaduct-shm-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    for processes in ["1", "2"] {
        let output = Command::new(env!("CARGO_BIN_EXE_viaduct"))
            .args(["conformance", "--device", "shm:", "--processes", processes])
            .env("XDG_RUNTIME_DIR", &folder)
            .output()
            .expect("viaduct runs");
        let table = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{table}{}", String::from_utf8_lossy(&output.stderr));
        assert!(processes == "1" || apart(&table) >= 200, "{table}");
        let nodes = std::fs::read_dir(folder.join("viaduct/shm")).expect("the folder of the nodes");
        let left: Vec<_> = nodes.flatten().map(|entry| entry.file_name()).collect();
        assert_eq!(left, ["lock"], "names of processes that ended");
    }
    std::fs::remove_dir_all(&folder).expect("the folder");
}

/// Each run has ports of its own, so that they do not meet.
#[test]
fn all_rows_pass_over_udp() {
    let (passed, table) = viaduct(&["--device", "udp:"]);
    assert!(passed, "{table}");
    let (passed, table) = viaduct(&["--device", "udp:", "--processes", "2"]);
    assert!(passed, "{table}");
    assert!(apart(&table) >= 200, "{table}");
}

/// A network namespace with two interfaces that are connected; it ends with this.
struct Wire(String);

impl Drop for Wire {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.0]).output();
    }
}

impl Wire {
    /// Makes one; None, and says why, if this user or this machine cannot.
    #[expect(clippy::print_stderr, reason = "shown with --nocapture")]
    fn new() -> Option<Self> {
        let wire = Self(format!("viaduct-{}", std::process::id()));
        let name = &wire.0;
        let commands = [
            format!("netns add {name}"),
            format!("-n {name} link add left type veth peer name right"),
            // Their last bytes are the numbers of the nodes.
            format!("-n {name} link set left address 02:00:00:00:01:00 up"),
            format!("-n {name} link set right address 02:00:00:00:01:01 up"),
        ];
        for command in &commands {
            let output = Command::new("ip").args(command.split(' ')).output();
            if !output.is_ok_and(|output| output.status.success()) {
                eprintln!("SKIPPED: `ip {command}` failed: it needs root, iproute2 and veth");
                return None;
            }
        }
        Some(wire)
    }
}

#[test]
fn all_rows_pass_over_ethernet() {
    let Some(wire) = Wire::new() else { return };
    for processes in ["1", "2"] {
        let output = Command::new("ip")
            .args(["netns", "exec", &wire.0, env!("CARGO_BIN_EXE_viaduct"), "conformance"])
            .args(["--device", "eth:left", "--peer", "eth:right", "--processes", processes])
            .output()
            .expect("viaduct runs");
        let table = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{table}{}", String::from_utf8_lossy(&output.stderr));
    }
}

/// The subset for the RTL is about every function that reaches the device, which are all but those
/// for names.
#[test]
fn the_rtl_subset_reaches_every_function() {
    let (listed, rows) = viaduct(&["--list"]);
    assert!(listed, "{rows}");
    let rows: Vec<Vec<&str>> = rows.lines().map(|line| line.split(" | ").collect()).collect();
    let subset: Vec<_> = rows.iter().filter(|row| row.last() == Some(&"rtl |")).collect();
    assert!((60..=100).contains(&subset.len()), "{} rows", subset.len());
    let reached: BTreeSet<String> = subset.iter().map(|row| row[1].to_owned()).collect();
    let mut functions: BTreeSet<String> =
        c_program::functions().expect("the header is there").into_iter().collect();
    assert_eq!(functions.len(), 43);
    functions.retain(|function| !function.starts_with("VipNS"));
    assert_eq!(reached, functions);
}

#[test]
fn what_cannot_be_run_is_refused() {
    let (passed, text) = viaduct(&["--processes", "2", "--device", "sim:model?loss=0.1"]);
    assert!(!passed && text.contains("viaduct cosim serve"), "{text}");
    let (passed, text) = viaduct(&["there_is_no_such_row"]);
    assert!(!passed && text.contains("no row ran"), "{text}");
    if !cfg!(feature = "rtl") {
        for processes in ["1", "2"] {
            let (passed, text) = viaduct(&["--processes", processes, "--device", "sim:rtl"]);
            assert!(!passed && text.contains("no RTL"), "{text}");
        }
    }
}

/// A simulator with two nodes; it ends with this.
struct Simulator {
    process: Child,
    folder: PathBuf,
}

impl Simulator {
    fn start(device: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("viaduct-{device}-{}", std::process::id()));
        let mut process = Command::new(env!("CARGO_BIN_EXE_viaduct"))
            .args(["cosim", "serve", "--until-eof", "--device", device, "--dir"])
            .arg(&folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let output = BufReader::new(process.stdout.take().expect("its output"));
        let mut lines = output.lines().map_while(Result::ok);
        assert!(lines.any(|line| line == "ready"), "it serves");
        // What it says at its end goes nowhere.
        std::thread::spawn(move || lines.for_each(drop));
        Self { process, folder }
    }

    fn device(&self, node: u8) -> String {
        format!("vfio-user:{}", self.folder.join(format!("nic{node}.sock")).display())
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
        let _ = std::fs::remove_dir(&self.folder);
    }
}

/// A server and a client, each a program of its own, on two served NICs.
fn two_programs(device: &str) {
    let source = c_program::root().join("via-user/examples/c/vpingpong.c");
    let library = c_program::library("libvipl").expect("it was built");
    let program = c_program::compile("vpingpong", &library, &[source], &[]).expect("it compiles");
    let simulator = Simulator::start(device);
    let mut server = Command::new(&program);
    server.arg(simulator.device(1)).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut server = server.spawn().expect("the server starts");
    let client = Command::new(&program).args([&simulator.device(0), "1"]).output();
    let client = client.expect("the client runs");
    let text = String::from_utf8_lossy(&client.stdout);
    if !client.status.success() {
        // It may wait for this client for ever.
        let _ = server.kill();
    }
    let server = server.wait_with_output().expect("its end");
    assert!(client.status.success() && text.contains("1000 rounds of 8 bytes"), "{client:?}");
    assert!(server.status.success(), "{server:?}");
    // One of them sees the other disconnect, which is no error.
    assert!(client.stderr.is_empty() && server.stderr.is_empty(), "{client:?} {server:?}");
}

#[test]
fn two_c_programs_talk_through_a_simulator() {
    two_programs("model");
}

#[cfg(feature = "rtl")]
mod rtl {
    use super::{apart, two_programs, viaduct};

    #[test]
    fn a_part_of_the_rtl_subset_passes_in_two_processes() {
        let (passed, table) =
            viaduct(&["--device", "sim:rtl", "--subset", "rtl", "--processes", "2", "delivery"]);
        assert!(passed, "{table}");
        assert!(apart(&table) >= 15, "{table}");
    }

    #[test]
    fn two_c_programs_talk_through_two_verilated_nics() {
        two_programs("rtl");
    }
}
