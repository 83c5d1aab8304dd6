//! Programs in processes of their own on a simulator that another process serves.

use std::path::Path;

use tests::served::{Process, SOON, Simulator, open, role as own_role, say};
use tests::{Buffer, Node, error_bits, pattern};
use vipl::{Reliability, RemoteBuffer, Vi};

/// What the processes do that the tests start.
#[test]
fn role() {
    match own_role() {
        Some((role, folder)) if role == "echo" => echo(&folder, 1),
        Some((role, folder)) if role == "echo2" => echo(&folder, 2),
        Some((role, _)) => panic!("no role {role:?}"),
        None => {}
    }
}

/// Largest message here.
const BYTES: usize = 40_000;

/// Waits for a program that connects, tells it where it may write, and sends back what it sends.
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
