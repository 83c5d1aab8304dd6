//! Messages of connection set-up from another node, right and wrong, into two connection managers
//! whose programs listen, request, accept and give up.

use port::connection::{ConnectState, Connections, Endpoint, Message, ProviderData, exchange_of};
use port::{NetAddress, Reliability, RemoteAttributes};

use crate::input::{Input, Mask};

/// Steps of an input at most.
const STEPS: usize = 96;
/// The nodes, as the managers number each other.
const NODES: [u32; 2] = [0, 1];
/// Version of the format, which most frames have.
const VERSION: u8 = 3;
/// Timers that run until everything is forgotten.
const TIMERS: usize = 10_000;

/// Two managers, and their programs.
struct Pair {
    sides: [Connections; 2],
    now: u64,
    /// Requests and listeners of each side, and what it was offered.
    exchanges: [Vec<u32>; 2],
    listeners: [Vec<u32>; 2],
    offered: [Vec<(u32, u32)>; 2],
}

/// See the module. What one manager sends the other takes; timers move on; when the programs give up,
/// everything is forgotten.
pub(crate) fn connection(data: &[u8]) {
    let mut input = Input::new(data);
    let mut pair = Pair {
        sides: [Connections::new(10, 20), Connections::new(30, 40)],
        now: 1,
        exchanges: Default::default(),
        listeners: Default::default(),
        offered: Default::default(),
    };
    for _ in 0..STEPS {
        if input.is_empty() {
            break;
        }
        let choice = input.u8();
        let side = usize::from(choice >> 7);
        match choice % 4 {
            0 => pair.message(&mut input, side),
            1 => pair.request(&mut input, side),
            2 => pair.answer(&mut input, side),
            _ => pair.time(&mut input, side),
        }
    }
    pair.end();
}

fn address(input: &mut Input<'_>) -> NetAddress {
    let name = input.pick(&[&b"a"[..], b"b", b"left", &[7; 64]]);
    NetAddress::new(&[input.u8() & 1], name)
}

fn endpoint(input: &mut Input<'_>) -> Endpoint {
    let attributes = RemoteAttributes {
        vi: input.u16(),
        connection: input.u16(),
        reliability: input.pick(&[Reliability::Unreliable, Reliability::Delivery]),
        rdma_write: true,
        rdma_read: false,
        max_transfer: 1 << 16,
        qos: 0,
    };
    let data = ProviderData::new(&vec![9; input.below(33)]).expect("at most 32 bytes");
    Endpoint { attributes, data }
}

impl Pair {
    /// Frames arrive: the next one of the other side, as it is or changed, or any bytes.
    fn message(&mut self, input: &mut Input<'_>, side: usize) {
        let (now, other) = (self.now, 1 - side);
        match input.u8() % 4 {
            0 => {
                let frame: Message = raw(input);
                self.sides[side].receive(now, NODES[other], &frame);
            }
            1 => {
                let Some((_, mut frame)) = self.sides[other].transmit() else { return };
                let at = input.below(frame.len());
                frame[at] ^= input.u8();
                self.sides[side].receive(now, input.u8().into(), &frame);
            }
            _ => self.deliver(side, 1 + input.below(16)),
        }
    }

    /// Delivers frames of the other side, which are taken.
    fn deliver(&mut self, side: usize, most: usize) {
        let other = 1 - side;
        let bad = |side: &Connections| {
            let counters = side.counters();
            (counters.bad_version, counters.bad_body)
        };
        for _ in 0..most {
            let Some((_, frame)) = self.sides[other].transmit() else { return };
            self.sides[other].transmitted(true);
            let before = bad(&self.sides[side]);
            self.sides[side].receive(self.now, NODES[other], &frame);
            let is_taken = bad(&self.sides[side]) == before;
            // Pieces of a message of the same number that was forged may be among its own.
            assert!(is_taken || frame[3] > 1, "a manager refuses {frame:x?} of another one");
        }
    }

    fn request(&mut self, input: &mut Input<'_>, side: usize) {
        let (now, other) = (self.now, NODES[1 - side]);
        match input.u8() % 4 {
            0 => {
                let listener = self.sides[side].listen(now, &address(input));
                self.listeners[side].push(listener);
            }
            1 => {
                let (from, to) = (address(input), address(input));
                let (vi, peer) = (endpoint(input), input.flag());
                let (exchange, _) = self.sides[side].connect(now, other, vi, &from, &to, peer);
                self.exchanges[side].push(exchange);
            }
            2 => {
                let Some(&exchange) = self.exchanges[side].last() else { return };
                match self.sides[side].connect_state(exchange) {
                    Ok(ConnectState::Accepted { .. }) if input.flag() => {
                        self.sides[side].confirm(now, exchange);
                    }
                    Ok(ConnectState::Pending | ConnectState::Accepted { .. }) => {}
                    Ok(ConnectState::Ended(_)) | Err(_) => drop(self.exchanges[side].pop()),
                }
            }
            _ => {
                let Some(exchange) = self.exchanges[side].pop() else { return };
                self.sides[side].connect_cancel(exchange);
            }
        }
    }

    fn answer(&mut self, input: &mut Input<'_>, side: usize) {
        let now = self.now;
        match input.u8() % 4 {
            0 => {
                let Some(&listener) = self.listeners[side].last() else { return };
                let incoming = self.sides[side].listen_poll(now, listener);
                self.offered[side].extend(incoming.map(|incoming| exchange_of(&incoming)));
            }
            1 => {
                let Some(&key) = self.offered[side].last() else { return };
                let vi = endpoint(input);
                let _ = self.sides[side].accept(now, key, vi);
            }
            2 => {
                let Some(&key) = self.offered[side].last() else { return };
                let _ = self.sides[side].accept_state(key);
            }
            _ => {
                let Some(key) = self.offered[side].pop() else { return };
                self.sides[side].reject(now, key);
            }
        }
    }

    fn time(&mut self, input: &mut Input<'_>, side: usize) {
        let (now, other) = (self.now, NODES[1 - side]);
        match input.u8() % 4 {
            0 => self.now += u64::from(input.u16()) << (input.u8() % 20),
            1 => self.timer(side),
            2 => self.sides[side].peer_up(now, other),
            _ => self.sides[side].peer_down(now, other),
        }
    }

    /// Runs a side's timers; the next are later.
    fn timer(&mut self, side: usize) {
        self.sides[side].on_timer(self.now);
        let next = self.sides[side].next_deadline();
        assert!(next.is_none_or(|at| at > self.now), "{next:?} is due at {}", self.now);
    }

    /// The programs give everything up, and nothing arrives any more.
    fn end(&mut self) {
        for side in 0..2 {
            let state = &mut self.sides[side];
            self.exchanges[side].iter().for_each(|exchange| state.connect_cancel(*exchange));
            self.listeners[side].iter().for_each(|listener| state.listen_stop(self.now, *listener));
            self.offered[side].iter().for_each(|key| state.reject(self.now, *key));
            for _ in 0..TIMERS {
                let Some(at) = self.sides[side].next_deadline() else { break };
                self.now = self.now.max(at);
                self.timer(side);
            }
            let next = self.sides[side].next_deadline();
            assert_eq!(next, None, "something is never forgotten");
        }
    }
}

/// A frame whose header is possible, of any bytes.
fn raw(input: &mut Input<'_>) -> Message {
    let mut mask = Mask::of(input);
    let mut frame = [0; 48];
    frame[0] = if mask.next() { input.u8() } else { VERSION };
    frame[1] = if mask.next() { input.u8() } else { 1 + input.u8() % 10 };
    let length = if mask.next() { input.u16() } else { u16::from(input.u8()) };
    let count = length.div_ceil(36).max(1).to_le_bytes()[0];
    frame[2] = if mask.next() { input.u8() } else { 0 };
    frame[3] = if mask.next() { input.u8() } else { count };
    frame[4] = 10 + input.u8() % 32;
    frame[8..10].copy_from_slice(&length.to_le_bytes());
    let body = input.bytes(36);
    frame[12..12 + body.len()].copy_from_slice(body);
    frame
}
