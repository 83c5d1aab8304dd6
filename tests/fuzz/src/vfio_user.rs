//! Messages of a client, with descriptors, to a server of a NIC: the whole server but for its sockets'
//! folder, over a socket.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use cosim::serve::Session;
use nic_model::Model;
use nic_regs::csr;
use nic_regs::pci::{COMMAND_MASTER, COMMAND_OFFSET};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use vfio_user::protocol::{
    Command, DATA_MAX, DmaMap, DmaUnmap, HEADER_BYTES, Header, IrqInfo, MESSAGE_MAX, RegionAccess,
    RegionInfo, SetIrqs, Version, flag, message, region,
};

use crate::input::{Input, Mask};

/// Steps of an input at most.
const STEPS: usize = 32;
/// Turns in which the server answers.
const TURNS: usize = 4_000;
/// Bytes of a file that a client gives.
const FILE_BYTES: u64 = 1 << 16;

const COMMANDS: [Command; 10] = [
    Command::Version,
    Command::DmaMap,
    Command::DmaUnmap,
    Command::DeviceInfo,
    Command::RegionInfo,
    Command::IrqInfo,
    Command::SetIrqs,
    Command::RegionRead,
    Command::RegionWrite,
    Command::Reset,
];

/// See the module. Answers are well-formed, each in its turn; a client that goes leaves a NIC that the
/// next one can have.
pub(crate) fn vfio_user(data: &[u8]) {
    let mut input = Input::new(data);
    let mut session = Session::new(Box::new(|_| Box::new(Model::default()))).expect("a server");
    let files = [
        memfd_create("fuzz", MemfdFlags::CLOEXEC).expect("a file"),
        eventfd(0, EventfdFlags::CLOEXEC).expect("an eventfd"),
        memfd_create("empty", MemfdFlags::CLOEXEC).expect("a file"),
    ];
    ftruncate(&files[0], FILE_BYTES).expect("a file of this size");
    if input.u8() < 224 {
        introduce(&mut session);
    }
    for id in 1..=STEPS {
        if input.is_empty() {
            break;
        }
        let bytes = bytes(&mut input, u16::try_from(id).expect("small"));
        let fds = descriptors(&mut input, &files);
        // One that does not understand what it was sent closes the connection.
        let is_there = session.send(&bytes, &fds).is_ok() && session.turn();
        if input.flag() {
            for _ in 0..input.u8() {
                session.turn();
            }
        }
        check(&session.answers());
        if !is_there {
            break;
        }
    }
    session.reconnect().expect("another client");
    introduce(&mut session);
}

/// Says VERSION, which is answered.
fn introduce(session: &mut Session) {
    let version = Version::OWN.to_bytes();
    let first = message(0, Command::Version as u16, 0, &[&version]);
    session.send(&first, &[]).expect("an empty socket");
    for _ in 0..TURNS {
        assert!(session.turn(), "the server refuses a client");
        let answer = session.answers();
        if let Some(header) = answer.first_chunk().map(Header::from_bytes) {
            assert_eq!((header.flags, header.error), (flag::REPLY, 0), "the NIC is not free");
            return be_master(session);
        }
    }
    panic!("no answer in {TURNS} turns");
}

/// Lets the device send requests.
fn be_master(session: &Session) {
    let data = &COMMAND_MASTER.to_le_bytes();
    let (offset, region) = (COMMAND_OFFSET.into(), region::CONFIG);
    let head = RegionAccess { offset, region, count: 2, data }.head();
    let write = message(0, Command::RegionWrite as u16, flag::NO_REPLY, &[&head, data]);
    session.send(&write, &[]).expect("an empty socket");
}

/// All that came are whole replies.
fn check(mut answers: &[u8]) {
    while let Some(header) = answers.first_chunk::<HEADER_BYTES>().map(Header::from_bytes) {
        let size = usize::try_from(header.size).expect("a size");
        assert!((HEADER_BYTES..=MESSAGE_MAX).contains(&size), "{header:?}");
        assert!(header.is_reply() && size <= answers.len(), "{header:?} of {}", answers.len());
        let is_error = header.flags & flag::ERROR != 0;
        assert_eq!(is_error, header.error != 0, "{header:?}");
        answers = &answers[size..];
    }
    assert!(answers.is_empty(), "a part of an answer");
}

fn descriptors<'a>(input: &mut Input<'_>, files: &'a [OwnedFd]) -> Vec<BorrowedFd<'a>> {
    let count = match input.u8() {
        count @ 0..=63 => usize::from(count % 4),
        64 => 8,
        _ => 0,
    };
    (0..count).map(|_| input.pick(&[0, 0, 1, 1, 2])).map(|file| files[file].as_fd()).collect()
}

/// A message that is right but for what the input changes, or any bytes.
fn bytes(input: &mut Input<'_>, id: u16) -> Vec<u8> {
    if input.u8() > 250 {
        let length = 1 + input.below(64);
        return input.bytes(length).to_vec();
    }
    let command = input.pick(&COMMANDS);
    let mut mask = Mask::of(input);
    let mut payload = payload(input, command, &mut mask);
    if mask.next() {
        payload.truncate(input.below(payload.len() + 1));
    }
    if mask.next() {
        let at = input.below(payload.len() + 1);
        if let Some(byte) = payload.get_mut(at) {
            *byte ^= input.u8();
        }
    }
    let number = if mask.next() { input.u16() } else { command as u16 };
    let flags = if mask.next() { input.u32() } else { 0 };
    let mut bytes = message(id, number, flags, &[&payload]);
    if mask.next() {
        bytes[4..8].copy_from_slice(&input.u32().to_le_bytes());
    }
    bytes
}

fn payload(input: &mut Input<'_>, command: Command, mask: &mut Mask) -> Vec<u8> {
    let address = if mask.next() { input.u64() } else { u64::from(input.u8()) << 12 };
    let size = if mask.next() { input.u64() } else { (1 + u64::from(input.u8() % 16)) << 12 };
    match command {
        Command::Version => Version { observer: mask.next(), ..Version::OWN }.to_bytes(),
        Command::DmaMap => {
            let offset = if mask.next() { input.u64() } else { 0 };
            DmaMap { flags: (input.u8() & 7).into(), offset, address, size }.to_bytes()
        }
        Command::DmaUnmap => DmaUnmap { flags: (input.u8() & 3).into(), address, size }.to_bytes(),
        Command::RegionInfo => {
            RegionInfo { index: (input.u8() % 12).into(), ..RegionInfo::default() }.to_bytes()
        }
        Command::IrqInfo => {
            IrqInfo { flags: 0, index: (input.u8() % 6).into(), count: 0 }.to_bytes()
        }
        Command::SetIrqs => {
            let (start, count) = (input.u8() % 34, input.u8() % 34);
            let data = input.bytes(usize::from(count)).to_vec();
            let flags = if mask.next() { input.u32() } else { 32 | 1 << (input.u8() % 3) };
            let (start, count) = (start.into(), count.into());
            SetIrqs { flags, index: 2, start, count, data: &data }.to_bytes()
        }
        Command::RegionRead | Command::RegionWrite => access(input, command, mask),
        Command::DeviceInfo | Command::Reset => {
            vec![16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
        }
    }
}

fn access(input: &mut Input<'_>, command: Command, mask: &mut Mask) -> Vec<u8> {
    let region = input.pick(&[region::BAR0, region::BAR0, region::BAR2, region::CONFIG, 1, 9]);
    let offset = if region == region::BAR0 && !mask.next() {
        input.pick(csr::REGS).offset.into()
    } else if mask.next() {
        input.u64()
    } else {
        u64::from(input.u16())
    };
    let length = if mask.next() { usize::from(input.u16()) } else { 4 };
    let data = match command {
        Command::RegionWrite => {
            let mut data = input.bytes(length.min(64)).to_vec();
            data.resize(length.min(DATA_MAX), 0);
            data
        }
        _ => Vec::new(),
    };
    let count = u32::try_from(length).expect("16 bits");
    let access = RegionAccess { offset, region, count, data: &data };
    [&access.head()[..], &data].concat()
}
