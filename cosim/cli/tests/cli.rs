//! The command as a person uses it: output, exit codes, bad input.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

fn viaduct(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_viaduct")).args(arguments).output().expect("it starts")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.clone(), output.stderr.clone()].concat()).into_owned()
}

/// A file of this test alone.
fn file(name: &str, bytes: &[u8]) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, bytes).expect("the folder of temporary files is writable");
    path
}

#[test]
fn a_file_crosses_devices_of_this_machine() {
    let bytes: Vec<u8> = (0..50_000_u32).map(|i| (i * 7 + i / 251).to_le_bytes()[0]).collect();
    let path = file("on.bin", &bytes);
    let path = path.to_str().expect("UTF-8");
    for (on, peer) in [("sim:model", "sim:model?node=1"), ("udp:", "udp:127.0.0.2")] {
        for level in ["delivery", "reception"] {
            let output = viaduct(&["demo", path, "--on", on, "--on", peer, "--reliability", level]);
            let text = text(&output);
            assert_eq!(output.status.code(), Some(0), "{text}");
            assert!(text.contains("50000 bytes") && text.contains("MB/s"), "{text}");
        }
    }
    for (arguments, code, why) in [
        (&["demo", "--on", "shm:"][..], 1, "--on is given twice"),
        (&["demo", "--on", "nowhere:", "--on", "shm:"], 1, "nowhere:"),
        (&["demo", "--on", "shm:", "--on", "shm:", "--loss", "0.1"], 2, "cannot be used"),
    ] {
        let output = viaduct(arguments);
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        assert!(text(&output).contains(why), "{}", text(&output));
    }
}

/// Runs the demo on a device and expects the file to arrive.
fn arrives(device: &str, arguments: &[&str]) {
    let output = viaduct(&[&["demo", "--device", device], arguments].concat());
    let text = text(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    let digest = |line: &str| {
        let found = text.lines().find(|l| l.starts_with(line));
        found.and_then(|l| l.split_whitespace().last()).expect(line).to_owned()
    };
    assert_eq!(digest("SHA-256 sent"), digest("SHA-256 received"), "{text}");
    for wanted in ["payload", "retransmissions", "simulation", "first beat out", "status written"] {
        assert!(text.contains(wanted), "no {wanted:?} in:\n{text}");
    }
}

fn every_level(device: &str) {
    let bytes: Vec<u8> = (0..50_000_u32).map(|i| (i * 7 + i / 251).to_le_bytes()[0]).collect();
    let path = file(&format!("levels-{device}"), &bytes);
    let path = path.to_str().expect("a name in UTF-8");
    for level in ["unreliable", "delivery", "reception"] {
        arrives(device, &[path, "--reliability", level, "--message", "10000"]);
    }
    for level in ["delivery", "reception"] {
        let faults = ["--loss", "0.05", "--corrupt", "0.05", "--reliability", level];
        arrives(device, &[&[path], &faults[..]].concat());
    }
}

fn small_files(device: &str) {
    arrives(device, &[]);
    let empty = file(&format!("empty-{device}"), b"");
    arrives(device, &[empty.to_str().expect("a name in UTF-8")]);
    let one = file(&format!("one-{device}"), b"x");
    arrives(device, &[one.to_str().expect("a name in UTF-8"), "--message", "1"]);
}

#[test]
fn every_level_on_the_model() {
    every_level("model");
}

#[test]
fn small_files_on_the_model() {
    small_files("model");
}

#[cfg(feature = "rtl")]
#[test]
fn every_level_on_the_rtl() {
    every_level("rtl");
}

#[cfg(feature = "rtl")]
#[test]
fn small_files_on_the_rtl() {
    small_files("rtl");
}

#[cfg(feature = "trace")]
#[test]
fn waveforms_are_written() {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("wave.vcd");
    let one = file("traced", b"traced");
    let arguments =
        ["demo", one.to_str().expect("UTF-8"), "--trace", path.to_str().expect("UTF-8")];
    let output = viaduct(&arguments);
    assert!(output.status.success(), "{}", text(&output));
    for node in ["a", "b"] {
        let wave = path.with_file_name(format!("wave-{node}.vcd"));
        assert!(fs::metadata(&wave).expect("a waveform").len() > 10_000);
    }
}

#[cfg(not(feature = "rtl"))]
#[test]
fn a_build_without_rtl_says_how_to_get_it() {
    let output = viaduct(&["demo", "--device", "rtl"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains("cargo viaduct demo"), "{}", text(&output));
}

#[test]
fn bad_files_are_named() {
    for (path, why) in [("/nonexistent/file", "No such file"), ("/", "is a directory")] {
        let output = viaduct(&["demo", path]);
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output).contains(path) && text(&output).contains(why), "{}", text(&output));
    }
}

#[test]
fn bad_arguments_are_usage_errors() {
    for arguments in [
        &["demo", "--loss", "2"][..],
        &["demo", "--message", "0"],
        &["demo", "--message", "262145"],
        &["demo", "--reliability", "certain"],
        &["synth", "--target", "xyz"],
        &["bench", "hw", "--device", "fpga"],
        &["bench"],
        &["bench", "anatomy", "--sizes", "0"],
        &["bogus"],
        &[],
    ] {
        assert_eq!(viaduct(arguments).status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn a_full_disk_is_an_error_and_no_panic() {
    let full = fs::File::create("/dev/full").expect("the device that is always full");
    let output = Command::new(env!("CARGO_BIN_EXE_viaduct"))
        .args(["cosim", "list"])
        .stdout(full)
        .output()
        .expect("it starts");
    let text = text(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.starts_with("error: ") && !text.contains("panicked"), "{text}");
}

/// Also without RTL, by the command that needs no build of it.
#[test]
fn suites_are_listed_and_filtered() {
    let output = viaduct(&["cosim", "list"]);
    assert!(output.status.success() && text(&output).contains("lockstep-lossy"));
    let output = viaduct(&["cosim", "run", "--seeds", "0"]);
    assert_eq!(output.status.code(), Some(2), "no seed would pass: {}", text(&output));
    let output = viaduct(&["cosim", "run", "no-such-suite"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains("cosim list"), "{}", text(&output));
}

#[test]
fn an_unreliable_connection_admits_its_losses() {
    let bytes = vec![7; 200_000];
    let path = file("unreliable", &bytes);
    let path = path.to_str().expect("a name in UTF-8");
    let faults = ["--reliability", "unreliable", "--loss", "0.2", "--message", "4096"];
    let output = viaduct(&[&["demo", path, "--device", "model"], &faults[..]].concat());
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(text(&output).contains("messages are missing"), "{}", text(&output));
}

#[test]
fn the_rtl_is_written_as_verilog() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("verilog");
    let output = viaduct(&["verilog", "-o", folder.to_str().expect("UTF-8")]);
    assert!(output.status.success(), "{}", text(&output));
    let verilog = fs::read_to_string(folder.join("viaduct.v")).expect("it is there");
    assert!(verilog.contains("module top("));
    let readme = fs::read_to_string(folder.join("README.md")).expect("it is there");
    assert!(readme.contains("| `cq_data` | input | 64 |"), "{readme}");
    let output = viaduct(&["verilog", "-o", "/proc/nowhere"]);
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn proofs_are_listed_and_unknown_ones_refused() {
    let output = viaduct(&["prove", "--list"]);
    assert!(output.status.success());
    assert!(text(&output).contains("work-queue"), "{}", text(&output));
    let output = viaduct(&["prove", "--block", "no-such-block"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains("there are fifo, "), "{}", text(&output));
}

#[test]
fn proofs_without_yosys_say_how_to_get_it() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("prove");
    let folder = folder.to_str().expect("UTF-8");
    let mut command = Command::new(env!("CARGO_BIN_EXE_viaduct"));
    command.args(["prove", "--block", "skid", "--vcd", folder]).env("PATH", "/nonexistent");
    let output = command.output().expect("it starts");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains("cargo viaduct prove"), "{}", text(&output));
    let output = viaduct(&["prove", "--block", "skid", "--vcd", "/proc/nowhere"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains("/proc/nowhere"), "{}", text(&output));
}

/// The rows of `viaduct bench hw`, in order.
const ROWS: [&str; 13] = [
    "push_to_wire",
    "token_to_wire_net",
    "wire_to_payload",
    "wire_to_status",
    "wire_to_event",
    "rate_one_vi",
    "rate_eight_vi",
    "stream_4k",
    "stream_4k_both",
    "stream_4k_500ns",
    "many_vis",
    "sim_cycles_per_s",
    "fmax_ecp5",
];

/// The rows that were printed as JSON.
fn rows(output: &Output) -> Vec<serde_json::Value> {
    let lines = String::from_utf8_lossy(&output.stdout);
    lines.lines().map(|line| serde_json::from_str(line).expect("a line is an object")).collect()
}

#[test]
fn bench_measures_the_model() {
    let output = viaduct(&["bench", "hw", "--device", "model", "--quick", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let rows = rows(&output);
    let names: Vec<&str> = rows.iter().map(|row| row["name"].as_str().expect("a name")).collect();
    assert_eq!(names, ROWS);
    for row in &rows {
        let name = row["name"].as_str().expect("a name");
        assert!(row["bar"].is_number() && row["unit"].is_string(), "{row}");
        // A report of the synthesis may be there or not.
        if name != "fmax_ecp5" {
            assert!(row["value"].as_f64().is_some_and(|value| value >= 0.0), "{row}");
            assert_eq!(row["ok"].as_bool(), None, "{row}");
        }
    }
}

#[test]
fn bench_prints_a_table_of_what_is_asked_for() {
    let output = viaduct(&["bench", "hw", "wire_to", "--device", "model", "--quick"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let text = text(&output);
    let listed: Vec<&str> = ROWS.into_iter().filter(|row| text.contains(row)).collect();
    assert_eq!(listed, ["wire_to_payload", "wire_to_status", "wire_to_event"], "{text}");
    let output = viaduct(&["bench", "hw", "anatomy", "--device", "model"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("doorbell: last beat in") && text.contains("in all"), "{text}");
    let output = viaduct(&["bench", "hw", "no-such-row"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("many_vis"));
}

#[test]
fn a_missed_bar_fails_only_if_strict() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("bench-synth");
    fs::create_dir_all(&folder).expect("the folder of temporary files is writable");
    let path = folder.to_str().expect("UTF-8");
    let arguments = ["bench", "hw", "fmax", "--json", "--synth", path];
    let strict = [&arguments[..], &["--strict"]].concat();
    for (mhz, ok) in [(120.5, true), (80.25, false)] {
        let report = format!(
            r#"{{"fmax": {{"clock": {{"achieved": {mhz}}}}},
                "utilization": {{"TRELLIS_COMB": {{"available": 83640}}}}}}"#
        );
        fs::write(folder.join("report.json"), report).expect("a writable folder");
        let output = viaduct(&arguments);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
        let rows = rows(&output);
        assert_eq!((rows[0]["value"].as_f64(), rows[0]["ok"].as_bool()), (Some(mhz), Some(ok)));
        assert_eq!(viaduct(&strict).status.code(), Some(i32::from(!ok)));
    }
    fs::remove_file(folder.join("report.json")).expect("it is there");
    let output = viaduct(&["bench", "hw", "fmax", "--synth", path]);
    assert!(text(&output).contains("viaduct synth --target ecp5-85"), "{}", text(&output));
}

/// The stages of `viaduct bench anatomy`, in order.
const STAGES: [&str; 15] = [
    "program",
    "post",
    "doorbell",
    "descriptor",
    "data",
    "store",
    "complete",
    "return",
    "repost",
    "wire",
    "match",
    "write",
    "status",
    "release",
    "poll",
];

/// Whether they add up is not asked of a machine that runs other tests meanwhile.
#[test]
fn the_anatomy_of_a_message_has_all_stages_or_says_what_it_lacks() {
    let arguments = ["bench", "anatomy", "--quick", "--anyway", "--json", "--sizes", "4,1024"];
    let output = viaduct(&arguments);
    let lacks = if cfg!(feature = "stamps") { "two processors" } else { "feature `stamps`" };
    if output.status.code() != Some(0) {
        assert_eq!(output.status.code(), Some(1), "{}", text(&output));
        assert!(text(&output).contains(lacks), "{}", text(&output));
        return;
    }
    let rows = rows(&output);
    for (rows, bytes) in rows.chunks(STAGES.len() + 1).zip([4, 1024]) {
        let (whole, stages) = rows.split_last().expect("rows of a size");
        let names: Vec<_> = stages.iter().filter_map(|row| row["stage"].as_str()).collect();
        assert_eq!(names, STAGES, "{}", text(&output));
        for row in stages {
            assert!(row["ns"].is_number() && row["category"].is_string(), "{row}");
        }
        assert_eq!(whole["bytes"], bytes, "{whole}");
        assert!(whole["one_way_ns"].as_f64().is_some_and(|time| time > 0.0), "{whole}");
        let critical = stages.iter().filter(|row| row["critical"] == true);
        let sum: f64 = critical.filter_map(|row| row["ns"].as_f64()).sum();
        assert!((sum - whole["sum_ns"].as_f64().expect("a sum")).abs() < 1e-6, "{whole}");
    }
    assert_eq!(rows.len(), 2 * (STAGES.len() + 1));
}

#[test]
fn the_anatomy_of_a_simulated_nic_is_that_of_hardware() {
    let output = viaduct(&["bench", "anatomy", "sim:model"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(text(&output).contains("viaduct bench hw anatomy --device model"), "{}", text(&output));
}

/// Every figure in cycles of the RTL is as it was. After a change of the RTL that is meant to
/// change them: `cargo viaduct bench hw --snapshot cosim/cli/tests/bench_hw.txt`.
#[cfg(feature = "rtl")]
#[test]
fn the_cycle_figures_of_the_rtl_are_as_before() {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("bench_hw.txt");
    let output = viaduct(&["bench", "hw", "--snapshot", path.to_str().expect("UTF-8")]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert!(text(&output).contains("Anatomy"), "{}", text(&output));
    let found = fs::read_to_string(path).expect("the snapshot");
    assert_eq!(
        found,
        include_str!("bench_hw.txt"),
        "figures have changed; if that is meant: \
         cargo viaduct bench hw --snapshot cosim/cli/tests/bench_hw.txt"
    );
}

/// A simulator prints its sockets and that it is ready, and takes them away when it is stopped.
#[test]
fn a_simulator_is_served_until_it_is_stopped() {
    use std::io::{BufRead, BufReader, Read};
    use std::process::Stdio;

    let folder = std::env::temp_dir().join(format!("viaduct-cli-{}", std::process::id()));
    let path = folder.to_str().expect("UTF-8");
    for signal in ["-TERM", "-INT"] {
        let mut server = Command::new(env!("CARGO_BIN_EXE_viaduct"))
            .args(["cosim", "serve", "--nodes", "3", "--loss", "0.1", "--dir", path])
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut output = BufReader::new(server.stdout.take().expect("its output"));
        let lines: Vec<String> =
            output.by_ref().lines().take(4).map(|line| line.expect("a line")).collect();
        let socket = |node| folder.join(format!("nic{node}.sock"));
        for (node, line) in lines[..3].iter().enumerate() {
            assert_eq!(line, &format!("vfio-user:{}", socket(node).display()));
            assert!(socket(node).exists());
        }
        assert_eq!(lines[3], "ready");
        // A second one in the same folder says so.
        let second = viaduct(&["cosim", "serve", "--dir", path]);
        assert_eq!(second.status.code(), Some(1));
        assert!(text(&second).contains("another server"), "{}", text(&second));
        let id = server.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().expect("kill").success());
        assert_eq!(server.wait().expect("its end").code(), Some(0));
        let mut rest = String::new();
        output.read_to_string(&mut rest).expect("the rest");
        assert!(rest.contains("stopped"), "{rest}");
        assert!((0..3).all(|node| !socket(node).exists()));
    }
    fs::remove_dir(&folder).expect("an empty folder");
}

/// `serve --trace` needs the RTL and a file that can be written.
#[test]
fn a_simulator_that_cannot_write_waveforms_does_not_start() {
    let output = viaduct(&["cosim", "serve", "--device", "model", "--trace", "out.vcd"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains("only the RTL has waveforms"), "{}", text(&output));
    if cfg!(feature = "trace") {
        let output = viaduct(&["cosim", "serve", "--device", "rtl", "--trace", "none/out.vcd"]);
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output).contains("none/out-0.vcd"), "{}", text(&output));
    }
}

/// The NICs of a simulator write waveforms.
#[cfg(feature = "trace")]
#[test]
fn a_simulator_writes_waveforms_of_each_node() {
    use std::process::Stdio;

    let folder = std::env::temp_dir().join(format!("viaduct-trace-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let waves = folder.join("out.vcd");
    let [folder_name, waves] = [&folder, &waves].map(|path| path.to_str().expect("UTF-8"));
    let mut server = Command::new(env!("CARGO_BIN_EXE_viaduct"))
        .args(["cosim", "serve", "--device", "rtl", "--until-eof"])
        .args(["--dir", folder_name, "--trace", waves])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("it starts");
    drop(server.stdin.take());
    assert_eq!(server.wait().expect("its end").code(), Some(0));
    for node in ["0", "1"] {
        let text = fs::read_to_string(folder.join(format!("out-{node}.vcd"))).expect("waveforms");
        assert!(text.contains("$timescale") && text.contains("$enddefinitions"), "node {node}");
    }
    fs::remove_dir_all(&folder).expect("the folder");
}

/// As in `viaduct cosim serve 2>&1 | head -1`.
#[test]
fn a_simulator_serves_on_when_nobody_reads_what_it_says() {
    use std::io::{BufRead, BufReader};
    use std::process::Stdio;

    let folder = std::env::temp_dir().join(format!("viaduct-unread-{}", std::process::id()));
    let path = folder.to_str().expect("UTF-8");
    let mut server = Command::new(env!("CARGO_BIN_EXE_viaduct"))
        .args(["cosim", "serve", "--dir", path])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut line = String::new();
    let mut output = BufReader::new(server.stdout.take().expect("its output"));
    output.read_line(&mut line).expect("a line");
    drop(output);
    let id = server.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().expect("kill").success());
    assert_eq!(server.wait().expect("its end").code(), Some(0));
    fs::remove_dir(&folder).expect("an empty folder");
}

#[test]
fn what_cannot_be_served_is_refused() {
    for (arguments, wanted) in [
        (&["--nodes", "0"][..], "0"),
        (&["--nodes", "65"], "65"),
        (&["--loss", "1.5"], "chance"),
        (&["--device", "other"], "model"),
    ] {
        let output = viaduct(&[&["cosim", "serve"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{}", text(&output));
        assert!(text(&output).contains(wanted), "{}", text(&output));
    }
    if !cfg!(feature = "rtl") {
        let output = viaduct(&["cosim", "serve", "--device", "rtl"]);
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output).contains("no RTL"), "{}", text(&output));
    }
}
