#![expect(unsafe_code, reason = "memory of the program as C has it")]

use core::ptr::{NonNull, null_mut, with_exposed_provenance_mut};
use core::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize};
use std::os::unix::fs::FileExt;

use rustix::fs::SeekFrom;
use rustix::mm::{Advice, MapFlags, MremapFlags, ProtFlags, madvise, mmap_anonymous, mremap_fixed};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use super::*;
use crate::dma::DmaMemory;

fn in_file(file: &std::fs::File, address: u64, length: usize) -> Vec<u8> {
    let mut data = vec![0; length];
    file.read_exact_at(&mut data, address).unwrap();
    data
}

fn is_shared(address: usize) -> bool {
    maps::cut(&maps::all().unwrap(), address, address + 1)[0].is_shared()
}

#[test]
fn pages_are_shared_as_long_as_somebody_needs_them() {
    let memory = DmaMemory::new(5 * PAGE_BYTES).unwrap();
    let at = usize::try_from(memory.address()).unwrap();
    memory.copy_from(PAGE_BYTES - 3, b"before");
    let first = take(at, 2 * PAGE_BYTES).unwrap();
    // Overlaps the first by a page, and ends within a page.
    let second = take(at + PAGE_BYTES + 1, PAGE_BYTES).unwrap();
    assert!(first.iter().chain(&second).all(|piece| piece.shared && piece.writable));
    let file = std::fs::File::from(file().unwrap());
    assert_eq!(in_file(&file, memory.address() + PAGE_BYTES as u64 - 3, 6), b"before");
    memory.copy_from(2 * PAGE_BYTES, b"program");
    assert_eq!(in_file(&file, memory.address() + 2 * PAGE_BYTES as u64, 7), b"program");
    file.write_all_at(b"device", memory.address()).unwrap();
    assert_eq!(memory.to_vec(0, 6), b"device");

    give(&first);
    assert!(!is_shared(at) && is_shared(at + PAGE_BYTES) && !is_shared(at + 3 * PAGE_BYTES));
    assert_eq!(memory.to_vec(0, 6), b"device", "it stays when it is private again");
    memory.copy_from(0, b"own");
    assert_eq!(in_file(&file, memory.address(), 6), [0; 6], "and is nobody else's");
    give(&second);
    assert!(!is_shared(at + PAGE_BYTES) && memory.to_vec(PAGE_BYTES - 3, 6) == b"before");
    // Again: what is there now counts.
    let again = take(at, PAGE_BYTES).unwrap();
    assert_eq!(in_file(&file, memory.address(), 3), b"own");
    give(&again);
}

/// Whether the file has memory for this range.
fn has_pages(file: &std::fs::File, address: u64, length: usize) -> bool {
    rustix::fs::seek(file, SeekFrom::Data(address)).is_ok_and(|at| at < address + length as u64)
}

/// Memory as `malloc` gets it, and its address.
fn anonymous(length: usize) -> (DmaMemory, usize) {
    let (rights, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
    // SAFETY: a new mapping, which nobody unmaps.
    let new = unsafe { mmap_anonymous(null_mut(), length, rights, flags) }.unwrap();
    // SAFETY: the mapping above.
    let memory = unsafe { DmaMemory::from_program(NonNull::new(new).unwrap().cast(), length) };
    (memory, new.expose_provenance())
}

/// Moves memory as `realloc` does, and has other memory where it was.
fn move_away(from: usize, to: usize, length: usize) {
    let place = with_exposed_provenance_mut(from);
    // It leaves `from` mapped: no other thread may get the address.
    let flags = MremapFlags::MAYMOVE | MremapFlags::DONTUNMAP;
    // SAFETY: both belong to the test.
    unsafe { mremap_fixed(place, length, length, flags, with_exposed_provenance_mut(to)).unwrap() };
    let (rights, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::FIXED);
    // SAFETY: as above.
    unsafe { mmap_anonymous(place, length, rights, flags).unwrap() };
}

#[test]
fn what_is_given_back_is_memory_as_before() {
    // More than one step.
    let length = 40 * PAGE_BYTES;
    let (memory, at) = anonymous(length);
    let file = std::fs::File::from(file().unwrap());
    memory.copy_from(length - 4, b"last");
    let pieces = take(at, length).unwrap();
    assert!(has_pages(&file, memory.address(), length));
    give(&pieces);
    assert!(!has_pages(&file, memory.address(), length), "the file keeps nothing");
    if super::super::hold::hold(at, PAGE_BYTES).is_some() {
        let areas = maps::cut(&maps::all().unwrap(), at, at + length);
        assert!(areas.len() == 1 && areas[0].inode == 0, "{areas:?}");
    }
    assert_eq!(memory.to_vec(length - 4, 4), b"last");
    assert!(memory.to_vec(0, length - 4).iter().all(|byte| *byte == 0));
    // SAFETY: the test's own memory.
    unsafe { madvise(with_exposed_provenance_mut(at), length, Advice::LinuxDontNeed) }.unwrap();
    assert_eq!(memory.to_vec(length - 4, 4), [0; 4], "what was dropped is gone");
}

/// Where writers cannot be held off the kernel copies the pages.
#[test]
fn what_is_given_back_in_place_is_nobody_elses() {
    let (memory, at) = anonymous(3 * PAGE_BYTES);
    memory.copy_from(PAGE_BYTES, b"own");
    let pieces = take(at, memory.len()).unwrap();
    let file = std::fs::File::from(file().unwrap());
    {
        let _guard = lock(SHARE);
        let all = maps::all().unwrap();
        let areas = maps::cut(&all, at, at + memory.len());
        areas.iter().for_each(|area| map::unshare_in_place(file.as_fd(), *area).unwrap());
    }
    file.write_all_at(b"device", memory.address() + PAGE_BYTES as u64).unwrap();
    assert_eq!(memory.to_vec(PAGE_BYTES, 3), b"own");
    give(&pieces);
    assert!(!has_pages(&file, memory.address(), memory.len()));
    assert_eq!(memory.to_vec(PAGE_BYTES, 3), b"own");
    let again = take(at, memory.len()).unwrap();
    assert!(again[0].shared && in_file(&file, memory.address() + PAGE_BYTES as u64, 3) == b"own");
    give(&again);
}

#[test]
fn memory_that_was_moved_away_does_not_change_with_what_comes_there() {
    for moved_while_shared in [false, true] {
        let length = 20 * PAGE_BYTES;
        let ((memory, from), (moved, to)) = (anonymous(length), anonymous(length));
        memory.copy_from(0, b"first");
        let pieces = take(from, length).unwrap();
        if !moved_while_shared {
            give(&pieces);
        }
        move_away(from, to, length);
        assert_eq!((moved.to_vec(0, 5), memory.to_vec(0, 5)), (b"first".to_vec(), vec![0; 5]));
        memory.copy_from(0, b"other");
        let others = take(from, length).unwrap();
        assert!(others.iter().all(|piece| piece.shared), "{others:?}");
        let file = std::fs::File::from(file().unwrap());
        file.write_all_at(b"device", memory.address() + 64).unwrap();
        assert_eq!((moved.to_vec(0, 5), moved.to_vec(64, 6)), (b"first".to_vec(), vec![0; 6]));
        assert_eq!(memory.to_vec(64, 6), b"device");
        if moved_while_shared {
            give(&pieces);
        }
        give(&others);
        assert_eq!(
            (moved.to_vec(0, 5), memory.to_vec(0, 5)),
            (b"first".to_vec(), b"other".to_vec())
        );
        assert!(!has_pages(&file, memory.address(), length));
    }
}

#[test]
fn memory_that_was_mapped_anew_is_not_taken_for_shared() {
    let place = {
        let memory = DmaMemory::new(256 * PAGE_BYTES).unwrap();
        let at = usize::try_from(memory.address()).unwrap();
        // A program that frees what it registered.
        let _pieces = take(at, PAGE_BYTES).unwrap();
        at
    };
    let memory = DmaMemory::new(256 * PAGE_BYTES).unwrap();
    let at = usize::try_from(memory.address()).unwrap();
    memory.copy_from(0, b"new");
    let pieces = take(at, PAGE_BYTES).unwrap();
    let file = std::fs::File::from(file().unwrap());
    assert_eq!(in_file(&file, memory.address(), 3), b"new", "at {at:#x}, before at {place:#x}");
    give(&pieces);
}

#[test]
fn statics_and_the_heap_are_shared_with_what_is_beside_them() {
    static BYTES: [AtomicU8; 100] = [const { AtomicU8::new(7) }; 100];
    let heap: &'static [AtomicU8] =
        Box::leak((0..100).map(|_| AtomicU8::new(9)).collect::<Vec<_>>().into_boxed_slice());
    let file = std::fs::File::from(file().unwrap());
    for (bytes, value) in [(&BYTES[..], 7), (heap, 9)] {
        let memory = DmaMemory::from_static(bytes);
        let at = usize::try_from(memory.address()).unwrap();
        let pieces = take(at, memory.len()).unwrap();
        assert!(pieces.iter().all(|piece| piece.shared), "{pieces:?}");
        assert_eq!(in_file(&file, memory.address(), 100), [value; 100]);
        bytes[5].store(1, Ordering::Relaxed);
        assert_eq!(in_file(&file, memory.address() + 5, 1), [1]);
        give(&pieces);
    }
}

#[test]
fn the_stack_and_read_only_memory_are_left_alone() {
    let mut buffer = [3_u8; 3 * PAGE_BYTES];
    // SAFETY: only accessed by this handle until the end of the function.
    let memory =
        unsafe { DmaMemory::from_program(NonNull::from(&mut buffer).cast(), buffer.len()) };
    let at = usize::try_from(memory.address()).unwrap();
    let pieces = take(at, memory.len()).unwrap();
    assert!(pieces.iter().all(|piece| !piece.shared && piece.writable), "{pieces:?}");
    // The heap of a thread is shared, wherever its stack is.
    let heap = DmaMemory::new(64 * PAGE_BYTES).unwrap();
    let pieces = take(usize::try_from(heap.address()).unwrap(), heap.len()).unwrap();
    assert!(pieces.iter().all(|piece| piece.shared), "{pieces:?}");
    give(&pieces);

    let text = "a constant";
    let pieces = take(text.as_ptr().addr(), text.len()).unwrap();
    assert!(pieces.iter().all(|piece| !piece.shared && !piece.writable), "{pieces:?}");
    let error = take(1 << 46, 1).unwrap_err().to_string();
    assert!(error.contains("not mapped"), "{error}");
    assert!(take(0x1000, 0).is_err() && take(usize::MAX - 5, 10).is_err());
}

#[test]
fn messages_reach_memory_that_is_not_shared() {
    use super::super::protocol::{Command, DmaAccess, Header, flag, message};
    use super::super::service::{Window, Windows, serve};
    use super::super::socket::{Inbox, Received, send};

    let mut buffer = [3_u8; 64];
    // SAFETY: only accessed by this handle until the end of the function.
    let memory = unsafe { DmaMemory::from_program(NonNull::from(&mut buffer).cast(), 64) };
    let (own, other) = UnixStream::pair().unwrap();
    let windows = Windows::default();
    let window =
        Window { address: usize::try_from(memory.address()).unwrap(), length: 64, writable: true };
    lock(&windows).insert(0x1000, window);
    lock(&windows).insert(0x2000, Window { writable: false, ..window });
    lock(&windows).insert(0x3000, Window { address: 0x1000, ..window });
    let program = std::fs::File::options().read(true).write(true).open("/proc/self/mem").unwrap();
    let ask = |command: Command, address: u64, count: u64, data: &[u8]| {
        let head = DmaAccess { address, count, data: &[] }.head();
        send(own.as_fd(), &message(5, command as u16, 0, &[&head, data]), &[], true).unwrap();
        let Ok(Received::Message(reply)) = Inbox::default().receive(own.as_fd(), true) else {
            panic!("no answer")
        };
        let Header { id, flags, error, .. } = reply.header;
        assert_eq!((id, flags & flag::REPLY), (5, flag::REPLY));
        if error == 0 { Ok(reply.payload[16..].to_vec()) } else { Err(error) }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| serve(&other, &windows, &program));
        assert_eq!(ask(Command::DmaRead, 0x1010, 3, &[]), Ok(vec![3; 3]));
        assert_eq!(ask(Command::DmaWrite, 0x1020, 13, b"hello, memory"), Ok(vec![]));
        assert_eq!(memory.to_vec(32, 13), b"hello, memory");
        // Outside, read-only, unmapped since; and another command.
        for (address, count) in [(0x1030, 17), (0xfff, 1), (0x2000, 8), (0x3000, 8)] {
            let data = vec![1; usize::try_from(count).unwrap()];
            assert_eq!(ask(Command::DmaWrite, address, count, &data), Err(14), "{address:#x}");
        }
        assert_eq!(ask(Command::DmaRead, 0x2000, 1, &[]), Ok(vec![3]));
        assert_eq!(ask(Command::Reset, 0, 0, &[]), Err(95));
        own.shutdown(std::net::Shutdown::Both).unwrap();
    });
}

unsafe extern "C" {
    safe fn fork() -> i32;
    safe fn signal(number: i32, handler: extern "C" fn(i32)) -> usize;
    fn setitimer(which: i32, new: *const [i64; 4], old: *mut [i64; 4]) -> i32;
    safe fn _exit(status: i32) -> !;
}

/// A child that does this; assertions there would unwind into a harness that is not there.
pub(in super::super) fn forked(child: impl FnOnce() -> bool) -> Pid {
    match Pid::from_raw(fork()) {
        Some(child) => child,
        None => _exit(if child() { 7 } else { 1 }),
    }
}

/// Whether a child ended, and well.
pub(in super::super) fn was_right(child: Pid) -> bool {
    for _ in 0..20_000 {
        if let Some((_, status)) = waitpid(Some(child), WaitOptions::NOHANG).unwrap() {
            return status.exit_status() == Some(7);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    kill_process(child, Signal::KILL).unwrap();
    waitpid(Some(child), WaitOptions::empty()).unwrap();
    false
}

/// After a fork the parent's memory is the device's as before, and the child has copies: what it
/// writes there nobody sees, and what it registers is in a file of its own.
#[test]
fn a_child_has_copies() {
    let memory = DmaMemory::new(3 * PAGE_BYTES).unwrap();
    let at = usize::try_from(memory.address()).unwrap();
    memory.copy_from(100, b"parent");
    let pieces = take(at, memory.len()).unwrap();
    let parents = file().unwrap();
    let (socket, _other) = UnixStream::pair().unwrap();
    add_socket(socket.as_fd()).unwrap();
    let before = generation();
    let child = forked(|| {
        let mut right = generation() == before + 1 && memory.to_vec(100, 6) == b"parent";
        right &= !is_shared(at);
        memory.copy_from(100, b"child!");
        right &= take(at, 10).is_ok_and(|pieces| pieces[0].shared) && is_shared(at);
        memory.copy_from(100, b"again!");
        // The socket leads nowhere.
        right && rustix::io::read(&socket, &mut [0_u8; 1]) == Ok(0)
    });
    assert!(was_right(child));
    assert_eq!((generation(), memory.to_vec(100, 6)), (before, b"parent".to_vec()));
    let parents = std::fs::File::from(parents);
    parents.write_all_at(b"device", memory.address() + 100).unwrap();
    assert_eq!(memory.to_vec(100, 6), b"device");
    remove_socket(socket.as_fd());
    give(&pieces);
}

/// Memory that was registered once is as other memory in a child: what happens to the parent's
/// later does not concern it.
#[test]
fn a_child_has_what_was_given_back_for_itself() {
    let memory = DmaMemory::new(3 * PAGE_BYTES).unwrap();
    let at = usize::try_from(memory.address()).unwrap();
    memory.copy_from(100, b"before");
    give(&take(at, memory.len()).unwrap());
    let (own, childs) = UnixStream::pair().unwrap();
    let child = forked(|| {
        // When the parent went on.
        let _ = rustix::io::read(&childs, &mut [0_u8; 1]);
        memory.to_vec(100, 6) == b"before"
    });
    let pieces = take(at, memory.len()).unwrap();
    memory.copy_from(100, b"parent");
    rustix::io::write(&own, b"x").unwrap();
    assert!(was_right(child));
    give(&pieces);
}

/// Nothing is lost of what other threads write to pages that are shared at this moment.
#[test]
fn writers_are_held_off() {
    let memory = DmaMemory::new(4 * PAGE_BYTES).unwrap();
    let at = usize::try_from(memory.address()).unwrap();
    if super::super::hold::hold(at, PAGE_BYTES).is_none() {
        // Not in this environment; then the documentation promises nothing.
        return;
    }
    let done = core::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut count = 0_u64;
            while !done.load(Ordering::Acquire) {
                count += 1;
                for page in 0..4 {
                    memory.store_u64(page * PAGE_BYTES, count);
                }
                for page in 0..4 {
                    assert_eq!(memory.load_u64(page * PAGE_BYTES), count);
                }
            }
            count
        });
        for _ in 0..500 {
            let pieces = take(at, memory.len()).unwrap();
            assert!(pieces.iter().all(|piece| piece.shared), "{pieces:?}");
            give(&pieces);
        }
        done.store(true, Ordering::Release);
        assert!(writer.join().unwrap() > 100);
    });
}

/// Where [`count_signal`] counts, and what it should be there.
static COUNTER: AtomicUsize = AtomicUsize::new(0);
static SIGNALS: AtomicU64 = AtomicU64::new(0);

extern "C" fn count_signal(_: i32) {
    let place = with_exposed_provenance_mut(COUNTER.load(Ordering::Relaxed));
    // SAFETY: a word of the test's own memory.
    unsafe { AtomicU64::from_ptr(place) }.fetch_add(1, Ordering::Relaxed);
    SIGNALS.fetch_add(1, Ordering::Relaxed);
}

/// A handler on the thread that registers writes to the memory at any time: the thread must not wait
/// for itself, and nothing is lost.
#[test]
fn handlers_write_to_what_is_shared_at_this_moment() {
    const SIGALRM: i32 = 14;
    // In a process of its own, in which nobody else gets the signals.
    let child = forked(|| {
        let (memory, at) = anonymous(16 * PAGE_BYTES);
        COUNTER.store(at, Ordering::Relaxed);
        signal(SIGALRM, count_signal);
        // Every 50 us.
        // SAFETY: as long as the C library's structure.
        let is_set = unsafe { setitimer(0, &[0, 50, 0, 50], null_mut()) } == 0;
        let mut turns = 0;
        while SIGNALS.load(Ordering::Relaxed) < 1_000 || turns < 500 {
            turns += 1;
            match take(at, memory.len()) {
                Ok(pieces) => give(&pieces),
                Err(_) => return false,
            }
        }
        // SAFETY: as above.
        unsafe { setitimer(0, &[0; 4], null_mut()) };
        is_set && memory.load_u64(0) == SIGNALS.load(Ordering::Relaxed)
    });
    assert!(was_right(child));
}

/// A thread whose stack another one registered gives the pages back that it runs on.
#[test]
fn a_thread_may_give_back_its_own_stack() {
    // In a process of its own, which can be ended if it hangs.
    let child = forked(|| {
        let mut buffer = [3_u8; 3 * PAGE_BYTES];
        // SAFETY: only accessed by this handle until the end of the function.
        let memory =
            unsafe { DmaMemory::from_program(NonNull::from(&mut buffer).cast(), buffer.len()) };
        let at = usize::try_from(memory.address()).unwrap_or(0);
        // With the frames of the functions that are called here.
        let below = 4 * PAGE_BYTES;
        let take_there = || take(at - below, memory.len() + below).unwrap_or_default();
        let pieces = std::thread::scope(|scope| scope.spawn(take_there).join()).unwrap_or_default();
        let right = pieces.iter().any(|piece| piece.shared);
        give(&pieces);
        right && memory.to_vec(0, memory.len()).iter().all(|byte| *byte == 3)
    });
    assert!(was_right(child));
}
