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

#[cfg(feature = "rtl")]
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
        &["bogus"],
        &[],
    ] {
        assert_eq!(viaduct(arguments).status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn suites_are_listed_and_filtered() {
    let output = viaduct(&["cosim", "list"]);
    assert!(output.status.success() && !output.stdout.is_empty());
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
