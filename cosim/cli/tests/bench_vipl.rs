//! The row of `viaduct bench vipl` that is about the conformance suite. Those about the fast path are a
//! step of the gate, since they are about a release build of the library.

use std::process::Command;

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
