//! What writes to push lines must cause (contract 2.5 to 2.7), page by page.
//!
//! A device may drop the data of any push, so only its token is certain: in which page, in which
//! order, of which line. Data, where it comes, must be that of a push that was whole.
use crate::chance;
use nic_regs::doorbell::{PUSH_LINE_COUNT, PUSH_OFFSET, PUSH_WORDS, PushControl};
use nic_regs::tlp::Request;
use rand::Rng;
use rand::rngs::SmallRng;
use std::collections::VecDeque;

/// Pages whose numbers differ in every bit.
const PAGES: [u64; 3] = [0, 0b01_0101, 0b10_1010];

/// A token that must be posted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Post {
    pub(crate) token: u64,
    /// It came in this push line.
    pub(crate) line: Option<u8>,
    /// The words of the line, if all came in order.
    pub(crate) whole: Option<Vec<u64>>,
}

#[derive(Debug)]
struct UnderWay {
    line: u8,
    words: Vec<u64>,
}

/// One page.
#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) posts: VecDeque<Post>,
    push: Option<UnderWay>,
}

impl Page {
    /// A write that is not to a push line, or a token doorbell.
    pub(crate) fn other(&mut self, token: Option<u64>) {
        self.push = None;
        self.posts.extend(token.map(|token| Post { token, line: None, whole: None }));
    }

    /// A word of a push line; false if it is refused.
    pub(crate) fn word(&mut self, line: u8, index: usize, word: u64) -> bool {
        let continues =
            self.push.take_if(|push| push.line == line && push.words.len() == index && index != 0);
        let Some(mut push) = continues else {
            self.push = None;
            if index == 0 && word >> 63 == 0 {
                self.posts.push_back(Post { token: word, line: Some(line), whole: None });
                self.push = Some(UnderWay { line, words: vec![word] });
            }
            return index != 0 || word >> 63 == 0;
        };
        push.words.push(word);
        let control = PushControl::from_bits(push.words[1]);
        let good = control.filter(|_| push.words.get(2).is_none_or(|&word| word == 0));
        match good {
            Some(control) if push.words.len() == control.words() => {
                self.posts.back_mut().unwrap().whole = Some(push.words);
            }
            Some(_) => self.push = Some(push),
            None => {}
        }
        true
    }
}

/// Line and first word of a request that is a well-formed write to a push line.
pub(crate) fn place(request: &Request) -> Option<(u8, usize)> {
    let within = request.address & 0xfff;
    let dwords = usize::from(request.length_dw);
    let byte = within % 64;
    let good = request.write
        && (PUSH_OFFSET..PUSH_OFFSET + 64 * PUSH_LINE_COUNT).contains(&within)
        && byte.is_multiple_of(8)
        && dwords.is_multiple_of(2)
        && dwords != 0
        && byte as usize + 4 * dwords <= 64
        && (request.first_be, request.last_be) == (0xf, 0xf);
    good.then(|| (((within - PUSH_OFFSET) / 64) as u8, byte as usize / 8))
}

/// Pushes that are written in one to eight writes, mostly well.
#[derive(Debug, Default)]
pub(crate) struct Script {
    base: u64,
    words: [u64; PUSH_WORDS],
    at: usize,
}

impl Script {
    /// The next write: its request and data.
    pub(crate) fn write(&mut self, rng: &mut SmallRng) -> (Request, Vec<u64>) {
        if self.at == PUSH_WORDS || self.at == 0 || chance(rng, 10) {
            self.begin(rng);
        }
        let rest = PUSH_WORDS - self.at;
        let count = if rng.random() { rest } else { rng.random_range(1..=rest) };
        let request = Request {
            write: true,
            address: self.base + 8 * self.at as u64,
            length_dw: 2 * count as u16,
            first_be: 0xf,
            last_be: 0xf,
            ..Default::default()
        };
        let words = self.words[self.at..][..count].to_vec();
        self.at += count;
        // Sometimes a word is missing.
        if self.at < PUSH_WORDS && chance(rng, 10) {
            self.at += 1;
        }
        (request, words)
    }

    fn begin(&mut self, rng: &mut SmallRng) {
        let line = rng.random_range(0..PUSH_LINE_COUNT);
        self.base = PAGES[rng.random_range(0..3)] * 4096 + PUSH_OFFSET + 64 * line;
        self.words = std::array::from_fn(|_| rng.random());
        self.words[0] >>= u32::from(!chance(rng, 5));
        let length = rng.random_range(0..=40);
        let immediate = rng.random::<bool>().then(|| rng.random());
        self.words[1] = PushControl { length, immediate }.to_bits();
        self.words[2] = 0;
        match rng.random_range(0..20) {
            0 => self.words[1] = self.words[1] & !0xff | rng.random_range(41..256),
            1 => self.words[1] |= 1 << rng.random_range(9..32),
            2 => self.words[2] = 1 << rng.random_range(0..64),
            _ => {}
        }
        self.at = 0;
    }
}
