//! Frames written to a file as they pass a network, for Wireshark (`docs/simulator.md`, section 9).
//!
//! The file is a pcapng with an interface for each node. A frame is in it when its last beat leaves a
//! node, and again when its last beat reaches one: so it shows what the wires lose and what they
//! corrupt.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

use host_driver::sync::lock;
use nic_model::device::Beat;
use nic_regs::frame::BEAT_BYTES;
use nic_regs::limits::CLOCK_KHZ;
use port::pcapng::{Direction, Interface, Writer};

use super::{Network, SharedNetwork};

/// Link type of the frames: the first that is left to users (LINKTYPE_USER0).
pub const LINK_TYPE: u16 = 147;
/// Bytes that are kept of a frame; the longest well-formed one has fewer.
const FRAME_BYTES: usize = 8192;

/// A frame of which some beats have passed.
#[derive(Clone, Debug, Default)]
struct Passing {
    bytes: Vec<u8>,
    /// Bytes of the whole, also those that are not kept.
    length: usize,
}

impl Passing {
    fn push(&mut self, beat: Beat) {
        if self.bytes.len() < FRAME_BYTES {
            self.bytes.extend_from_slice(&beat.data.to_le_bytes());
        }
        self.length += BEAT_BYTES;
    }
}

/// A file of frames; clones are the same file.
#[derive(Clone, Debug)]
pub struct Capture(Arc<Mutex<Writer>>);

impl Capture {
    /// Makes the file. The ports 0, 1, ... of the network have these node numbers.
    ///
    /// # Errors
    /// The file cannot be written; the text names it.
    pub fn create(path: &Path, nodes: &[u8]) -> io::Result<Self> {
        let interface =
            |node: &u8| Interface { name: format!("node {node}"), link_type: LINK_TYPE };
        let interfaces: Vec<Interface> = nodes.iter().map(interface).collect();
        Ok(Self(Arc::new(Mutex::new(Writer::create(path, &interfaces)?))))
    }

    /// The network with this capture around it.
    #[must_use]
    pub fn tap(&self, inner: SharedNetwork) -> SharedNetwork {
        let passing = [Vec::new(), Vec::new()];
        Arc::new(Mutex::new(Tap { inner, capture: self.clone(), passing }))
    }

    /// How many frames are in the file: each twice, where it arrived.
    ///
    /// # Errors
    /// The file could not be written any more; the text names it.
    pub fn frames(&self) -> io::Result<u64> {
        lock(&self.0).packets()
    }

    fn write(&self, port: usize, direction: Direction, now: u64, frame: &Passing) {
        let ns = u128::from(now) * 1_000_000 / u128::from(CLOCK_KHZ);
        let ns = u64::try_from(ns).unwrap_or(u64::MAX);
        let _ = lock(&self.0).packet((port, direction), ns, &frame.bytes, frame.length);
    }
}

/// See [`Capture::tap`].
#[derive(Debug)]
struct Tap {
    inner: SharedNetwork,
    capture: Capture,
    /// By direction (in, out), and by port.
    passing: [Vec<Passing>; 2],
}

impl Tap {
    fn passing(&mut self, direction: Direction, port: usize) -> &mut Passing {
        let ports = &mut self.passing[direction as usize - 1];
        if ports.len() <= port {
            ports.resize(port + 1, Passing::default());
        }
        &mut ports[port]
    }

    fn passes(&mut self, direction: Direction, port: usize, now: u64, beat: Beat) {
        let passing = self.passing(direction, port);
        passing.push(beat);
        if beat.last {
            let frame = core::mem::take(passing);
            self.capture.write(port, direction, now, &frame);
        }
    }
}

impl Network for Tap {
    fn ready(&self, port: usize, now: u64) -> bool {
        lock(&self.inner).ready(port, now)
    }

    fn send(&mut self, port: usize, now: u64, beat: Beat) {
        lock(&self.inner).send(port, now, beat);
        self.passes(Direction::Out, port, now, beat);
    }

    fn receive(&mut self, port: usize, now: u64) -> Option<Beat> {
        let beat = lock(&self.inner).receive(port, now)?;
        self.passes(Direction::In, port, now, beat);
        Some(beat)
    }

    fn step(&mut self, now: u64) {
        lock(&self.inner).step(now);
    }

    fn take_busy(&mut self) -> bool {
        lock(&self.inner).take_busy()
    }

    fn set_used(&mut self, port: usize, used: bool) {
        lock(&self.inner).set_used(port, used);
    }

    fn cut(&mut self, port: usize, now: u64) {
        lock(&self.inner).cut(port, now);
        // Its receiver shows what became of it.
        *self.passing(Direction::Out, port) = Passing::default();
    }
}

#[cfg(test)]
mod tests {
    use nic_model::link::{Faults, Wire};

    use super::*;

    /// Type and body of each block.
    fn blocks(bytes: &[u8]) -> Vec<(u32, &[u8])> {
        let word = |at: usize| u32::from_le_bytes(*bytes[at..].first_chunk().unwrap());
        let (mut at, mut found) = (0, Vec::new());
        while at < bytes.len() {
            let length = word(at + 4) as usize;
            assert!(length.is_multiple_of(4) && word(at + length - 4) as usize == length);
            found.push((word(at), &bytes[at + 8..at + length - 4]));
            at += length;
        }
        found
    }

    #[test]
    fn what_leaves_and_what_arrives_is_in_the_file_with_its_time() {
        let path = std::env::temp_dir().join(format!("viaduct-capture-{}", std::process::id()));
        let capture = Capture::create(&path, &[7, 9]).unwrap();
        let faults = Faults {
            drop_frames: [vec![1], vec![]],
            corrupt_frames: [vec![2], vec![]],
            ..Faults::default()
        };
        let network = capture.tap(Arc::new(Mutex::new(Wire::with_faults(10, &faults))));
        let mut network = lock(&network);
        for now in 0..9 {
            network.send(0, now, Beat { data: now, last: now % 3 == 2 });
        }
        while network.take_busy() {
            let arrived = (9..50).filter_map(|now| network.receive(1, now)).count();
            assert_eq!(arrived, 6, "beats of two frames");
        }
        assert_eq!(capture.frames().unwrap(), 5, "three left, two arrived");
        let bytes = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let blocks = blocks(&bytes);
        let kinds: Vec<u32> = blocks.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds, [0x0a0d_0d0a, 1, 1, 6, 6, 6, 6, 6]);
        assert_eq!(blocks[1].1[..2], LINK_TYPE.to_le_bytes());
        assert!(blocks[2].1.windows(6).any(|text| text == b"node 9"));
        let field = |packet: usize, at: usize| {
            u32::from_le_bytes(*blocks[3 + packet].1[4 * at..].first_chunk().unwrap())
        };
        // The last beat of the first frame leaves in cycle 2, which is 8 ns, and has 24 bytes.
        assert_eq!([0, 1, 2, 3, 4].map(|at| field(0, at)), [0, 0, 8, 24, 24]);
        assert_eq!((field(0, 12), field(3, 12)), (Direction::Out as u32, Direction::In as u32));
        assert_eq!(blocks[3].1[20..44], blocks[6].1[20..44], "as it was sent");
        assert_ne!(blocks[5].1[20..44], blocks[7].1[20..44], "corrupted");
    }

    #[test]
    fn a_file_that_cannot_be_written_is_named() {
        let error = Capture::create(Path::new("/nonexistent/out"), &[0]).unwrap_err();
        assert!(error.to_string().starts_with("/nonexistent/out: "), "{error}");
        let full = Path::new("/dev/full");
        if full.exists() {
            assert!(Capture::create(full, &[0]).is_err());
        }
    }
}
