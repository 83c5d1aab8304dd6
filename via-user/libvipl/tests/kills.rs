//! Programs in C on VIPL that are killed, in processes of their own: `vipl/kills.c` says how.

#[expect(dead_code, reason = "this program wraps no functions")]
#[path = "../../../cosim/cli/src/c_program.rs"]
mod c_program;

use std::process::Command;

/// What `c_program` fails with.
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Rounds, unless `VIPL_KILLS` says how many.
const ROUNDS: &str = "40";

#[test]
fn a_client_that_is_killed_disturbs_nobody() {
    let source = c_program::root().join("via-user/libvipl/tests/vipl/kills.c");
    let library = c_program::library("libvipl").unwrap();
    let program = c_program::compile("vipl-kills", &library, &[source], &[]).unwrap();
    let folder = std::env::temp_dir().join(format!("viaduct-kills-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let rounds = std::env::var("VIPL_KILLS").unwrap_or_else(|_| ROUNDS.to_owned());
    let output = Command::new(program)
        .arg(&rounds)
        .env("XDG_RUNTIME_DIR", &folder)
        .env_remove("VIADUCT_DEVICE")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains(&format!("{rounds} rounds")), "{output:?}");
    let _ = std::io::Write::write_all(&mut std::io::stderr(), text.as_bytes());
    // The victims could not remove their names; whoever takes a name next does.
    std::fs::remove_dir_all(&folder).unwrap();
}
