//! SOVIA's streams on any device.

use std::fs::File;
use std::io::{Read, Write};

use sovia::{Address, Device, Policy, TcpListener, TcpStream};
use vipl::{Nic, Waiting};

use super::{BOUND, Offered, Transport, stamp_of};
use crate::Failure;

struct End {
    stream: TcpStream,
    /// After the stream: it goes last.
    _device: Device,
    buffer: Vec<u8>,
}

impl Transport for End {
    fn send(&mut self, length: usize, stamp: u32) -> Result<(), Failure> {
        self.buffer[..4].copy_from_slice(&stamp.to_le_bytes());
        Ok(self.stream.write_all(&self.buffer[..length])?)
    }

    fn flush(&mut self) -> Result<(), Failure> {
        Ok(self.stream.flush()?)
    }

    fn receive(&mut self, length: usize) -> Result<u32, Failure> {
        self.stream.read_exact(&mut self.buffer[..length])?;
        Ok(stamp_of(&self.buffer))
    }

    fn send_file(&mut self, mut file: &File, length: usize) -> Result<usize, Failure> {
        let count = file.read(&mut self.buffer[..length])?;
        self.stream.write_all(&self.buffer[..count])?;
        Ok(count)
    }

    fn receive_file(&mut self, mut file: &File, length: usize) -> Result<(), Failure> {
        self.stream.read_exact(&mut self.buffer[..length])?;
        Ok(file.write_all(&self.buffer[..length])?)
    }
}

fn open(device: &str, policy: &str, blocking: bool) -> Result<Device, Failure> {
    let waiting = if blocking { Waiting::default() } else { Waiting::Poll };
    let found = Policy::ALL.into_iter().find(|(name, _)| *name == policy);
    let (_, policy) = found.ok_or_else(|| format!("there is no policy `{policy}`"))?;
    Ok(Device::new(Nic::open_with(device::open(device)?, waiting), policy)?)
}

fn end(stream: TcpStream, device: Device, largest: usize) -> Result<Box<dyn Transport>, Failure> {
    stream.set_read_timeout(Some(BOUND))?;
    Ok(Box::new(End { stream, _device: device, buffer: vec![1; largest.max(4)] }))
}

pub(super) fn offer(
    device: &str,
    policy: &str,
    blocking: bool,
    largest: usize,
) -> Result<Offered, Failure> {
    let device = open(device, policy, blocking)?;
    let listener = TcpListener::bind(&device, 0)?;
    let place = listener.local_addr()?.to_string();
    let accept = move || end(listener.accept()?.0, device, largest);
    Ok(Offered { place, accept: Box::new(accept) })
}

pub(super) fn join(
    device: &str,
    policy: &str,
    blocking: bool,
    largest: usize,
    place: &str,
) -> Result<Box<dyn Transport>, Failure> {
    let device = open(device, policy, blocking)?;
    let stream = TcpStream::connect(&device, place.parse::<Address>()?)?;
    end(stream, device, largest)
}
