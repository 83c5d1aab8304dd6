//! The fast path of VIPL makes no system call and allocates nothing: `viaduct bench vipl`.

use std::process::Command;

#[test]
fn the_fast_path_stays_in_the_program() {
    for row in ["vipl.syscalls", "vipl.allocations", "vipl.locks"] {
        let output = Command::new(env!("CARGO_BIN_EXE_viaduct"))
            .args(["bench", "vipl", row, "--json", "--strict"])
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        assert!(text.contains(row) && text.contains("\"ok\":true"), "{text}");
    }
}

/// The row of the conformance suite counts rows that pass; here, as everywhere, all of them.
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
