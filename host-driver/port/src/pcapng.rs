//! Packets in a file, for Wireshark: pcapng, as far as what passes a device needs it.
//!
//! Each block is written at once, so a file of a program that was killed is whole up to its last
//! packet.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Types of blocks.
mod block {
    /// Section header.
    pub(super) const SECTION: u32 = 0x0a0d_0d0a;
    /// Interface description.
    pub(super) const INTERFACE: u32 = 1;
    /// Enhanced packet.
    pub(super) const PACKET: u32 = 6;
}

/// Codes of options.
mod option {
    /// Name of an interface.
    pub(super) const NAME: u16 = 2;
    /// Flags of a packet: its direction.
    pub(super) const FLAGS: u16 = 2;
    /// Resolution of time stamps.
    pub(super) const RESOLUTION: u16 = 9;
}

/// Which way a packet passes an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// It arrives.
    In = 1,
    /// It leaves.
    Out = 2,
}

/// What packets pass.
#[derive(Clone, Debug)]
pub struct Interface {
    /// Its name, as Wireshark shows it.
    pub name: String,
    /// What its packets begin with (LINKTYPE_, tcpdump.org/linktypes.html).
    pub link_type: u16,
}

/// A file of packets.
#[derive(Debug)]
pub struct Writer {
    path: PathBuf,
    file: File,
    packets: u64,
    /// Nothing is written any more.
    failed: Option<io::Error>,
}

/// Appends bytes, and zeros up to a multiple of 4.
fn pad(block: &mut Vec<u8>, bytes: &[u8]) {
    block.extend_from_slice(bytes);
    block.resize(block.len().next_multiple_of(4), 0);
}

/// Appends an option.
fn option(block: &mut Vec<u8>, code: u16, value: &[u8]) {
    block.extend_from_slice(&code.to_le_bytes());
    block.extend_from_slice(&u16::try_from(value.len()).unwrap_or(0).to_le_bytes());
    pad(block, value);
}

/// A block: type and length, body, end of options, length.
fn block(kind: u32, body: &[u8], options: bool) -> Vec<u8> {
    let end: &[u8] = if options { &[0; 4] } else { &[] };
    let length = u32::try_from(12 + body.len() + end.len()).unwrap_or(0).to_le_bytes();
    [&kind.to_le_bytes()[..], &length, body, end, &length].concat()
}

/// The blocks in front of the packets.
fn head(interfaces: &[Interface]) -> Vec<u8> {
    let mut section = 0x1a2b_3c4d_u32.to_le_bytes().to_vec();
    // Version 1.0, and a length that is not known.
    section.extend_from_slice(&[1, 0, 0, 0]);
    section.extend_from_slice(&[0xff; 8]);
    let mut bytes = block(block::SECTION, &section, false);
    for Interface { name, link_type } in interfaces {
        let mut interface = u32::from(*link_type).to_le_bytes().to_vec();
        // No limit of the length of packets.
        interface.extend_from_slice(&[0; 4]);
        option(&mut interface, option::NAME, name.as_bytes());
        // Nanoseconds.
        option(&mut interface, option::RESOLUTION, &[9]);
        bytes.extend(block(block::INTERFACE, &interface, true));
    }
    bytes
}

impl Writer {
    /// Makes the file.
    ///
    /// # Errors
    /// The file cannot be written; the text names it.
    pub fn create(path: &Path, interfaces: &[Interface]) -> io::Result<Self> {
        let named = |error| io::Error::other(format!("{}: {error}", path.display()));
        let mut file = File::create(path).map_err(named)?;
        file.write_all(&head(interfaces)).map_err(named)?;
        Ok(Self { path: path.to_owned(), file, packets: 0, failed: None })
    }

    /// Writes a packet that passed the interface with a number (in the order of [`Self::create`]) at a
    /// time, in nanoseconds. `bytes` are its first ones, of `length` in all. False: the file cannot be
    /// written any more, as [`Self::packets`] says.
    pub fn packet(
        &mut self,
        (interface, direction): (usize, Direction),
        now_ns: u64,
        bytes: &[u8],
        length: usize,
    ) -> bool {
        let word = |value: u64| u32::try_from(value & 0xffff_ffff).unwrap_or(0).to_le_bytes();
        let kept = bytes.len() as u64;
        let words = [interface as u64, now_ns >> 32, now_ns, kept, length as u64];
        let mut body: Vec<u8> = words.into_iter().flat_map(word).collect();
        pad(&mut body, bytes);
        option(&mut body, option::FLAGS, &(direction as u32).to_le_bytes());
        if self.failed.is_none() {
            match self.file.write_all(&block(block::PACKET, &body, true)) {
                Ok(()) => self.packets += 1,
                Err(error) => self.failed = Some(error),
            }
        }
        self.failed.is_none()
    }

    /// How many packets are in the file.
    ///
    /// # Errors
    /// The file could not be written any more; the text names it.
    pub fn packets(&self) -> io::Result<u64> {
        match &self.failed {
            None => Ok(self.packets),
            Some(why) => Err(io::Error::other(format!("{}: {why}", self.path.display()))),
        }
    }
}
