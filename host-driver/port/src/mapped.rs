//! Whether a range of addresses is mapped in this process: `/proc/self/maps`.

use std::fs::File;
use std::io::{BufRead, BufReader};

use crate::error::{Error, Result};
use crate::memory::DmaMemory;

/// What this process may do with all bytes of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// All of it can be read.
    pub readable: bool,
    /// All of it can be written.
    pub writable: bool,
}

/// Rights of the mappings that a line of `/proc/self/maps` describes, and where they begin and end.
fn parse(line: &str) -> Option<(u64, u64, Access)> {
    let mut words = line.split_ascii_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let rights = words.next()?.as_bytes();
    let address = |text| u64::from_str_radix(text, 16).ok();
    let access =
        Access { readable: rights.first() == Some(&b'r'), writable: rights.get(1) == Some(&b'w') };
    Some((address(start)?, address(end)?, access))
}

/// Access to a range, by the lines of `/proc/self/maps`, whose addresses rise.
fn access_in(maps: impl BufRead, start: u64, end: u64) -> Access {
    let mut all = Access { readable: true, writable: true };
    let mut at = start;
    // Names of files need not be UTF-8.
    let lines = maps.split(b'\n').map_while(|line| line.ok());
    for (from, to, access) in lines.filter_map(|line| parse(&String::from_utf8_lossy(&line))) {
        if to > at && from <= at {
            all.readable &= access.readable;
            all.writable &= access.writable;
            at = to;
        }
        if at >= end || from >= end {
            break;
        }
    }
    if at >= end { all } else { Access { readable: false, writable: false } }
}

/// Access of this process to `memory`. Where the system does not tell, everything is allowed.
#[must_use]
pub fn access(memory: &DmaMemory) -> Access {
    let Ok(file) = File::open("/proc/self/maps") else {
        return Access { readable: true, writable: true };
    };
    let end = memory.address().saturating_add(memory.len() as u64);
    access_in(BufReader::new(file), memory.address(), end)
}

/// Access of this process to `memory`, all of which must be mapped and readable: a device in this
/// process would end the program by its first access.
///
/// # Errors
/// [`Error::BadArgument`] with the address of the memory.
pub fn check_readable(memory: &DmaMemory) -> Result<Access> {
    let access = access(memory);
    if access.readable {
        return Ok(access);
    }
    let what = "memory, part of which is not mapped or may not be read, address";
    Err(Error::BadArgument { what, value: memory.address() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn access_to_a_range_is_what_all_its_mappings_allow() {
        // Names of files are any bytes.
        let maps = b"1000-3000 rw-p 00000000 00:00 0 [heap]\n3000-4000 r--s 0 00:01 77 /a \xff\n\
                     4000-5000 ---p 0 00:00 0\n8000-9000 rw-p 0 00:00 0\n";
        let rights = |start, end| {
            let Access { readable, writable } = access_in(&maps[..], start, end);
            (readable, writable)
        };
        assert_eq!(rights(0x1001, 0x2fff), (true, true));
        assert_eq!(rights(0x2fff, 0x4000), (true, false));
        assert_eq!(rights(0x3000, 0x4001), (false, false));
        assert_eq!(rights(0x8000, 0x9000), (true, true));
        for (start, end) in [(0, 0x1001), (0x4fff, 0x8001), (0x8fff, 0x9001), (0xa000, 0xb000)] {
            assert_eq!(rights(start, end), (false, false), "{start:#x} to {end:#x}");
        }
    }

    #[test]
    fn own_memory_is_readable_and_writable() {
        let memory = DmaMemory::new(100_000).unwrap();
        assert_eq!(access(&memory), Access { readable: true, writable: true });
        assert!(check_readable(&memory).is_ok());
    }
}
