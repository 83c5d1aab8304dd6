//! Sends without a descriptor ([`Vi::send_now`]): what they carry arrives as any message does, and when
//! one cannot be carried out, nothing has happened.

mod support;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use port::DmaMemory;
use soft_nic::clan::ViaNode;
use soft_nic::shm::ShmNode;
use vipl::{
    Descriptor, Extensions, MemAttributes, NetAddress, Nic, Region, Reliability, Vi, ViAttributes,
    VipReturn, Waiting,
};

const BOUND: Duration = Duration::from_secs(20);
const DATA: usize = 4096;
const BUFFER: usize = 40_000;
const PLACES: usize = 4;

struct End {
    nic: Nic,
    region: Region,
    vi: Vi,
}

impl End {
    fn new(folder: &std::path::Path, name: &str, memory: DmaMemory) -> Self {
        let port = Arc::new(ShmNode::open_in(folder, Some(name)).unwrap().port().unwrap());
        let nic = Nic::open_with(ViaNode::new(port).unwrap().port().unwrap(), Waiting::Poll);
        let tag = nic.create_ptag().unwrap();
        let region = nic.register_mem(&memory, MemAttributes::new(tag)).unwrap();
        let attributes = ViAttributes::new(Reliability::Reception, tag);
        let vi = nic.create_vi(attributes, None, None).unwrap();
        Self { nic, region, vi }
    }

    /// A descriptor whose data is in two pieces.
    fn descriptor(&self, place: usize, length: u32) -> Descriptor {
        let descriptor = self.region.descriptor(128 * place, 2).unwrap();
        let (start, first) = (DATA + place * BUFFER, length / 3);
        let second = self.region.segment(start + first as usize, length - first);
        descriptor.prepare(&[self.region.segment(start, first), second], None).unwrap();
        descriptor
    }

    fn post(&self, place: usize, length: u32) {
        self.vi.post_recv(&self.descriptor(place, length)).unwrap();
    }

    /// The next message, which is in this place.
    fn receive(&self, place: usize) -> (Vec<u8>, u32) {
        let done = self.vi.recv_wait(BOUND).unwrap();
        let length = done.length() as usize;
        (self.region.memory().to_vec(DATA + place * BUFFER, length), done.immediate())
    }
}

struct Pair {
    folder: PathBuf,
    a: End,
    b: End,
}

impl Pair {
    /// Two ends, whose VIs are connected. The memory of `b` is in a file, or its own.
    fn new(test: &str, is_shared: bool, extensions: Extensions) -> Self {
        let folder = support::folder(test);
        let bytes = DATA + PLACES * BUFFER;
        let memory = if is_shared { DmaMemory::shared(bytes) } else { DmaMemory::new(bytes) };
        let a = End::new(&folder, "a", DmaMemory::new(bytes).unwrap());
        let b = End::new(&folder, "b", memory.unwrap());
        for end in [&a, &b] {
            end.vi.set_extensions(extensions).unwrap();
        }
        let pair = Self { folder, a, b };
        assert!(!pair.a.vi.send_now(b"early", None), "a VI that is not connected");
        pair.connect();
        pair
    }

    fn connect(&self) {
        let place = NetAddress::new(&self.b.nic.query().local_address, b"direct");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                self.b.nic.connect_wait(&place, BOUND).unwrap().accept(&self.b.vi).unwrap();
            });
            let local = NetAddress::new(&self.a.nic.query().local_address, b"");
            // Refused until the other thread waits.
            while let Err(error) = self.a.vi.connect_request(&local, &place, BOUND) {
                assert_eq!(error.code, VipReturn::NoMatch);
            }
        });
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn pattern(length: usize) -> Vec<u8> {
    (0..=250).cycle().take(length).collect()
}

#[test]
fn every_length_arrives_whole_with_its_immediate_data_and_nothing_completes() {
    let Pair { a, b, .. } = &Pair::new("direct-lengths", true, Extensions::default());
    for length in [0, 1, 7, 8, 40, 41, 64, 255, 256, 257, 4096, 20_001, BUFFER] {
        let data = pattern(length);
        b.post(1, u32::try_from(BUFFER).unwrap());
        let immediate = u32::try_from(length).unwrap();
        assert!(a.vi.send_now(&data, Some(immediate)), "{length}");
        assert_eq!(b.receive(1), (data, immediate), "{length}");
    }
    let nothing = a.vi.send_done().unwrap_err();
    assert!(nothing.descriptor.is_none());
}

#[test]
fn what_the_processor_cannot_store_a_descriptor_sends() {
    let Pair { a, b, .. } = &Pair::new("direct-private", false, Extensions::default());
    b.post(0, 1000);
    b.post(1, 1000);
    assert!(a.vi.send_now(&pattern(40), None));
    assert!(!a.vi.send_now(&pattern(41), None));
    a.region.memory().copy_from(DATA, &pattern(41));
    a.vi.post_send(&a.descriptor(0, 41)).unwrap();
    assert_eq!(b.receive(0).0, pattern(40));
    assert_eq!(b.receive(1).0, pattern(41));
}

#[test]
fn without_a_receive_that_is_long_enough_nothing_happens() {
    let pair = Pair::new("direct-none", true, Extensions::default());
    let Pair { a, b, .. } = &pair;
    assert!(!a.vi.send_now(b"nobody", None));
    b.post(0, 100);
    assert!(!a.vi.send_now(&pattern(101), None));
    assert!(a.vi.send_now(&pattern(100), None));
    assert_eq!(b.receive(0).0, pattern(100));
    b.post(0, 100);
    b.vi.disconnect().unwrap();
    a.nic.progress();
    assert!(!a.vi.send_now(b"too late", None));
}

#[test]
fn a_message_does_not_pass_one_that_waits() {
    let extensions = Extensions { defer_send: true, ..Extensions::default() };
    let Pair { a, b, .. } = &Pair::new("direct-order", true, extensions);
    a.region.memory().copy_from(DATA, b"first");
    a.vi.post_send(&a.descriptor(0, 5)).unwrap();
    b.post(0, 100);
    b.post(1, 100);
    assert!(!a.vi.send_now(b"second", None));
    a.vi.send_wait(BOUND).unwrap();
    assert!(a.vi.send_now(b"second", None));
    assert_eq!((b.receive(0).0, b.receive(1).0), (b"first".to_vec(), b"second".to_vec()));
}
