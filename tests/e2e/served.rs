//! Programs in processes of their own on a simulator that another process serves.

mod crowd;
mod default_device;
mod left;
mod malformed;
mod memory;
mod observed;
mod reopened;
mod unreachable;

use core::sync::atomic::AtomicU8;
use host_driver::address::NodeAddress;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command as Program;
use std::time::{Duration, Instant};

use host_driver::bus::Wait;
use host_driver::bus::vfio_user::VfioUserBus;
use nic_regs::counter::Counter;
use nic_regs::csr;
use nic_regs::doorbell::EVENT_OFFSET;
use tests::served::{Process, SOON, Simulator, cpu_time, open, role as own_role, say};
use tests::{Buffer, Node, error_bits, pattern};
use vipl::{DmaMemory, ErrorCode, MemAttributes, Reliability, RemoteBuffer, Vi, VipReturn};

/// What the processes do that the tests start.
#[test]
fn role() {
    match own_role() {
        Some((role, folder)) if role == "echo" => echo(&folder, 1),
        Some((role, folder)) if role == "echo2" => echo(&folder, 2),
        Some((role, folder)) if role == "receiver" => memory::receiver(&folder),
        Some((role, _)) => match role.strip_prefix("default ") {
            Some(name) => default_device::role(name),
            None => panic!("no role {role:?}"),
        },
        None => {}
    }
}

/// Largest message here.
const BYTES: usize = 40_000;

/// Waits for a program that connects, sends it the place where it may write, and sends back what it sends.
fn echo(folder: &Path, number: u8) {
    let node = open(folder, number);
    let open_memory = node.open_region(BYTES);
    say("listening");
    let vi = node.open_vi(Reliability::Delivery);
    let (send, recv) = (Buffer::new(&node, BYTES), Buffer::new(&node, BYTES));
    vi.post_recv(&recv.descriptor).unwrap();
    let request = node.nic.connect_wait(&node.address(b"echo"), SOON).unwrap();
    request.accept(&vi).unwrap();
    say("connected");
    let RemoteBuffer { address, handle } = open_memory.remote(0);
    send.set(&[address.to_le_bytes(), u64::from(handle).to_le_bytes()].concat());
    loop {
        vi.post_send(&send.descriptor).unwrap();
        let done = vi.send_wait(SOON).and_then(|_| vi.recv_wait(SOON));
        if done.is_err() {
            say(&format!("lost {:#x}", error_bits(&done)));
            say(&format!("errors {:?}", node.errors()));
            return;
        }
        send.set(&recv.data());
        vi.post_recv(&recv.descriptor).unwrap();
    }
}

/// A program's end of a conversation with an echo.
struct Caller {
    vi: Vi,
    send: Buffer,
    recv: Buffer,
    remote: RemoteBuffer,
}

impl Caller {
    fn new(node: &Node, peer: u8) -> Self {
        let vi = node.open_vi(Reliability::Delivery);
        let (send, recv) = (Buffer::new(node, BYTES), Buffer::new(node, BYTES));
        vi.post_recv(&recv.descriptor).unwrap();
        let to = vipl::NetAddress::of_node(peer, b"echo");
        vi.connect_request(&node.address(b""), &to, SOON).unwrap();
        vi.recv_wait(SOON).unwrap();
        let words = recv.data();
        let word = |at: usize| u64::from_le_bytes(words[at..at + 8].try_into().unwrap());
        let remote = RemoteBuffer { address: word(0), handle: word(8).try_into().unwrap() };
        Self { vi, send, recv, remote }
    }

    /// Sends data and gets it back.
    fn call(&self, data: &[u8]) {
        self.send.set(data);
        self.vi.post_recv(&self.recv.descriptor).unwrap();
        self.vi.post_send(&self.send.descriptor).unwrap();
        self.vi.send_wait(SOON).unwrap();
        self.vi.recv_wait(SOON).unwrap();
        assert!(self.recv.data() == data);
    }
}

#[test]
fn two_programs_talk_through_a_simulator() {
    let simulator = Simulator::start("talk", 2, 0.0);
    let mut echo = Process::program(simulator.folder(), "echo");
    echo.expect("listening");
    let node = simulator.open(0);
    let caller = Caller::new(&node, 1);
    for bytes in [0, 1, 8, 4095, 4096, 4097, BYTES] {
        caller.call(&pattern(bytes, bytes));
    }
    // RDMA: what is written there is read back.
    let region = node.region(3 * 8192);
    region.memory().copy_from(8192, &pattern(8192, 5));
    let descriptor = region.descriptor(0, 2).unwrap();
    let to = |at| region.segment(at, 8192);
    descriptor.prepare_rdma_write(caller.remote, &[to(8192)], None).unwrap();
    caller.vi.post_send(&descriptor).unwrap();
    caller.vi.send_wait(SOON).unwrap();
    descriptor.prepare_rdma_read(caller.remote, &[to(2 * 8192)]).unwrap();
    caller.vi.post_send(&descriptor).unwrap();
    caller.vi.send_wait(SOON).unwrap();
    assert!(region.memory().to_vec(2 * 8192, 8192) == pattern(8192, 5));

    drop((caller, node));
    echo.expect("lost");
    echo.stop();
    simulator.stop();
}

#[test]
fn three_nodes_reach_each_other_over_bad_wires() {
    let simulator = Simulator::start("mesh", 3, 0.02);
    let mut echoes = ["echo", "echo2"].map(|role| Process::program(simulator.folder(), role));
    echoes.iter_mut().for_each(|echo| _ = echo.expect("listening"));
    let node = simulator.open(0);
    let callers = [1, 2].map(|peer| Caller::new(&node, peer));
    for round in 0..20 {
        for (number, caller) in callers.iter().enumerate() {
            caller.call(&pattern(700 * round, round + 100 * number));
        }
    }
    drop((callers, node));
    for mut echo in echoes {
        echo.expect("lost");
        echo.stop();
    }
    simulator.stop();
}

/// A program whose client and server are on one NIC, and that also talks to another node.
#[test]
fn a_program_reaches_itself() {
    let simulator = Simulator::start("itself", 2, 0.0);
    let mut echo = Process::program(simulator.folder(), "echo");
    echo.expect("listening");
    let node = simulator.open(0);
    let vis = [0, 1].map(|_| node.vi(Reliability::Reception));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let request = node.nic.connect_wait(&node.address(b"me"), SOON).unwrap();
            request.accept(&vis[1]).unwrap();
        });
        let (from, to) = (node.address(b""), node.address(b"me"));
        // Until the other thread waits.
        let ask = || vis[0].connect_request(&from, &to, SOON).err().map(|error| error.code);
        while let Some(code) = ask() {
            assert_eq!(code, VipReturn::NoMatch);
        }
    });
    let caller = Caller::new(&node, 1);
    for round in 0..20 {
        let [send, recv] = [0, 1].map(|_| Buffer::new(&node, BYTES));
        send.set(&pattern(500 * round, round));
        vis[1].post_recv(&recv.descriptor).unwrap();
        vis[0].post_send(&send.descriptor).unwrap();
        caller.call(&pattern(700 * round, round));
        vis[0].send_wait(SOON).unwrap();
        vis[1].recv_wait(SOON).unwrap();
        assert!(recv.data() == pattern(500 * round, round));
    }
    drop((caller, vis, node));
    echo.expect("lost");
    echo.stop();
    simulator.stop();
}

/// A program is killed while frames are under way: the other side is notified, and the next program
/// gets the NIC at once.
#[test]
fn a_killed_program_is_reported_and_followed_by_another() {
    let simulator = Simulator::start("killed", 2, 0.0);
    let node = simulator.open(0);
    for round in 0..3 {
        let mut echo = Process::program(simulator.folder(), "echo");
        echo.expect("listening");
        let caller = Caller::new(&node, 1);
        caller.call(&pattern(5000, round));
        caller.vi.post_recv(&caller.recv.descriptor).unwrap();
        caller.send.set(&pattern(BYTES, 1));
        if round < 2 {
            // Its echo is under way, or still the message.
            caller.vi.post_send(&caller.send.descriptor).unwrap();
        }
        if round == 1 {
            std::thread::sleep(Duration::from_millis(3));
        }
        echo.kill();
        // What it echoed before it died may have arrived.
        let mut done = caller.vi.recv_wait(SOON);
        if done.is_ok() {
            caller.vi.post_recv(&caller.recv.descriptor).unwrap();
            done = caller.vi.recv_wait(SOON);
        }
        assert_ne!(error_bits(&done), 0, "{done:?}");
        let errors = node.errors();
        assert!(errors.iter().any(|(_, code)| *code == ErrorCode::ConnectionLost), "{errors:?}");
    }
    drop(node);
    simulator.stop();
}

/// The simulator is killed: a program that waits gets an error with the name of the socket, and what it
/// does afterwards ends.
#[test]
fn a_simulator_that_dies_is_an_absent_card() {
    let mut simulator = Simulator::start("dies", 2, 0.0);
    let mut echo = Process::program(simulator.folder(), "echo");
    echo.expect("listening");
    let node = simulator.open(0);
    let caller = Caller::new(&node, 1);
    caller.vi.post_recv(&caller.recv.descriptor).unwrap();
    let text = VfioUserBus::connect(&simulator.socket(0)).unwrap_err().to_string();
    assert!(text.contains("another program"), "{text}");

    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| caller.vi.recv_wait(vipl::INFINITE));
        let blocked = scope.spawn(|| {
            let wait = Wait::unbounded("nothing", 0);
            node.driver.bus().wait_interrupt(9, u64::MAX, wait)
        });
        simulator.process().kill();
        assert_ne!(error_bits(&waiter.join().unwrap()), 0);
        assert!(!blocked.join().unwrap(), "no interrupt");
    });
    assert_eq!(node.errors(), [(u16::MAX, ErrorCode::Catastrophic)]);
    let error = node.driver.counter(Counter::FramesSent).unwrap_err().to_string();
    let socket = simulator.socket(0);
    assert!(error.contains(socket.to_str().unwrap()), "{error}");
    // The other program too; and what takes something back succeeds.
    echo.expect("lost");
    echo.stop();
    drop(caller);
    node.nic.close();
    let text = VfioUserBus::connect(&socket).unwrap_err().to_string();
    assert!(text.contains("viaduct cosim serve"), "{text}");

    // The next one takes the place of what this one left behind.
    let folder = simulator.folder().to_owned();
    let simulator = Simulator::start_at(folder, 2, 0.0);
    assert!(simulator.open(0).driver.counter(Counter::FramesSent).is_ok());
    simulator.stop();
}

/// Buffers in memory as programs have it: statics, the heap with its neighbours, and a file, which
/// cannot be shared and goes by message.
#[test]
fn ordinary_memory_is_registered() {
    static STATIC: [AtomicU8; 3000] = [const { AtomicU8::new(0) }; 3000];
    let simulator = Simulator::start("memory", 2, 0.0);
    let mut echo = Process::program(simulator.folder(), "echo");
    echo.expect("listening");
    let node = simulator.open(0);
    let caller = Caller::new(&node, 1);
    let heap: &'static [AtomicU8] = (0..3000).map(|_| AtomicU8::new(0)).collect::<Vec<_>>().leak();
    let file = rustix::fs::memfd_create("file", rustix::fs::MemfdFlags::ALLOW_SEALING).unwrap();
    rustix::fs::ftruncate(&file, 4096).unwrap();
    rustix::fs::fcntl_add_seals(&file, rustix::fs::SealFlags::SHRINK).unwrap();
    let memories = [
        DmaMemory::from_static(&STATIC),
        DmaMemory::from_static(heap),
        DmaMemory::map_file(file.as_fd(), 0, 4096).unwrap(),
    ];
    for (number, memory) in memories.iter().enumerate() {
        let region = node.nic.register_mem(memory, MemAttributes::new(node.tag)).unwrap();
        let data = pattern(1000, number);
        memory.copy_from(0, &data);
        // From the first half to the second.
        let descriptors = node.region(1024);
        let [send, recv] = [0, 64].map(|at| descriptors.descriptor(at, 2).unwrap());
        recv.prepare(&[region.segment(1500, 1000)], None).unwrap();
        send.prepare(&[region.segment(0, 1000)], None).unwrap();
        caller.vi.post_recv(&recv).unwrap();
        caller.vi.post_send(&send).unwrap();
        caller.vi.send_wait(SOON).unwrap();
        caller.vi.recv_wait(SOON).unwrap();
        assert!(memory.to_vec(1500, 1000) == data, "{number}");
        node.nic.deregister_mem(&region).unwrap();
        // It is the program's as before.
        assert!(memory.to_vec(1500, 1000) == data && memory.to_vec(0, 1000) == data);
        memory.fill(1);
    }
    drop((caller, node));
    echo.stop();
    simulator.stop();
}

/// Registered memory and connections of the parent survive a fork, also one whose child executes
/// another program; and the child does not keep the parent's NIC.
#[test]
fn a_fork_leaves_the_parent_its_memory() {
    let simulator = Simulator::start("fork", 2, 0.0);
    let mut echo = Process::program(simulator.folder(), "echo");
    echo.expect("listening");
    let node = simulator.open(0);
    let caller = Caller::new(&node, 1);
    caller.call(&pattern(5000, 1));
    // With a user to set, the standard library forks.
    let user = rustix::process::getuid().as_raw();
    let mut child = Program::new("sleep").arg("100").uid(user).spawn().unwrap();
    for round in 0..5 {
        caller.call(&pattern(9000, round));
    }
    // While the child lives, the NIC is free for the next program.
    drop((caller, node));
    echo.expect("lost");
    echo.stop();
    drop(simulator.open(0));
    child.kill().unwrap();
    child.wait().unwrap();
    simulator.stop();
}

/// Who waits for an interrupt and a simulator without work use no processor time.
#[test]
fn waiting_costs_nothing() {
    let mut simulator = Simulator::start("idle", 2, 0.0);
    let mut echo = Process::program(simulator.folder(), "echo");
    echo.expect("listening");
    let node = simulator.open(0);
    let caller = Caller::new(&node, 1);
    caller.call(b"x");
    let cq = node.nic.port().create_queue(16).unwrap();
    // Both sides connected; the timers of what was done last run out. The echo sleeps too.
    let quiet = |simulator: &mut Simulator| {
        let before = simulator.process().cpu_time();
        let bound = Duration::from_secs(1);
        let used = std::thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                let stat = "/proc/thread-self/stat";
                let before = cpu_time(stat);
                let start = Instant::now();
                while let Some(left) = bound.checked_sub(start.elapsed()).filter(|d| !d.is_zero()) {
                    let port = node.nic.port();
                    let ns = u64::try_from(left.as_nanos()).unwrap();
                    let seen = port.wake_count();
                    cq.arm();
                    assert!(port.next_event().is_none() && cq.poll().is_none(), "nothing happens");
                    port.sleep(seen, ns, Wait::unbounded("a completion", 0));
                }
                cpu_time(stat) - before
            });
            waiter.join().unwrap()
        });
        (used, simulator.process().cpu_time() - before)
    };
    // The first time the simulator may still have work of what came before.
    quiet(&mut simulator);
    let (waiter, server) = quiet(&mut simulator);
    let little = Duration::from_millis(50);
    assert!(waiter <= little && server <= little, "waiter {waiter:?}, simulator {server:?}");
    drop((caller, node));
    echo.stop();
    simulator.stop();
}

/// Figures for `docs/simulator.md`: `cargo test -p tests --test e2e figures -- --nocapture`.
#[test]
#[expect(clippy::print_stderr, reason = "what the test is for")]
fn figures() {
    let mut simulator = Simulator::start("figures", 2, 0.0);
    let mut echo = Process::program(simulator.folder(), "echo");
    echo.expect("listening");
    let node = simulator.open(0);
    let each = |count: u32, f: &mut dyn FnMut()| {
        let start = Instant::now();
        (0..count).for_each(|_| f());
        start.elapsed() / count
    };
    let bus = node.driver.bus();
    std::thread::sleep(Duration::from_millis(500));
    let read = each(2_000, &mut || _ = bus.read32(0, csr::STATUS::OFFSET.into()));
    let write = each(2_000, &mut || bus.write64(2, EVENT_OFFSET, 0));
    let _ = bus.read32(0, csr::STATUS::OFFSET.into());
    let caller = Caller::new(&node, 1);
    let before = simulator.process().cpu_time();
    let trip = each(200, &mut || caller.call(b"8 bytes!"));
    let busy = (simulator.process().cpu_time() - before) / 400;
    let bulk = each(20, &mut || caller.call(&pattern(BYTES, 1)));
    std::thread::sleep(Duration::from_secs(1));
    let before = simulator.process().cpu_time();
    std::thread::sleep(Duration::from_secs(2));
    let idle = simulator.process().cpu_time() - before;
    eprintln!("BAR read {read:?}, doorbell {write:?}");
    eprintln!("8 bytes one way {:?}, of them the simulator's processor time {busy:?}", trip / 2);
    eprintln!("{BYTES} bytes there and back {bulk:?}, idle for 2 s {idle:?}");
    drop((caller, node));
    echo.stop();
    simulator.stop();
}
