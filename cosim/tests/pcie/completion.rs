//! Completions, as a root complex makes them.
use nic_regs::tlp::Completion;

/// What host memory holds at an address.
pub(crate) fn memory(address: u64) -> u8 {
    (address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u8
}

/// A completion of `bytes` at `address`, of which `total` are still to come; `dwords` as its
/// length.
pub(crate) fn completion(
    tag: u8,
    address: u64,
    total: u64,
    dwords: u64,
    poisoned: bool,
) -> Vec<u64> {
    let header = Completion {
        data: true,
        poisoned,
        length_dw: dwords as u16,
        completer: 0x100,
        byte_count: total as u16,
        requester: 0x4321,
        tag,
        lower_address: (address & 0x7f) as u8,
        ..Default::default()
    };
    let mut beats = header.to_beats().to_vec();
    let first = address & !3;
    for word in first / 8..=(first + 4 * dwords - 1) / 8 {
        beats.push((0..8).map(|at| u64::from(memory(word * 8 + at)) << (8 * at)).sum());
    }
    beats
}

/// A completion with an error status.
pub(crate) fn failure(tag: u8, total: u64, status: u8) -> Vec<u64> {
    let byte_count = total as u16;
    let header = Completion { status, byte_count, requester: 0x4321, tag, ..Default::default() };
    header.to_beats().to_vec()
}
