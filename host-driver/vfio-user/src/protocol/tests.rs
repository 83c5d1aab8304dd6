use proptest::prelude::*;

use super::*;

#[test]
fn a_header_is_as_the_protocol_says() {
    let header = Header { id: 0x1234, command: 9, size: 32, flags: flag::NO_REPLY, error: 0 };
    let bytes = [0x34, 0x12, 9, 0, 32, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(header.to_bytes(), bytes);
    assert_eq!(Header::from_bytes(&bytes), header);
    assert!(!header.wants_reply() && !header.is_reply());
    let refused = error_reply(header, errno::INVALID);
    let refused = Header::from_bytes(refused.first_chunk().unwrap());
    assert_eq!((refused.id, refused.command, refused.error), (0x1234, 9, 22));
    assert!(refused.is_reply() && refused.flags & flag::ERROR != 0);
    for process in [0, 4711] {
        let busy = busy_reply(header, process);
        let refused = Header::from_bytes(busy.first_chunk().unwrap());
        assert_eq!((refused.error, refused.size), (errno::BUSY, 20));
        assert!(refused.is_reply() && refused.flags & flag::ERROR != 0);
        let named = busy_process(&busy[HEADER_BYTES..]);
        assert_eq!(named, Some(process).filter(|process| *process != 0));
    }
    assert_eq!(busy_process(&[]), None);
    let last = farewell("reason");
    let header = Header::from_bytes(last.first_chunk().unwrap());
    assert_eq!(farewell_reason(header, &last[HEADER_BYTES..]).as_deref(), Some("reason"));
    assert_eq!(farewell_reason(refused, b"reason"), None);
}

#[test]
fn versions_say_what_they_say() {
    let own = Version::OWN;
    let observer = Version { observer: true, owner: Some(4711), ..own };
    for version in [own, observer] {
        assert_eq!(Version::parse(&version.to_bytes()), Some(version));
    }
    // Nothing said: defaults. What libvfio-user and QEMU say: taken.
    let bare = Version::parse(&[0, 0, 1, 0]).unwrap();
    assert_eq!((bare.version, bare.max_fds), ((0, 1), 1));
    let text = b"\0\0\0\0{\"capabilities\":{\"max_msg_fds\":8,\"migration\":{\"pgsize\":4096}}}\0";
    assert_eq!(Version::parse(text).unwrap().max_fds, 8);
    for broken in
        [&b""[..], b"\0\0\0", b"\0\0\0\0{", b"\0\0\0\0{\"capabilities\":{\"max_msg_fds\":-1}}"]
    {
        assert_eq!(Version::parse(broken), None, "{broken:?}");
    }
}

#[test]
fn ranges_may_end_at_the_end_but_not_behind_it() {
    let whole = |address: u64, size: u64| {
        DmaMap::parse(&DmaMap { flags: 3, offset: 0, address, size }.to_bytes()).is_some()
    };
    assert!(whole(u64::MAX - 4095, 4096));
    assert!(!whole(u64::MAX - 4095, 4097));
    assert!(!whole(0, 0));
    let short = &DmaMap { flags: 0, offset: 0, address: 0, size: 1 }.to_bytes()[..31];
    assert_eq!(DmaMap::parse(short), None);
}

#[test]
fn data_must_be_as_long_as_its_count() {
    let head = RegionAccess { offset: 8, region: 2, count: 4, data: &[] }.head();
    let with = |data: &[u8]| [&head[..], data].concat();
    assert!(RegionAccess::parse(&with(&[1; 4]), true).is_some());
    assert!(RegionAccess::parse(&with(&[1; 3]), true).is_none());
    assert!(RegionAccess::parse(&with(&[1; 5]), true).is_none());
    assert!(RegionAccess::parse(&with(&[]), false).is_some());
    let wraps = RegionAccess { offset: u64::MAX, region: 2, count: 4, data: &[] }.head();
    assert!(RegionAccess::parse(&wraps, false).is_none());
}

proptest! {
    #[test]
    fn what_was_written_is_read(
        flags: u32, offset: u64, address in 0..u64::MAX / 2, size in 1..u64::MAX / 2,
        index: u32, start in 0..1000_u32, count in 0..1000_u32,
        data in proptest::collection::vec(any::<u8>(), 0..40),
    ) {
        let map = DmaMap { flags, offset, address, size };
        prop_assert_eq!(DmaMap::parse(&map.to_bytes()), Some(map));
        let unmap = DmaUnmap { flags, address, size };
        prop_assert_eq!(DmaUnmap::parse(&unmap.to_bytes()), Some(unmap));
        let info = RegionInfo { flags, index, size };
        prop_assert_eq!(RegionInfo::parse(&info.to_bytes()), Some(info));
        let info = IrqInfo { flags, index, count };
        prop_assert_eq!(IrqInfo::parse(&info.to_bytes()), Some(info));
        let irqs = SetIrqs { flags, index, start, count, data: &data };
        let bytes = irqs.to_bytes();
        prop_assert_eq!(SetIrqs::parse(&bytes), Some(irqs));
        let length = u32::try_from(data.len()).unwrap();
        let access = RegionAccess { offset: address, region: index, count: length, data: &data };
        let bytes = [&access.head()[..], &data].concat();
        prop_assert_eq!(RegionAccess::parse(&bytes, true), Some(access));
    }

    /// No bytes make a parser panic, and none gives a range that wraps.
    #[test]
    fn any_bytes_are_taken_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        let _ = Version::parse(&bytes);
        if let Some(map) = DmaMap::parse(&bytes) {
            prop_assert!(map.address.checked_add(map.size - 1).is_some());
        }
        let _ = (DmaUnmap::parse(&bytes), DeviceInfo::parse(&bytes), RegionInfo::parse(&bytes));
        let _ = (IrqInfo::parse(&bytes), SetIrqs::parse(&bytes));
        for data in [false, true] {
            if let Some(access) = RegionAccess::parse(&bytes, data) {
                prop_assert!(access.count as usize <= DATA_MAX);
                prop_assert!(!data || access.data.len() == access.count as usize);
            }
        }
        if let Some(header) = bytes.first_chunk() {
            prop_assert_eq!(&Header::from_bytes(header).to_bytes(), header);
        }
    }
}
