//! Work queues without a device.

use crate::doorbell::InlineData;
use std::sync::{Arc, Mutex};

use super::*;
use crate::doorbell::Ring;
use crate::sync::lock;

/// Remembers what was rung.
#[derive(Debug, Default)]
struct Recorder(Mutex<Vec<(Post, Option<InlineData>)>>);

impl Ring for Recorder {
    fn ring(&self, post: &Post) {
        lock(&self.0).push((*post, None));
    }

    fn ring_with_data(&self, post: &Post, data: &InlineData) {
        lock(&self.0).push((*post, Some(*data)));
    }
}

impl Recorder {
    /// What was rung since the last call.
    fn take(&self) -> Vec<(Post, Option<InlineData>)> {
        core::mem::take(&mut lock(&self.0))
    }

    /// The same, of each only which line of its region.
    fn lines(&self) -> Vec<u32> {
        self.take().iter().map(|(post, _)| post.line).collect()
    }

    /// The data of the only one.
    fn data(&self) -> Option<(Vec<u8>, Option<u32>)> {
        let [(_, data)] = self.take()[..] else { panic!("rung once") };
        data.map(|data| (data.to_vec(), data.immediate))
    }
}

/// A queue of a port that pushes, and what it rings.
fn queue(queue: Queue, limit: usize, operations: u8) -> (WorkQueue, Arc<Recorder>) {
    let rung = Arc::new(Recorder::default());
    let doorbell = Doorbell::Call(Arc::<Recorder>::clone(&rung));
    (WorkQueue::new(WorkQueueConfig { queue, limit, operations, push: true, doorbell }), rung)
}

const HANDLE: Handle = Handle::new(3, 7);

fn slots(count: usize) -> (DmaMemory, Vec<Slot>) {
    let memory = DmaMemory::new(count * 64).unwrap();
    let slot = |i| Slot::new(&memory, HANDLE, i * 64, 64).unwrap();
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
    /// Looks at the descriptors when it is rung.
    #[derive(Debug)]
    struct Looks(DmaMemory);
    impl Ring for Looks {
        fn ring(&self, post: &Post) {
            if post.line == 1 {
                assert_eq!(self.0.load_u64(0), self.0.address() + 64);
                assert_eq!(self.0.load_u32(8), HANDLE.0);
            }
        }
    }
    let doorbell = Doorbell::Call(Arc::new(Looks(memory.clone())));
    let (limit, operations, push) = (8, u8::MAX, true);
    let config = WorkQueueConfig { queue: Queue::Recv, limit, operations, push, doorbell };
    let mut queue = WorkQueue::new(config);
    queue.post_slot(&slots[0], &nowhere).unwrap();
    queue.post_slot(&slots[1], &nowhere).unwrap();
    assert_eq!(memory.load_u64(0), memory.address() + 64);
    assert!(matches!(queue.take(), Head::NotDone));
    complete(&slots[0], status::DONE);
    complete(&slots[1], status::DONE);
    assert!(matches!(queue.take(), Head::Done(_)));
    assert!(matches!(queue.take(), Head::Done(_)));
    assert!(matches!(queue.take(), Head::Empty));
    // Both were taken, so posting must not write into them.
    memory.store_u64(64, 0xdead);
    queue.post_slot(&slots[2], &nowhere).unwrap();
    assert_eq!(memory.load_u64(64), 0xdead);
}

#[test]
fn flushes_in_order_and_keeps_what_is_done() {
    let (_memory, slots) = slots(4);
    let (mut queue, _) = queue(Queue::Send, 4, u8::MAX);
    for slot in &slots {
        queue.post_slot(slot, &nowhere).unwrap();
    }
    assert!(queue.post_slot(&slots[0], &nowhere).is_err());
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
    let (mut queue, rung) = queue(Queue::Recv, 4, u8::MAX);
    queue.post_slot(&slots[0], &nowhere).unwrap();
    complete(&slots[1], status::DONE);
    assert!(!queue.post_flushed(&slots[1]).unwrap());
    assert_eq!((slots[1].status(), queue.done()), (0, 0), "not before the first");
    queue.flush(status::TRANSPORT_ERROR);
    assert_eq!(queue.done(), 2);
    assert_eq!(slots[1].status() & status::ERROR_MASK, status::DESC_FLUSHED_ERROR);
    assert!(queue.post_flushed(&slots[2]).unwrap());
    assert_eq!(queue.done(), 3);
    assert_eq!(rung.lines(), [0]);
}

#[test]
fn held_posts_are_rung_afterwards() {
    let (memory, slots) = slots(3);
    let (mut queue, rung) = queue(Queue::Recv, 4, u8::MAX);
    queue.post_slot(&slots[0], &nowhere).unwrap();
    queue.post_slot(&slots[1], &nowhere).unwrap();
    complete(&slots[0], status::DONE);
    assert_eq!(rung.lines(), [0, 1]);
    queue.hold();
    queue.post_slot(&slots[2], &nowhere).unwrap();
    assert!(rung.take().is_empty(), "held");
    memory.store_u64(64, 0);
    queue.repost();
    assert_eq!(rung.lines(), [1, 2]);
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
    let (mut queue, rung) = queue(Queue::Send, 4, u8::MAX);
    queue.post_slot(&slot, &nowhere).unwrap();
    assert_eq!(rung.lines(), [1]);
}

#[test]
fn addresses_are_posted_and_taken() {
    let (memory, slots) = slots(4);
    let (mut queue, rung) = queue(Queue::Send, 4, 1);
    let address = memory.address();
    let find = |wanted: Handle| (wanted == HANDLE).then(|| (memory.clone(), true));
    assert_eq!(queue.post(address, HANDLE), Err(PostError::UnknownRegion(HANDLE)));
    assert!(queue.post_finding(address, HANDLE, 0, &nowhere).is_err());
    assert!(queue.post_finding(address, Handle::new(3, 8), 0, &find).is_err());
    for bad in [address - 64, address + 8, address + 256, u64::MAX, 0] {
        assert!(queue.post_finding(bad, HANDLE, 0, &find).is_err(), "{bad:x}");
        assert_eq!(queue.post(bad, HANDLE), Err(PostError::Outside(bad)));
    }
    for n in 0..2 {
        queue.post(address + 64 * n, HANDLE).unwrap();
    }
    assert_eq!(rung.lines(), [0, 1]);
    assert_eq!(memory.load_u64(0), address + 64);
    assert_eq!(queue.take_address(), Head::NotDone);
    complete(&slots[0], status::DONE | status::LENGTH_ERROR);
    let taken = (address, status::DONE | status::LENGTH_ERROR);
    assert_eq!(queue.take_address(), Head::Done(taken));
    assert!(matches!(queue.take(), Head::NotDone));
    // An operation that the port does not have.
    memory.store_u32(128 + 12, 1 << 16);
    let error = queue.post_finding(address + 128, HANDLE, 0, &find).unwrap_err();
    assert!(matches!(error, Error::NotSupported { .. }));
}

#[test]
fn a_queue_has_room_up_to_its_limit() {
    let (memory, slots) = slots(300);
    let (mut queue, _) = queue(Queue::Recv, 300, u8::MAX);
    assert!(queue.learn(HANDLE, &memory, false));
    let post = |queue: &mut WorkQueue, n: u64| queue.post(memory.address() + 64 * n, HANDLE);
    // So that the oldest is in the middle of the entries when there have to be more.
    for n in 0..40 {
        post(&mut queue, n).unwrap();
        complete(&slots[0], status::DONE);
        complete(&slots[usize::try_from(n).unwrap()], status::DONE);
        assert!(matches!(queue.take_address(), Head::Done(_)));
    }
    (0..300).for_each(|n| post(&mut queue, n).unwrap());
    assert_eq!(post(&mut queue, 0), Err(PostError::Full));
    for (n, slot) in (0..300).zip(&slots) {
        complete(slot, status::DONE);
        let taken = (memory.address() + 64 * n, status::DONE);
        assert_eq!(queue.take_address(), Head::Done(taken));
    }
}

#[test]
fn a_full_queue_refuses_until_one_is_taken() {
    let (memory, slots) = slots(4);
    let (mut queue, rung) = queue(Queue::Recv, 3, u8::MAX);
    assert!(queue.learn(HANDLE, &memory, false));
    let post = |queue: &mut WorkQueue, n: u64| queue.post(memory.address() + 64 * n, HANDLE);
    for round in 0..20 {
        for n in 0..3 {
            post(&mut queue, n).unwrap();
        }
        assert_eq!(post(&mut queue, 3), Err(PostError::Full), "{round}");
        for (n, slot) in (0..3).zip(&slots) {
            assert_eq!(queue.take_address(), Head::NotDone);
            complete(slot, status::DONE);
            let taken = (memory.address() + 64 * n, status::DONE);
            assert_eq!(queue.take_address(), Head::Done(taken));
        }
        assert_eq!(queue.take_address(), Head::Empty);
        assert_eq!(rung.lines(), [0, 1, 2]);
    }
}

/// Descriptors in one registration and data in another, as many programs have them.
#[test]
fn data_in_another_region_travels_once_the_region_is_known() {
    let (memory, slots) = slots(1);
    let (other, data) = (Handle::new(5, 2), DmaMemory::new(256).unwrap());
    data.copy_from(0, b"elsewhere");
    write(&memory, 0, (data.address(), other, 9), 0);
    let (mut queue, rung) = queue(Queue::Send, 4, u8::MAX);
    assert!(queue.learn(HANDLE, &memory, true));
    let address = memory.address();
    assert_eq!(queue.post(address, HANDLE), Err(PostError::UnknownRegion(other)));
    assert!(rung.take().is_empty() && queue.is_empty(), "nothing has happened");
    let found = |_| Some((data.clone(), true));
    queue.post_finding(address, HANDLE, 0, &found).unwrap();
    for _ in 0..3 {
        assert_eq!(rung.data(), Some((b"elsewhere".to_vec(), None)));
        complete(&slots[0], status::DONE);
        assert!(matches!(queue.take_address(), Head::Done(_)));
        queue.post(address, HANDLE).unwrap();
    }
    // A region that is nowhere to be found is for the port to judge.
    complete(&slots[0], status::DONE);
    assert!(matches!(queue.take_address(), Head::Done(_)));
    queue.forget(other);
    rung.take();
    queue.post_finding(address, HANDLE, 0, &nowhere).unwrap();
    assert_eq!(rung.data(), None);
}

/// Also while a descriptor in it was not taken yet, and by the handle that no region has.
#[test]
fn a_region_that_is_forgotten_takes_no_posts() {
    let (memory, slots) = slots(2);
    let address = memory.address();
    let found = |_: Handle| Some((memory.clone(), true));
    let (mut queue, _) = queue(Queue::Recv, 4, u8::MAX);
    queue.post_finding(address, HANDLE, 0, &found).unwrap();
    assert!(queue.is_posted_in(HANDLE));
    complete(&slots[0], status::DONE);
    assert!(!queue.is_posted_in(HANDLE));
    queue.forget(HANDLE);
    for taken in [false, true] {
        if taken {
            assert!(matches!(queue.take_address(), Head::Done((at, _)) if at == address));
            queue.forget(HANDLE);
        }
        for stale in [HANDLE, Handle(0)] {
            assert!(queue.post(address + 64, stale).is_err(), "{stale:?}, taken {taken}");
            let posted = queue.post_finding(address + 64, stale, 0, &nowhere);
            assert!(posted.is_err(), "{stale:?}, taken {taken}");
        }
    }
    queue.post_finding(address + 64, HANDLE, 0, &found).unwrap();
}

/// Writes a descriptor with one segment: address, handle, length.
fn write(memory: &DmaMemory, slot: usize, segment: (u64, Handle, u32), control: u32) {
    let slot = 64 * slot;
    memory.store_u32(slot + 12, 1 | control << 16);
    memory.store_u32(slot + 20, 77);
    memory.store_u64(slot + 32, segment.0);
    memory.store_u32(slot + 40, segment.1.0);
    memory.store_u32(slot + 44, segment.2);
}

#[test]
fn short_sends_of_an_idle_queue_take_their_data_along() {
    let (memory, slots) = slots(3);
    let address = memory.address();
    let readable = std::cell::Cell::new(true);
    let find = |_: Handle| Some((memory.clone(), readable.get()));
    let (mut queue, rung) = queue(Queue::Send, 4, u8::MAX);
    memory.copy_from(150, b"abc");
    let write = |at, length, control| write(&memory, 0, (at, HANDLE, length), control);
    let mut post = |expected: Option<(&[u8], Option<u32>)>| {
        queue.post_slot(&slots[0], &find).unwrap();
        assert_eq!(rung.data(), expected.map(|(data, immediate)| (data.to_vec(), immediate)));
        queue.post_slot(&slots[1], &find).unwrap();
        assert_eq!(rung.data(), None, "the queue is not idle");
        for slot in &slots[..2] {
            complete(slot, status::DONE);
            assert!(matches!(queue.take(), Head::Done(_)));
        }
        queue.forget(HANDLE);
    };
    write(address + 150, 3, 0);
    post(Some((b"abc", None)));
    write(address + 150, 3, 4);
    post(Some((b"abc", Some(77))));
    write(5, 0, 0);
    post(Some((b"", None)));
    // What the device must judge: not inside, too long, another operation, not allowed.
    for (at, length, control) in [(address + 190, 3, 0), (address, 41, 0), (address, 3, 1)] {
        write(at, length, control);
        post(None);
    }
    write(address + 150, 3, 0);
    readable.set(false);
    post(None);
    readable.set(true);
    post(Some((b"abc", None)));
}

#[test]
fn many_regions_take_turns() {
    let (mut queue, rung) = queue(Queue::Recv, 64, u8::MAX);
    let regions: Vec<_> =
        (1..40).map(|n| (Handle::new(n, 1), DmaMemory::new(64).unwrap())).collect();
    for round in 0..2 {
        for (handle, memory) in &regions {
            let slot = Slot::new(memory, *handle, 0, 64).unwrap();
            queue.post_slot(&slot, &nowhere).unwrap();
            assert_eq!(rung.take()[0].0.region, *handle);
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
