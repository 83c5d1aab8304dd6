//! Somebody on the link who sends frames that no honest peer sends.
//!
//! ```text
//!  node 0 <==+== wire <== node 1
//!            |
//!         Forger: forges what passes, one frame between two others
//! ```

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use cosim::simulation::network::{Network, SharedNetwork};
use host_driver::peer::Epochs;
use nic_model::device::Beat;
use nic_model::frame::{Assembler, Frame};
use nic_regs::frame::{Header, Type, VERSION, flag};

/// Payload bytes of most forged frames.
const SHORT: usize = 8;

/// What is wrong with a forged frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forgery {
    /// Another link version.
    Version,
    /// A SYN of another link version.
    SynOfVersion,
    /// For another node.
    Destination,
    /// From another node.
    Source,
    /// With the tag of another channel.
    Tag,
    /// Sent once more.
    Again,
    /// Numbered far ahead.
    Ahead,
    /// A type that does not exist.
    Kind,
    /// More payload than the header says.
    Length,
    /// A type that must be numbered, without a number.
    Unsequenced,
    /// Payload changed, CRC not.
    Crc,
    /// Somebody resets a channel whose tag they do not know.
    Reset,
    /// Unnumbered data for a VI of a reliable connection, with another connection id.
    Connection,
}

impl Forgery {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::Version,
        Self::SynOfVersion,
        Self::Destination,
        Self::Source,
        Self::Tag,
        Self::Again,
        Self::Ahead,
        Self::Kind,
        Self::Length,
        Self::Unsequenced,
        Self::Crc,
        Self::Reset,
        Self::Connection,
    ];

    /// The forged frame's beats, from a numbered data frame that passed.
    fn beats(self, frame: &Frame, random: &mut Epochs) -> Vec<u64> {
        let mut forged = frame.clone();
        if self != Self::Again {
            // Short ones, so that a flood is one of frames: the honest ones must still fit between.
            forged.payload.truncate(SHORT);
            forged.header.length = u16::try_from(forged.payload.len()).unwrap_or(0);
        }
        let header = &mut forged.header;
        let [low, high, ..] = random.next_u32().to_le_bytes();
        match self {
            Self::Version => header.version = VERSION + 1 + low % 200,
            Self::SynOfVersion => {
                forged = control(Header { version: VERSION + 1, ..*header }, Type::Syn);
            }
            Self::Destination => header.dst_node ^= 1 + low % 200,
            Self::Source => header.src_node ^= 1 + low % 200,
            Self::Tag => header.tag ^= 1 << (low % 16),
            Self::Again => {}
            Self::Ahead => header.sequence = header.sequence.wrapping_add(1000 + u16::from(low)),
            Self::Kind => header.kind = 64 + high % 64,
            Self::Length => header.length += 8 * (1 + u16::from(low)),
            Self::Unsequenced => {
                header.flags &= !flag::SEQUENCED;
                header.kind = [Type::ViAck, Type::ViRefuse, Type::Fin, Type::Message]
                    [usize::from(low % 4)] as u8;
            }
            Self::Reset => {
                forged = control(Header { tag: header.tag ^ 1, ..*header }, Type::Rst);
            }
            Self::Connection => {
                header.flags &= !flag::SEQUENCED;
                header.kind = Type::Data as u8;
                header.connection ^= 1 << (low % 16);
            }
            Self::Crc => {
                let mut beats = forged.to_beats();
                let last = beats.len() - 1;
                beats[last] ^= 1 << (low % 32);
                return beats;
            }
        }
        forged.to_beats()
    }
}

/// A frame without payload.
fn control(header: Header, kind: Type) -> Frame {
    let header = Header { kind: kind as u8, flags: 0, length: 0, ..header };
    Frame { header, payload: Vec::new() }
}

#[derive(Debug)]
struct State {
    random: Epochs,
    /// Forged frames for each frame that passes.
    share: u32,
    watch: Assembler,
    /// A frame is passing.
    passing: bool,
    forged: VecDeque<Beat>,
    sent: [u32; Forgery::ALL.len()],
}

/// The record of what a forger has done. It does nothing until it is asked to.
#[derive(Clone, Debug)]
pub struct Forger(Arc<Mutex<State>>);

/// A network with a forger in front of node 0.
#[derive(Debug)]
pub struct Tapped {
    inner: SharedNetwork,
    forger: Forger,
}

impl Forger {
    /// A quiet one, with the seed of its choices.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let random = Epochs::new(seed);
        Self(Arc::new(Mutex::new(State {
            random,
            share: 0,
            watch: Assembler::default(),
            passing: false,
            forged: VecDeque::new(),
            sent: [0; Forgery::ALL.len()],
        })))
    }

    /// A network in which the forger has tapped the cable of node 0.
    #[must_use]
    pub fn tap(&self, inner: SharedNetwork) -> Tapped {
        Tapped { inner, forger: self.clone() }
    }

    /// From now on, this many forged frames for each numbered data frame that passes.
    pub fn forge(&self, share: u32) {
        self.0.lock().unwrap().share = share;
    }

    /// How many forged frames of a kind the node got.
    #[must_use]
    pub fn sent(&self, forgery: Forgery) -> u32 {
        self.0.lock().unwrap().sent[forgery as usize]
    }
}

impl State {
    fn passed(&mut self, now: u64, beat: Beat) {
        self.passing = !beat.last;
        let Some(Ok((frame, _))) = self.watch.push(now, beat) else { return };
        if !frame.sequenced() || frame.header.kind != Type::Data as u8 {
            return;
        }
        for _ in 0..self.share {
            let pick = self.random.next_u32() as usize % Forgery::ALL.len();
            let beats = Forgery::ALL[pick].beats(&frame, &mut self.random);
            self.sent[pick] += 1;
            let last = beats.len() - 1;
            let beats = beats.into_iter().enumerate();
            self.forged.extend(beats.map(|(at, data)| Beat { data, last: at == last }));
        }
    }
}

impl Network for Tapped {
    fn ready(&self, port: usize, now: u64) -> bool {
        self.inner.lock().unwrap().ready(port, now)
    }

    fn send(&mut self, port: usize, now: u64, beat: Beat) {
        self.inner.lock().unwrap().send(port, now, beat);
    }

    fn receive(&mut self, port: usize, now: u64) -> Option<Beat> {
        let mut inner = self.inner.lock().unwrap();
        if port != 0 {
            return inner.receive(port, now);
        }
        let mut state = self.forger.0.lock().unwrap();
        if !state.passing
            && let Some(beat) = state.forged.pop_front()
        {
            return Some(beat);
        }
        let beat = inner.receive(port, now)?;
        state.passed(now, beat);
        Some(beat)
    }

    fn take_busy(&mut self) -> bool {
        self.inner.lock().unwrap().take_busy()
    }
}
