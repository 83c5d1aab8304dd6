use super::*;

#[test]
fn copies_keep_every_byte_at_every_alignment() {
    let memory = DmaMemory::new(64).unwrap();
    for offset in 0..17 {
        for length in 0..32 {
            memory.fill(0xee);
            let data: Vec<u8> = (1..=length).collect();
            memory.copy_from(offset, &data);
            assert_eq!(memory.to_vec(offset, data.len()), data);
            if offset > 0 {
                assert_eq!(memory.to_vec(offset - 1, 1), [0xee]);
            }
            assert_eq!(memory.to_vec(offset + data.len(), 1), [0xee]);
        }
    }
}

#[test]
fn lines_are_aligned_and_inside() {
    let memory = DmaMemory::new(200).unwrap();
    let line = memory.line(64).unwrap();
    line.store_u64(8, 0x0807_0605_0403_0201);
    line.store_u32(60, 7);
    assert_eq!(memory.to_vec(72, 4), [1, 2, 3, 4]);
    assert_eq!((line.load_u32(12), memory.load_u32(124)), (0x0807_0605, 7));
    for bad in [8, 32, 192, 256, usize::MAX] {
        assert!(memory.line(bad).is_none(), "{bad}");
    }
    assert!(memory.slice(32, 160).unwrap().line(32).is_some());
}

#[test]
fn memory_counted_apart_stays_when_the_other_handles_are_gone() {
    let memory = DmaMemory::new(64).unwrap();
    let apart = memory.slice(8, 16).unwrap().counted_apart();
    memory.copy_from(8, b"stays");
    drop(memory);
    assert_eq!(apart.to_vec(0, 5), b"stays");
}

#[test]
fn slices_share_bytes_and_stay_inside() {
    let memory = DmaMemory::new(4096).unwrap();
    let slice = memory.slice(100, 20).unwrap();
    slice.copy_from(0, b"hello");
    assert_eq!(memory.to_vec(100, 5), b"hello");
    assert_eq!(slice.address(), memory.address() + 100);
    assert!(slice.slice(10, 11).is_err());
    assert!(memory.slice(usize::MAX, 2).is_err());
    assert!(DmaMemory::new(0).is_err());
    assert!(DmaMemory::new(usize::MAX - 5000).is_err());
}

#[test]
fn adopted_memory_is_used_in_place() {
    let mut bytes = vec![0_u8; 4096 + 100];
    let base = bytes.as_mut_ptr().wrapping_add(7);
    // SAFETY: `bytes` outlives `memory`, and is not touched while it is there.
    let memory = unsafe { DmaMemory::adopt(base, 4093) }.unwrap();
    memory.copy_from(0, b"in place");
    assert_eq!((memory.address(), memory.len()), (base.addr() as u64, 4093));
    assert_eq!(memory.slice(5, 3).unwrap().page_offset(), (base.addr() + 5) % PAGE_BYTES);
    drop(memory);
    assert_eq!(&bytes[7..15], b"in place");
    for (base, length) in
        [(core::ptr::null_mut(), 1), (base, 0), (base, usize::MAX), (base, usize::MAX / 2 + 1)]
    {
        // SAFETY: none of these ranges is accepted.
        assert!(unsafe { DmaMemory::adopt(base, length) }.is_err());
    }
}

#[test]
fn words_are_loaded_from_any_place_without_what_follows() {
    let memory = DmaMemory::new(64).unwrap();
    memory.copy_from(0, &(1..=64).collect::<Vec<u8>>());
    for offset in 0..60 {
        for length in 0..=24 {
            let mut words = [0; 3];
            let located = memory.words(offset, length);
            assert_eq!(located.is_some(), offset + length.next_multiple_of(8) <= 64);
            let mut bytes = [[0; 8]; 3];
            if let Some(located) = located {
                located.read(|at, word| words[at] = word);
                memory.copy_to(offset, &mut bytes.as_flattened_mut()[..length]);
            }
            assert_eq!(words, bytes.map(u64::from_le_bytes), "{offset} {length}");
        }
    }
    assert!(memory.words(65, 0).is_none());
    for (offset, length) in [(0, usize::MAX), (0, usize::MAX - 6), (usize::MAX, 8)] {
        assert!(memory.words(offset, length).is_none());
    }
}

#[test]
fn words_are_little_endian() {
    let memory = DmaMemory::new(16).unwrap();
    memory.store_u32(4, 0x0403_0201);
    assert_eq!(memory.to_vec(4, 4), [1, 2, 3, 4]);
    memory.store_u64(8, 1);
    assert_eq!(memory.load_u64(8), 1);
    assert_eq!(memory.load_u32(12), 0);
}

#[test]
fn copies_are_exact_wherever_they_begin() {
    let (source, target) = (DmaMemory::new(4096).unwrap(), DmaMemory::new(4096).unwrap());
    let bytes: Vec<u8> = (0..4096_u32).map(|i| u8::try_from(i % 251).unwrap()).collect();
    source.copy_from(0, &bytes);
    for (from, to) in [(0, 0), (8, 16), (3, 3), (3, 8), (5, 2)] {
        for length in [0, 1, 7, 8, 9, 63, 64, 255, 256, 257, 1000] {
            target.fill(0xee);
            target.copy_part(to, &source, from, length);
            assert_eq!(target.to_vec(to, length), bytes[from..from + length]);
            assert!(target.to_vec(0, to).iter().all(|byte| *byte == 0xee), "{from} {to} {length}");
            assert_eq!(target.to_vec(to + length, 8), [0xee; 8], "{from} {to} {length}");
        }
    }
}

#[test]
fn fronts_of_words_are_exact_wherever_they_begin() {
    let memory = DmaMemory::new(4096).unwrap();
    let words: [u64; 5] = core::array::from_fn(|i| 0x0807_0605_0403_0201 * (i as u64 + 1));
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    for at in 8..17 {
        for length in 0..=40 {
            memory.fill(0xee);
            memory.store_front(at, &words, length);
            assert_eq!(memory.to_vec(at, length), bytes[..length], "{at} {length}");
            assert_eq!(memory.to_vec(at + length, 8), [0xee; 8], "{at} {length}");
            assert!(memory.to_vec(0, at).iter().all(|byte| *byte == 0xee), "{at} {length}");
            let mut back = [0; 5];
            memory.load_front(at, &mut back, length);
            let back: Vec<u8> = back.iter().flat_map(|word| word.to_le_bytes()).collect();
            assert_eq!(back[..length], bytes[..length], "{at} {length}");
            assert!(back[length..].iter().all(|byte| *byte == 0), "{at} {length}");
        }
    }
}

#[test]
fn a_published_file_is_reserved_and_mapped_as_far_as_it_goes() {
    use std::os::fd::AsFd;
    let path = std::env::temp_dir().join(format!("viaduct-published-{}", std::process::id()));
    let mut options = std::fs::OpenOptions::new();
    let file = options.read(true).write(true).create(true).truncate(true).open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let refused = |length| DmaMemory::map_published(file.as_fd(), length).unwrap_err().kind();
    assert_eq!(refused(1), std::io::ErrorKind::InvalidInput);
    reserve(file.as_fd(), 2 * PAGE_BYTES).unwrap();
    assert_eq!(refused(2 * PAGE_BYTES + 1), std::io::ErrorKind::InvalidInput);
    let [one, other] =
        [(); 2].map(|()| DmaMemory::map_published(file.as_fd(), 2 * PAGE_BYTES).unwrap());
    assert_eq!(one.load_u64(PAGE_BYTES), 0);
    one.store_u64(PAGE_BYTES, 7);
    assert_eq!(other.load_u64(PAGE_BYTES), 7);
}
