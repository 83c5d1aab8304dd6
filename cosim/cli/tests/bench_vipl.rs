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
