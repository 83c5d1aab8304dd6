//! Event queues, and the tripwires that lead to them.
//!
//! What peers report are bits in the control segment, which cannot overflow: a tripwire that fired
//! several times before it is looked at is one event. What this process itself reports (messages,
//! DMA, lost nodes) waits in a list.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use port::clan::{ClanEvent, EventQueue, Tripwire, TripwireNumber};
use port::sync::lock;

use super::control::{Control, Entry, FIRED_WORDS, QUEUES, REGIONS, SUMMARY_WORDS, TRIPWIRES};
use super::fence;

/// Most events that wait in a queue's list.
const LIST_LIMIT: usize = 4096;

/// An event queue of this process.
#[derive(Debug)]
pub(super) struct Queue {
    number: u16,
    only_wakes: bool,
    control: Control,
    tripwires: Arc<Mutex<Tripwires>>,
    list: Mutex<VecDeque<ClanEvent>>,
    listed: AtomicUsize,
    /// Bits of one word of `fired` that were taken and not reported.
    taken: Mutex<(usize, u64)>,
}

impl Queue {
    /// Reports an event. False if the list is full.
    pub(super) fn push(&self, event: ClanEvent) -> bool {
        let mut list = lock(&self.list);
        if list.len() >= LIST_LIMIT {
            return false;
        }
        list.push_back(event);
        self.listed.store(list.len(), Ordering::SeqCst);
        drop(list);
        self.control.report(self.number);
        true
    }

    /// Whether a request may report an event.
    pub(super) fn has_room(&self) -> bool {
        self.listed.load(Ordering::Relaxed) < LIST_LIMIT
    }

    fn pop(&self) -> Option<ClanEvent> {
        let mut list = lock(&self.list);
        let event = list.pop_front();
        self.listed.store(list.len(), Ordering::SeqCst);
        event
    }

    /// The next word of `fired` with bits, which are taken.
    fn take_word(&self) -> Option<(usize, u64)> {
        for at in 0..SUMMARY_WORDS {
            let summary = self.control.summary(self.number, at);
            let mut words = summary.load(Ordering::SeqCst);
            while words != 0 {
                let bit = words.trailing_zeros();
                // The summary first: who sets a bit in between sets this one again.
                summary.fetch_and(!(1 << bit), Ordering::SeqCst);
                let word = 64 * at + bit as usize;
                let bits = self.control.fired(word).swap(0, Ordering::SeqCst);
                if bits != 0 {
                    return Some((word, bits));
                }
                words &= words - 1;
            }
        }
        None
    }
}

impl EventQueue for Queue {
    fn number(&self) -> u16 {
        self.number
    }

    fn has_event(&self) -> bool {
        let has_bits = |word| self.control.summary(self.number, word).load(Ordering::SeqCst) != 0;
        self.listed.load(Ordering::SeqCst) != 0
            || (0..SUMMARY_WORDS).any(has_bits)
            || lock(&self.taken).1 != 0
    }

    fn poll(&self) -> Option<ClanEvent> {
        if self.listed.load(Ordering::SeqCst) != 0
            && let Some(event) = self.pop()
        {
            return Some(event);
        }
        let mut taken = lock(&self.taken);
        loop {
            if taken.1 == 0 {
                *taken = self.take_word()?;
            }
            let (word, bits) = &mut *taken;
            let bit = 64 * *word + bits.trailing_zeros() as usize;
            *bits &= *bits - 1;
            // Bits of no tripwire are somebody else's, or of one that was cleared.
            if let Some(tag) = lock(&self.tripwires).tag(bit, self.number) {
                return Some(ClanEvent::Tripwire { tag });
            }
        }
    }

    fn arm(&self) {
        self.control.arm(self.number);
        if self.only_wakes {
            // The reader looks now, at what was written before a writer looked whether to wake it.
            let _ = fence::on_all();
        }
        if self.has_event() {
            self.control.report(self.number);
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Set {
    entry: Entry,
    queue: u16,
    domain: u16,
    tag: u64,
}

/// The tripwires and event queues of a node.
#[derive(Debug)]
pub(super) struct Tripwires {
    control: Control,
    /// By bit.
    set: Vec<Option<Set>>,
    count: u32,
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
            free: BTreeMap::new(),
            words: (0..FIRED_WORDS).rev().collect(),
            owned: BTreeMap::new(),
        }
    }

    /// Creates an event queue, or one that only wakes.
    ///
    /// # Errors
    /// None left.
    pub(super) fn create_queue(
        this: &Arc<Mutex<Self>>,
        only_wakes: bool,
    ) -> port::Result<Arc<Queue>> {
        let mut tripwires = lock(this);
        let mut numbers = (0..QUEUES).filter(|number| !tripwires.owned.contains_key(number));
        let none_left = port::Error::Exhausted { what: "event queue", limit: QUEUES.into() };
        let number = numbers.next().ok_or(none_left)?;
        tripwires.owned.insert(number, Vec::new());
        tripwires.free.insert(number, VecDeque::new());
        let control = tripwires.control.clone();
        drop(tripwires);
        control.only_wakes(number).store(only_wakes.into(), Ordering::SeqCst);
        Ok(Arc::new(Queue {
            number,
            only_wakes,
            control,
            tripwires: Arc::clone(this),
            list: Mutex::default(),
            listed: AtomicUsize::new(0),
            taken: Mutex::default(),
        }))
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
        self.words.extend(words);
    }

    fn tag(&self, bit: usize, queue: u16) -> Option<u64> {
        let set = self.set.get(bit).copied().flatten();
        set.filter(|set| set.queue == queue).map(|set| set.tag)
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

    /// Sets a tripwire of a region that it lies in, for a domain.
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
            once: tripwire.once,
        };
        let (queue, tag) = (tripwire.queue, tripwire.tag);
        self.set[usize::from(bit)] = Some(Set { entry, queue, domain, tag });
        self.count += 1;
        if !self.control.enter(entry) {
            self.take_out(bit.into());
            return Err(none_left);
        }
        fence::on_all().map_err(port::Error::device)?;
        Ok(TripwireNumber(bit.into()))
    }

    fn take_out(&mut self, bit: usize) -> Option<Set> {
        let set = self.set.get_mut(bit)?.take()?;
        self.count -= 1;
        self.control.remove(set.entry);
        self.control.fired(bit / 64).fetch_and(!(1 << (bit % 64)), Ordering::SeqCst);
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
