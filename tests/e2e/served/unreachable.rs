//! A client gives memory without a descriptor, which cannot be reached. The device learns as of a root
//! complex that its access failed, and the simulator reports the address.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use nic_regs::admin::{self, AdminStatus, Opcode};
use nic_regs::counter::{Counter, ErrorCode, ErrorRecord};
use nic_regs::doorbell::{Queue, Token};
use nic_regs::event::{Event, Kind};
use nic_regs::pci::COMMAND_MASTER;
use nic_regs::vi::{Reliability, StopReason};
use nic_regs::{csr, desc, tpt};
use tests::served::{SOON, Simulator};
use vfio_user::protocol::{Command, DmaMap, Version, region};
use vipl::DmaMemory;

use super::malformed::Raw;

/// Bus addresses: admin ring and event queue, in a file; the same file read-only; and memory that
/// came without a file.
const RING: u32 = 0x10_0000;
const EVENTS: u32 = 0x10_1000;
const READ_ONLY: u32 = 0x20_0000;
const NOWHERE: u32 = 0x30_0000;
/// Protection tag of everything here.
const TAG: u32 = 5;

/// A client, and the memory that it gave.
struct Client {
    raw: Raw,
    file: OwnedFd,
    posted: u32,
}

impl Client {
    fn new(simulator: &Simulator, node: u8) -> Self {
        let mut raw = Raw::connect(&simulator.socket(node));
        raw.reply(Command::Version, &Version::OWN.to_bytes(), &[]);
        let flags = rustix::fs::MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create("client", flags).unwrap();
        rustix::fs::ftruncate(&file, 8192).unwrap();
        rustix::fs::fcntl_add_seals(&file, rustix::fs::SealFlags::SHRINK).unwrap();
        for (flags, address, size) in [(3, RING, 8192), (1, READ_ONLY, 4096)] {
            let map = DmaMap { flags, offset: 0, address: address.into(), size };
            raw.reply(Command::DmaMap, &map.to_bytes(), &[file.as_fd()]);
        }
        let map = DmaMap { flags: 3, offset: 0, address: NOWHERE.into(), size: 4096 };
        raw.reply(Command::DmaMap, &map.to_bytes(), &[]);
        Self { raw, file, posted: 0 }
    }

    fn set(&mut self, register: u32, value: u32) {
        self.raw.write(region::BAR0, register.into(), &value.to_le_bytes());
    }

    fn get(&mut self, register: u32) -> u32 {
        let bytes = self.raw.read(region::BAR0, register.into(), 4);
        u32::from_le_bytes(bytes.try_into().unwrap())
    }

    fn counter(&mut self, counter: Counter) -> u32 {
        self.get(csr::COUNTER_OFFSET + 4 * counter as u32)
    }

    /// Begins with an admin ring.
    fn enable(&mut self, ring: u32) {
        self.raw.set_command(COMMAND_MASTER);
        self.set(csr::CONTROL::OFFSET, 1);
        self.set(csr::ADMIN_BASE_LO::OFFSET, ring);
        self.set(csr::ADMIN_SIZE::OFFSET, 4);
        self.posted = 0;
    }

    /// Waits until a register is so.
    fn wait(&mut self, register: u32, wanted: impl Fn(u32) -> bool) {
        let start = Instant::now();
        while !wanted(self.get(register)) {
            assert!(start.elapsed() < SOON, "register {register:#x} does not change");
        }
    }

    /// Runs the first admin command, whose entry cannot be read.
    fn fail_command(&mut self) {
        self.set(csr::ADMIN_TAIL::OFFSET, 1);
        self.wait(csr::STATUS::OFFSET, |status| {
            csr::STATUS(status).get(csr::STATUS::ADMIN_FAILED) != 0
        });
    }

    /// The words of a record in the file.
    fn words(&self, at: u64) -> [u32; 4] {
        let mut bytes = [0; 16];
        rustix::io::pread(&self.file, &mut bytes, at).unwrap();
        let mut words = bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word));
        core::array::from_fn(|_| words.next().unwrap())
    }

    /// Runs an admin command that succeeds.
    fn command(&mut self, opcode: Opcode, index: u32, body: &[u32]) {
        let words = [&[opcode as u32, index, 9, 0], body].concat();
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let at = admin::ENTRY_BYTES * u64::from(self.posted);
        rustix::io::pwrite(&self.file, &bytes, at).unwrap();
        self.posted += 1;
        let posted = self.posted;
        self.set(csr::ADMIN_TAIL::OFFSET, posted);
        self.wait(csr::ADMIN_HEAD::OFFSET, |head| head == posted);
        let done = self.words(at);
        assert_eq!((done[0], done[3]), (AdminStatus::Ok as u32, admin::DONE), "{opcode:?}");
    }
}

/// What the simulator says of an access.
fn reported(simulator: &mut Simulator) -> String {
    simulator.process().expect("unreachable")
}

/// A descriptor that cannot be read stops its VI: the event says so, with the status of the contract.
#[test]
fn a_descriptor_that_is_nowhere_stops_its_vi() {
    let mut simulator = Simulator::start("nowhere", 1, 0.0);
    let mut client = Client::new(&simulator, 0);
    client.enable(RING);
    let rights = u32::from(tpt::RIGHT_VALID);
    client.command(Opcode::EventCreate, 7, &[EVENTS, 0, 2]);
    let region = [NOWHERE, 0, NOWHERE, 0, 4096, TAG | 1 << 16, rights << 8];
    client.command(Opcode::RegionSet, 1, &region);
    let delivery = Reliability::Delivery as u32;
    client.command(Opcode::ViCreate, 3, &[delivery << 8 | TAG << 16, 7 | 7 << 16, 4096, 0]);
    // To itself: a channel that opens with nobody else.
    client.command(Opcode::PeerOpen, 0, &[77, 8]);
    client.command(Opcode::ViConnect, 3, &[3 << 16, 1]);
    client.set(csr::ERROR_QUEUE::OFFSET, 7 | 1 << 31);
    let token = Token { vi: 3, region: 1, offset_64: 0, segments: 1, queue: Queue::Send };
    client.raw.write(region::BAR2, 0, &token.to_bits().to_le_bytes());

    let start = Instant::now();
    let event = loop {
        // Its own channel may be reported first.
        let records = (0..4).map(|number| Event::from_words(client.words(4096 + 16 * number)));
        let mut errors = records.filter(|event| event.kind == Kind::ViError as u8);
        if let Some(event) = errors.next() {
            break event;
        }
        assert!(start.elapsed() < SOON, "no event");
        client.get(csr::STATUS::OFFSET);
    };
    assert_eq!((event.index, event.word1 & 0xff), (3, StopReason::HostRead as u32));
    assert_eq!(event.word2, desc::status::TRANSPORT_ERROR, "{event:?}");
    assert_eq!(client.counter(Counter::ReadErrors), 1);
    let text = reported(&mut simulator);
    assert!(text.contains("nic0: a read of") && text.contains("0x300000"), "{text}");
    assert!(text.contains("neither with a memory file"), "{text}");
    simulator.stop();
}

/// The admin ring likewise; and a write that is refused is lost, but reported.
#[test]
fn a_ring_that_is_nowhere_stops() {
    let mut simulator = Simulator::start("ring", 2, 0.0);
    let mut client = Client::new(&simulator, 1);
    client.enable(NOWHERE);
    client.fail_command();
    let mut log = Vec::new();
    while client.get(csr::ERROR_COUNT::OFFSET) != 0 {
        let (low, high) = (client.get(csr::ERROR_LO::OFFSET), client.get(csr::ERROR_HI::OFFSET));
        log.push(ErrorRecord::from_bits(u64::from(low) | u64::from(high) << 32).code);
        client.set(csr::ERROR_POP::OFFSET, 0);
    }
    assert_eq!(log, [ErrorCode::ReadError as u8, ErrorCode::AdminFetch as u8]);
    let text = reported(&mut simulator);
    assert!(text.contains("nic1: a read of 64 bytes fails at 0x300000"), "{text}");

    // Where nothing is mapped at all.
    client.raw.reply(Command::Reset, &[], &[]);
    client.enable(0x4000_0000);
    client.fail_command();
    let text = reported(&mut simulator);
    assert!(text.contains("0x40000000") && text.contains("nothing there"), "{text}");

    // A device that may not send requests.
    client.raw.reply(Command::Reset, &[], &[]);
    client.enable(RING);
    client.raw.set_command(0);
    client.fail_command();
    let text = reported(&mut simulator);
    assert!(text.contains("0x100000") && text.contains("bus mastering is off"), "{text}");

    // The entry is read, the completion cannot be written.
    client.raw.reply(Command::Reset, &[], &[]);
    client.enable(READ_ONLY);
    client.set(csr::ADMIN_TAIL::OFFSET, 1);
    client.wait(csr::ADMIN_HEAD::OFFSET, |head| head == 1);
    assert_eq!(client.words(0), [0; 4], "nothing is written");
    let text = reported(&mut simulator);
    assert!(text.contains("a write of 16 bytes fails at 0x200000"), "{text}");
    assert!(text.contains("without this right"), "{text}");
    simulator.stop();
}

/// A write to registered memory that cannot be written any more: both ends say why the program loses
/// its NIC.
#[test]
fn a_program_whose_registered_memory_cannot_be_written_loses_its_nic() {
    const OWN: u32 = 0x40_0000;
    let mut simulator = Simulator::start("unwritable", 1, 0.0);
    let mut client = Client::new(&simulator, 0);
    client.raw.bound(SOON);
    // The descriptor does not allow what the mapping promises, as if the page had gone meanwhile.
    let (memory, own) =
        (DmaMemory::new(4096).unwrap(), std::fs::File::open("/proc/self/mem").unwrap());
    let map = DmaMap { flags: 3, offset: memory.address(), address: OWN.into(), size: 4096 };
    client.raw.reply(Command::DmaMap, &map.to_bytes(), &[own.as_fd()]);
    // The device reads the admin entry, and cannot complete it.
    memory.store_u32(0, Opcode::EventDestroy as u32);
    client.enable(OWN);
    client.set(csr::ADMIN_TAIL::OFFSET, 1);
    let why = client.raw.farewell();
    assert!(why.contains(&format!("{:#x}", memory.address())), "{why}");
    assert!(why.contains("unmapped or protected"), "{why}");
    let text = reported(&mut simulator);
    assert!(
        text.contains("a write of 16 bytes fails at 0x400000") && text.contains(&why),
        "{text}"
    );
    assert_eq!(memory.load_u32(12), 0, "not done");
    // The next program has the NIC.
    assert!(simulator.open(0).driver.counter(Counter::FramesSent).is_ok());
    simulator.stop();
}
