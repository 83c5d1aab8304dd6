//! A relay between two nodes: each takes it for the other one.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What it does to packets, in percent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    pub loss: u32,
    pub duplicates: u32,
    /// Packets that are delayed, by up to `delay`.
    pub delayed: u32,
    pub delay: Duration,
    /// Packets of which a shorter copy is sent as well.
    pub truncated: u32,
    /// Packets after which an earlier one is sent again.
    pub replayed: u32,
    /// Packets after which random bytes are sent.
    pub forged: u32,
}

impl Faults {
    /// The network of the acceptance test.
    pub const BAD: Self = Self {
        loss: 10,
        duplicates: 5,
        delayed: 20,
        delay: Duration::from_millis(3),
        truncated: 0,
        replayed: 0,
        forged: 0,
    };
}

pub struct Relay {
    sockets: [UdpSocket; 2],
    ends: Arc<[Mutex<Option<SocketAddr>>; 2]>,
    faults: Arc<Mutex<Faults>>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// The same chances each time.
pub struct Chances(pub u64);

impl Chances {
    pub fn next(&mut self) -> u32 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as u32
    }

    pub fn percent(&mut self, percent: u32) -> bool {
        self.next() % 100 < percent
    }
}

impl Relay {
    pub fn new(faults: Faults) -> Self {
        let socket = |_| {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.set_nonblocking(true).unwrap();
            socket
        };
        let sockets = [0, 1].map(socket);
        let ends: Arc<[Mutex<Option<SocketAddr>>; 2]> = Arc::default();
        let (faults, is_over) = (Arc::new(Mutex::new(faults)), Arc::new(AtomicBool::new(false)));
        let mut work = Work {
            sockets: [0, 1].map(|i: usize| sockets[i].try_clone().unwrap()),
            ends: Arc::clone(&ends),
            faults: Arc::clone(&faults),
            is_over: Arc::clone(&is_over),
            chances: Chances(4),
            held: Vec::new(),
            earlier: [Vec::new(), Vec::new()],
        };
        let thread = Some(std::thread::spawn(move || work.run()));
        Self { sockets, ends, faults, is_over, thread }
    }

    /// The address by which the other node is reached from this one.
    pub fn other(&self, node: usize, own: SocketAddr) -> SocketAddr {
        *self.ends[node].lock().unwrap() = Some(own);
        self.sockets[node].local_addr().unwrap()
    }

    pub fn set(&self, faults: Faults) {
        *self.faults.lock().unwrap() = faults;
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

struct Work {
    sockets: [UdpSocket; 2],
    ends: Arc<[Mutex<Option<SocketAddr>>; 2]>,
    faults: Arc<Mutex<Faults>>,
    is_over: Arc<AtomicBool>,
    chances: Chances,
    held: Vec<(Instant, usize, Vec<u8>)>,
    earlier: [Vec<Vec<u8>>; 2],
}

impl Work {
    fn run(&mut self) {
        let mut buffer = vec![0; 1 << 16];
        while !self.is_over.load(Ordering::Relaxed) {
            let mut is_idle = true;
            for from in 0..2 {
                while let Ok(length) = self.sockets[from].recv(&mut buffer) {
                    is_idle = false;
                    self.packet(1 - from, &buffer[..length]);
                }
            }
            let now = Instant::now();
            for (at, to, packet) in std::mem::take(&mut self.held) {
                if at <= now {
                    self.send(to, &packet);
                } else {
                    self.held.push((at, to, packet));
                }
            }
            if is_idle {
                std::thread::sleep(Duration::from_micros(20));
            }
        }
    }

    /// To a node, from the socket that it takes for the other one.
    fn send(&self, to: usize, packet: &[u8]) {
        if let Some(end) = *self.ends[to].lock().unwrap() {
            let _ = self.sockets[to].send_to(packet, end);
        }
    }

    fn packet(&mut self, to: usize, packet: &[u8]) {
        let faults = *self.faults.lock().unwrap();
        let chances = &mut self.chances;
        if chances.percent(faults.loss) {
            return;
        }
        let copies = if chances.percent(faults.duplicates) { 2 } else { 1 };
        let mut immediate = 0;
        for _ in 0..copies {
            if chances.percent(faults.delayed) {
                let most = faults.delay.subsec_micros().max(1);
                let delay = Duration::from_micros((chances.next() % most).into());
                self.held.push((Instant::now() + delay, to, packet.to_vec()));
            } else {
                immediate += 1;
            }
        }
        (0..immediate).for_each(|_| self.send(to, packet));
        let chances = &mut self.chances;
        if faults.replayed > 0 {
            if self.earlier[to].len() < 1_000 {
                self.earlier[to].push(packet.to_vec());
            }
            if chances.percent(faults.replayed) {
                let place = chances.next() as usize % self.earlier[to].len();
                let packet = self.earlier[to][place].clone();
                self.send(to, &packet);
            }
        }
        let chances = &mut self.chances;
        if chances.percent(faults.truncated) {
            let length = chances.next() as usize % packet.len().max(1);
            self.send(to, &packet[..length]);
        }
        let chances = &mut self.chances;
        if chances.percent(faults.forged) {
            let length = chances.next() as usize % 200;
            let mut bytes: Vec<u8> = (0..length).map(|_| chances.next().to_le_bytes()[0]).collect();
            // Some of them get further.
            for (byte, known) in bytes.iter_mut().zip(packet).take(chances.next() as usize % 12) {
                *byte = *known;
            }
            self.send(to, &bytes);
        }
    }
}
