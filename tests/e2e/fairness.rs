//! Scheduling over many VIs: nobody starves, whatever the others send.

use std::collections::VecDeque;

use tests::{Buffer, DeviceKind, Pair, Setup, on_every_kind};
use vipl::{Reliability, Vi};

/// A connection that always has work: the program posts again what is done.
struct Flow {
    from: Vi,
    to: Vi,
    sends: VecDeque<Buffer>,
    recvs: VecDeque<Buffer>,
    done: usize,
}

impl Flow {
    fn new(pair: &Pair, level: Reliability, bytes: usize, window: usize) -> Self {
        let (from, to) = pair.connected(level);
        let sends = (0..window).map(|_| Buffer::new(&pair.a, bytes)).collect();
        let recvs: VecDeque<_> = (0..2 * window).map(|_| Buffer::new(&pair.b, bytes)).collect();
        recvs.iter().for_each(|recv: &Buffer| to.post_recv(&recv.descriptor).unwrap());
        Self { from, to, sends, recvs, done: 0 }
    }

    fn start(&self) {
        self.sends.iter().for_each(|send| self.from.post_send(&send.descriptor).unwrap());
    }

    fn turn(&mut self) {
        while self.from.send_done().is_ok() {
            self.sends.rotate_left(1);
            self.from.post_send(&self.sends[self.sends.len() - 1].descriptor).unwrap();
        }
        while self.to.recv_done().is_ok() {
            self.recvs.rotate_left(1);
            self.to.post_recv(&self.recvs[self.recvs.len() - 1].descriptor).unwrap();
            self.done += 1;
        }
    }
}

/// One VI sends long messages, many send short ones, all as fast as they can.
fn long_messages_among_short_ones(kind: DeviceKind) {
    let pair = Pair::with(&Setup::new(kind));
    let mut long = Flow::new(&pair, Reliability::Delivery, 16_384, 4);
    let mut short: Vec<_> =
        (0..24).map(|_| Flow::new(&pair, Reliability::Delivery, 200, 8)).collect();
    long.start();
    short.iter().for_each(Flow::start);
    let cycles = kind.size(400_000, 120_000);
    let end = pair.simulation.now() + cycles;
    while pair.simulation.now() < end {
        pair.simulation.run(100);
        long.turn();
        short.iter_mut().for_each(Flow::turn);
    }
    let counts: Vec<_> = short.iter().map(|flow| flow.done).collect();
    // By turns, frame by frame: each of four frames of a long message waits for a frame of every
    // other VI, and for its own place.
    let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
    assert!(least * 2 > *most, "{counts:?}");
    assert!(long.done * 4 * 4 > *least, "long {} of {least} short", long.done);
    assert_eq!((pair.a.errors(), pair.b.errors()), (vec![], vec![]));
}

on_every_kind! {
    long_messages_among_short_ones,
}
