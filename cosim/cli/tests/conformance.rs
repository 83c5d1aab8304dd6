//! The conformance suite on the behavioural model, and its table in the test plan.

use std::process::Command;

fn viaduct(arguments: &[&str]) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_viaduct"))
        .arg("conformance")
        .args(arguments)
        .output()
        .expect("viaduct runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.success(), text)
}

/// One after the other: they compile the suite into the same folder.
#[test]
fn every_row_passes_and_is_planned() {
    let (listed, rows) = viaduct(&["--list"]);
    assert!(listed, "{rows}");
    let plan = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/testplan.md");
    let plan = std::fs::read_to_string(plan).expect("the test plan is there");
    assert!(
        plan.contains(&rows),
        "the table of the conformance suite in tests/testplan.md is not that of `viaduct conformance --list`: put the \
         output of that command there"
    );
    let (passed, table) = viaduct(&["--device", "sim:model"]);
    assert!(passed, "{table}");
}
