//! The bars of `viaduct bench vipl`: the fast path of VIPL makes no system call, allocates nothing,
//! and takes no more instructions than it may.

use std::process::Command;

/// A row is measured and meets its bar. The rows of the fast path are about a release build of the
/// library, which has to be there.
#[track_caller]
fn holds(row: &str) {
    let output = Command::new(env!("CARGO_BIN_EXE_viaduct"))
        .args(["bench", "vipl", row, "--json", "--strict"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains(row) && text.contains("\"ok\":true"), "{text}");
}

#[test]
#[ignore = "cargo build --release -p libvipl, then --ignored"]
fn the_fast_path_stays_in_the_program() {
    for row in ["vipl.syscalls", "vipl.allocations", "vipl.locks"] {
        holds(row);
    }
}

/// Instructions do not depend on the machine's speed or load, so that they can be a test.
#[test]
#[ignore = "cargo build --release -p libvipl, then --ignored"]
#[cfg_attr(not(target_arch = "x86_64"), ignore = "the bars are instructions of x86-64")]
fn the_fast_path_takes_few_instructions() {
    for row in ["vipl.post_token", "vipl.post_push", "vipl.done_empty", "vipl.done_hit"] {
        holds(row);
    }
}

/// The row of the conformance suite counts rows that pass: all of them on the model and, in a build
/// with the RTL, its subset there.
#[test]
fn every_row_of_the_conformance_suite_counts() {
    let output = Command::new(env!("CARGO_BIN_EXE_viaduct"))
        .args(["bench", "vipl", "conformance", "--json", "--strict"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("conformance.native") && text.contains("\"unit\":\"rows\""), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
}
