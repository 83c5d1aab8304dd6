//! What happens to cards while a program has them. The tests here run in a guest, which has two of
//! them (`super::cards_survive_what_happens_to_them`).

use core::sync::atomic::{AtomicU32, Ordering};
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use host_driver::address::NodeAddress;
use host_driver::bus::Bus;
use host_driver::bus::trace::TraceBus;
use host_driver::bus::vfio::{Sysfs, VfioBus};
use host_driver::nic::{Nic, NicConfig};
use nic_regs::desc::status;
use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use tests::served::{SOON, say};
use tests::{Buffer, Node, error_bits, pattern};
use vipl::NetAddress;
use vipl::{DmaMemory, ErrorCode, MemAttributes, Reliability, Vi, VipReturn};

/// The cards of the guest.
const CARDS: [&str; 2] = ["0000:00:10.0", "0000:00:11.0"];

fn bus(card: usize) -> Arc<VfioBus> {
    let end = Instant::now() + SOON;
    loop {
        // The kernel may still be taking it from the program before.
        match VfioBus::open(CARDS[card]) {
            Ok(bus) => return bus,
            Err(error) => assert!(Instant::now() < end, "{error}"),
        }
        thread::sleep(Duration::from_millis(5));
    }
}

fn config(bus: &VfioBus) -> NicConfig {
    let (node, nodes) = bus.node();
    NicConfig::simulated(node, nodes)
}

fn open(card: usize) -> Node {
    let bus = bus(card);
    let config = config(&bus);
    Node::open(bus, &config)
}

/// Tests that run in a guest. Elsewhere there are no cards.
macro_rules! in_guest {
    ($($name:ident),+ $(,)?) => {
        mod inside {
            $(#[test]
            fn $name() {
                if host_driver::bus::vfio::Sysfs::default().find(super::CARDS[0]).is_ok() {
                    super::$name();
                }
            })+
        }
    };
}

/// A connected pair of VIs.
fn connected(a: &Node, b: &Node) -> (Vi, Vi) {
    let level = Reliability::Reception;
    let (at_a, at_b) = (a.open_vi(level), b.open_vi(level));
    thread::scope(|scope| {
        scope.spawn(|| {
            let request = b.nic.connect_wait(&b.address(b"card"), SOON).unwrap();
            request.accept(&at_b).unwrap();
        });
        at_a.connect_request(&a.address(b""), &b.address(b"card"), SOON).unwrap();
    });
    (at_a, at_b)
}

fn assert_works(a: &Node, b: &Node) {
    let (from, to) = connected(a, b);
    let (send, recv) = (Buffer::new(a, 5000), Buffer::new(b, 5000));
    send.set(&pattern(5000, 3));
    to.post_recv(&recv.descriptor).unwrap();
    from.post_send(&send.descriptor).unwrap();
    to.recv_wait(SOON).unwrap();
    from.send_wait(SOON).unwrap();
    assert!(recv.data() == pattern(5000, 3));
}

fn folder(card: usize) -> PathBuf {
    Sysfs::default().find(CARDS[card]).unwrap().folder()
}

/// Traffic from card 0 to card 1, while `event` happens to card 1. Both ends must learn of it; `why`
/// is what the program at card 1 gets to read.
fn in_traffic(event: impl FnOnce(), why: &str) {
    let (a, b) = (open(0), open(1));
    let (from, to) = connected(&a, &b);
    let (write, target) = (Buffer::new(&a, 3000), b.open_region(3000));
    let segment = write.region.segment(1024, 3000);
    write.descriptor.prepare_rdma_write(target.remote(0), &[segment], None).unwrap();
    let never = Buffer::new(&b, 64);
    to.post_recv(&never.descriptor).unwrap();
    let written = AtomicU32::new(0);
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            loop {
                from.post_send(&write.descriptor).unwrap();
                if let Err(error) = from.send_wait(SOON) {
                    return error.code;
                }
                written.fetch_add(1, Ordering::Relaxed);
            }
        });
        while written.load(Ordering::Relaxed) < 20 {
            assert!(!writer.is_finished(), "{:?}", writer.join());
            thread::sleep(Duration::from_millis(1));
        }
        event();
        assert_eq!(error_bits(&to.recv_wait(SOON)), status::DESC_FLUSHED_ERROR);
        assert_eq!(b.errors(), [(u16::MAX, ErrorCode::Catastrophic)]);
        // The writer may go on, but nothing of it arrives at memory that this program may now free.
        let mine = pattern(3000, 7);
        target.memory().copy_from(0, &mine);
        let end = written.load(Ordering::Relaxed) + 20;
        while !writer.is_finished() && written.load(Ordering::Relaxed) < end {
            thread::sleep(Duration::from_millis(1));
        }
        assert!(target.memory().to_vec(0, 3000) == mine, "written by a card that is lost");
        let memory = DmaMemory::new(64).unwrap();
        let refused = b.nic.register_mem(&memory, MemAttributes::new(b.tag)).unwrap_err();
        assert!(refused.to_string().contains(why), "{refused}");
        drop((to, never, target, b));
        assert_eq!(writer.join().unwrap(), VipReturn::DescriptorError);
    });
}

/// The driver does not know that memory is out of the card's reach: what the card reads fails, what it
/// writes goes nowhere.
fn in_use_memory_that_was_unmapped_is_out_of_reach() {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&lines);
    let sink = Box::new(move |line: &str| sink.lock().unwrap().push(line.to_owned()));
    let card = bus(0);
    let config = config(&card);
    let trace: Arc<dyn Bus> = Arc::new(TraceBus::new(card, sink));
    let (a, b) = (Node::open(Arc::clone(&trace), &config), open(1));
    let (send, recv) = (Buffer::at(&a, 3000, 8192), Buffer::at(&b, 3000, 8192));
    // The data, behind the descriptor's page.
    let data = a.region(8192);
    let mapped = || {
        let lines = lines.lock().unwrap();
        let line = lines.iter().rev().find(|line| line.contains("  map "));
        let address = line.and_then(|line| line.rsplit("at 0x").next());
        u64::from_str_radix(address.expect("a mapping"), 16).unwrap()
    };
    trace.unmap(mapped());

    let (from, to) = connected(&a, &b);
    send.descriptor.prepare(&[data.segment(0, 3000)], None).unwrap();
    to.post_recv(&recv.descriptor).unwrap();
    from.post_send(&send.descriptor).unwrap();
    assert_eq!(error_bits(&from.send_wait(SOON)), status::TRANSPORT_ERROR);

    // In the other direction.
    let (to, from) = connected(&a, &b);
    send.set(&pattern(3000, 1));
    let before = pattern(3000, 9);
    data.memory().copy_from(0, &before);
    send.descriptor.prepare(&[data.segment(0, 3000)], None).unwrap();
    to.post_recv(&send.descriptor).unwrap();
    recv.set(&pattern(3000, 2));
    from.post_send(&recv.descriptor).unwrap();
    // Nobody answers a write: only the IOMMU's owner learns of it.
    from.send_wait(SOON).unwrap();
    to.recv_wait(SOON).unwrap();
    assert!(data.memory().to_vec(0, 3000) == before, "untouched");
    assert_works(&a, &b);
}

/// A card that lost its link or its power: nobody answers at its BARs, and it reaches no memory. QEMU
/// has zeros where nobody answers.
fn in_use_a_card_that_does_not_answer_is_lost() {
    let silence = || {
        let config = fs::File::options().write(true).open(folder(1).join("config")).unwrap();
        // Behind the driver's back, the command register.
        config.write_all_at(&[0, 0], 4).unwrap();
    };
    in_traffic(silence, "close it and open it again");
    assert_works(&open(0), &open(1));
}

/// As root may: `echo 1 > reset`.
fn in_use_a_card_that_is_reset_in_traffic_is_lost() {
    in_traffic(
        || fs::write(folder(1).join("reset"), "1").unwrap(),
        "was reset by somebody else; close it and open it again",
    );
    assert_works(&open(0), &open(1));
}

/// The kernel waits until the program has closed the card.
fn in_use_a_card_that_is_removed_in_traffic_is_lost() {
    let remove = folder(1).join("remove");
    let remover = Mutex::new(None);
    in_traffic(
        || *remover.lock().unwrap() = Some(thread::spawn(move || fs::write(remove, "1").unwrap())),
        "absent",
    );
    remover.into_inner().unwrap().expect("it was removed").join().unwrap();
    let error = VfioBus::open(CARDS[1]).unwrap_err().to_string();
    assert!(error.contains("no PCI function is there"), "{error}");
    fs::write("/sys/bus/pci/rescan", "1").unwrap();
    Sysfs::default().find(CARDS[1]).unwrap().bind().unwrap();
    assert_works(&open(0), &open(1));
}

/// Root may lock as much as there is, so this thread gives that up first.
fn in_use_memory_beyond_the_limit_is_refused() {
    let a = open(0);
    let mut sets = capabilities(None).unwrap();
    sets.effective.remove(CapabilitySet::IPC_LOCK);
    set_capabilities(None, sets).unwrap();
    let limit = Some(4 << 20);
    setrlimit(Resource::Memlock, Rlimit { current: limit, maximum: None }).unwrap();
    let memory = DmaMemory::new(8 << 20).unwrap();
    let refused = a.nic.register_mem(&memory, MemAttributes::new(a.tag)).unwrap_err();
    let text = refused.to_string();
    assert!(
        text.contains("cannot be locked in memory (at most 4194304 bytes)")
            && text.contains("ulimit -l"),
        "{text}"
    );
    a.nic.register_mem(&DmaMemory::new(1 << 20).unwrap(), MemAttributes::new(a.tag)).unwrap();
}

/// The test outside kills the simulator when this one says so. Then every read gives all ones.
fn ends_while_it_is_used() {
    // The kernel would wait a minute for each card to come out of its reset.
    (0..CARDS.len()).for_each(|card| fs::write(folder(card).join("reset_method"), "\n").unwrap());
    in_traffic(|| say("traffic"), "absent");
    for (card, address) in CARDS.into_iter().enumerate() {
        let error = Nic::open(bus(card), &NicConfig::new(0, &[])).unwrap_err().to_string();
        let wanted = format!("the card at vfio:{address} is absent: register ID reads as all ones");
        assert_eq!(error, wanted);
    }
}

/// Rounds of two guests.
const ROUNDS: usize = 100;

/// A program of one guest that answers one of another.
fn listens() {
    let a = open(0);
    let vi = a.vi(Reliability::Delivery);
    let (send, recv) = (Buffer::new(&a, 20_000), Buffer::new(&a, 20_000));
    vi.post_recv(&recv.descriptor).unwrap();
    let request = a.nic.connect_wait(&a.address(b"guest"), SOON).unwrap();
    request.accept(&vi).unwrap();
    for _ in 0..ROUNDS {
        vi.recv_wait(SOON).unwrap();
        send.set(&recv.data());
        vi.post_recv(&recv.descriptor).unwrap();
        vi.post_send(&send.descriptor).unwrap();
        vi.send_wait(SOON).unwrap();
    }
    // The other one has the last word.
    assert_eq!(vi.recv_wait(SOON).unwrap_err().code, VipReturn::DescriptorError);
}

/// The other one. It has one card, which is node 1.
fn calls() {
    let b = open(0);
    let vi = b.vi(Reliability::Delivery);
    let (send, recv) = (Buffer::new(&b, 20_000), Buffer::new(&b, 20_000));
    let remote = NetAddress::of_node(0, b"guest");
    let end = Instant::now() + SOON;
    // The other guest may not have come so far.
    while let Err(error) = vi.connect_request(&b.address(b""), &remote, SOON) {
        assert!(Instant::now() < end, "{error}");
        thread::sleep(Duration::from_millis(50));
    }
    for round in 0..ROUNDS {
        let data = pattern(1 + round * 199, round);
        send.set(&data);
        vi.post_recv(&recv.descriptor).unwrap();
        vi.post_send(&send.descriptor).unwrap();
        vi.recv_wait(SOON).unwrap();
        vi.send_wait(SOON).unwrap();
        assert!(recv.data() == data, "round {round}");
    }
    vi.disconnect().unwrap();
}

in_guest! {
    in_use_memory_that_was_unmapped_is_out_of_reach,
    in_use_a_card_that_does_not_answer_is_lost,
    in_use_a_card_that_is_reset_in_traffic_is_lost,
    in_use_a_card_that_is_removed_in_traffic_is_lost,
    in_use_memory_beyond_the_limit_is_refused,
    ends_while_it_is_used,
    listens,
    calls,
}
