//! What the command says of devices: `devinfo`, `stats`, `device list`.

mod served;

use std::process::{Command, Output};

use serde_json::Value;

use served::Served;

/// Runs the command where there is no simulator but those below `folder`.
fn viaduct(folder: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_viaduct"));
    command.args(arguments).env("XDG_RUNTIME_DIR", folder).env_remove("VIADUCT_DEVICE");
    command.output().expect("it starts")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.clone(), output.stderr.clone()].concat()).into_owned()
}

/// The JSON objects that a command printed, one a line.
fn objects(output: &Output) -> Vec<Value> {
    assert_eq!(output.status.code(), Some(0), "{}", text(output));
    let lines = String::from_utf8_lossy(&output.stdout);
    lines.lines().map(|line| serde_json::from_str(line).expect("a line is an object")).collect()
}

#[test]
fn a_device_says_what_it_is() {
    let output = viaduct("/nonexistent", &["devinfo", "sim:model?node=1"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let shown = text(&output);
    for line in [
        "sim:model?node=1",
        "  name                      viaduct node 1",
        "  state                     up",
        "  abi                       2",
        "  host_address              02:56:49:41:00:01",
        "  features                  push rdma_write rdma_read",
        "  vis                       1024",
        "  native_mtu                4096",
        "  clock_khz                 250000",
    ] {
        assert!(shown.lines().any(|shown| shown == line), "no {line:?} in:\n{shown}");
    }
    let object = &objects(&viaduct("/nonexistent", &["devinfo", "sim:model", "--json"]))[0];
    assert_eq!(object["limits"]["segments"], 16, "{object}");
    assert_eq!((&object["features"]["push"], &object["owner"]), (&true.into(), &Value::Null));
}

#[test]
fn devices_that_are_not_there_are_errors() {
    for (arguments, why) in [
        (&["devinfo"][..], "the folder /nonexistent/viaduct/shm: No such file"),
        (&["stats"], "the folder /nonexistent/viaduct/shm: No such file"),
        (&["devinfo", "vfio-user:/nonexistent/nic0.sock"], "No such file"),
        (&["stats", "vfio:ff:1f.7"], "no PCI function is there: `viaduct device list`"),
        (&["stats", "vfio:"], "this machine has no Viaduct NIC"),
        (&["stats", "vfio:03.0"], "this is no PCI address: give one such as 0000:03:00.0"),
        (&["devinfo", "eth0"], "there is no device `eth0`"),
    ] {
        let output = viaduct("/nonexistent", arguments);
        assert_eq!(output.status.code(), Some(1), "{}", text(&output));
        assert!(text(&output).contains(why), "{}", text(&output));
    }
    for arguments in [
        &["device"][..],
        &["devinfo", "--fast"],
        &["stats", "--count", "3"],
        &["stats", "--watch", "0"],
        &["stats", "--watch", "NaN"],
    ] {
        assert_eq!(viaduct("/nonexistent", arguments).status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn the_list_says_what_can_be_opened_and_why_not() {
    let output = viaduct("/nonexistent", &["device", "list", "--json"]);
    let rows = objects(&output);
    let row = |url: &str| rows.iter().find(|row| row["url"] == url).expect(url);
    assert_eq!(row("sim:model")["state"], "free");
    let rtl = if cfg!(feature = "rtl") { "free" } else { "no" };
    assert_eq!(row("sim:rtl")["state"], rtl);
    assert_eq!(row("vfio:ADDRESS")["state"], "no");
    let none = row("vfio-user:PATH");
    assert!(none["note"].as_str().is_some_and(|note| note.contains("viaduct cosim serve")));
    let table = viaduct("/nonexistent", &["device", "list"]);
    assert!(text(&table).contains("sim:model       free  a behavioural model"), "{}", text(&table));
}

#[test]
fn served_devices_are_looked_at_while_a_program_has_them() {
    let served = Served::start("devices", &[]);
    let list = || objects(&viaduct(served.folder(), &["device", "list", "--json"]));
    let states = || {
        let rows = list();
        let state = |node| {
            let row = rows.iter().find(|row| row["url"] == served.url(node)).expect("its row");
            (row["state"].as_str().unwrap().to_owned(), row["note"].as_str().unwrap().to_owned())
        };
        [state(0), state(1)]
    };
    assert!(states().iter().all(|(state, _)| state == "free"), "{:?}", states());

    // Two NICs of this program open a channel to each other.
    let ports = [0, 1].map(|node| device::open(&served.url(node)).expect("it is free"));
    let [(busy, note), _] = states();
    assert!(busy == "busy" && note.contains(&std::process::id().to_string()), "{busy}: {note}");
    let object = &objects(&viaduct(served.folder(), &["devinfo", "--json"]))[0];
    assert_eq!((&object["owner"], &object["state"]), (&std::process::id().into(), &"up".into()));
    assert_eq!(object["device"], served.url(0), "the first one is the default");
    let url = served.url(0);
    let seen = || objects(&viaduct(served.folder(), &["stats", &url, "--json"]))[0].clone();
    while seen()["FramesReceived"] == 0 {}
    assert_eq!(seen()["BadRegister"], 0, "looking is not misuse");

    // What is watched is what was added.
    let arguments = ["stats", &url, "--watch", "0.01", "--count", "2", "--json"];
    let rows = objects(&viaduct(served.folder(), &arguments));
    assert_eq!(rows.len(), 3);
    assert!(rows[0]["AdminCommands"].as_u64() > Some(0) && rows[1]["AdminCommands"] == 0);
    let counters = ports[0].counters().expect("its own program reads them too");
    assert!(counters.iter().any(|(name, value)| *name == "AdminCommands" && *value > 0));

    drop(ports);
    let waited = |state: &str| state == "free";
    while !states().iter().all(|(state, _)| waited(state)) {}
}
