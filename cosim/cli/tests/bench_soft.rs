//! `viaduct bench soft`: its rows, and what it refuses. The figures are the machine's.

use std::process::{Command, Output};

use serde_json::Value;

fn soft(arguments: &[&str]) -> Output {
    let folder = std::env::temp_dir().join(format!("viaduct-soft-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_viaduct"));
    command.args(["bench", "soft"]).args(arguments).env("XDG_RUNTIME_DIR", &folder);
    command.output().expect("it starts")
}

#[test]
fn each_row_has_a_ratio_and_a_bar() {
    if std::thread::available_parallelism().is_ok_and(|processors| processors.get() < 2) {
        return;
    }
    let output = soft(&["--quick", "--anyway", "--json"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let rows: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
    let names: Vec<_> = rows.iter().filter_map(|row| row["name"].as_str()).collect();
    let some = ["shm.lat_over_ring", "shm.bw_over_tcp", "udp.lat_over_raw", "cq.scale"];
    for name in some {
        assert!(names.contains(&name), "{name} in {names:?}");
    }
    for row in &rows {
        assert!(row["value"].as_f64().is_some_and(|value| value > 0.0), "{row}");
        assert!(row["bar"].is_number() && row["ok"].is_boolean(), "{row}");
    }
}

#[test]
fn a_row_that_there_is_not_is_refused() {
    let output = soft(&["colour"]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && text.contains("shm.lat_over_ring"), "{text}");
}
