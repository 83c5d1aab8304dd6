//! What is mapped where in this process: `/proc/self/maps`.

use std::io;

/// A mapping of this process, or the part of one that somebody asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Area {
    pub(super) start: usize,
    pub(super) end: usize,
    /// Readable, writable, executable, shared.
    pub(super) rights: [bool; 4],
    /// Where in the file behind it.
    pub(super) offset: u64,
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
        let (offset, _device) = (words.next()?, words.next()?);
        let inode = words.next()?.parse().ok()?;
        let name = words.next().unwrap_or("");
        let address = |text| usize::from_str_radix(text, 16).ok();
        let [r, w, x, s] = *rights;
        Some(Self {
            start: address(start)?,
            end: address(end)?,
            rights: [r == b'r', w == b'w', x == b'x', s == b's'],
            offset: u64::from_str_radix(offset, 16).ok()?,
            inode,
            special: name.starts_with("[stack") || name.starts_with("[v"),
        })
    }

    /// The part of it between two addresses.
    pub(super) fn part(self, start: usize, end: usize) -> Option<Self> {
        let (start, end) = (self.start.max(start), self.end.min(end));
        let offset = self.offset + start.saturating_sub(self.start) as u64;
        (start < end).then_some(Self { start, end, offset, ..self })
    }

    /// The part of it that has these bytes of the file.
    pub(super) fn part_of_file(self, start: usize, end: usize) -> Option<Self> {
        let address = |offset: usize| {
            let skipped = (offset as u64).saturating_sub(self.offset);
            self.start.saturating_add(usize::try_from(skipped).unwrap_or(usize::MAX))
        };
        self.part(address(start), address(end))
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
    all.iter().filter_map(|area| area.part(start, end)).collect()
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
        assert_eq!(area.offset, 0x1000);
        let ends = |part: Option<Area>| part.map(|part| (part.start, part.end, part.offset));
        let area = Area::parse("555000-558000 rw-s 00001000 00:01 77 /memfd:a (deleted)").unwrap();
        assert_eq!(ends(area.part(0x55_6000, usize::MAX)), Some((0x55_6000, 0x55_8000, 0x2000)));
        assert_eq!(ends(area.part(0, 0x55_5000)), None);
        assert_eq!(ends(area.part_of_file(0x2000, 0x3000)), Some((0x55_6000, 0x55_7000, 0x2000)));
        assert_eq!(ends(area.part_of_file(0, 0x2000)), Some((0x55_5000, 0x55_6000, 0x1000)));
        assert_eq!(ends(area.part_of_file(0x4000, 0x5000)), None);
        assert_eq!(ends(area.part_of_file(0, 0x1000)), None);
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
