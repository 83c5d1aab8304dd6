//! The tripwires of a node, and which event queue each leads to.

use core::sync::atomic::Ordering;
use std::collections::{BTreeMap, VecDeque};

use port::clan::{Tripwire, TripwireNumber};

use super::control::{Control, Entry, FIRED_WORDS, QUEUES, REGIONS, SUMMARY_WORDS, TRIPWIRES};

#[derive(Clone, Copy, Debug)]
struct Set {
    entry: Entry,
    queue: u16,
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

/// The tripwires and event queues of a node.
#[derive(Debug)]
pub(super) struct Tripwires {
    control: Control,
    /// By bit.
    set: Vec<Option<Set>>,
    count: u32,
    /// Tripwires of each region that are in the table. The count in the control segment is a copy,
    /// which peers could change.
    of_region: Vec<u32>,
    last_stamp: u64,
    /// Free bits of each queue, in the order in which they became free, so that a bit is used again as
    /// late as possible.
    free: BTreeMap<u16, VecDeque<u16>>,
    /// Words of `fired` that no queue has.
    words: Vec<usize>,
    /// Words of each queue.
    owned: BTreeMap<u16, Vec<usize>>,
}

impl Tripwires {
    pub(super) fn new(control: Control) -> Self {
        Self {
            control,
            set: vec![None; 64 * FIRED_WORDS],
            count: 0,
            of_region: vec![0; REGIONS.into()],
            last_stamp: 0,
            free: BTreeMap::new(),
            words: (0..FIRED_WORDS).rev().collect(),
            owned: BTreeMap::new(),
        }
    }

    /// The number of a new event queue.
    ///
    /// # Errors
    /// None left.
    pub(super) fn create_queue(&mut self) -> port::Result<u16> {
        let mut numbers = (0..QUEUES).filter(|number| !self.owned.contains_key(number));
        let none_left = port::Error::Exhausted { what: "event queue", limit: QUEUES.into() };
        let number = numbers.next().ok_or(none_left)?;
        self.owned.insert(number, Vec::new());
        self.free.insert(number, VecDeque::new());
        Ok(number)
    }

    /// Destroys an event queue and its tripwires.
    pub(super) fn destroy_queue(&mut self, queue: u16) {
        let words = self.owned.remove(&queue).unwrap_or_default();
        for word in &words {
            for bit in 64 * word..64 * (word + 1) {
                self.take_out(bit);
            }
            self.control.fired(*word).store(0, Ordering::SeqCst);
        }
        self.free.remove(&queue);
        for word in 0..SUMMARY_WORDS {
            self.control.summary(queue, word).store(0, Ordering::SeqCst);
        }
        // To the front: used again as late as possible.
        self.words.splice(0..0, words);
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
            // Bits of no tripwire are somebody else's, or of one that was cleared.
            let Some(Some(set)) = self.set.get_mut(bit) else { continue };
            if set.queue != queue || set.is_spent || set.stamp > taken.stamp {
                continue;
            }
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
        for at in 0..SUMMARY_WORDS {
            let summary = self.control.summary(queue, at);
            let mut words = summary.load(Ordering::SeqCst);
            while words != 0 {
                let bit = words.trailing_zeros();
                // The summary first: who sets a bit in between sets this one again.
                summary.fetch_and(!(1 << bit), Ordering::SeqCst);
                let word = 64 * at + bit as usize;
                // A word of another queue, whose bits these are not.
                let is_own = self.owned.get(&queue).is_some_and(|own| own.contains(&word));
                let fired = self.control.fired(word);
                let bits = if is_own { fired.swap(0, Ordering::SeqCst) } else { 0 };
                if bits != 0 {
                    return Some(Taken { word, bits, stamp: self.last_stamp });
                }
                words &= words - 1;
            }
        }
        None
    }

    fn free_bit(&mut self, queue: u16) -> Option<u16> {
        let free = self.free.get_mut(&queue)?;
        if free.is_empty() {
            let word = self.words.pop()?;
            self.owned.entry(queue).or_default().push(word);
            self.control.queue_of_word(word).store(queue.into(), Ordering::SeqCst);
            free.extend((64 * word..64 * (word + 1)).filter_map(|bit| u16::try_from(bit).ok()));
        }
        free.pop_front()
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
            what: "offset of a tripwire (below 32 GiB)",
            value: tripwire.offset,
        };
        let word = u32::try_from(tripwire.offset / 8).map_err(|_| far)?;
        if self.count >= TRIPWIRES {
            return Err(none_left);
        }
        let bit = self.free_bit(tripwire.queue).ok_or(none_left.clone())?;
        let entry = Entry {
            word,
            region: tripwire.region.0 % REGIONS,
            bit,
            on_read: tripwire.on.read,
            on_write: tripwire.on.write,
        };
        self.last_stamp += 1;
        let (Tripwire { queue, tag, once, .. }, stamp) = (*tripwire, self.last_stamp);
        let set = Set { entry, queue, domain, tag, once, is_spent: false, stamp };
        self.set[usize::from(bit)] = Some(set);
        self.count += 1;
        // A peer that was in the middle of an access may have set it since it became free.
        self.clear_bit(bit.into());
        // Both are seen after the fence; until then, a peer may see either first.
        self.change_count(entry.region, 1);
        if !self.control.enter(entry) {
            self.take_out(bit.into());
            return Err(none_left);
        }
        Ok(TripwireNumber(bit.into()))
    }

    fn change_count(&mut self, region: u16, change: i32) {
        let count = &mut self.of_region[usize::from(region)];
        *count = count.saturating_add_signed(change);
        self.control.set_count(region, *count);
    }

    fn remove(&mut self, entry: Entry) {
        self.control.remove(entry);
        self.change_count(entry.region, -1);
    }

    fn clear_bit(&self, bit: usize) {
        self.control.fired(bit / 64).fetch_and(!(1 << (bit % 64)), Ordering::SeqCst);
    }

    fn take_out(&mut self, bit: usize) -> Option<Set> {
        let set = self.set.get_mut(bit)?.take()?;
        self.count -= 1;
        if !set.is_spent {
            self.remove(set.entry);
        }
        self.clear_bit(bit);
        if let Some(free) = self.free.get_mut(&set.queue) {
            free.push_back(set.entry.bit);
        }
        Some(set)
    }

    /// Clears a tripwire of a domain.
    ///
    /// # Errors
    /// It is not set, or another domain's.
    pub(super) fn clear(&mut self, tripwire: TripwireNumber, domain: u16) -> port::Result<()> {
        let bit = tripwire.0 as usize;
        let no_such = port::Error::NoSuch { what: "tripwire", index: tripwire.0 };
        let set = self.set.get(bit).copied().flatten();
        set.filter(|set| set.domain == domain).ok_or(no_such)?;
        self.take_out(bit);
        Ok(())
    }

    /// Clears all tripwires of a region, or of a domain.
    pub(super) fn clear_all(&mut self, region: Option<u16>, domain: u16) {
        for bit in 0..self.set.len() {
            let set = self.set[bit].filter(|set| set.domain == domain);
            if set.is_some_and(|set| region.is_none_or(|region| set.entry.region == region)) {
                self.take_out(bit);
            }
        }
    }
}
