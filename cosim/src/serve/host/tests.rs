use std::time::Duration;

use super::*;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};

fn host() -> Host {
    Host::new(Bell::start().unwrap())
}

/// With a page that is reached by message, and the client's end for these.
fn host_by_message() -> (Host, UnixStream) {
    let mut host = host();
    let (own, other) = UnixStream::pair().unwrap();
    host.set_twin(own);
    host.map(map(0x1000, 0, 4096), None).unwrap();
    (host, other)
}

fn file(sealed: bool) -> OwnedFd {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = memfd_create("test", flags).unwrap();
    ftruncate(&file, 16 * PAGE_BYTES).unwrap();
    if sealed {
        fcntl_add_seals(&file, SealFlags::SHRINK).unwrap();
    }
    file
}

fn map(address: u64, offset: u64, size: u64) -> DmaMap {
    DmaMap { flags: dma::READ | dma::WRITE, offset, address, size }
}

fn unmap(address: u64, size: u64) -> DmaUnmap {
    DmaUnmap { flags: 0, address, size }
}

#[test]
fn devices_reach_what_is_mapped_and_nothing_else() {
    let mut host = host();
    let fd = file(true);
    // Two mappings side by side, of other places of the file.
    host.map(map(0x10000, 0, 4096), Some(fd.try_clone().unwrap())).unwrap();
    host.map(map(0x11000, 8192, 4096), Some(fd.try_clone().unwrap())).unwrap();
    assert_eq!(host.windows.len(), 1, "the file is mapped once");
    let data: Vec<u8> = (0..100).collect();
    host.write(0x10fce, &data);
    let mut back = vec![0; 100];
    host.read(0x10fce, &mut back).unwrap();
    assert_eq!(back, data);
    let mut there = [0; 50];
    rustix::io::pread(&fd, &mut there, 8192).unwrap();
    assert_eq!(there[..], data[50..]);
    assert!(host.read(0xfff8, &mut back).is_err() && host.read(0x11fff, &mut back).is_err());
    assert!(host.read(u64::MAX - 3, &mut back).is_err());
    host.write(u64::MAX - 3, &data);
    host.unmap(unmap(0x10000, 0x1000)).unwrap();
    assert!(host.read(0x10000, &mut back[..8]).is_err());
    assert!(host.read(0x11000, &mut back[..8]).is_ok());
}

#[test]
fn windows_go_with_their_last_mapping_and_have_a_bound() {
    let mut host = host();
    let stays = file(true);
    host.map(map(0x1000, 0, 4096), Some(stays.try_clone().unwrap())).unwrap();
    // A file for each buffer.
    for _ in 0..1000 {
        host.map(map(0x10_0000, 0, 4096), Some(file(true))).unwrap();
        host.unmap(unmap(0x10_0000, 4096)).unwrap();
    }
    assert_eq!(host.windows.len(), 1);
    let mut mapped = 1;
    let end = loop {
        let result = host.map(map(0x10_0000 + 4096 * mapped, 0, 4096), Some(file(true)));
        match result {
            Ok(()) => mapped += 1,
            Err(error) => break error,
        }
    };
    assert_eq!((end, mapped), (errno::NO_SPACE, 512));
    // What has a window needs no other.
    host.map(map(0x2000, 8192, 4096), Some(stays.try_clone().unwrap())).unwrap();
    host.unmap(unmap(0x1000, 4096)).unwrap();
    host.write(0x2000, b"here");
    assert!(host.take_faults().is_empty(), "the other mapping keeps it");
    host.unmap(unmap(0, u64::MAX)).unwrap();
    assert!(host.windows.is_empty());
    // Sparse files are as large as one likes.
    let large = file(true);
    ftruncate(&large, 1 << 42).unwrap();
    let whole = map(0, 0, (1 << 40) + 4096);
    assert_eq!(host.map(whole, Some(large.try_clone().unwrap())), Err(errno::NO_SPACE));
    host.map(map(0, 0, 1 << 40), Some(large.try_clone().unwrap())).unwrap();
    assert_eq!(host.map(map(1 << 41, 1 << 41, 4096), Some(large)), Err(errno::NO_SPACE));
}

#[test]
fn rights_count() {
    let mut host = host();
    host.map(DmaMap { flags: dma::READ, ..map(0x1000, 0, 4096) }, Some(file(true))).unwrap();
    host.write(0x1000, b"no");
    let mut back = [1; 2];
    host.read(0x1000, &mut back).unwrap();
    assert_eq!(back, [0; 2]);
}

#[test]
fn mappings_neither_overlap_nor_are_cut() {
    let mut host = host();
    host.map(map(0x4000, 0, 0x2000), None).unwrap();
    for (address, size) in [(0x4000, 0x1000), (0x3000, 0x1001), (0x5fff, 1), (0, u64::MAX)] {
        assert_eq!(host.map(map(address, 0, size), None), Err(errno::EXIST), "{address:#x}");
    }
    for (address, size) in [(0x4000, 0x1000), (0x5000, 0x1000), (0x3000, 0x2000), (0x5000, 0)] {
        assert_eq!(host.unmap(unmap(address, size)), Err(errno::INVALID), "{address:#x}");
    }
    // To the very end, and where nothing is.
    host.map(map(u64::MAX - 4095, 0, 4096), None).unwrap();
    host.unmap(unmap(0x5_0000, 0x1000)).unwrap();
    host.unmap(unmap(1 << 63, 1 << 63)).unwrap();
    host.unmap(unmap(0, u64::MAX)).unwrap();
    assert!(host.mappings.is_empty());
}

#[test]
fn files_that_could_end_the_server_are_not_mapped() {
    let mut host = host();
    host.map(map(0x1000, 0, 4096), Some(file(false))).unwrap();
    assert!(host.windows.is_empty(), "it is left to messages");
    // Behind its end, and not a memory file at all.
    assert_eq!(host.map(map(0x9000, 16 * 4096, 4096), Some(file(true))), Err(errno::INVALID));
    assert_eq!(host.map(map(0x9000, u64::MAX, 4096), Some(file(true))), Err(errno::INVALID));
    let (socket, _other) = UnixStream::pair().unwrap();
    assert!(host.map(map(0x9000, 0, 4096), Some(socket.into())).is_err());
    // Huge pages can be taken out of a file although it may not shrink.
    let flags = MemfdFlags::ALLOW_SEALING | MemfdFlags::HUGETLB;
    if let Ok(huge) = memfd_create("huge", flags) {
        ftruncate(&huge, 2 << 20).unwrap();
        fcntl_add_seals(&huge, SealFlags::SHRINK).unwrap();
        host.map(map(0x10_0000, 0, 2 << 20), Some(huge)).unwrap();
        assert!(host.windows.is_empty(), "it is left to messages too");
    }
    // What goes by message is whole pages.
    for (address, size) in [(0x9001, 4096), (0x9000, 1), (0x9000, 4097)] {
        assert_eq!(host.map(map(address, 0, size), None), Err(errno::INVALID), "{address:#x}");
    }
    // Without a socket for commands nothing answers.
    assert!(host.read(0x1000, &mut [0; 8]).is_err() && !host.has_failed());
}

#[test]
fn a_client_that_does_not_answer_has_to_go() {
    let (mut host, other) = host_by_message();
    drop(other);
    assert!(host.read(0x1000, &mut [0; 8]).is_err() && host.has_failed());
    host.clear();
    assert!(!host.has_failed() && host.mappings.is_empty());
}

/// Each answer is in time, but they add up.
#[test]
fn a_client_whose_answers_are_slow_has_to_go() {
    let (mut host, other) = host_by_message();
    // What is told does not depend on how much was told before.
    (0..100).for_each(|_| host.write(0x9000, &[0; 4]));
    assert_eq!(host.take_faults().len(), 16);
    let slow = std::thread::spawn(move || {
        let mut inbox = Inbox::default();
        while let Ok(Received::Message(asked)) = inbox.receive(other.as_fd(), true) {
            std::thread::sleep(Duration::from_millis(300));
            let head = DmaAccess { address: 0x1000, count: 8, data: &[] }.head();
            let parts: &[&[u8]] = &[&head, &[0; 8]];
            let answer = message(asked.header.id, asked.header.command, flag::REPLY, parts);
            if send(other.as_fd(), &answer, &[], true).is_err() {
                return;
            }
        }
    });
    let answered = (0..20).take_while(|_| host.read(0x1000, &mut [0; 8]).is_ok()).count();
    assert!((1..10).contains(&answered) && host.has_failed(), "{answered}");
    slow.join().unwrap();
    let faults = host.take_faults();
    assert!(faults.len() == 1 && faults[0].1.contains("keep others waiting"), "{faults:?}");
    // The next client of the NIC has no more time.
    host.clear();
    let now = Instant::now();
    assert!(host.budget.end(now) < now + Duration::from_millis(500));
}

#[test]
fn a_client_that_answers_byte_by_byte_has_to_go() {
    let (mut host, other) = host_by_message();
    let dripping = std::thread::spawn(move || {
        let Ok(Received::Message(asked)) = Inbox::default().receive(other.as_fd(), true) else {
            panic!("nothing is asked")
        };
        let answer = message(asked.header.id, asked.header.command, flag::REPLY, &[&[0; 4000]]);
        // Ends when the other end is closed.
        answer.iter().all(|byte| {
            std::thread::sleep(Duration::from_millis(20));
            send(other.as_fd(), &[*byte], &[], true).is_ok()
        })
    });
    assert!(host.read(0x1000, &mut [0; 8]).is_err() && host.has_failed());
    assert!(!dripping.join().unwrap(), "it was heard to its end");
    let faults = host.take_faults();
    assert!(faults.len() == 1 && faults[0].1.contains("did not answer"), "{faults:?}");
}

#[test]
fn what_fails_is_reported_with_its_reason_and_not_for_ever() {
    let mut host = host();
    host.map(map(0x1000, 0, 4096), Some(file(true))).unwrap();
    host.map(map(0x2000, 0, 4096), None).unwrap();
    // It begins where it is mapped and goes on where it is not reached.
    assert!(host.read(0x1ff8, &mut [0; 16]).is_err());
    host.write(0x3000, &[0; 4]);
    let faults = host.take_faults();
    let told: Vec<_> = faults.iter().map(|(at, _)| (at.address, at.length, at.write)).collect();
    assert_eq!(told, [(0x2000, 16, false), (0x3000, 4, true)]);
    assert!(faults[0].1.contains("second socket") && faults[1].1.contains("nothing"), "{faults:?}");
    (0..100).for_each(|_| host.write(0x3000, &[0; 4]));
    assert_eq!(host.take_faults().len(), 14, "16 in all");
    host.clear();
    host.write(0x3000, &[0; 4]);
    assert_eq!(host.take_faults().len(), 1, "the next client's are told again");
}
