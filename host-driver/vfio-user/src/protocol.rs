//! The messages of the vfio-user protocol, version 0: both ends use this file.
//!
//! Every message has a header of 16 bytes; numbers are little-endian. A command that is not marked
//! `NO_REPLY` is answered by a message with its id and command, or by an error: a header alone with
//! an errno. Nothing here does I/O, and no bytes make it panic.

mod body;

use body::Words;
pub use body::{DeviceInfo, DmaMap, DmaUnmap, IrqInfo, RegionAccess, RegionInfo, SetIrqs, Version};

/// Bytes of a header.
pub const HEADER_BYTES: usize = 16;
/// Most bytes that one access of a region or of memory carries.
pub const DATA_MAX: usize = 1 << 16;
/// Most bytes of a message: data, its header and the words in front of it.
pub const MESSAGE_MAX: usize = DATA_MAX + 64;
/// Most descriptors that a message carries.
pub const FDS_MAX: usize = 8;
/// Version that both ends speak.
pub const VERSION: (u16, u16) = (0, 0);

/// The protocol's numbers for what goes wrong, as on Linux.
pub mod errno {
    /// Bad address: memory that cannot be reached.
    pub const FAULT: u32 = 14;
    /// Somebody else has it.
    pub const BUSY: u32 = 16;
    /// Already there.
    pub const EXIST: u32 = 17;
    /// Invalid argument.
    pub const INVALID: u32 = 22;
    /// The device does not answer.
    pub const IO: u32 = 5;
    /// No room.
    pub const NO_SPACE: u32 = 28;
    /// A message that is too long.
    pub const TOO_LONG: u32 = 90;
    /// No such command.
    pub const NOT_SUPPORTED: u32 = 95;
    /// The other end speaks something else.
    pub const PROTOCOL: u32 = 71;
}

/// Bits of [`Header::flags`].
pub mod flag {
    /// Type of the message: 0 command, 1 reply.
    pub const TYPE: u32 = 0xf;
    /// A reply.
    pub const REPLY: u32 = 1;
    /// A command that wants no reply.
    pub const NO_REPLY: u32 = 1 << 4;
    /// A reply that is an error.
    pub const ERROR: u32 = 1 << 5;
}

/// Numbers of the regions of a PCI device.
pub mod region {
    /// BAR 0; the others follow.
    pub const BAR0: u32 = 0;
    /// BAR 2.
    pub const BAR2: u32 = 2;
    /// Configuration space.
    pub const CONFIG: u32 = 7;
    /// How many there are.
    pub const COUNT: u32 = 9;
    /// Readable, in [`super::RegionInfo::flags`].
    pub const READ: u32 = 1;
    /// Writable.
    pub const WRITE: u32 = 2;
}

/// Interrupts of a PCI device, and what SET_IRQS does with them.
pub mod irq {
    /// Index of MSI-X.
    pub const MSIX: u32 = 2;
    /// How many indices there are.
    pub const COUNT: u32 = 5;
    /// Raised by eventfds, in [`super::IrqInfo::flags`].
    pub const EVENTFD: u32 = 1;
    /// No data: all vectors of the range.
    pub const DATA_NONE: u32 = 1;
    /// A byte for each vector: those that are not 0.
    pub const DATA_BOOL: u32 = 2;
    /// A descriptor for each vector.
    pub const DATA_EVENTFD: u32 = 4;
    /// What is to be done: mask, unmask or trigger.
    pub const ACTION_TRIGGER: u32 = 32;
    /// The bits that say which data comes.
    pub const DATA_BITS: u32 = 7;
    /// The bits that say what to do.
    pub const ACTION_BITS: u32 = 0x38;
}

/// Bits of [`DmaMap::flags`] and [`DmaUnmap::flags`].
pub mod dma {
    /// The device may read.
    pub const READ: u32 = 1;
    /// The device may write.
    pub const WRITE: u32 = 2;
    /// Unmap everything.
    pub const UNMAP_ALL: u32 = 2;
}

/// Commands. Those that are not here are answered by [`errno::NOT_SUPPORTED`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// First of all: versions and capabilities.
    Version = 1,
    /// Gives the device memory.
    DmaMap = 2,
    /// Takes it back.
    DmaUnmap = 3,
    /// How many regions and interrupts.
    DeviceInfo = 4,
    /// One region.
    RegionInfo = 5,
    /// One kind of interrupt.
    IrqInfo = 7,
    /// Eventfds for interrupts.
    SetIrqs = 8,
    /// Reads a region.
    RegionRead = 9,
    /// Writes a region.
    RegionWrite = 10,
    /// Resets the device.
    Reset = 13,
}

impl Command {
    /// The command with this number.
    #[must_use]
    pub const fn from_bits(bits: u16) -> Option<Self> {
        Some(match bits {
            1 => Self::Version,
            2 => Self::DmaMap,
            3 => Self::DmaUnmap,
            4 => Self::DeviceInfo,
            5 => Self::RegionInfo,
            7 => Self::IrqInfo,
            8 => Self::SetIrqs,
            9 => Self::RegionRead,
            10 => Self::RegionWrite,
            13 => Self::Reset,
            _ => return None,
        })
    }
}

/// What every message begins with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Chosen by who sends the command; the reply repeats it.
    pub id: u16,
    /// See [`Command`].
    pub command: u16,
    /// Bytes of the message, this header included.
    pub size: u32,
    /// See [`flag`].
    pub flags: u32,
    /// Errno of an error.
    pub error: u32,
}

impl Header {
    /// As on the socket.
    #[must_use]
    pub fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let first = u32::from(self.id) | u32::from(self.command) << 16;
        let mut bytes = [0; HEADER_BYTES];
        for (slot, word) in
            bytes.as_chunks_mut::<4>().0.iter_mut().zip([first, self.size, self.flags, self.error])
        {
            *slot = word.to_le_bytes();
        }
        bytes
    }

    /// Reads a header.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; HEADER_BYTES]) -> Self {
        let mut words = Words(bytes);
        let mut next = || words.u32().unwrap_or(0);
        let (first, size, flags, error) = (next(), next(), next(), next());
        let half = |value: u32| u16::try_from(value & 0xffff).unwrap_or(0);
        Self { id: half(first), command: half(first >> 16), size, flags, error }
    }

    /// Whether this is a reply.
    #[must_use]
    pub const fn is_reply(self) -> bool {
        self.flags & flag::TYPE == flag::REPLY
    }

    /// Whether the sender wants a reply.
    #[must_use]
    pub const fn wants_reply(self) -> bool {
        self.flags & flag::NO_REPLY == 0
    }
}

/// A whole command or reply, as bytes.
#[must_use]
pub fn message(id: u16, command: u16, flags: u32, parts: &[&[u8]]) -> Vec<u8> {
    let size = HEADER_BYTES + parts.iter().map(|part| part.len()).sum::<usize>();
    let size = u32::try_from(size).unwrap_or(u32::MAX);
    let mut bytes = Header { id, command, size, flags, error: 0 }.to_bytes().to_vec();
    parts.iter().for_each(|part| bytes.extend_from_slice(part));
    bytes
}

/// The error reply to a command.
#[must_use]
pub fn error_reply(to: Header, error: u32) -> Vec<u8> {
    let flags = flag::REPLY | flag::ERROR;
    let size = u32::try_from(HEADER_BYTES).unwrap_or(0);
    Header { size, flags, error, ..to }.to_bytes().to_vec()
}

/// The error reply to a VERSION at a device that another program has, and that program's process,
/// 0 if it is not known. The protocol leaves what follows the header of an error open, and clients
/// that do not know of the number pass over it.
#[must_use]
pub fn busy_reply(to: Header, process: u32) -> Vec<u8> {
    let flags = flag::REPLY | flag::ERROR;
    let mut bytes = message(to.id, to.command, flags, &[&process.to_le_bytes()]);
    bytes[12..HEADER_BYTES].copy_from_slice(&errno::BUSY.to_le_bytes());
    bytes
}

/// The last message to a client whose NIC the server takes back, and the reason. No command has
/// number 0, so it is the answer to none; clients that do not know it see a malformed stream.
#[must_use]
pub fn farewell(why: &str) -> Vec<u8> {
    let flags = flag::REPLY | flag::ERROR;
    let mut bytes = message(0, 0, flags, &[why.as_bytes()]);
    bytes[12..HEADER_BYTES].copy_from_slice(&errno::FAULT.to_le_bytes());
    bytes
}

/// The reason in a [`farewell`].
#[must_use]
pub fn farewell_reason(header: Header, payload: &[u8]) -> Option<String> {
    let is_farewell = header.command == 0 && header.error == errno::FAULT;
    is_farewell.then(|| String::from_utf8_lossy(payload).into_owned())
}

/// The process that the payload of a [`busy_reply`] names.
#[must_use]
pub fn busy_process(payload: &[u8]) -> Option<u32> {
    Words(payload).u32().filter(|process| *process != 0)
}

#[cfg(test)]
mod tests;
