//! What is mapped where in this process: `/proc/self/maps`.

use std::io;

/// A mapping of this process, or the part of one that somebody asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Area {
    pub(super) start: usize,
    pub(super) end: usize,
    /// Readable, writable, executable, shared.
    pub(super) rights: [bool; 4],
    /// Inode of the file behind it; 0: none.
    pub(super) inode: u64,
    /// The main thread's stack, or something of the kernel's.
    pub(super) special: bool,
}

impl Area {
    /// Parses one line.
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let rights = words.next()?.as_bytes().first_chunk::<4>()?;
        let (_offset, _device) = (words.next()?, words.next()?);
        let inode = words.next()?.parse().ok()?;
        let name = words.next().unwrap_or("");
        let address = |text| usize::from_str_radix(text, 16).ok();
        let [r, w, x, s] = *rights;
        Some(Self {
            start: address(start)?,
            end: address(end)?,
            rights: [r == b'r', w == b'w', x == b'x', s == b's'],
            inode,
            special: name.starts_with("[stack") || name.starts_with("[v"),
        })
    }

    pub(super) const fn is_shared(self) -> bool {
        self.rights[3]
    }

    pub(super) const fn is_readable(self) -> bool {
        self.rights[0]
    }

    pub(super) const fn is_writable(self) -> bool {
        self.rights[1]
    }

    /// Ordinary memory of the program: private, readable, writable, no code.
    pub(super) const fn is_ordinary(self) -> bool {
        matches!(self.rights, [true, true, false, false]) && !self.special
    }
}

/// All mappings, in order.
pub(super) fn all() -> io::Result<Vec<Area>> {
    let text = std::fs::read_to_string("/proc/self/maps")?;
    Ok(text.lines().filter_map(Area::parse).collect())
}

/// The mappings that a range touches, cut to it.
pub(super) fn cut(all: &[Area], start: usize, end: usize) -> Vec<Area> {
    let touching = all.iter().filter(|a| a.start < end && start < a.end);
    touching.map(|a| Area { start: a.start.max(start), end: a.end.min(end), ..*a }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_understood() {
        let line = "7ffc1000-7ffc3000 rw-p 00000000 00:00 0                          [stack]";
        let area = Area::parse(line).unwrap();
        assert_eq!((area.start, area.end, area.special), (0x7ffc_1000, 0x7ffc_3000, true));
        assert!(!area.is_ordinary() && area.is_writable());
        let line = "555000-556000 rw-s 00001000 00:01 77 /memfd:a (deleted)";
        let area = Area::parse(line).unwrap();
        assert!(area.inode == 77 && area.is_shared() && !area.is_ordinary());
        assert_eq!(Area::parse("nonsense"), None);
    }

    #[test]
    fn own_memory_is_found() {
        let heap = Box::new([0_u8; 64]);
        let at = heap.as_ptr().addr();
        let found = cut(&all().unwrap(), at, at + 64);
        assert!(!found.is_empty() && found.iter().all(|area| area.is_ordinary()));
        assert_eq!((found[0].start, found[found.len() - 1].end), (at, at + 64));
    }
}
