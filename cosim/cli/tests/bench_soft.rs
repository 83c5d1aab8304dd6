//! `viaduct bench soft` and `viaduct bench sockets`: their rows, and what they refuse. The figures are the machine's.

use std::process::{Command, Output};

use serde_json::Value;

fn bench(what: &str, arguments: &[&str]) -> Output {
    let folder = std::env::temp_dir().join(format!("viaduct-{what}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_viaduct"));
    command.args(["bench", what]).args(arguments).env("XDG_RUNTIME_DIR", &folder);
    command.output().expect("it starts")
}

fn each_row_has_a_ratio_and_a_bar(what: &str, some: &[&str]) {
    if std::thread::available_parallelism().is_ok_and(|processors| processors.get() < 2) {
        return;
    }
    let output = bench(what, &["--quick", "--anyway", "--json"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let rows: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
    let names: Vec<_> = rows.iter().filter_map(|row| row["name"].as_str()).collect();
    for name in some {
        assert!(names.contains(name), "{name} in {names:?}");
    }
    // Without a C compiler and libtirpc there are none of SunRPC's programs.
    let is_missing = |row: &&Value| row["value"].is_null() && row["ok"].is_null();
    let is_tirpc =
        |row: &&Value| ["rpc.null", "rpc.direct_null"].iter().any(|name| row["name"] == *name);
    for row in rows.iter().filter(|row| !(is_missing(row) && is_tirpc(row))) {
        assert!(row["value"].as_f64().is_some_and(|value| value > 0.0), "{row}");
        assert!(row["bar"].is_number() && row["ok"].is_boolean(), "{row}");
    }
}

#[test]
fn each_row_of_the_software_nic_has_a_ratio_and_a_bar() {
    let some = ["shm.lat_over_ring", "shm.bw_over_tcp", "udp.lat_over_raw", "cq.scale"];
    each_row_has_a_ratio_and_a_bar("soft", &some);
}

#[test]
fn each_row_of_sockets_has_a_ratio_and_a_bar() {
    let some = [
        "sovia.over_vipl",
        "sovia.tcp_over",
        "sovia.bw_over_tcp",
        "sovia.passive",
        "sovia.policies",
        "sovia.cosim",
        "rpc.direct",
        "rpc.null",
    ];
    each_row_has_a_ratio_and_a_bar("sockets", &some);
}

#[test]
fn a_row_that_there_is_not_is_refused() {
    for (what, row) in [("soft", "shm.lat_over_ring"), ("sockets", "sovia.over_vipl")] {
        let output = bench(what, &["colour"]);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && text.contains(row), "{text}");
    }
}
