//! An existing vfio-user client attaches to a served NIC: QEMU, whose guest kernel finds it among its
//! PCI devices (`cargo xtask guest`, `docs/simulator.md` section 7).

mod cards;

use std::env;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use host_driver::bus::vfio_user::VfioUserBus;
use nic_regs::counter::Counter;
use nic_regs::limits::{CLOCK_KHZ, MSIX_VECTOR_COUNT};
use nic_regs::{csr, doorbell, pci};
use tests::served::{SOON, Simulator};

/// The program in the guest, a package of the workspace.
const PROBE: &str = "guest-probe";

/// Runs the probe in a guest that has these NICs.
fn guest(nics: &[PathBuf], options: &[&str]) -> Output {
    run(nics, options, &[PROBE])
}

/// Runs a program in a guest that has these NICs. One guest at a time: each wants a core.
fn run(nics: &[PathBuf], options: &[&str], program: &[&str]) -> Output {
    let _token = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    command(nics, options, program).output().expect("cargo runs")
}

static TURN: Mutex<()> = Mutex::new(());

fn command(nics: &[PathBuf], options: &[&str], program: &[&str]) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(env!("CARGO_MANIFEST_DIR")).args(["xtask", "guest"]);
    nics.iter().for_each(|nic| _ = command.arg("--nic").arg(nic));
    command.args(options).args(program);
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What the probe printed of one NIC: the values behind a name, in hexadecimal.
fn printed(lines: &[&str], name: &str) -> Vec<Vec<u64>> {
    let lines = lines.iter().filter_map(|line| line.split_once(name));
    let values = lines.filter(|(before, _)| before.ends_with(' ')).map(|(_, values)| {
        let words = values.split_whitespace();
        words.map(|word| u64::from_str_radix(word, 16).expect("a number")).collect()
    });
    values.collect()
}

/// A NIC that a guest had is another program's. The kernel may hold the sockets of a QEMU that has
/// ended for some milliseconds more (io_uring).
fn is_free(simulator: &Simulator, node: u8) {
    let start = Instant::now();
    while let Err(error) = VfioUserBus::connect(&simulator.socket(node)) {
        assert!(start.elapsed() < SOON, "{error}");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(simulator.open(node).driver.counter(Counter::FramesSent).is_ok());
}

/// The kernel of a guest finds both NICs, with the identity, BARs, capabilities and registers that
/// they have; VFIO takes them; and the function's reset resets the device.
#[test]
fn a_guest_kernel_enumerates_served_nics() {
    let simulator = Simulator::start("guest", 2, 0.0);
    let output = guest(&[0, 1].map(|node| simulator.socket(node)), &[]);
    let (out, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{out}{errors}");
    let mut addresses: Vec<&str> =
        out.lines().filter_map(|line| line.split_once(" ids ")).map(|(at, _)| at).collect();
    addresses.sort_unstable();
    assert_eq!(addresses.len(), 2, "{out}");

    let id = u64::from(csr::ID::RESET.0);
    let mut used = Vec::new();
    for (node, address) in (0_u64..).zip(addresses) {
        let lines: Vec<&str> = out.lines().filter(|line| line.starts_with(address)).collect();
        let one = |name: &str| printed(&lines, name).concat();
        let (vendor, class) = (u64::from(pci::VENDOR_ID), u64::from(pci::CLASS));
        assert_eq!(one("ids "), [vendor, pci::DEVICE_ID.into(), class], "{out}");
        assert_eq!(one("subsystem "), [vendor, 2 << 8 | node], "node {node} of 2");
        let bars = printed(&lines, "bar ");
        let sizes = [(0, u64::from(csr::BAR_SIZE)), (2, doorbell::BAR_SIZE)];
        assert_eq!(bars.iter().map(|bar| (bar[0], bar[2])).collect::<Vec<_>>(), sizes, "{out}");
        for bar in &bars {
            assert!(bar[1] != 0 && bar[1].is_multiple_of(bar[2]), "aligned: {bar:x?}");
            used.push((bar[1], bar[1] + bar[2]));
        }
        assert_eq!(one("config_bytes "), [4096]);
        assert_eq!(one("express "), [1], "it can be reset");
        let places = [csr::MSIX_TABLE_OFFSET, pci::MSIX_PENDING_OFFSET].map(u64::from);
        assert_eq!(one("msix "), [MSIX_VECTOR_COUNT as u64, places[0], places[1]]);
        assert_eq!(one("registers "), [id, 1, u64::from(CLOCK_KHZ)]);
        assert!(lines.iter().any(|line| line.ends_with(" driver vfio-pci")), "{out}");
        let group = lines.iter().find(|line| line.contains(" group "));
        assert!(group.is_some_and(|line| line.ends_with(" true")), "{out}");
        assert!(lines.iter().any(|line| line.ends_with(" reset_method flr")), "{out}");
        // A register that was written is as after power-on.
        assert!(one("written ")[0] != 0 && one("reset ") == [0], "{out}");
        assert_eq!(one("again "), [id, 1]);
    }
    used.sort_unstable();
    assert!(used.windows(2).all(|two| two[0].1 <= two[1].0), "BARs overlap: {used:x?}");

    // The guest has ended: the next program has its NICs. Also if it was ended.
    is_free(&simulator, 1);
    let output = guest(&[simulator.socket(0)], &["--seconds", "2"]);
    assert!(text(&output.stderr).contains("did not end"), "{output:?}");
    is_free(&simulator, 0);
    simulator.stop();
}

/// What the guest says and does not say decides: without a NIC it fails, and without an end it is
/// ended.
#[test]
fn a_guest_that_finds_nothing_fails() {
    let output = guest(&[], &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("no PCI device"), "{output:?}");

    let output = guest(&[], &["--seconds", "1"]);
    let errors = text(&output.stderr);
    assert!(!output.status.success() && errors.contains("did not end within 1 s"), "{errors}");
    let output = guest(&["no/such.sock".into()], &[]);
    let errors = text(&output.stderr);
    assert!(!output.status.success() && errors.contains("cosim serve"), "{errors}");
}

/// The tests of this binary with such names, for a guest with these NICs.
fn inside(nics: &[PathBuf], names: &[&str]) -> Command {
    let own = env::current_exe().expect("the path of this test");
    let own = own.to_str().expect("UTF-8");
    let tests = [&[own, "--test-threads=1", "--nocapture"], names].concat();
    command(nics, &["--bind", "--seconds", "300"], &tests)
}

/// Programs have the cards of a guest, whose kernel and IOMMU stand between.
#[test]
fn cards_survive_what_happens_to_them() {
    let mut simulator = Simulator::start("guest-cards", 2, 0.0);
    let nics = [0, 1].map(|node| simulator.socket(node));
    let token = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let output = inside(&nics, &["guest::cards::inside::in_use"]).output().expect("cargo runs");
    drop(token);
    let (out, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success() && out.contains(" 5 passed"), "{out}{errors}");
    for what in ["nic0: a read of", "nic0: a write of"] {
        simulator.process().expect(&format!("unreachable {what}"));
    }
    simulator.stop();
}

/// The cards end with their simulator. QEMU 11 mostly ends with it too, by an assertion of its own on
/// the way in which its client of the protocol reports errors; where it does not, the program in the
/// guest notices. Nothing hangs.
#[test]
fn cards_that_end_do_not_hang_a_guest() {
    let mut simulator = Simulator::start("guest-killed", 2, 0.0);
    let nics = [0, 1].map(|node| simulator.socket(node));
    let _token = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut command = inside(&nics, &["guest::cards::inside::ends"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("cargo runs");
    let output = BufReader::new(child.stdout.take().expect("its output"));
    let mut lines = Vec::new();
    for line in output.lines().map_while(Result::ok) {
        if line.contains("@traffic") {
            simulator.process().kill();
        }
        lines.push(line);
    }
    let output = child.wait_with_output().expect("its end");
    let errors = text(&output.stderr);
    let by_qemu = errors.contains("signal: 6") && errors.contains("error_setv: Assertion");
    assert!(lines.iter().any(|line| line.contains("@traffic")), "{lines:#?}{errors}");
    assert!(output.status.success() || by_qemu, "{lines:#?}{errors}");
}

/// Programs in two guests, each with a card of its own.
#[test]
fn two_guests_talk_to_each_other() {
    let simulator = Simulator::start("guest-two", 2, 0.0);
    let _token = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let guests = [("listens", 0), ("calls", 1)].map(|(name, node)| {
        let mut command =
            inside(&[simulator.socket(node)], &[&format!("guest::cards::inside::{name}")]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("cargo runs")
    });
    for guest in guests {
        let output = guest.wait_with_output().expect("its end");
        let (out, errors) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success() && out.contains(" 1 passed"), "{out}{errors}");
    }
    simulator.stop();
}
