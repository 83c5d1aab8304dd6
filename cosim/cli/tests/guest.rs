//! Cards of a guest kernel: programs in C on `vfio:`, in a stock kernel with VFIO and an IOMMU whose PCIe
//! devices are served NICs (`cargo xtask guest`).
#![cfg(feature = "guest")]

#[expect(dead_code, reason = "one program, which wraps no functions")]
#[path = "../src/c_program.rs"]
mod c_program;
#[expect(dead_code, reason = "a guest finds NICs by address")]
mod served;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use served::Served;

/// What `c_program` fails with.
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Rounds of programs that are killed, unless `VFIO_KILLS` says how many.
const ROUNDS: &str = "10";

/// What `cargo xtask guest --bind` calls the first two NICs.
const CARDS: [&str; 2] = ["vfio:0000:00:10.0", "vfio:0000:00:11.0"];

/// Runs a program in a guest that has the NICs of a simulator.
fn guest(served: &Served, options: &[&str], program: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(env!("CARGO_MANIFEST_DIR")).args(["xtask", "guest"]);
    command.args(options);
    for node in 0..2 {
        command.arg("--nic").arg(served.socket(node));
    }
    command.arg(program).args(arguments).output().expect("cargo runs")
}

/// The conformance suite, compiled.
fn suite() -> PathBuf {
    let command = Path::new(env!("CARGO_BIN_EXE_viaduct"));
    let listed = Command::new(command).args(["conformance", "--list"]).output().expect("it starts");
    assert!(listed.status.success(), "{listed:?}");
    command.with_file_name("conformance").join("conformance")
}

/// Runs rows on two cards of one guest; all must pass.
fn rows_pass(served: &Served, selection: &[&str], least: usize) {
    let cards = ["--device", CARDS[0], "--peer", CARDS[1], "--seconds", "100"];
    let output =
        guest(served, &["--bind", "--seconds", "600"], &suite(), &[selection, &cards].concat());
    let (out, errors) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let passed = out.lines().filter(|line| line.starts_with("ok ")).count();
    assert!(output.status.success() && !out.contains("FAIL "), "{out}{errors}");
    assert!(passed >= least, "{passed} rows: {out}{errors}");
}

/// What the command prints in a guest; it must have this exit code.
fn viaduct(served: &Served, options: &[&str], arguments: &[&str], code: i32) -> String {
    let output = guest(served, options, Path::new(env!("CARGO_BIN_EXE_viaduct")), arguments);
    // The guest's program has one output for both.
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}{output:?}");
    text
}

#[test]
fn cards_are_found_and_given_to_programs() {
    let served = Served::start("guest-cards", &[]);
    let list = viaduct(&served, &[], &["device", "list"], 0);
    for card in CARDS {
        let line = list.lines().find(|line| line.starts_with(card)).expect("the card");
        assert!(line.contains("no driver has it: `viaduct device bind 0000:00:1"), "{list}");
    }
    let refused = viaduct(&served, &[], &["devinfo", "vfio:00:10.0"], 1);
    assert!(refused.contains("no driver has it"), "{refused}");
    let bound = viaduct(&served, &[], &["device", "bind", "00:10.0"], 0);
    assert!(bound.contains("programs can open vfio:0000:00:10.0"), "{bound}");
    let foreign = viaduct(&served, &[], &["device", "bind", "00:00.0"], 1);
    assert!(foreign.contains("it is 0x8086:0x29c0 and no Viaduct NIC"), "{foreign}");
    let list = viaduct(&served, &["--bind"], &["device", "list", "--json"], 0);
    assert_eq!(list.matches("\"state\":\"free\",\"url\":\"vfio:").count(), 2, "{list}");
    let several = viaduct(&served, &["--bind"], &["devinfo", "vfio:"], 1);
    assert!(several.contains("several cards, 0000:00:10.0, 0000:00:11.0"), "{several}");
    let info = viaduct(&served, &["--bind"], &["device", "info", CARDS[1]], 0);
    for wanted in [
        "viaduct node 1",
        "msix_vectors",
        "iommu_group",
        "max_payload",
        "vfio-pci",
        "locked_memory",
    ] {
        assert!(info.contains(wanted), "no {wanted}: {info}");
    }
}

#[test]
fn memory_and_children_are_what_programs_expect() {
    let served = Served::start("guest-model", &[]);
    // Memory and children are the kernel's part in it.
    rows_pass(&served, &["register_mem"], 19);
    rows_pass(&served, &["fork_"], 13);
}

/// Of the RTL in a build that has it.
fn served(name: &str) -> Served {
    let device = if cfg!(feature = "rtl") { "rtl" } else { "model" };
    Served::start(name, &["--device", device])
}

#[test]
fn a_file_crosses_the_cards_of_a_guest() {
    let served = served("guest-demo");
    let arguments = ["demo", "--on", CARDS[0], "--on", CARDS[1], "--message", "10000"];
    let text = viaduct(&served, &["--bind", "--seconds", "300"], &arguments, 0);
    // Among them is what the progress bar draws.
    let is_sum =
        |word: &&str| word.len() == 64 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let sums: Vec<&str> = text.split_whitespace().filter(is_sum).collect();
    assert!(sums.len() == 2 && sums[0] == sums[1], "{text}");
}

/// A program in C, of the tests of the library.
fn compiled(name: &str) -> PathBuf {
    let source = c_program::root().join(format!("via-user/libvipl/tests/vipl/{name}.c"));
    let library = c_program::library("libvipl").expect("libvipl was built");
    c_program::compile(&format!("vipl-{name}"), &library, &[source], &[]).expect("it compiles")
}

#[test]
fn a_program_that_is_killed_gives_its_card_to_the_next() {
    let served = Served::start("guest-kills", &[]);
    let rounds = std::env::var("VFIO_KILLS").unwrap_or_else(|_| ROUNDS.to_owned());
    let options = ["--bind", "--seconds", "900"];
    let output = guest(&served, &options, &compiled("cards"), &[&rounds, CARDS[0], CARDS[1]]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains(&format!("{rounds} rounds")), "{output:?}");
    let _ = std::io::Write::write_all(&mut std::io::stderr(), text.as_bytes());
}

/// What `counted.c` says, behind these words.
fn counted<const N: usize>(output: &Output, words: &str) -> [u64; N] {
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find_map(|line| line.strip_prefix(words));
    let words = line.unwrap_or_else(|| panic!("no {words}: {output:?}")).split([' ', ',']);
    let numbers: Vec<u64> = words.filter_map(|word| word.parse().ok()).collect();
    numbers.try_into().unwrap_or_else(|_| panic!("{text}"))
}

/// System calls of a function that do not wait.
fn calls(output: &Output, function: &str) -> u64 {
    let [calls, waiting] = counted(output, &format!("{function} system calls"));
    calls - waiting
}

/// A post is a store to the card, as it is to any doorbell that is mapped; memory is registered by one
/// system call for the IOMMU and one for the card, and deregistered likewise.
#[test]
fn a_card_costs_no_more_than_it_must() {
    let served = Served::start("guest-counted", &[]);
    let program = compiled("counted");
    let mapped = [0, 1].map(|node| format!("sim:model?doorbells=nowhere&node={node}"));
    let mapped = Command::new(&program).args(mapped).output().expect("it runs");
    let cards = guest(&served, &["--bind", "--seconds", "600"], &program, &CARDS);
    let _ = std::io::Write::write_all(&mut std::io::stderr(), &cards.stdout);
    let [[post], [reference]] = [&cards, &mapped].map(|of| counted(of, "post instructions"));
    assert!(post <= reference, "{post}, and {reference} where the doorbells lead nowhere");
    for (function, most) in [("post", 0), ("register", 2), ("deregister", 2)] {
        let calls = calls(&cards, function);
        assert!(calls <= most, "{function}: {calls} system calls");
    }
}

#[cfg(feature = "rtl")]
#[test]
fn every_function_works_where_the_cards_are_the_rtl() {
    let served = served("guest-rtl");
    rows_pass(&served, &["", "--subset", "rtl"], 100);
}
