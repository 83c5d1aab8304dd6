//! Pushes with data as neighbours of the send engine: lines that are filled, doorbells that are judged,
//! and what the engine does with them (contract 2.5, 2.7, 2.8).

use super::Bench;
use crate::post::{DATA_BYTES, Posted, Token};
use nic_model::desc::Inline;
use nic_regs::doorbell;
use nic_regs::vi::State;

/// Offset of a token beyond every region.
const NOWHERE: u32 = (1 << 26) - 1;

/// A push that the engine has.
#[derive(Clone, Debug)]
pub(super) struct Push {
    /// Its descriptor, which is not in the queue.
    posted: Posted,
    bytes: Vec<u8>,
    immediate: Option<u32>,
}

/// A push line on its way into a slot.
#[derive(Clone, Debug)]
pub(super) struct Line {
    vi: u16,
    slot: u8,
    /// Offset of its bytes in the data of the VI.
    offset: u64,
    bytes: Vec<u8>,
    immediate: Option<u32>,
    /// Words that are there.
    written: u8,
}

/// The doorbell of a push: its VI, slot and token; the engine is to have it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Judged {
    vi: u16,
    slot: u8,
    token: u64,
    inline: bool,
}

impl Line {
    fn word(&self, random: u64) -> u64 {
        match self.written {
            1 => {
                let word = u64::from(self.immediate.unwrap_or(random as u32)) << 32;
                word | u64::from(self.immediate.is_some()) << 8 | self.bytes.len() as u64
            }
            at @ 3..=7 => {
                // What is behind the last byte is anything.
                let mut word = random.to_le_bytes();
                let bytes = self.bytes.chunks(8).nth(usize::from(at) - 3).unwrap_or_default();
                word[..bytes.len()].copy_from_slice(bytes);
                u64::from_le_bytes(word)
            }
            _ => random,
        }
    }
}

impl Bench {
    /// Begins to fill a line, now and then.
    pub(super) fn fill_line(&mut self, chance: f64) {
        let random = &mut self.host.random;
        if self.line.is_some() || self.slots == 0xff || !random.chance(chance) {
            return;
        }
        let mut at = random.below(self.vis.len() as u64) as usize;
        let idle = |at: &usize| self.vis[*at].1.queue.count == 0 && !self.vis[*at].1.stopped;
        at = (at..self.vis.len()).chain(0..at).find(idle).unwrap_or(at);
        let length = if random.chance(0.1) { 0 } else { random.below(41) };
        let offset = random.below(u64::from(DATA_BYTES) - length);
        let immediate = random.chance(0.3).then(|| random.bits() as u32);
        let free: Vec<u8> = (0..8).filter(|slot| self.slots >> slot & 1 == 0).collect();
        let slot = free[random.below(free.len() as u64) as usize];
        let (vi, owner) = &self.vis[at];
        let region = self.host.region(owner.queue.data_region);
        let bytes = self.host.memory.read(region.bus_base + offset, length).to_vec();
        self.line = Some(Line { vi: *vi, slot, offset, bytes, immediate, written: 0 });
        self.slots |= 1 << slot;
    }

    pub(super) fn drive_pushes(&mut self) {
        let random = self.host.random.bits();
        let fills = self.line.as_ref().filter(|line| line.written < 8);
        let m = &mut self.model.inputs;
        m.words_valid = fills.is_some().into();
        (m.words_at, m.words_data) = (0, random);
        if let Some(line) = fills {
            (m.words_at, m.words_data) = (line.slot << 3 | line.written, line.word(random));
        }
        m.vi_push_valid = self.judged.is_some().into();
        m.vi_push_inline = 0;
        if let Some(Judged { vi, slot, token, inline }) = self.judged {
            (m.vi_push_inline, m.vi_push_slot, m.vi_push_vi) = (inline.into(), slot, vi);
            m.vi_push_token = token;
            self.show(vi);
        }
    }

    /// Whether the VI table would give the engine a push of this VI in the next cycle.
    fn may_push(&mut self, number: u16) -> bool {
        let out = &self.model.outputs;
        let takes = out.vi_push_ready != 0 && (out.vi_holding == 0 || out.vi_holding_vi != number);
        let vi = self.at(number);
        let sent = vi.expected.is_empty() && vi.ending.is_empty() && vi.waiting.is_empty();
        let waits = vi.reading || vi.awaiting || vi.scheduled || vi.pushed.is_some();
        let idle =
            vi.queue.count == 0 && vi.pending == 0 && vi.answer.is_none() && vi.part.is_none();
        takes && sent && !waits && idle && vi.state == State::Connected && !vi.stopped
    }

    /// After a cycle.
    pub(super) fn pushes(&mut self) {
        let out = self.model.outputs.clone();
        assert_eq!(out.words_free & !self.slots, 0, "a slot is given back twice");
        self.slots &= !out.words_free;
        self.judged = None;
        let Some(line) = &mut self.line else { return };
        if line.written < 8 {
            line.written += 1;
            return;
        }
        if self.presenting.is_some() || self.fresh.is_some() || self.vi_call.done {
            // The table shows another VI then.
            return;
        }
        let line = line.clone();
        let inline = self.may_push(line.vi);
        let vi = self.at(line.vi);
        let refused = vi.stopped || !vi.queue.has_space();
        let late = vi.pushed.is_none() && vi.state == State::Connected;
        if inline && !refused {
            self.push(line);
        } else if refused || late && self.host.random.chance(0.002) {
            let Line { vi, slot, .. } = line;
            self.judged = Some(Judged { vi, slot, token: 0, inline: false });
            if !refused {
                self.place_line(&line);
                self.expect(vi);
                self.schedule(vi);
                self.note("push as a token");
            }
            self.line = None;
        }
    }

    fn note(&mut self, what: &str) {
        *self.seen.entry(what.into()).or_default() += 1;
    }

    /// Its descriptor: posted.
    fn place_line(&mut self, line: &Line) {
        let at = self.vis.iter().position(|(number, _)| *number == line.vi).unwrap();
        let place = (line.offset, line.bytes.len() as u32);
        self.vis[at].1.queue.post_place(&mut self.host, place, line.immediate);
    }

    /// The engine gets it: its descriptor is not in the queue.
    fn push(&mut self, line: Line) {
        self.place_line(&line);
        let spoils = self.host.random.chance(0.02);
        // More segments than a descriptor has: as good as none.
        let malformed =
            self.host.random.chance(0.05).then(|| 18 + self.host.random.below(14) as u8);
        let Line { vi: number, slot, bytes, immediate, .. } = line;
        let vi = self.at(number);
        let mut posted = vi.queue.unpost();
        if spoils {
            posted.token.offset_64 = NOWHERE;
        }
        posted.token.segments = malformed.unwrap_or(posted.token.segments);
        let token = u64::from(posted.token.region)
            | u64::from(posted.token.offset_64) << 16
            | u64::from(posted.token.segments) << 42;
        vi.pushed = Some(Push { posted, bytes, immediate });
        self.judged = Some(Judged { vi: number, slot, token, inline: true });
        self.line = None;
    }

    /// A peer is lost while the engine has a push of a VI.
    pub(super) fn stop_pushed(&mut self, chance: f64) {
        if self.vis.iter().any(|(_, vi)| vi.pushed.is_some()) && self.host.random.chance(chance) {
            let pushed = self.vis.iter_mut().find(|(_, vi)| vi.pushed.is_some());
            let vi = &mut pushed.expect("one").1;
            (vi.state, vi.stopped, vi.answer) = (State::Error, true, None);
        }
    }

    fn pushed(&mut self, number: u16) -> Push {
        let out = &self.model.outputs;
        let (region, offset) = (out.vi_next_region, out.vi_next_offset);
        let push = self.at(number).pushed.take().expect("a push");
        let token = push.posted.token;
        assert_eq!((region, offset), (token.region, token.offset_64));
        if self.at(number).state != State::Connected {
            self.note("push of a VI that stopped");
        }
        push
    }

    /// UNPUSH.
    pub(super) fn push_returns(&mut self, number: u16) {
        let push = self.pushed(number);
        assert_eq!(self.model.outputs.vi_fragment, push.posted.token.segments);
        self.note("push returns");
        if self.at(number).state == State::Connected {
            self.at(number).queue.post_again(push.posted);
            self.expect(number);
        }
        self.schedule(number);
    }

    /// PUSH.
    pub(super) fn push_goes(&mut self, number: u16) {
        self.show(number);
        let push = self.pushed(number);
        let length = push.bytes.len() as u32;
        let (bytes, fragment) = (self.model.outputs.vi_offset, self.model.outputs.vi_fragment);
        assert_eq!(bytes, length);
        let reached = push.posted.token.offset_64 != NOWHERE;
        let vi = self.at(number);
        let connected = vi.state == State::Connected;
        if vi.level != 4 {
            vi.message = vi.message.wrapping_add(1);
        } else if connected {
            (vi.awaiting, vi.acked, vi.progress) = (true, false, length);
            vi.fragment = fragment;
            vi.popped_token = (push.posted.token.region, push.posted.token.offset_64);
        }
        if connected {
            vi.queue.post_again(push.posted);
            let Posted { token, .. } = push.posted;
            let Token { region, offset_64, segments } = token;
            let token = doorbell::Token {
                vi: number,
                region,
                offset_64,
                segments,
                queue: doorbell::Queue::Send,
            };
            let Push { bytes: data, immediate, .. } = push;
            let events = self.predict(number, Some(Inline { token, immediate, data }));
            let vi = self.at(number);
            assert!(vi.queue.pop(None), "it was alone");
            (vi.checked, vi.cut_off) = (reached, !reached);
            vi.expected.extend(events);
            vi.unfold();
            self.note(if reached { "push goes" } else { "push out of reach" });
        }
        self.schedule(number);
    }

    /// What was in flight when a push stopped its VI: POP takes it off, CHECK says no.
    pub(super) fn call_of_cut_off(&mut self, number: u16, op: u8, next: Option<(u16, u32)>) {
        if op == 2 {
            let popped = self.at(number).queue.pop(next);
            self.model.inputs.vi_need_next = (!popped).into();
        }
    }
}
