//! Memory of programs that a served NIC reaches, and programs that are stopped or share processors.

use std::fs;
use std::path::Path;
use std::process::Command as Program;
use std::time::{Duration, Instant};

use host_driver::address::NodeAddress;
use rustix::process::{Pid, Signal, kill_process};
use tests::served::{Process, SOON, Simulator, open, say};
use tests::{Buffer, pattern};
use vipl::{NetAddress, Reliability};

use super::Caller;

/// Bytes of the message that arrives while its receiver is stopped.
const MESSAGE: usize = 20_000;

/// Receives a message; it may be stopped at any time.
pub(super) fn receiver(folder: &Path) {
    let node = open(folder, 2);
    let vi = node.open_vi(Reliability::Reception);
    let recv = Buffer::new(&node, MESSAGE);
    vi.post_recv(&recv.descriptor).unwrap();
    say("listening");
    let request = node.nic.connect_wait(&node.address(b"receiver"), SOON).unwrap();
    request.accept(&vi).unwrap();
    say("connected");
    vi.recv_wait(SOON).unwrap();
    assert!(recv.data() == pattern(MESSAGE, 3), "the data is there with the completion");
    say("received");
    tests::served::wait_for_stop();
}

fn signal(program: &Process, signal: Signal) {
    let id = Pid::from_raw(program.id().try_into().unwrap()).unwrap();
    kill_process(id, signal).unwrap();
}

/// The NIC of a stopped program goes on: what it receives meanwhile is there afterwards. Nobody waits
/// for the program.
#[test]
fn a_stopped_program_keeps_nobody_waiting_and_receives() {
    let simulator = Simulator::start("stopped", 4, 0.0);
    let mut echo = Process::program(simulator.folder(), "echo");
    let mut receiver = Process::program(simulator.folder(), "receiver");
    echo.expect("listening");
    receiver.expect("listening");
    let node = simulator.open(0);
    let caller = Caller::new(&node, 1);
    let vi = node.open_vi(Reliability::Reception);
    let to = NetAddress::of_node(2, b"receiver");
    vi.connect_request(&node.address(b""), &to, SOON).unwrap();
    receiver.expect("connected");

    signal(&receiver, Signal::STOP);
    let start = Instant::now();
    let send = Buffer::new(&node, MESSAGE);
    send.set(&pattern(MESSAGE, 3));
    vi.post_send(&send.descriptor).unwrap();
    // On this level of reliability the message is in the memory of the stopped program now.
    vi.send_wait(SOON).unwrap();
    (0..20).for_each(|round| caller.call(&pattern(5000, round)));
    // Another program opens a NIC.
    drop(simulator.open(3));
    let took = start.elapsed();
    assert!(took < Duration::from_secs(10), "they waited for the stopped program: {took:?}");
    // Longer than a slow program had for its answers when there were such.
    std::thread::sleep(Duration::from_secs(3).saturating_sub(start.elapsed()));
    signal(&receiver, Signal::CONT);
    receiver.expect("received");
    receiver.stop();
    drop((caller, vi, node));
    echo.stop();
    simulator.stop();
}

/// Has this thread, and the processes and threads that it starts, use one processor.
fn use_one_processor() {
    let thread = fs::read_link("/proc/thread-self").unwrap();
    let status = fs::read_to_string("/proc/thread-self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    let first: String = line.trim().chars().take_while(char::is_ascii_digit).collect();
    let mut set = Program::new("taskset");
    let output = set.args(["-c", "-p", &first]).arg(thread.file_name().unwrap()).output();
    let output = output.expect("taskset (util-linux)");
    assert!(output.status.success(), "{output:?}");
}

/// While a program has something to do, a simulator that has nothing to do does not keep the processor
/// from it until its time slice is over.
#[test]
fn programs_that_share_a_processor_with_the_simulator_do_not_wait_for_its_idle_time() {
    use_one_processor();
    let mut simulator = Simulator::start("one", 2, 0.0);
    let mut echo = Process::program(simulator.folder(), "echo");
    echo.expect("listening");
    let node = simulator.open(0);
    let caller = Caller::new(&node, 1);
    caller.call(b"first");
    let before = simulator.process().cpu_time();
    const ROUNDS: u32 = 100;
    (0..ROUNDS).for_each(|_| caller.call(b"8 bytes!"));
    // Processor time: other load of this machine does not count.
    let each = (simulator.process().cpu_time() - before) / ROUNDS;
    assert!(each < Duration::from_millis(2), "{each:?} for a round trip");
    drop((caller, node));
    echo.stop();
    simulator.stop();
}
