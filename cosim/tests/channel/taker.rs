//! A receiver that takes frames from staging ahead of those that it still reads, as many as its
//! manners allow, reads them in any order and gives them back in theirs.

use crate::node::{Frame, Manners};
use cosim::random::Random;
use cosim::verilated::blocks::channel::Model;
use nic_regs::frame::{Header, Type};
use std::collections::VecDeque;

/// Frames that staging lets a client take and not release.
pub(crate) const TAKEN_MAX: usize = 16;

#[derive(Clone, Debug)]
struct Held {
    frame: Frame,
    base: u16,
    done: bool,
}

/// What was seen of staging, and what is taken.
#[derive(Clone, Debug, Default)]
pub(crate) struct Taker {
    taken: VecDeque<Held>,
    offered: Option<(Header, u16)>,
    /// Which frame is read, from how many beats on.
    reading: Option<(usize, usize)>,
    /// Cycles until the oldest frame is given back.
    hold: u64,
    refuses: bool,
    /// The most frames that were taken at a time.
    pub(crate) most: usize,
}

impl Taker {
    pub(crate) fn idle(&self) -> bool {
        self.taken.is_empty()
    }

    pub(crate) fn drive(
        &mut self,
        model: &mut Model,
        random: &mut Random,
        manners: &Manners,
        refuse: bool,
    ) {
        let i = &mut model.inputs;
        (i.staging_take, i.staging_release, i.staging_refused) = (0, 0, 0);
        if self.offered.is_some() && self.taken.len() < manners.ahead && manners.read {
            i.staging_take = u8::from(random.below(4) != 0);
        }
        if self.reading.is_none() {
            let waiting: Vec<usize> =
                (0..self.taken.len()).filter(|&n| !self.taken[n].done).collect();
            if !waiting.is_empty() {
                let n = if random.below(2) == 0 { 0 } else { random.below(waiting.len() as u64) };
                self.reading = Some((waiting[n as usize], 0));
            }
        }
        // Where nothing is read, anything may be asked for.
        i.staging_address = (random.bits() & 0x3ff) as u16;
        i.staging_origin = (random.bits() & 0x7ff) as u16;
        if let Some((n, at)) = self.reading {
            i.staging_address = at as u16;
            i.staging_origin = self.taken[n].base;
        }
        let Some(oldest) = self.taken.front().filter(|held| held.done) else { return };
        if refuse && oldest.frame.header.kind == Type::Message as u8 && !self.refuses {
            // With the release, or before.
            self.refuses = random.below(2) == 0;
            i.staging_refused = u8::from(self.refuses || self.hold == 0);
        }
        if self.hold == 0 {
            i.staging_release = 1;
            self.hold = if manners.hold == 0 { 0 } else { random.below(manners.hold) };
        } else {
            self.hold -= 1;
        }
    }

    /// A frame that was given back.
    pub(crate) fn sample(&mut self, model: &Model) -> Option<Frame> {
        let (i, o) = (&model.inputs, &model.outputs);
        let header = Header::from_beats([o.staging_header0, o.staging_header1, o.staging_header2]);
        let seen = (o.staging_valid != 0).then_some((header, o.staging_base));
        if self.offered.is_some() {
            assert_eq!(seen, self.offered, "the offered frame is not stable");
        }
        self.offered = seen;
        if let Some((n, at)) = self.reading {
            // The data of the address of the cycle before.
            if at > 0 {
                self.taken[n].frame.payload.push(o.staging_data);
            }
            let all = at == self.taken[n].frame.header.payload_beats();
            self.taken[n].done = all;
            self.reading = (!all).then_some((n, at + 1));
        }
        let back = (i.staging_release != 0).then(|| {
            self.refuses = false;
            // What is read moves up.
            self.reading = self.reading.map(|(n, at)| (n - 1, at));
            self.taken.pop_front().expect("only what is taken is released").frame
        });
        if i.staging_take != 0 {
            let (header, base) = self.offered.take().expect("it was offered");
            let frame = Frame { peer: header.src_node, header, payload: Vec::new() };
            self.taken.push_back(Held { frame, base, done: false });
            self.most = self.most.max(self.taken.len());
        }
        back
    }
}
