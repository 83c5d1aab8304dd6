//! How a send is posted: by a token doorbell, or by a push in one write, word by word, or torn.

use super::plan::Spec;
use crate::random::Random;
use crate::testbench::Testbench;
use crate::testbench::host::Host;
use nic_regs::desc::control;
use nic_regs::doorbell::{
    PUSH_DATA_BYTES, PUSH_LINE_BYTES, PUSH_LINE_COUNT, PUSH_OFFSET, PUSH_SILENCE_CYCLES,
    TOKEN_OFFSET, Token, push_line,
};

/// The data of a send that may be pushed: good, with one segment that fits. `base` is the offset of
/// the segment's region in host memory.
fn data(spec: &Spec, host: &Host, base: usize) -> Option<Vec<u8>> {
    let [segment] = spec.segments.as_slice() else { return None };
    let length = segment.length as usize;
    let good = spec.is_good() && length <= PUSH_DATA_BYTES;
    let at = base + usize::try_from(segment.offset).ok()?;
    good.then(|| host.memory[at..at + length].to_vec())
}

/// Posts a send by its token, or pushes it if it may be; `seed` says how. `base`: see [`data`].
pub(super) fn post(
    bench: &mut Testbench,
    (node, page): (usize, u8),
    token: Token,
    (spec, base): (&Spec, usize),
    seed: u64,
) {
    let Some(data) = data(spec, bench.host(node), base) else {
        return bench.doorbell(node, page, TOKEN_OFFSET, token.to_bits());
    };
    let random = &mut Random::new(seed);
    let immediate = (spec.control & control::IMMEDIATE != 0).then_some(spec.immediate);
    let line = PUSH_OFFSET + PUSH_LINE_BYTES * random.below(PUSH_LINE_COUNT);
    let (mut words, count) = push_line(token, &data, immediate).expect("at most 40 bytes");
    // What lies behind the last byte is of no meaning.
    if let Some(word) = words.get_mut(count) {
        *word = random.bits();
    }
    let rest = data.len() % 8;
    if rest != 0 {
        words[count - 1] |= random.bits() << (8 * rest);
    }
    let mut write_to = |page: u8, line: u64, from: usize, to: usize| {
        let bytes: Vec<u8> = words[from..to].iter().flat_map(|word| word.to_le_bytes()).collect();
        bench.write_line(node, page, line + 8 * from as u64, &bytes);
    };
    let elsewhere =
        PUSH_OFFSET + (line - PUSH_OFFSET + PUSH_LINE_BYTES) % (PUSH_LINE_BYTES * PUSH_LINE_COUNT);
    let kind = random.below(10);
    if kind >= 8 {
        // Between the words comes one that continues nothing: of another line, which breaks the
        // push, or of another page, which does not.
        let cut = 1 + usize::try_from(random.below(7)).expect("small");
        write_to(page, line, 0, cut);
        match kind {
            8 => write_to(page, elsewhere, 3, 4),
            _ => write_to(page ^ 1, line, 3, 4),
        }
        return write_to(page, line, cut, words.len());
    }
    let mut write = |from, to| write_to(page, line, from, to);
    match kind {
        0 | 1 => bench.doorbell(node, page, TOKEN_OFFSET, token.to_bits()),
        2 => write(0, words.len()),
        3 => write(0, count),
        4 => (0..words.len()).for_each(|i| write(i, i + 1)),
        5 => {
            let cut = 1 + usize::try_from(random.below(7)).expect("small");
            write(0, cut);
            write(cut, words.len());
        }
        6 => {
            // A word is missing.
            let gap = 1 + usize::try_from(random.below(6)).expect("small");
            write(0, gap);
            write(gap + 1, words.len());
        }
        _ => {
            // It ends early, and silence breaks it.
            write(0, 1 + usize::try_from(random.below(7)).expect("small"));
            bench.run(2 * PUSH_SILENCE_CYCLES);
        }
    }
}
