//! The tripwires of a node, and which event queue each leads to.

use core::sync::atomic::Ordering;
use std::collections::{BTreeMap, VecDeque};

use port::clan::{Tripwire, TripwireNumber};

use super::control::{Control, Entry, FIRED_WORDS, QUEUES, REGIONS, TRIPWIRES, WORDS};

#[derive(Clone, Copy, Debug)]
struct Set {
    entry: Entry,
    domain: u16,
    tag: u64,
    once: bool,
    /// It fires once, and its event was reported: it is in the table no more.
    is_spent: bool,
    /// Number of the call that set it.
    stamp: u64,
}

/// Bits of one word of `fired` that a queue's reader has taken and not reported.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Taken {
    word: usize,
    bits: u64,
    /// Last tripwire that was set before they were taken: bits of later ones are of tripwires that
    /// were cleared since, and had the same bit.
    stamp: u64,
}

impl Taken {
    pub(super) const fn is_any(self) -> bool {
        self.bits != 0
    }
}

/// The tripwires of an event queue.
#[derive(Debug, Default)]
struct OfQueue {
    /// By bit.
    set: Vec<Option<Set>>,
    /// Bits that had a tripwire, in the order in which they became free: one is used again as late as
    /// possible, but before another word of bits is begun.
    free: VecDeque<u16>,
}

/// The tripwires of a region that are in the table.
#[derive(Clone, Copy, Debug, Default)]
struct OfRegion {
    count: u32,
    /// The double word behind which there were none since the region had none at all. The one in the
    /// control segment is a copy, which peers could change.
    end: u32,
}

/// The tripwires and event queues of a node.
#[derive(Debug)]
pub(super) struct Tripwires {
    control: Control,
    queues: BTreeMap<u16, OfQueue>,
    /// Numbers that no queue has, used again as late as possible.
    free: VecDeque<u16>,
    count: u32,
    of_region: Vec<OfRegion>,
    last_stamp: u64,
}

/// The number of a tripwire, by queue and bit.
fn number(queue: u16, bit: u16) -> TripwireNumber {
    TripwireNumber(u32::from(queue) << 16 | u32::from(bit))
}

impl Tripwires {
    pub(super) fn new(control: Control) -> Self {
        Self {
            control,
            queues: BTreeMap::new(),
            free: (0..QUEUES).collect(),
            count: 0,
            of_region: vec![OfRegion::default(); REGIONS.into()],
            last_stamp: 0,
        }
    }

    /// The number of a new event queue.
    ///
    /// # Errors
    /// None left.
    pub(super) fn create_queue(&mut self) -> port::Result<u16> {
        let none_left = port::Error::Exhausted { what: "event queue", limit: QUEUES.into() };
        let number = self.free.pop_front().ok_or(none_left)?;
        self.queues.insert(number, OfQueue::default());
        Ok(number)
    }

    /// Destroys an event queue and its tripwires.
    pub(super) fn destroy_queue(&mut self, queue: u16) {
        self.take_out_all(|set| set.entry.queue == queue);
        if self.queues.remove(&queue).is_some() {
            self.free.push_back(queue);
        }
        (0..FIRED_WORDS)
            .for_each(|word| self.control.fired(queue, word).store(0, Ordering::SeqCst));
        self.control.summary(queue).store(0, Ordering::SeqCst);
    }

    fn at(&mut self, queue: u16, bit: usize) -> Option<&mut Set> {
        self.queues.get_mut(&queue)?.set.get_mut(bit)?.as_mut()
    }

    /// The tag of the next tripwire of a queue that fired.
    pub(super) fn next_fired(&mut self, queue: u16, taken: &mut Taken) -> Option<u64> {
        // As many bits as there are: a peer that sets bits all the time keeps nobody here.
        for _ in 0..64 * FIRED_WORDS {
            if taken.bits == 0 {
                *taken = self.take_word(queue)?;
            }
            let bit = 64 * taken.word + taken.bits.trailing_zeros() as usize;
            taken.bits &= taken.bits - 1;
            let stamp = taken.stamp;
            // Bits of no tripwire are somebody else's, or of one that was cleared.
            let set = self.at(queue, bit).filter(|set| !set.is_spent && set.stamp <= stamp);
            let Some(set) = set else { continue };
            set.is_spent = set.once;
            let Set { tag, once, entry, .. } = *set;
            if once {
                self.remove(entry);
            }
            return Some(tag);
        }
        None
    }

    /// The next word of `fired` with bits, which are taken.
    fn take_word(&self, queue: u16) -> Option<Taken> {
        let summary = self.control.summary(queue);
        let mut words = summary.load(Ordering::SeqCst);
        while words != 0 {
            let word = words.trailing_zeros();
            // The summary first: who sets a bit in between sets this one again.
            summary.fetch_and(!(1 << word), Ordering::SeqCst);
            let bits = self.control.fired(queue, word as usize).swap(0, Ordering::SeqCst);
            if bits != 0 {
                return Some(Taken { word: word as usize, bits, stamp: self.last_stamp });
            }
            words &= words - 1;
        }
        None
    }

    /// Sets a tripwire of a region that it lies in, for a domain. It works for all peers once all
    /// processors have executed a fence ([`super::fence::on_all`]).
    ///
    /// # Errors
    /// None left, or no room at its place of the table.
    pub(super) fn set(&mut self, tripwire: &Tripwire, domain: u16) -> port::Result<TripwireNumber> {
        let limit = TRIPWIRES as usize;
        let none_left = port::Error::Exhausted { what: "tripwire", limit };
        let far = port::Error::BadArgument {
            what: "offset of a tripwire (below 4 GiB)",
            value: tripwire.offset,
        };
        let word = u32::try_from(tripwire.offset / 8).ok().filter(|word| u64::from(*word) < WORDS);
        let word = word.ok_or(far)?;
        if self.count >= TRIPWIRES {
            return Err(none_left);
        }
        let (queue, bit) = (tripwire.queue, self.free_bit(tripwire.queue));
        let bit = bit.ok_or(none_left.clone())?;
        let entry = Entry {
            word,
            region: tripwire.region.0 % REGIONS,
            queue,
            bit,
            on_read: tripwire.on.read,
            on_write: tripwire.on.write,
        };
        self.last_stamp += 1;
        let (Tripwire { tag, once, .. }, stamp) = (*tripwire, self.last_stamp);
        let set = Set { entry, domain, tag, once, is_spent: false, stamp };
        let of_queue = self.queues.entry(queue).or_default();
        of_queue.set[usize::from(bit)] = Some(set);
        self.count += 1;
        // A peer that was in the middle of an access may have set it since it became free.
        self.clear_bit(entry);
        // Both are seen after the fence; until then, a peer may see either first.
        self.change_count(entry, 1);
        if !self.control.enter(entry) {
            self.take_out(queue, bit);
            return Err(none_left);
        }
        Ok(number(queue, bit))
    }

    /// A bit of a queue without a tripwire.
    fn free_bit(&mut self, queue: u16) -> Option<u16> {
        let of_queue = self.queues.get_mut(&queue)?;
        if of_queue.free.is_empty() {
            let begin = of_queue.set.len();
            if begin >= 64 * FIRED_WORDS {
                return None;
            }
            of_queue.set.resize(begin + 64, None);
            of_queue.free.extend((begin..begin + 64).filter_map(|bit| u16::try_from(bit).ok()));
        }
        of_queue.free.pop_front()
    }

    fn change_count(&mut self, Entry { region, word, .. }: Entry, change: i32) {
        let of = &mut self.of_region[usize::from(region)];
        of.count = of.count.saturating_add_signed(change);
        of.end = if of.count == 0 { 0 } else { of.end.max(word + 1) };
        self.control.set_tripwires_end(region, of.end);
    }

    fn remove(&mut self, entry: Entry) {
        self.control.remove(entry);
        self.change_count(entry, -1);
    }

    fn clear_bit(&self, Entry { queue, bit, .. }: Entry) {
        let fired = self.control.fired(queue, usize::from(bit / 64));
        fired.fetch_and(!(1 << (bit % 64)), Ordering::SeqCst);
    }

    fn take_out(&mut self, queue: u16, bit: u16) {
        let Some(of_queue) = self.queues.get_mut(&queue) else { return };
        let Some(set) = of_queue.set.get_mut(usize::from(bit)).and_then(Option::take) else {
            return;
        };
        of_queue.free.push_back(bit);
        self.count -= 1;
        if !set.is_spent {
            self.remove(set.entry);
        }
        self.clear_bit(set.entry);
    }

    /// Clears a tripwire of a domain.
    ///
    /// # Errors
    /// It is not set, or another domain's.
    pub(super) fn clear(&mut self, tripwire: TripwireNumber, domain: u16) -> port::Result<()> {
        let no_such = port::Error::NoSuch { what: "tripwire", index: tripwire.0 };
        let [queue, bit] = [tripwire.0 >> 16, tripwire.0 & 0xffff]
            .map(|half| u16::try_from(half).unwrap_or(u16::MAX));
        let set = self.at(queue, bit.into());
        set.filter(|set| set.domain == domain).ok_or(no_such)?;
        self.take_out(queue, bit);
        Ok(())
    }

    /// Clears all tripwires of a region, or of a domain.
    pub(super) fn clear_all(&mut self, region: Option<u16>, domain: u16) {
        self.take_out_all(|set| {
            set.domain == domain && region.is_none_or(|region| set.entry.region == region)
        });
    }

    fn take_out_all(&mut self, is_meant: impl Fn(&Set) -> bool) {
        let all = self.queues.values().flat_map(|queue| queue.set.iter().flatten());
        let all: Vec<Entry> = all.filter(|set| is_meant(set)).map(|set| set.entry).collect();
        all.into_iter().for_each(|entry| self.take_out(entry.queue, entry.bit));
    }
}
