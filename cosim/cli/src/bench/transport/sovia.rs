//! SOVIA's streams on any device.

use std::io::{Read, Write};
use std::sync::atomic::{AtomicU16, Ordering};

use sovia::{Device, Listener, Policy, Stream};
use vipl::{Nic, Waiting};

use super::{BOUND, Offered, Transport};
use crate::Failure;

struct End {
    stream: Stream,
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
        Ok(self.buffer.first_chunk().copied().map_or(0, u32::from_le_bytes))
    }
}

fn open(device: &str, policy: &str, blocking: bool) -> Result<Device, Failure> {
    let waiting = if blocking { Waiting::default() } else { Waiting::Poll };
    let found = Policy::ALL.into_iter().find(|(name, _)| *name == policy);
    let (_, policy) = found.ok_or_else(|| format!("there is no policy `{policy}`"))?;
    Ok(Device::new(Nic::open_with(device::open(device)?, waiting), policy)?)
}

fn end(stream: Stream, device: Device, largest: usize) -> Box<dyn Transport> {
    stream.set_read_timeout(Some(BOUND));
    Box::new(End { stream, _device: device, buffer: vec![1; largest.max(4)] })
}

pub(super) fn offer(
    device: &str,
    policy: &str,
    blocking: bool,
    largest: usize,
) -> Result<Offered, Failure> {
    static PORT: AtomicU16 = AtomicU16::new(1);
    let device = open(device, policy, blocking)?;
    let port = PORT.fetch_add(1, Ordering::Relaxed);
    let listener = Listener::bind(&device, port)?;
    let host: String = device.host().iter().map(|byte| format!("{byte:02x}")).collect();
    let accept = move || Ok(end(listener.accept()?, device, largest));
    Ok(Offered { place: format!("{host} {port}"), accept: Box::new(accept) })
}

pub(super) fn join(
    device: &str,
    policy: &str,
    blocking: bool,
    largest: usize,
    place: &str,
) -> Result<Box<dyn Transport>, Failure> {
    let device = open(device, policy, blocking)?;
    let (host, port) = place.split_once(' ').ok_or("no place of a stream")?;
    let byte = |at: usize| u8::from_str_radix(host.get(at..at + 2).unwrap_or(""), 16);
    let host = (0..host.len()).step_by(2).map(byte).collect::<Result<Vec<u8>, _>>()?;
    let stream = Stream::connect(&device, &host, port.parse()?)?;
    Ok(end(stream, device, largest))
}
