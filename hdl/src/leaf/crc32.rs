//! CRC-32 over one beat.
use rust_hdl::prelude::*;

/// The reflected polynomial of IEEE 802.3.
const POLYNOMIAL: u32 = 0xEDB8_8320;

/// One step of CRC-32 (IEEE 802.3, reflected) over the eight bytes of a beat, combinational.
///
/// ```text
///          +-----------+
/// state -->|           |
///          | Crc32Step |--> result
///  data -->|           |
///          +-----------+
/// ```
/// Byte 0 is `data[7:0]` and goes first. Start a frame with `state` of all ones; nothing is
/// inverted inside, so the checksum on the wire is the complement of the last `result`. A frame
/// followed by its own (little-endian) checksum leaves the constant residue `0xDEBB20E3`, as long
/// as both together fill whole beats.
///
/// **Timing.** No register. **Cost.** About 360 LUT4 on ECP5.
#[derive(LogicBlock, Default)]
pub struct Crc32Step {
    pub state: Signal<In, Bits<32>>,
    pub data: Signal<In, Bits<64>>,
    pub result: Signal<Out, Bits<32>>,
}

/// The step itself. The state meets the data only by exclusive-or with its first four bytes.
fn step(state: u32, data: u64) -> u32 {
    let mut rest = data ^ u64::from(state);
    for _ in 0..64 {
        let feedback = if rest & 1 == 1 { u64::from(POLYNOMIAL) } else { 0 };
        rest = (rest >> 1) ^ feedback;
    }
    low_half(rest)
}

/// After 64 shifts the upper half is empty.
fn low_half(word: u64) -> u32 {
    u32::try_from(word).expect("64 shifts leave 32 bits")
}

/// For each bit of the result, the bits of `data ^ state` that it is the parity of.
fn masks() -> [u64; 32] {
    let mut masks = [0; 32];
    for bit in 0..64 {
        let column = step(0, 1 << bit);
        for (row, mask) in masks.iter_mut().enumerate() {
            *mask |= u64::from((column >> row) & 1) << bit;
        }
    }
    masks
}

impl Logic for Crc32Step {
    fn update(&mut self) {
        let result = step(self.state.val().to_u32(), self.data.val().to_u64());
        self.result.next = result.to_bits();
    }
    fn connect(&mut self) {
        self.result.connect();
    }
    fn hdl(&self) -> Verilog {
        let rows: String = masks()
            .iter()
            .enumerate()
            .map(|(row, mask)| format!("   result[{row}] = ^(mixed & 64'h{mask:016x});\n"))
            .collect();
        Verilog::Custom(format!(
            "wire [63:0] mixed = data ^ {{32'b0, state}};\nalways @(*) begin\n{rows}end\n"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The check value of the CRC catalogue is over nine bytes, so use sixteen with a value from
    /// another implementation.
    #[test]
    fn known_checksum() {
        let text = b"0123456789abcdef";
        let state = text
            .chunks_exact(8)
            .fold(!0, |state, beat| step(state, u64::from_le_bytes(beat.try_into().unwrap())));
        assert_eq!(!state, 0x68C4_F033);
    }

    #[test]
    fn residue() {
        let first = 0x0123_4567_89AB_CDEF;
        let state = step(!0, first);
        // Four more bytes, then the checksum in the upper half of the beat.
        let mut partial = state;
        for byte in [1_u8, 2, 3, 4] {
            partial ^= u32::from(byte);
            for _ in 0..8 {
                partial = (partial >> 1) ^ if partial & 1 == 1 { POLYNOMIAL } else { 0 };
            }
        }
        let last = u64::from(!partial) << 32 | 0x0403_0201;
        assert_eq!(step(state, last), 0xDEBB_20E3);
    }

    #[test]
    fn masks_match_the_step() {
        let (state, data) = (0xDEAD_BEEF, 0x0011_2233_4455_6677);
        let mixed = data ^ u64::from(state);
        let from_masks = masks()
            .iter()
            .enumerate()
            .fold(0, |sum, (row, mask)| sum | ((mixed & mask).count_ones() & 1) << row);
        assert_eq!(from_masks, step(state, data));
    }
}
