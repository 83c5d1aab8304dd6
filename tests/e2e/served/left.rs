//! What a program sent arrives, although it leaves at once.

use std::thread;

use host_driver::address::NodeAddress;
use tests::served::{SOON, Simulator};
use tests::{Buffer, pattern};
use vipl::{NetAddress, Reliability};

const MESSAGES: usize = 8;
const BYTES: usize = 20_000;
const ROUNDS: u8 = 10;

/// A send is complete before it has arrived, and here one frame of twenty is lost: more, and a peer that is there
/// may pass for dead.
#[test]
fn what_a_program_sent_before_it_left_arrives() {
    let simulator = Simulator::start("left", 2, 0.05);
    for _ in 0..ROUNDS {
        let [sender, receiver] = [0, 1].map(|node| simulator.open(node));
        let vi = receiver.open_vi(Reliability::Delivery);
        let buffers: Vec<_> = (0..MESSAGES).map(|_| Buffer::new(&receiver, BYTES)).collect();
        buffers.iter().for_each(|buffer| vi.post_recv(&buffer.descriptor).unwrap());
        thread::scope(|scope| {
            scope.spawn(move || {
                let vi = sender.open_vi(Reliability::Delivery);
                let to = NetAddress::of_node(1, b"left");
                vi.connect_request(&sender.address(b""), &to, SOON).unwrap();
                for number in 0..MESSAGES {
                    let buffer = Buffer::new(&sender, BYTES);
                    buffer.set(&pattern(BYTES, number));
                    vi.post_send(&buffer.descriptor).unwrap();
                    vi.send_wait(SOON).unwrap();
                }
            });
            let request = receiver.nic.connect_wait(&receiver.address(b"left"), SOON).unwrap();
            request.accept(&vi).unwrap();
        });
        for (number, buffer) in buffers.iter().enumerate() {
            vi.recv_wait(SOON).unwrap();
            assert!(buffer.data() == pattern(BYTES, number));
        }
    }
    simulator.stop();
}
