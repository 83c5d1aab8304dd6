//! No messages: what the end that measures sends it writes into a file, from which it receives it. The file
//! is in memory, so that a round is two system calls on a file. The other end does nothing.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::fd::AsRawFd;

use super::{Offered, Transport, empty, stamp_of};
use crate::Failure;

/// Bytes of the file, after which an end begins anew.
const BYTES: usize = 1 << 20;

struct Scratch {
    writer: File,
    reader: File,
    /// How far each is.
    written: usize,
    read: usize,
    buffer: Vec<u8>,
}

impl Scratch {
    fn new(largest: usize) -> Result<Self, Failure> {
        let mut writer = empty()?;
        writer.write_all(&vec![0; BYTES])?;
        writer.rewind()?;
        // Another place in the same file.
        let reader = File::open(format!("/proc/self/fd/{}", writer.as_raw_fd()))?;
        Ok(Self { writer, reader, written: 0, read: 0, buffer: vec![0; largest.max(4)] })
    }
}

/// Where an access of this length begins, from where the last one has ended.
fn place(file: &mut File, at: &mut usize, length: usize) -> Result<(), Failure> {
    if *at + length > BYTES {
        file.rewind()?;
        *at = 0;
    }
    *at += length;
    Ok(())
}

impl Transport for Scratch {
    fn send(&mut self, length: usize, stamp: u32) -> Result<(), Failure> {
        place(&mut self.writer, &mut self.written, length)?;
        self.buffer[..4].copy_from_slice(&stamp.to_le_bytes());
        Ok(self.writer.write_all(&self.buffer[..length])?)
    }

    fn receive(&mut self, length: usize) -> Result<u32, Failure> {
        place(&mut self.reader, &mut self.read, length)?;
        self.reader.read_exact(&mut self.buffer[..length])?;
        Ok(stamp_of(&self.buffer[..length]))
    }
}

pub(super) fn offer(largest: usize) -> Result<Offered, Failure> {
    let end = Scratch::new(largest)?;
    Ok(Offered { place: "here".to_owned(), accept: Box::new(|| Ok(Box::new(end))) })
}

/// The end that does nothing.
struct Idle;

impl Transport for Idle {
    fn send(&mut self, _length: usize, _stamp: u32) -> Result<(), Failure> {
        Ok(())
    }

    fn receive(&mut self, _length: usize) -> Result<u32, Failure> {
        Ok(0)
    }
}

pub(super) fn join() -> Box<dyn Transport> {
    Box::new(Idle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_also_after_the_end_of_the_file() {
        let mut end = Scratch::new(4096).unwrap();
        for stamp in 0..600 {
            end.send(4096, stamp).unwrap();
            assert_eq!(end.receive(4096).unwrap(), stamp);
        }
    }
}
