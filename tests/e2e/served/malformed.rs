//! Clients of the simulator that are not our driver: some misbehave, one does as an emulator does.

use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use nic_regs::admin::Opcode;
use nic_regs::counter::Counter;
use nic_regs::csr;
use nic_regs::pci::{COMMAND_MASTER, COMMAND_MEMORY, COMMAND_OFFSET};
use tests::pattern;
use tests::served::{Process, SOON, Simulator, when_free};
use vfio_user::protocol::{
    Command, DeviceInfo, DmaMap, DmaUnmap, Header, IrqInfo, RegionAccess, RegionInfo, SetIrqs,
    Version, errno, farewell_reason, flag, irq, message, region,
};
use vfio_user::socket::{self, Inbox, Message, Received};

use super::Caller;

/// What clients write to a socket is refused with an errno, and nobody else notices.
#[test]
fn malformed_requests_disturb_nobody() {
    let simulator = Simulator::start("malformed", 3, 0.0);
    let mut echo = Process::program(simulator.folder(), "echo");
    echo.expect("listening");
    let node = simulator.open(0);
    let caller = Caller::new(&node, 1);
    for client in 0..42_u16 {
        caller.call(&pattern(3000, client.into()));
        // Those at node 0 and 1 are no owners; those at node 2 are.
        let socket = simulator.socket((client % 3).try_into().unwrap());
        let kind = client / 3;
        // The first kinds do not get as far as a NIC.
        let is_owner = client % 3 == 2 && kind > 3;
        let mut raw = if is_owner { Raw::owner(&socket) } else { Raw::connect(&socket) };
        raw.misbehave(kind, is_owner);
    }
    caller.call(&pattern(3000, 1));
    // The NIC that the clients had works.
    assert!(simulator.open(2).driver.counter(Counter::FramesSent).is_ok());
    drop((caller, node));
    echo.stop();
    simulator.stop();
}

/// A client of the protocol that is no driver.
pub(super) struct Raw {
    socket: UnixStream,
    inbox: Inbox,
}

impl Raw {
    pub(super) fn connect(path: &Path) -> Self {
        Self { socket: UnixStream::connect(path).unwrap(), inbox: Inbox::default() }
    }

    /// One that has the NIC.
    fn owner(path: &Path) -> Self {
        when_free("the NIC", || {
            let mut raw = Self::connect(path);
            match raw.ask(Command::Version as u16, &Version::OWN.to_bytes()) {
                Some(errno::BUSY) => None,
                found => {
                    assert_eq!(found, Some(0));
                    Some(raw)
                }
            }
        })
    }

    /// An answer that takes longer is an error.
    pub(super) fn bound(&self, bound: Duration) {
        self.socket.set_read_timeout(Some(bound)).unwrap();
    }

    fn send(&self, bytes: &[u8]) {
        socket::send(self.socket.as_fd(), bytes, &[], true).unwrap();
    }

    /// The errno of the answer; None if the server hung up.
    fn answer(&mut self) -> Option<u32> {
        match self.inbox.receive(self.socket.as_fd(), true) {
            Ok(Received::Message(reply)) => {
                assert!(reply.header.is_reply());
                Some(reply.header.error)
            }
            Ok(Received::Closed) | Err(_) => None,
            Ok(other) => panic!("{other:?}"),
        }
    }

    fn ask(&mut self, command: u16, payload: &[u8]) -> Option<u32> {
        self.send(&message(7, command, 0, &[payload]));
        self.answer()
    }

    /// The reply to a command that is right.
    pub(super) fn reply(
        &mut self,
        command: Command,
        payload: &[u8],
        fds: &[BorrowedFd<'_>],
    ) -> Message {
        let bytes = message(9, command as u16, 0, &[payload]);
        socket::send(self.socket.as_fd(), &bytes, fds, true).unwrap();
        match self.inbox.receive(self.socket.as_fd(), true) {
            Ok(Received::Message(reply)) if reply.header.error == 0 => reply,
            other => panic!("{command:?}: {other:?}"),
        }
    }

    pub(super) fn read(&mut self, region: u32, offset: u64, count: u32) -> Vec<u8> {
        let access = RegionAccess { offset, region, count, data: &[] }.head();
        self.reply(Command::RegionRead, &access, &[]).payload.split_off(16)
    }

    pub(super) fn write(&mut self, region: u32, offset: u64, data: &[u8]) {
        let count = data.len().try_into().unwrap();
        let access = RegionAccess { offset, region, count, data: &[] }.head();
        self.reply(Command::RegionWrite, &[&access, data].concat(), &[]);
    }

    /// Writes the command register.
    pub(super) fn set_command(&mut self, bits: u16) {
        self.write(region::CONFIG, COMMAND_OFFSET.into(), &bits.to_le_bytes());
    }

    /// Why the simulator hung up.
    pub(super) fn farewell(&mut self) -> String {
        match self.inbox.receive(self.socket.as_fd(), true) {
            Ok(Received::Message(last)) => farewell_reason(last.header, &last.payload).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    fn misbehave(&mut self, kind: u16, is_owner: bool) {
        let invalid = Some(errno::INVALID);
        let version = Version::OWN.to_bytes();
        match kind {
            // Before the version, nothing else; then the server hangs up.
            0 => {
                assert_eq!(self.ask(Command::Reset as u16, &[]), invalid);
                assert_eq!(self.answer(), None);
                return;
            }
            1 => return assert_eq!(self.ask(Command::Version as u16, b"\0\0\0\0{"), invalid),
            2 => {
                let wrong = Version { version: (1, 0), ..Version::OWN }.to_bytes();
                let found = self.ask(Command::Version as u16, &wrong);
                return assert_eq!(found, Some(errno::PROTOCOL));
            }
            // Half a header.
            3 => return self.send(&[1, 2, 3]),
            _ => {}
        }
        if !is_owner {
            assert_eq!(self.ask(Command::Version as u16, &version), Some(errno::BUSY));
            return assert_eq!(self.answer(), None);
        }
        let head = |region, offset, count| {
            RegionAccess { offset, region, count, data: &[] }.head().to_vec()
        };
        let (read, write) = (Command::RegionRead as u16, Command::RegionWrite as u16);
        let map = |size| DmaMap { flags: 3, offset: 0, address: 4096, size }.to_bytes();
        let set = |flags, start, count| {
            SetIrqs { flags, index: irq::MSIX, start, count, data: &[] }.to_bytes()
        };
        match kind {
            4 => assert_eq!(self.ask(999, b"what"), Some(errno::NOT_SUPPORTED)),
            5 => assert_eq!(self.ask(Command::Version as u16, &version), invalid),
            6 => assert_eq!(self.ask(read, &head(0, 0x1fff, 4)), invalid),
            7 => assert_eq!(self.ask(read, &head(7, u64::MAX - 3, 4)), invalid),
            8 => assert_eq!(self.ask(write, &head(2, 0, 8)), invalid),
            9 => {
                assert_eq!(self.ask(Command::DmaMap as u16, &map(0)), invalid);
                assert_eq!(self.ask(Command::DmaMap as u16, &map(4096)), Some(0));
                assert_eq!(self.ask(Command::DmaMap as u16, &map(4096)), Some(errno::EXIST));
            }
            10 => {
                let flags = irq::DATA_EVENTFD | irq::ACTION_TRIGGER;
                assert_eq!(self.ask(Command::SetIrqs as u16, &set(flags, 31, 2)), invalid);
                assert_eq!(self.ask(Command::SetIrqs as u16, &set(0, 0, 1)), invalid);
                assert_eq!(self.ask(Command::SetIrqs as u16, &set(flags, 0, 1)), Some(0));
            }
            11 => {
                // A message longer than any may be: the stream is of no use any more.
                let header = Header { id: 7, command: read, size: u32::MAX, flags: 0, error: 0 };
                self.send(&header.to_bytes());
                assert_eq!(self.answer(), Some(errno::TOO_LONG));
                assert_eq!(self.answer(), None);
                return;
            }
            12 => {
                // Faster than any device.
                let data = [&head(2, 0, 8)[..], &[0; 8]].concat();
                let doorbell = message(1, write, flag::NO_REPLY, &[&data]);
                self.send(&doorbell.repeat(5_000));
            }
            _ => {
                // Odd accesses are the device's to refuse; and it goes in mid-message.
                assert_eq!(self.ask(read, &head(0, 3, 2)), Some(0));
                self.send(&message(1, write, flag::NO_REPLY, &[&head(2, 1, 3), b"abc"]));
                self.send(&message(2, read, 0, &[&head(0, 0, 4)])[..20]);
                return;
            }
        }
        // After a refusal the stream goes on.
        assert_eq!(self.ask(read, &head(0, 0, 4)), Some(0));
    }
}

/// Function-level reset, then a reset by message: registers are as after power-on.
fn resets(raw: &mut Raw) {
    for by_message in [false, true] {
        raw.write(region::BAR0, csr::MODERATION::OFFSET.into(), &77_u32.to_le_bytes());
        assert_eq!(raw.read(region::BAR0, csr::MODERATION::OFFSET.into(), 4), [77, 0, 0, 0]);
        raw.set_command(COMMAND_MEMORY | COMMAND_MASTER);
        assert_eq!(raw.read(region::CONFIG, COMMAND_OFFSET.into(), 2), [6, 0]);
        if by_message {
            raw.reply(Command::Reset, &[], &[]);
        } else {
            raw.write(region::CONFIG, 0x48, &0x8000_u16.to_le_bytes());
        }
        assert_eq!(raw.read(region::BAR0, csr::MODERATION::OFFSET.into(), 4), [0; 4]);
        assert_eq!(raw.read(region::BAR0, csr::STATUS::OFFSET.into(), 4), [1, 0, 0, 0]);
        assert_eq!(raw.read(region::CONFIG, COMMAND_OFFSET.into(), 2), [0, 0]);
    }
}

/// A client that knows PCI and the protocol but not our driver, as an emulator is one: it
/// enumerates the device, maps memory page by page, has interrupts, and resets the function.
#[test]
fn a_client_of_another_kind_enumerates_the_device() {
    let simulator = Simulator::start("enumerate", 2, 0.0);
    let mut raw = Raw::connect(&simulator.socket(1));
    let reply = raw.reply(Command::Version, &Version::OWN.to_bytes(), &[]);
    let theirs = Version::parse(&reply.payload).unwrap();
    assert!(theirs.version == (0, 0) && reply.fds.is_empty());
    let info = raw.reply(
        Command::DeviceInfo,
        &DeviceInfo { flags: 0, regions: 0, irqs: 0 }.to_bytes(),
        &[],
    );
    let info = DeviceInfo::parse(&info.payload).unwrap();
    assert_eq!((info.flags, info.regions, info.irqs), (3, 9, 5));
    let sizes: Vec<u64> = (0..9)
        .map(|index| {
            let ask = RegionInfo { index, ..RegionInfo::default() }.to_bytes();
            RegionInfo::parse(&raw.reply(Command::RegionInfo, &ask, &[]).payload).unwrap().size
        })
        .collect();
    assert_eq!(sizes, [0x2000, 0, 0x4_0000, 0, 0, 0, 0, 4096, 0]);
    let msix = IrqInfo { index: irq::MSIX, ..IrqInfo::default() }.to_bytes();
    let msix = IrqInfo::parse(&raw.reply(Command::IrqInfo, &msix, &[]).payload).unwrap();
    assert_eq!((msix.flags, msix.count), (irq::EVENTFD, 32), "resizable: no NORESIZE");
    assert_eq!(raw.read(region::CONFIG, 0, 4), [0xa7, 0x51, 1, 0]);
    assert_eq!(raw.read(region::CONFIG, 0x2e, 2), [1, 2], "node 1 of 2");

    // Two pages of one file, each with a descriptor of its own, and one without any.
    let file = rustix::fs::memfd_create("guest", rustix::fs::MemfdFlags::ALLOW_SEALING).unwrap();
    rustix::fs::ftruncate(&file, 8192).unwrap();
    rustix::fs::fcntl_add_seals(&file, rustix::fs::SealFlags::SHRINK).unwrap();
    for page in [0, 4096] {
        let map = DmaMap { flags: 3, offset: page, address: 0x10_0000 + page, size: 4096 };
        raw.reply(Command::DmaMap, &map.to_bytes(), &[file.as_fd()]);
    }
    let rom = DmaMap { flags: 1, offset: 0, address: 0xf000_0000, size: 4096 }.to_bytes();
    raw.reply(Command::DmaMap, &rom, &[]);

    // One eventfd detached, one that is raised.
    let event = rustix::event::eventfd(0, rustix::event::EventfdFlags::NONBLOCK).unwrap();
    let set = |flags, start, count| {
        let flags = flags | irq::ACTION_TRIGGER;
        SetIrqs { flags, index: irq::MSIX, start, count, data: &[] }.to_bytes()
    };
    raw.reply(Command::SetIrqs, &set(irq::DATA_EVENTFD, 3, 1), &[event.as_fd()]);
    raw.reply(Command::SetIrqs, &set(irq::DATA_EVENTFD, 0, 1), &[]);
    raw.reply(Command::SetIrqs, &set(irq::DATA_NONE, 3, 1), &[]);
    assert!(rustix::io::read(&event, &mut [0_u8; 8]).is_ok());
    // The table is programmed without the client, once the device is enabled.
    raw.write(region::BAR0, csr::CONTROL::OFFSET.into(), &1_u32.to_le_bytes());
    let entry = |at| u64::from(csr::msix_entry(3) + at);
    assert_eq!(raw.read(region::BAR0, entry(8), 4), [3, 0, 0, 0]);
    assert_eq!(raw.read(region::BAR0, entry(csr::MSIX_CONTROL), 4), [0; 4], "not masked");

    raw.set_command(COMMAND_MASTER);
    // The device runs an admin command of memory in both pages: its ring is the first, the queue
    // that it creates the second. The entry is done when its word 3 is.
    let words = [Opcode::EventCreate as u32, 7, 1, 0, 0x10_1000, 0, 2, 0];
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    rustix::io::pwrite(&file, &bytes, 0).unwrap();
    for (offset, value) in [
        (csr::ADMIN_BASE_LO::OFFSET, 0x10_0000_u32),
        (csr::ADMIN_SIZE::OFFSET, 2),
        (csr::ADMIN_TAIL::OFFSET, 1),
    ] {
        raw.write(region::BAR0, offset.into(), &value.to_le_bytes());
    }
    let start = Instant::now();
    while raw.read(region::BAR0, csr::ADMIN_HEAD::OFFSET.into(), 4) != [1, 0, 0, 0] {
        assert!(start.elapsed() < SOON, "the command is never done");
    }
    let mut done = [0; 16];
    rustix::io::pread(&file, &mut done, 0).unwrap();
    assert_ne!(done[12..], [0; 4], "completed in place: {done:?}");

    resets(&mut raw);
    // Everything at once, up to the end of the addresses.
    let all = DmaUnmap { flags: 0, address: 0, size: u64::MAX }.to_bytes();
    assert_eq!(raw.reply(Command::DmaUnmap, &all, &[]).payload, all);
    simulator.stop();
}

/// What is no eventfd is none of an interrupt, since writing to it might wait; and a client that lets
/// writes wait takes its interrupts as any other.
#[test]
fn interrupts_are_eventfds() {
    let simulator = Simulator::start("eventfds", 1, 0.0);
    let mut raw = Raw::owner(&simulator.socket(0));
    let set = |flags| {
        let flags = flags | irq::ACTION_TRIGGER;
        SetIrqs { flags, index: irq::MSIX, start: 0, count: 1, data: &[] }.to_bytes()
    };
    let (_reader, pipe) = rustix::pipe::pipe().unwrap();
    let bytes = message(7, Command::SetIrqs as u16, 0, &[&set(irq::DATA_EVENTFD)]);
    socket::send(raw.socket.as_fd(), &bytes, &[pipe.as_fd()], true).unwrap();
    assert_eq!(raw.answer(), Some(errno::INVALID));

    let event = rustix::event::eventfd(0, rustix::event::EventfdFlags::empty()).unwrap();
    raw.reply(Command::SetIrqs, &set(irq::DATA_EVENTFD), &[event.as_fd()]);
    rustix::io::write(&event, &(u64::MAX - 1).to_ne_bytes()).unwrap();
    raw.reply(Command::SetIrqs, &set(irq::DATA_NONE), &[]);
    let mut count = [0; 8];
    rustix::io::read(&event, &mut count).unwrap();
    assert_eq!(count, (u64::MAX - 1).to_ne_bytes(), "it stays full");
    raw.reply(Command::SetIrqs, &set(irq::DATA_NONE), &[]);
    rustix::io::read(&event, &mut count).unwrap();
    assert_eq!(count, 1_u64.to_ne_bytes());
    simulator.stop();
}

/// The next client has a device as after power-on, whatever the last one wrote.
#[test]
fn a_client_of_another_kind_finds_nothing_of_the_last_one() {
    let simulator = Simulator::start("after", 1, 0.0);
    for _ in 0..3 {
        let mut raw = Raw::owner(&simulator.socket(0));
        assert_eq!(raw.read(region::CONFIG, COMMAND_OFFSET.into(), 2), [0, 0]);
        assert_eq!(raw.read(region::BAR0, csr::MODERATION::OFFSET.into(), 4), [0; 4]);
        raw.set_command(COMMAND_MEMORY | COMMAND_MASTER);
        raw.write(region::BAR0, csr::MODERATION::OFFSET.into(), &77_u32.to_le_bytes());
    }
    simulator.stop();
}

/// A small generator, the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// A message that is almost right: a true command with its fields at their edges, or cut, or of the
/// wrong length.
fn almost(random: &mut Random) -> Vec<u8> {
    const EDGES: [u64; 8] = [0, 1, 4096, 0x1fff, 0x10_0000, u64::MAX, u64::MAX - 4095, 1 << 63];
    let mut any = || EDGES[usize::try_from(random.below(8)).unwrap()];
    let (a, b, c) = (any(), any(), any());
    let small = u32::try_from(a % 40).unwrap();
    let mut payload = match random.below(8) {
        0 => DmaMap { flags: small & 3, offset: a, address: b, size: c }.to_bytes(),
        1 => DmaUnmap { flags: small & 3, address: b, size: c }.to_bytes(),
        2 => SetIrqs { flags: small | 32, index: 2, start: small, count: 1, data: &[1] }.to_bytes(),
        3 => RegionAccess { offset: b, region: small % 9, count: 4, data: &[] }.head().to_vec(),
        4 => {
            let head = RegionAccess { offset: b % 8192, region: 0, count: 4, data: &[] }.head();
            [&head[..], &small.to_le_bytes()].concat()
        }
        5 => RegionInfo { index: small, ..RegionInfo::default() }.to_bytes(),
        6 => Version::OWN.to_bytes(),
        _ => vec![0xa5; usize::try_from(random.below(70)).unwrap()],
    };
    if random.below(4) == 0 {
        payload.truncate(payload.len() / 2);
    }
    let command = u16::try_from(random.below(17)).unwrap();
    let flags = if random.below(3) == 0 { flag::NO_REPLY } else { 0 };
    let mut bytes = message(7, command, flags, &[&payload]);
    if random.below(16) == 0 {
        bytes[4] = u8::try_from(random.below(256)).unwrap();
    }
    bytes
}

/// Many clients that say anything, with descriptors of any kind, and are gone in mid-word: a
/// conversation beside them goes on, and the simulator keeps nothing of theirs.
#[test]
fn clients_that_say_anything_leave_nothing() {
    let mut simulator = Simulator::start("anything", 3, 0.0);
    let mut echo = Process::program(simulator.folder(), "echo");
    echo.expect("listening");
    let node = simulator.open(0);
    let caller = Caller::new(&node, 1);
    let open_files = |simulator: &mut Simulator| {
        let folder = format!("/proc/{}/fd", simulator.process().id());
        std::fs::read_dir(folder).unwrap().count()
    };
    // A client has come and gone before it is counted.
    drop(simulator.open(2));
    caller.call(b"x");
    let before = open_files(&mut simulator);

    let file = rustix::fs::memfd_create("any", rustix::fs::MemfdFlags::ALLOW_SEALING).unwrap();
    rustix::fs::ftruncate(&file, 1 << 20).unwrap();
    rustix::fs::fcntl_add_seals(&file, rustix::fs::SealFlags::SHRINK).unwrap();
    let unsealed = rustix::fs::memfd_create("any", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    let event = rustix::event::eventfd(0, rustix::event::EventfdFlags::NONBLOCK).unwrap();
    let kinds = [file.as_fd(), unsealed.as_fd(), event.as_fd()];
    let mut random = Random(0x5eed_1234);
    for round in 0..200 {
        let socket = simulator.socket(2);
        let raw = if round % 4 == 0 { Raw::connect(&socket) } else { Raw::owner(&socket) };
        for _ in 0..random.below(20) {
            let mut bytes = almost(&mut random);
            let goes = random.below(10) == 0;
            if goes {
                bytes.truncate(bytes.len() / 2);
            }
            let count = usize::try_from(random.below(4)).unwrap();
            // The server may have hung up.
            if socket::send(raw.socket.as_fd(), &bytes, &kinds[..count], true).is_err() || goes {
                break;
            }
        }
        if round % 20 == 0 {
            caller.call(&pattern(3000, round));
        }
    }
    // The NIC is another program's at once; the server learns of the last client before.
    drop(simulator.open(2));
    caller.call(&pattern(3000, 1));
    when_free("descriptors of clients that are gone", || {
        (open_files(&mut simulator) == before).then_some(())
    });
    drop((caller, node));
    echo.stop();
    simulator.stop();
}

/// A program that dies behind a flood of doorbells does not keep the next one waiting.
#[test]
fn what_the_dead_said_last_keeps_nobody_waiting() {
    let simulator = Simulator::start("flood", 1, 0.0);
    let head = RegionAccess { offset: 0, region: region::BAR2, count: 8, data: &[] }.head();
    let doorbell = message(1, Command::RegionWrite as u16, flag::NO_REPLY, &[&head, &[0; 8]]);
    for _ in 0..20 {
        Raw::owner(&simulator.socket(0)).send(&doorbell.repeat(1_000));
    }
    simulator.stop();
}
