//! Answers the simulator where it reads or writes memory by message: memory that could not be
//! shared.
//!
//! The program's memory is reached through `/proc/self/mem`, so that memory which the program
//! unmapped in the meantime is an error and not a crash.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};

use super::protocol::{Command, DmaAccess, Header, errno, error_reply, flag, message};
use super::socket::{Inbox, Message, Received, send};
use crate::sync::lock;

/// Memory that is reached by message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) address: usize,
    pub(super) length: usize,
    pub(super) writable: bool,
}

/// Such memory, by its bus address.
pub(super) type Windows = Arc<Mutex<BTreeMap<u64, Window>>>;

/// Answers until the simulator or the bus closes the socket.
pub(super) fn serve(socket: &UnixStream, windows: &Windows, memory: &File) {
    let mut inbox = Inbox::default();
    loop {
        let Ok(Received::Message(command)) = inbox.receive(socket.as_fd(), true) else { return };
        let reply = answer(&command, windows, memory)
            .unwrap_or_else(|errno| error_reply(command.header, errno));
        if send(socket.as_fd(), &reply, &[], true).is_err() {
            return;
        }
    }
}

fn answer(command: &Message, windows: &Windows, memory: &File) -> Result<Vec<u8>, u32> {
    let Header { id, command: number, .. } = command.header;
    let write = match Command::from_bits(number) {
        Some(Command::DmaRead) => false,
        Some(Command::DmaWrite) => true,
        _ => return Err(errno::NOT_SUPPORTED),
    };
    let access = DmaAccess::parse(&command.payload, write).ok_or(errno::INVALID)?;
    let length = usize::try_from(access.count).map_err(|_| errno::INVALID)?;
    // Held over the access: what is unmapped is not touched any more.
    let windows = lock(windows);
    let (base, window) = windows.range(..=access.address).next_back().ok_or(errno::FAULT)?;
    let offset = usize::try_from(access.address - base).map_err(|_| errno::FAULT)?;
    let inside = offset <= window.length && length <= window.length - offset;
    if !inside || (write && !window.writable) {
        return Err(errno::FAULT);
    }
    let at = (window.address + offset) as u64;
    let head = access.head();
    if !write {
        let mut data = vec![0; length];
        memory.read_exact_at(&mut data, at).map_err(|_| errno::FAULT)?;
        return Ok(message(id, number, flag::REPLY, &[&head, &data]));
    }
    // The last word, which a program may poll, after everything before it.
    let (front, last) =
        access.data.split_at(length - length.min(if length % 8 == 0 { 8 } else { 4 }));
    memory.write_all_at(front, at).map_err(|_| errno::FAULT)?;
    memory.write_all_at(last, at + front.len() as u64).map_err(|_| errno::FAULT)?;
    Ok(message(id, number, flag::REPLY, &[&head]))
}
