//! Work queues without a device.

use super::*;

fn slots(count: usize) -> (DmaMemory, Vec<Slot>) {
    let memory = DmaMemory::new(count * 64).unwrap();
    let slot = |i| Slot::new(&memory, Handle::new(3, 7), i * 64, 64).unwrap();
    let slots = (0..count).map(slot).collect();
    (memory, slots)
}

fn nowhere(_: Handle) -> Option<(DmaMemory, bool)> {
    None
}

fn complete(slot: &Slot, status: u32) {
    slot.memory().store_u32(28, status);
}

#[test]
fn chains_descriptors_before_the_doorbell() {
    let (memory, slots) = slots(3);
    let mut queue = WorkQueue::new(5, Queue::Recv, 8, u8::MAX, true);
    queue
        .post(&slots[0], &nowhere, |token, _| assert_eq!((token.vi, token.offset_64), (5, 0)))
        .unwrap();
    queue
        .post(&slots[1], &nowhere, |token, _| {
            assert_eq!(token.offset_64, 1);
            assert_eq!(memory.load_u64(0), memory.address() + 64);
            assert_eq!(memory.load_u32(8), Handle::new(3, 7).0);
        })
        .unwrap();
    assert!(matches!(queue.take(), Head::NotDone));
    complete(&slots[0], status::DONE);
    complete(&slots[1], status::DONE);
    assert!(matches!(queue.take(), Head::Done(_)));
    assert!(matches!(queue.take(), Head::Done(_)));
    assert!(matches!(queue.take(), Head::Empty));
    // Both were taken back, so posting must not write into them.
    memory.store_u64(64, 0xdead);
    queue.post(&slots[2], &nowhere, |_, _| ()).unwrap();
    assert_eq!(memory.load_u64(64), 0xdead);
}

#[test]
fn flushes_in_order_and_keeps_what_is_done() {
    let (_memory, slots) = slots(4);
    let mut queue = WorkQueue::new(0, Queue::Send, 4, u8::MAX, true);
    for slot in &slots {
        queue.post(slot, &nowhere, |_, _| ()).unwrap();
    }
    assert!(queue.post(&slots[0], &nowhere, |_, _| ()).is_err());
    assert_eq!(queue.done(), 0);
    complete(&slots[0], status::DONE);
    assert_eq!(queue.done(), 1);
    let (first, bits) = queue.flush(status::TRANSPORT_ERROR).unwrap();
    assert_eq!(bits, first.status());
    assert_eq!(first.memory().address(), slots[1].memory().address());
    let statuses: Vec<_> = slots.iter().map(Slot::status).collect();
    let flushed = status::DONE | status::DESC_FLUSHED_ERROR;
    let transport = status::DONE | status::TRANSPORT_ERROR;
    assert_eq!(statuses, [status::DONE, transport, flushed, flushed]);
    assert!(queue.flush(status::TRANSPORT_ERROR).is_none());
    assert!(matches!(queue.take(), Head::Done(_)));
    assert_eq!(queue.done(), 4);
}

#[test]
fn what_is_posted_to_be_flushed_waits_for_those_before_it() {
    let (_memory, slots) = slots(3);
    let mut queue = WorkQueue::new(0, Queue::Recv, 4, u8::MAX, true);
    queue.post(&slots[0], &nowhere, |_, _| ()).unwrap();
    complete(&slots[1], status::DONE);
    assert!(!queue.post_flushed(&slots[1]).unwrap());
    assert_eq!((slots[1].status(), queue.done()), (0, 0), "not before the first");
    queue.flush(status::TRANSPORT_ERROR);
    assert_eq!(queue.done(), 2);
    assert_eq!(slots[1].status() & status::ERROR_MASK, status::DESC_FLUSHED_ERROR);
    assert!(queue.post_flushed(&slots[2]).unwrap());
    assert_eq!(queue.done(), 3);
}

#[test]
fn held_posts_are_made_up_for() {
    let (memory, slots) = slots(3);
    let mut queue = WorkQueue::new(0, Queue::Recv, 4, u8::MAX, true);
    queue.post(&slots[0], &nowhere, |_, _| ()).unwrap();
    queue.post(&slots[1], &nowhere, |_, _| ()).unwrap();
    complete(&slots[0], status::DONE);
    queue.hold();
    queue.post(&slots[2], &nowhere, |_, _| panic!("held")).unwrap();
    memory.store_u64(64, 0);
    let rung = std::cell::RefCell::new(Vec::new());
    queue.repost(|token| rung.borrow_mut().push(token.offset_64));
    assert_eq!(rung.into_inner(), [1, 2]);
    assert_eq!(memory.load_u64(64), memory.address() + 128);
    assert_eq!((queue.not_done(), queue.ring.posted), (2, 3));
}

#[test]
fn refuses_misaligned_and_short_slots() {
    let memory = DmaMemory::new(256).unwrap();
    assert!(Slot::new(&memory, Handle::new(0, 1), 8, 64).is_err());
    assert!(Slot::new(&memory, Handle::new(0, 1), 0, 32).is_err());
    assert!(Slot::new(&memory, Handle::new(0, 1), 192, 128).is_err());
    let odd = memory.slice(40, 200).unwrap();
    let slot = Slot::new(&odd, Handle::new(0, 1), 24, 64).unwrap();
    let mut queue = WorkQueue::new(0, Queue::Send, 4, u8::MAX, true);
    queue.post(&slot, &nowhere, |token, _| assert_eq!(token.offset_64, 1)).unwrap();
}

#[test]
fn addresses_are_posted_and_taken() {
    let (memory, slots) = slots(4);
    let mut queue = WorkQueue::new(9, Queue::Send, 4, 1, false);
    let handle = Handle::new(3, 7);
    let address = memory.address();
    let find = |wanted: Handle| (wanted == handle).then(|| (memory.clone(), true));
    assert!(queue.post_at(address, handle, &nowhere, |_, _| ()).is_err());
    assert!(queue.post_at(address, Handle::new(3, 8), &find, |_, _| ()).is_err());
    for bad in [address - 64, address + 8, address + 256, u64::MAX, 0] {
        assert!(queue.post_at(bad, handle, &find, |_, _| ()).is_err(), "{bad:x}");
    }
    for n in 0..2 {
        let ring = |bits: u64, _: Option<&Inline>| {
            assert_eq!(u64::from(Token::from_bits(bits).offset_64), n);
        };
        queue.post_at(address + 64 * n, handle, &nowhere, ring).unwrap();
    }
    assert_eq!(memory.load_u64(0), address + 64);
    assert!(matches!(queue.take_address(), Head::NotDone));
    complete(&slots[0], status::DONE | status::LENGTH_ERROR);
    let Head::Done(taken) = queue.take_address() else { panic!("done") };
    assert_eq!(taken, (address, status::DONE | status::LENGTH_ERROR));
    assert!(matches!(queue.take(), Head::NotDone));
    // An operation that the device does not have.
    memory.store_u32(128 + 12, 1 << 16);
    let error = queue.post_at(address + 128, handle, &find, |_, _| ()).unwrap_err();
    assert!(matches!(error, Error::NotSupported { .. }));
}

/// A queue with room for four on the send side, of a device that pushes; descriptors and data, and
/// the doorbell page.
struct Common {
    memory: DmaMemory,
    page: DmaMemory,
    doorbell: RegisterLine,
    line: PushLine,
    queue: WorkQueue,
    watch: Watch,
}

const HANDLE: Handle = Handle::new(3, 7);

impl Common {
    fn new() -> Self {
        let (memory, page) = (DmaMemory::new(1024).unwrap(), DmaMemory::new(4096).unwrap());
        let doorbell = page.register_line(0).unwrap();
        let line = PushLine::alone(&page).unwrap();
        memory.copy_from(512, b"a message of twenty-one, and more than forty bytes");
        let queue = WorkQueue::new(9, Queue::Send, 4, u8::MAX, true);
        let watch = queue.watch();
        Self { memory, page, doorbell, line, queue, watch }
    }

    fn address(&self, offset: usize) -> u64 {
        self.memory.address() + offset as u64
    }

    /// Writes a descriptor with one segment.
    fn write(&self, slot: usize, at: u64, length: u32) {
        self.memory.store_u32(64 * slot + 12, 1);
        self.memory.store_u64(64 * slot + 32, at);
        self.memory.store_u32(64 * slot + 40, HANDLE.0);
        self.memory.store_u32(64 * slot + 44, length);
    }

    fn post_long(&mut self, slot: usize, ring: impl FnOnce(u64, Option<&Inline>)) {
        let (address, memory) = (self.address(64 * slot), self.memory.clone());
        let find = |_: Handle| Some((memory.clone(), true));
        self.queue.post_at(address, HANDLE, &find, ring).unwrap();
        self.watch = self.queue.watch();
    }

    fn post_at_hand(&mut self, slot: usize) -> AtHand {
        let address = self.address(64 * slot);
        self.queue.post_at_hand(address, HANDLE, &self.doorbell, &mut self.watch)
    }

    fn push_at_hand(&mut self) -> bool {
        self.queue.push_at_hand(HANDLE, &self.line, &mut self.watch)
    }

    fn finish(&mut self, slot: usize) {
        assert_eq!(self.watch.found(), Some(Watch::NOT_DONE));
        self.memory.store_u32(64 * slot + 28, status::DONE | status::LENGTH_ERROR);
        assert_eq!(self.watch.found(), None);
        let taken = self.queue.take_done(&mut self.watch);
        assert_eq!(taken, (self.address(64 * slot), status::DONE | status::LENGTH_ERROR));
    }
}

#[test]
fn the_common_way_posts_what_lies_at_hand() {
    let mut common = Common::new();
    for slot in 0..4 {
        common.write(slot, common.address(512), 100);
    }
    assert_eq!(common.post_at_hand(0), AtHand::No, "not met yet");
    common.post_long(0, |_, _| ());
    let (address, other) = (common.address(0), Handle::new(3, 8));
    for (bad, of) in [(address, other), (address + 8, HANDLE), (address + 1024, HANDLE)] {
        let Common { queue, doorbell, watch, .. } = &mut common;
        assert_eq!(queue.post_at_hand(bad, of, doorbell, watch), AtHand::No);
    }
    for n in 1..4 {
        assert_eq!(common.post_at_hand(n), AtHand::Posted);
        let token = Token::from_bits(common.page.load_u64(0));
        let offset_64 = u32::try_from(n).unwrap();
        let expected = Token { vi: 9, region: 3, offset_64, segments: 1, queue: Queue::Send };
        assert_eq!(token, expected);
        let before = 64 * (n - 1);
        assert_eq!(common.memory.load_u64(before), common.address(64 * n));
        assert_eq!(common.memory.load_u32(before + 8), HANDLE.0);
    }
    assert_eq!(common.post_at_hand(0), AtHand::No, "full");
    for n in 0..4 {
        assert!(matches!(common.queue.take_address(), Head::NotDone));
        common.finish(n);
    }
    assert_eq!(common.watch.found(), Some(Watch::NOTHING));
    assert!(matches!(common.queue.take_address(), Head::Empty));
}

#[test]
fn the_common_push_is_that_of_the_long_way() {
    let mut common = Common::new();
    for length in [1, 7, 8, 9, 21, 40, 0] {
        common.write(0, common.address(512), length);
        let mut expected = None;
        common.post_long(0, |bits, inline| {
            let (inline, token) = (inline.expect("short"), Token::from_bits(bits));
            expected = nic_regs::doorbell::push_line(token, inline.data(), inline.immediate);
        });
        common.finish(0);
        common.page.fill(0xee);
        assert_eq!(common.post_at_hand(0), AtHand::Short);
        assert!(common.push_at_hand());
        let (words, count) = expected.unwrap();
        let rung: Vec<_> = (0..count).map(|at| common.page.load_u64(0x100 + 8 * at)).collect();
        assert_eq!(rung, words[..count], "{length} bytes");
        assert_eq!(common.page.load_u64(0), u64::from_ne_bytes([0xee; 8]), "no token besides");
        common.finish(0);
    }
}

#[test]
fn what_only_the_long_way_can_judge_is_left_to_it() {
    let mut common = Common::new();
    common.write(0, common.address(512), 8);
    common.post_long(0, |_, inline| assert!(inline.is_some()));
    common.finish(0);
    for (at, length) in [(common.address(1020), 8), (common.address(0) - 1, 8), (5, 0)] {
        common.write(0, at, length);
        assert_eq!(common.post_at_hand(0), AtHand::Short);
        assert!(!common.push_at_hand(), "{at:x}");
    }
    common.write(0, common.address(512), 8);
    common.memory.store_u32(12, 2);
    assert_eq!(common.post_at_hand(0), AtHand::Short);
    assert!(!common.push_at_hand(), "two segments");
    // A region that is forgotten is met again first, and so is its data.
    common.memory.store_u32(12, 1);
    assert_eq!(common.post_at_hand(0), AtHand::Short);
    common.queue.forget(HANDLE);
    assert!(!common.push_at_hand());
    assert_eq!(common.post_at_hand(0), AtHand::No);
}

/// Descriptors in one registration and data in another, as many programs have them.
#[test]
fn data_of_another_region_stays_at_hand() {
    let mut common = Common::new();
    let (other, data) = (Handle::new(5, 2), DmaMemory::new(256).unwrap());
    data.copy_from(0, b"elsewhere");
    common.write(0, data.address(), 9);
    common.memory.store_u32(40, other.0);
    let (address, memory) = (common.address(0), common.memory.clone());
    assert!(common.queue.has_met_data_of(address, HANDLE), "not even the descriptor's is");
    let find = |handle: Handle| {
        let memory = if handle == other { &data } else { &memory };
        Some((memory.clone(), true))
    };
    common.queue.region(HANDLE, &find).unwrap();
    assert!(!common.queue.has_met_data_of(address, HANDLE));
    let sent = |_: u64, inline: Option<&Inline>| assert_eq!(inline.unwrap().data(), b"elsewhere");
    common.queue.post_at(address, HANDLE, &find, sent).unwrap();
    common.watch = common.queue.watch();
    common.finish(0);
    for _ in 0..3 {
        assert!(common.queue.has_met_data_of(address, HANDLE));
        assert_eq!(common.post_at_hand(0), AtHand::Short);
        assert!(common.push_at_hand());
        common.finish(0);
    }
}

/// Also while a descriptor in it was not taken yet, and by the handle that no region has.
#[test]
fn a_region_that_is_forgotten_takes_no_posts() {
    let (memory, slots) = slots(2);
    let (handle, address) = (Handle::new(3, 7), memory.address());
    let found = |_: Handle| Some((memory.clone(), true));
    let mut queue = WorkQueue::new(9, Queue::Recv, 4, u8::MAX, false);
    queue.post_at(address, handle, &found, |_, _| {}).unwrap();
    assert!(queue.is_posted_in(handle));
    complete(&slots[0], status::DONE);
    assert!(!queue.is_posted_in(handle));
    queue.forget(handle);
    for taken in [false, true] {
        if taken {
            assert!(matches!(queue.take_address(), Head::Done((at, _)) if at == address));
            queue.forget(handle);
        }
        for stale in [handle, Handle(0)] {
            let posted = queue.post_at(address + 64, stale, &|_| None, |_, _| {});
            assert!(posted.is_err(), "{stale:?}, taken {taken}");
        }
    }
    queue.post_at(address + 64, handle, &found, |_, _| {}).unwrap();
}

#[test]
fn short_sends_of_an_idle_queue_take_their_data_along() {
    let (memory, slots) = slots(3);
    let (handle, address) = (Handle::new(3, 7), memory.address());
    let readable = std::cell::Cell::new(true);
    let find = |_: Handle| Some((memory.clone(), readable.get()));
    let mut queue = WorkQueue::new(9, Queue::Send, 4, u8::MAX, true);
    memory.copy_from(150, b"abc");
    let write = |slot: u64, at: u64, length: u32, control: u32| {
        let slot = usize::try_from(64 * slot).unwrap();
        memory.store_u32(slot + 12, 1 | control << 16);
        memory.store_u32(slot + 20, 77);
        memory.store_u64(slot + 32, at);
        memory.store_u32(slot + 40, handle.0);
        memory.store_u32(slot + 44, length);
    };
    let mut post = |expected: Option<(&[u8], Option<u32>)>| {
        let ring = |_: Token, inline: Option<&Inline>| {
            let inline = inline.map(|inline| (inline.data(), inline.immediate));
            assert_eq!(inline, expected);
        };
        queue.post(&slots[0], &find, ring).unwrap();
        // Not idle: without data.
        queue.post(&slots[1], &find, |_, inline| assert!(inline.is_none())).unwrap();
        for slot in &slots[..2] {
            complete(slot, status::DONE);
            assert!(matches!(queue.take(), Head::Done(_)));
        }
        queue.forget(handle);
    };
    write(0, address + 150, 3, 0);
    post(Some((b"abc", None)));
    write(0, address + 150, 3, 4);
    post(Some((b"abc", Some(77))));
    write(0, 5, 0, 0);
    post(Some((b"", None)));
    // What the device must judge: not inside, too long, another operation, not allowed.
    for (at, length, control) in [(address + 190, 3, 0), (address, 41, 0), (address, 3, 1)] {
        write(0, at, length, control);
        post(None);
    }
    write(0, address + 150, 3, 0);
    readable.set(false);
    post(None);
    readable.set(true);
    post(Some((b"abc", None)));
}

#[test]
fn many_regions_take_turns() {
    let mut queue = WorkQueue::new(0, Queue::Recv, 64, u8::MAX, true);
    let regions: Vec<_> =
        (1..40).map(|n| (Handle::new(n, 1), DmaMemory::new(64).unwrap())).collect();
    for round in 0..2 {
        for (handle, memory) in &regions {
            let slot = Slot::new(memory, *handle, 0, 64).unwrap();
            queue
                .post(&slot, &nowhere, |token, _| assert_eq!(token.region, handle.index()))
                .unwrap();
            if round == 0 {
                complete(&slot, status::DONE);
                let Head::Done((taken, _)) = queue.take() else { panic!("done") };
                assert_eq!(taken.memory().address(), memory.address());
            }
        }
    }
    assert_eq!(queue.flush(status::DESC_FLUSHED_ERROR).unwrap().0.handle(), Handle::new(1, 1));
    for (handle, _) in &regions {
        let Head::Done((taken, _)) = queue.take() else { panic!("done") };
        assert_eq!(taken.handle(), *handle);
    }
    assert!(queue.is_empty() && queue.is_idle() && queue.done() == 78);
}
