//! A file of one process that the other one writes, by any transport that carries files. Both are in memory,
//! as SOVIA's Table I has them on RAM disks.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::time::Instant;

use super::transport::{Transport, empty};
use crate::Failure;

/// Bytes that are written or compared at once where nothing is measured.
const BLOCK: usize = 1 << 20;
/// Bytes of the answer.
const ANSWER: usize = 4;

/// The bytes from one place of a file on.
fn pattern(from: usize, bytes: &mut [u8]) {
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = ((from + at) * 7 + (from + at) / 251).to_le_bytes()[0];
    }
}

/// A file of so many bytes.
pub(super) fn source(bytes: u32) -> Result<File, Failure> {
    let (mut file, bytes, mut block) = (empty()?, usize::try_from(bytes)?, vec![0; BLOCK]);
    let mut at = 0;
    while at < bytes {
        let count = BLOCK.min(bytes - at);
        pattern(at, &mut block[..count]);
        file.write_all(&block[..count])?;
        at += count;
    }
    Ok(file)
}

/// Whether a file has the bytes that [`source`] has put into another one.
fn check(mut file: &File, bytes: usize) -> Result<(), Failure> {
    let (mut found, mut expected) = (vec![0; BLOCK], vec![0; BLOCK]);
    file.rewind()?;
    let mut at = 0;
    while at < bytes {
        let count = BLOCK.min(bytes - at);
        file.read_exact(&mut found[..count])?;
        pattern(at, &mut expected[..count]);
        if found[..count] != expected[..count] {
            return Err(format!("a file of {bytes} bytes is wrong behind byte {at}").into());
        }
        at += count;
    }
    Ok(())
}

/// Sends a file, and waits until the other process has written it.
pub(super) fn send(
    transport: &mut dyn Transport,
    mut source: &File,
    length: usize,
    bytes: u32,
) -> Result<(), Failure> {
    source.rewind()?;
    let (bytes, mut at) = (usize::try_from(bytes)?, 0);
    while at < bytes {
        match transport.send_file(source, length)? {
            0 => return Err(format!("a file ends at byte {at} of {bytes}").into()),
            count => at += count,
        }
    }
    transport.flush()?;
    transport.receive(ANSWER).map(drop)
}

/// Writes what [`send`] sends, answers, and then looks at it.
pub(super) fn receive(
    transport: &mut dyn Transport,
    length: usize,
    bytes: u32,
) -> Result<(), Failure> {
    let (file, bytes, mut at) = (empty()?, usize::try_from(bytes)?, 0);
    while at < bytes {
        let count = length.min(bytes - at);
        transport.receive_file(&file, count)?;
        at += count;
    }
    transport.send(ANSWER, 0)?;
    transport.flush()?;
    check(&file, bytes)
}

/// Copies a file within this process in the same steps; the time, in nanoseconds.
pub(super) fn local(mut source: &File, length: usize, bytes: u32) -> Result<f64, Failure> {
    let bytes = usize::try_from(bytes)?;
    source.rewind()?;
    let (mut copy, mut block) = (empty()?, vec![0; length]);
    let start = Instant::now();
    let mut at = 0;
    while at < bytes {
        let count = source.read(&mut block)?;
        copy.write_all(&block[..count])?;
        at += count;
    }
    let time = start.elapsed().as_secs_f64() * 1e9;
    check(&copy, bytes)?;
    Ok(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_its_bytes_and_one_that_is_wrong_is_noticed() {
        let file = source(2_500_000).unwrap();
        check(&file, 2_500_000).unwrap();
        assert!(check(&file, 2_500_001).is_err(), "it is shorter");
        let mut wrong = &file;
        wrong.seek(std::io::SeekFrom::Start(1_200_000)).unwrap();
        wrong.write_all(&[0; 300]).unwrap();
        assert!(check(&file, 2_500_000).unwrap_err().to_string().contains("1048576"));
        assert!(local(&source(70_000).unwrap(), 32 << 10, 70_000).unwrap() > 0.0);
    }
}
