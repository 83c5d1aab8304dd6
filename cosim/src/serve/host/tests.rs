use host_driver::dma::DmaMemory;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};

use super::*;

const PAGE_BYTES: u64 = 4096;

fn host() -> Host {
    Host::new(Notifier::start().unwrap())
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
    assert_eq!(host.files.counts(), (1, 0), "the file is mapped once");
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
    assert_eq!(host.files.counts(), (1, 0));
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
    assert_eq!(host.files.counts(), (0, 0));
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
fn files_that_could_end_the_server_are_not_reached() {
    let mut host = host();
    host.map(map(0x1000, 0, 4096), Some(file(false))).unwrap();
    // Behind its end, and not a file at all.
    assert_eq!(host.map(map(0x9000, 16 * 4096, 4096), Some(file(true))), Err(errno::INVALID));
    assert_eq!(host.map(map(0x9000, u64::MAX, 4096), Some(file(true))), Err(errno::INVALID));
    let (socket, _other) = std::os::unix::net::UnixStream::pair().unwrap();
    assert!(host.map(map(0x9000, 0, 4096), Some(socket.into())).is_err());
    // Other files of /proc, and one that is only named as an address space is.
    let status = std::fs::File::open("/proc/self/status").unwrap();
    assert!(host.map(map(0x9000, 0, 4096), Some(status.into())).is_err());
    let named = memfd_create("mem", MemfdFlags::CLOEXEC).unwrap();
    assert!(host.map(map(0x9000, 0, 4096), Some(named)).is_err());
    // Huge pages can be taken out of a file although it may not shrink.
    let flags = MemfdFlags::ALLOW_SEALING | MemfdFlags::HUGETLB;
    if let Ok(huge) = memfd_create("huge", flags) {
        ftruncate(&huge, 2 << 20).unwrap();
        fcntl_add_seals(&huge, SealFlags::SHRINK).unwrap();
        host.map(map(0x10_0000, 0, 2 << 20), Some(huge)).unwrap();
    }
    assert_eq!(host.files.counts(), (0, 0));
    assert!(host.read(0x1000, &mut [0; 8]).is_err() && host.failure().is_none());
}

/// Memory of this process, in pages of its own.
fn own_pages(count: usize) -> (DmaMemory, OwnedFd) {
    let memory = DmaMemory::new(count * 4096).unwrap();
    let space = std::fs::File::options().read(true).write(true).open("/proc/self/mem").unwrap();
    (memory, space.into())
}

#[test]
fn an_address_space_is_read_and_written() {
    let mut host = host();
    let (memory, fd) = own_pages(3);
    // The second page and the third, each with a descriptor of its own, side by side.
    for page in [1, 2] {
        let at = map(0x1000 * page, memory.address() + 0x1000 * page, 4096);
        host.map(at, Some(fd.try_clone().unwrap())).unwrap();
    }
    assert_eq!(host.files.counts(), (0, 1), "one descriptor is kept");
    for (length, at) in [(1, 0), (3, 5), (4, 8), (7, 1), (8, 16), (12, 20), (64, 64), (200, 4000)] {
        let data: Vec<u8> = (0..length).map(|byte| byte + 1).collect();
        host.write(0x1000 + at, &data);
        let place = 4096 + usize::try_from(at).unwrap();
        assert_eq!(memory.to_vec(place, data.len()), data, "{length} bytes at {at}");
        let mut back = vec![0; data.len()];
        host.read(0x1000 + at, &mut back).unwrap();
        assert_eq!(back, data);
    }
    assert!(host.read(0x2ffc, &mut [0; 8]).is_err(), "behind it");
    host.unmap(unmap(0, u64::MAX)).unwrap();
    assert_eq!(host.files.counts(), (0, 0));
}

/// A program that polls the last word of a record finds the rest of the record when it finds the word.
#[test]
fn the_word_that_is_polled_is_written_last() {
    let mut host = host();
    let (memory, fd) = own_pages(1);
    host.map(map(0x1000, memory.address(), 4096), Some(fd)).unwrap();
    const ROUNDS: u32 = 20_000;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1..=ROUNDS {
                let low = round % 255 + 1;
                // A status: DONE in the first byte of the last word. An event: the phase in its last.
                let status = [round, (0x0101_0100 * (round % 127)) | low];
                let event = [round, round, round, (round & 1) << 31];
                for (at, words) in [(0x1018, &status[..]), (0x1040, &event[..])] {
                    let data: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
                    host.write(at, &data);
                }
                while memory.load_u32(0x80) != round {
                    core::hint::spin_loop();
                }
            }
        });
        for round in 1..=ROUNDS {
            let low = round % 255 + 1;
            while memory.load_u32(0x1c) & 0xff != low {
                core::hint::spin_loop();
            }
            assert_eq!(memory.load_u32(0x1c), (0x0101_0100 * (round % 127)) | low);
            assert_eq!(memory.load_u32(0x18), round);
            while memory.load_u32(0x4c) >> 31 != round & 1 {
                core::hint::spin_loop();
            }
            assert!([0x40, 0x44, 0x48].iter().all(|at| memory.load_u32(*at) == round));
            memory.store_u32(0x80, round);
        }
    });
}

/// A write that was lost is followed by none: no completion says that it succeeded.
#[test]
fn a_client_that_unmaps_registered_memory_has_to_go() {
    let mut host = host();
    let (memory, fd) = own_pages(1);
    host.map(map(0x1000, memory.address(), 4096), Some(fd.try_clone().unwrap())).unwrap();
    // An address that no process has.
    host.map(map(0x10_0000, 1 << 62, 4096), Some(fd)).unwrap();
    assert!(host.read(0x10_0000, &mut [0; 8]).is_err() && host.failure().is_none());
    host.write(0x1000, b"before");
    (0..100).for_each(|_| host.write(0x9000, &[0; 4]));
    assert_eq!(host.take_faults().len(), 16);
    host.write(0x10_0010, &[1; 8]);
    host.write(0x1000, b"behind");
    assert_eq!(memory.to_vec(0, 6), b"before");
    assert!(host.failure().is_some_and(|why| why.contains("0x4000000000000010")));
    let faults = host.take_faults();
    assert!(faults.len() == 1 && faults[0].0.address == 0x10_0010, "{faults:?}");
    host.clear();
    assert!(host.failure().is_none() && host.mappings.is_empty());
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
    let accesses: Vec<_> = faults.iter().map(|(at, _)| (at.address, at.length, at.write)).collect();
    assert_eq!(accesses, [(0x2000, 16, false), (0x3000, 4, true)]);
    assert!(faults[0].1.contains("neither with") && faults[1].1.contains("nothing"), "{faults:?}");
    (0..100).for_each(|_| host.write(0x3000, &[0; 4]));
    assert_eq!(host.take_faults().len(), 14, "16 in all");
    host.clear();
    host.write(0x3000, &[0; 4]);
    assert_eq!(host.take_faults().len(), 1, "the next client's are reported again");
}
