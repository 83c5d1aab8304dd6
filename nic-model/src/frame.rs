//! Frames as values, to and from beats.

use nic_regs::frame::{
    BEAT_BYTES, CRC_INIT, CRC_POLYNOMIAL, HEADER_BEATS, Header, RDMA_HEADER_BYTES, Type, flag,
};
use nic_regs::limits::{LINK_PAYLOAD_BYTES, POOL_CHUNK_BYTES};

use crate::bits::low32;
use crate::device::Beat;

/// Beats of the longest frame: header, payload (that of an RDMA write), CRC.
const FRAME_BEATS_MAX: usize =
    HEADER_BEATS + (RDMA_HEADER_BYTES + LINK_PAYLOAD_BYTES) / BEAT_BYTES + 1;

/// A frame: header and payload. The header's length is the payload's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// The header.
    pub header: Header,
    /// The payload, without padding.
    pub payload: Vec<u8>,
}

impl Frame {
    /// Whether the channel numbers this frame.
    #[must_use]
    pub const fn sequenced(&self) -> bool {
        self.header.flags & flag::SEQUENCED != 0
    }

    /// Pool chunks that the frame takes.
    #[must_use]
    pub fn chunks(&self) -> usize {
        chunks(self.payload.len())
    }

    /// All beats, CRC included.
    #[must_use]
    pub fn to_beats(&self) -> Vec<u64> {
        let mut beats = Vec::with_capacity(FRAME_BEATS_MAX);
        beats.extend(self.header.to_beats());
        for chunk in self.payload.chunks(BEAT_BYTES) {
            let mut bytes = [0; BEAT_BYTES];
            bytes[..chunk.len()].copy_from_slice(chunk);
            beats.push(u64::from_le_bytes(bytes));
        }
        let crc = beats.iter().fold(CRC_INIT, |state, &beat| crc_beat(state, beat));
        beats.push(u64::from(!crc));
        beats
    }
}

/// Pool chunks that a payload of `length` bytes takes.
#[must_use]
pub(crate) fn chunks(length: usize) -> usize {
    length.div_ceil(POOL_CHUNK_BYTES).max(1)
}

/// What is wrong with a frame's bits, in the order in which it is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameError {
    /// The CRC differs.
    Crc,
    /// More or fewer beats than the header says, or than any frame has, or a type that does not
    /// exist.
    Length,
}

/// Builds frames from beats as they arrive.
#[derive(Clone, Debug)]
pub struct Assembler {
    beats: Vec<u64>,
    count: usize,
    crc: u32,
    skip: bool,
    started: u64,
}

impl Default for Assembler {
    fn default() -> Self {
        let beats = Vec::with_capacity(FRAME_BEATS_MAX);
        Self { beats, count: 0, crc: CRC_INIT, skip: false, started: 0 }
    }
}

/// A frame with the time of its first beat, or what is wrong with it.
pub type Assembled = Result<(Frame, u64), FrameError>;

impl Assembler {
    /// Takes a beat; the frame's last beat gives the frame. A skipped frame gives nothing.
    pub fn push(&mut self, now: u64, beat: Beat) -> Option<Assembled> {
        if self.count == 0 {
            self.started = now;
        }
        self.count += 1;
        if !beat.last {
            self.crc = crc_beat(self.crc, beat.data);
            if self.beats.len() < FRAME_BEATS_MAX {
                self.beats.push(beat.data);
            }
            return None;
        }
        let skip = self.skip;
        let frame = self.finish(beat.data);
        self.beats.clear();
        (self.count, self.crc, self.skip) = (0, CRC_INIT, false);
        (!skip).then_some(frame)
    }

    /// Forgets a frame that has begun to arrive: its other beats are not the start of the next one.
    pub(crate) fn skip_current(&mut self) {
        self.skip = self.count != 0;
    }

    fn finish(&self, last: u64) -> Assembled {
        if low32(last) != !self.crc {
            return Err(FrameError::Crc);
        }
        let Some(&[a, b, c]) = self.beats.get(..HEADER_BEATS) else {
            return Err(FrameError::Length);
        };
        let header = Header::from_beats([a, b, c]);
        let length = usize::from(header.length);
        if Type::from_bits(header.kind).is_none_or(|kind| length > kind.payload_max())
            || self.count != HEADER_BEATS + header.payload_beats() + 1
        {
            return Err(FrameError::Length);
        }
        let mut payload: Vec<u8> =
            self.beats[HEADER_BEATS..].iter().flat_map(|beat| beat.to_le_bytes()).collect();
        payload.truncate(length);
        Ok((Frame { header, payload }, self.started))
    }
}

const TABLES: [[u32; 256]; 8] = tables();

#[allow(clippy::cast_possible_truncation, reason = "below 256")]
const fn tables() -> [[u32; 256]; 8] {
    let mut t = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut state = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            state = if state & 1 != 0 { (state >> 1) ^ CRC_POLYNOMIAL } else { state >> 1 };
            bit += 1;
        }
        t[0][byte] = state;
        byte += 1;
    }
    let mut k = 1;
    while k < 8 {
        byte = 0;
        while byte < 256 {
            let before = t[k - 1][byte];
            t[k][byte] = (before >> 8) ^ t[0][(before & 0xff) as usize];
            byte += 1;
        }
        k += 1;
    }
    t
}

/// [`nic_regs::frame::crc_step`], eight table look-ups instead of 64 shifts.
#[must_use]
fn crc_beat(state: u32, beat: u64) -> u32 {
    let bytes = (beat ^ u64::from(state)).to_le_bytes();
    bytes.iter().zip(TABLES.iter().rev()).fold(0, |crc, (&b, table)| crc ^ table[usize::from(b)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use nic_regs::frame::crc_step;

    #[test]
    fn the_tables_compute_the_contract_crc() {
        let mut x = 0x0123_4567_89ab_cdef_u64;
        let (mut a, mut b) = (CRC_INIT, CRC_INIT);
        for _ in 0..1000 {
            x = x.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(17);
            (a, b) = (crc_beat(a, x), crc_step(b, x));
            assert_eq!(a, b);
        }
    }

    fn feed(beats: &[u64]) -> Assembled {
        let mut assembler = Assembler::default();
        let mut out = None;
        for (i, &data) in beats.iter().enumerate() {
            out = assembler.push(7 + i as u64, Beat { data, last: i + 1 == beats.len() });
        }
        out.expect("a frame ends with its last beat")
    }

    #[test]
    fn every_length_survives_and_every_cut_is_found() {
        for length in [0_u16, 1, 7, 8, 9, 48, 4095, 4096] {
            let header = Header { kind: 1, length, word: 5, ..Header::default() };
            let frame =
                Frame { header, payload: (0..length).map(|i| i.to_le_bytes()[0]).collect() };
            let beats = frame.to_beats();
            assert_eq!(feed(&beats), Ok((frame, 7)));
            for cut in 1..beats.len().min(6) {
                assert!(feed(&beats[..cut]).is_err(), "cut to {cut} beats");
            }
        }
    }

    #[test]
    fn a_header_that_lies_about_its_length_is_refused() {
        let mut frame =
            Frame { header: Header { kind: 1, ..Header::default() }, payload: vec![1; 16] };
        for length in [0, 8, 17, 4097, 0xffff] {
            frame.header.length = length;
            assert_eq!(feed(&frame.to_beats()), Err(FrameError::Length));
        }
        frame.header.length = 16;
        assert!(feed(&frame.to_beats()).is_ok());
        frame.header.kind = 9;
        assert_eq!(feed(&frame.to_beats()), Err(FrameError::Length));
        frame.payload = vec![0; 5000];
        assert_eq!(feed(&frame.to_beats()), Err(FrameError::Length));
    }

    #[test]
    fn a_skipped_frame_leaves_nothing_behind() {
        let frame = Frame { header: Header { kind: 2, ..Header::default() }, payload: vec![] };
        let beats = frame.to_beats();
        let mut assembler = Assembler::default();
        assert_eq!(assembler.push(0, Beat { data: 99, last: false }), None);
        assembler.skip_current();
        assert_eq!(assembler.push(1, Beat { data: 99, last: true }), None);
        for &data in &beats[..3] {
            assert_eq!(assembler.push(2, Beat { data, last: false }), None);
        }
        assert_eq!(assembler.push(3, Beat { data: beats[3], last: true }), Some(Ok((frame, 2))));
    }
}
