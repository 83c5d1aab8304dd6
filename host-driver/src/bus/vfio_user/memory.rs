//! The bus's mappings of memory.

use core::sync::atomic::Ordering;
use std::io;
use std::os::fd::AsFd;

use super::VfioUserBus;
use super::protocol::{Command, DmaMap, DmaUnmap, dma};
use super::service::Window;
use super::share::{self, Piece};
use crate::bus::Dma;
use crate::dma::{DmaMemory, PAGE_BYTES};
use crate::error::{Error, Result};
use crate::sync::lock;

/// Unmapped bus addresses behind each mapping.
const GUARD_BYTES: u64 = 16 * PAGE_BYTES as u64;
/// One mapping.
#[derive(Debug)]
pub(super) struct Mapping {
    pub(super) pieces: Vec<Piece>,
    first: u64,
    size: u64,
}

impl VfioUserBus {
    /// Gives the simulator one piece of a mapping.
    fn map_piece(&self, piece: Piece, address: u64) -> Result<()> {
        let size = (piece.end - piece.start) as u64;
        let flags = dma::READ | if piece.writable { dma::WRITE } else { 0 };
        let offset = if piece.shared { piece.start as u64 } else { 0 };
        let map = DmaMap { flags, offset, address, size }.to_bytes();
        let no_file =
            |error: io::Error| Error::Connect { path: self.path.clone(), why: error.to_string() };
        if piece.shared {
            let file = share::file().map_err(no_file)?;
            self.ask("shared memory", Command::DmaMap, &[&map], &[file.as_fd()])?;
        } else {
            let length = piece.end - piece.start;
            let window = Window { address: piece.start, length, writable: piece.writable };
            lock(&self.windows).insert(address, window);
            self.ask("memory that is not shared", Command::DmaMap, &[&map], &[])?;
        }
        Ok(())
    }

    fn drop_mapping(&self, mapping: &Mapping) {
        if self.is_inherited() {
            return;
        }
        let unmap = DmaUnmap { flags: 0, address: mapping.first, size: mapping.size }.to_bytes();
        // A simulator that is gone touches nothing any more; the pieces are given back after it
        // answered, so that it does not write to memory that is somebody else's.
        let _ = self.ask("the end of a mapping", Command::DmaUnmap, &[&unmap], &[]);
        let end = mapping.first + mapping.size;
        lock(&self.windows).retain(|address, _| !(mapping.first..end).contains(address));
        share::give(&mapping.pieces);
    }
}

impl Dma for VfioUserBus {
    fn map(&self, memory: &DmaMemory) -> Result<u64> {
        let why = |error: io::Error| Error::Connect {
            path: self.path.clone(),
            why: format!("memory cannot be mapped: {error}"),
        };
        let address = usize::try_from(memory.address()).unwrap_or(0);
        let pieces = share::take(address, memory.len()).map_err(why)?;
        let size: u64 = pieces.iter().map(|piece| (piece.end - piece.start) as u64).sum();
        let first = self.next_address.fetch_add(size + GUARD_BYTES, Ordering::Relaxed);
        let mapping = Mapping { pieces, first, size };
        let mut at = first;
        for piece in &mapping.pieces {
            if let Err(error) = self.map_piece(*piece, at) {
                self.drop_mapping(&mapping);
                return Err(error);
            }
            at += (piece.end - piece.start) as u64;
        }
        let bus_address = first + memory.page_offset() as u64;
        lock(&self.mappings).insert(bus_address, mapping);
        Ok(bus_address)
    }

    fn unmap(&self, bus_address: u64) {
        if self.is_inherited() {
            return;
        }
        let mapping = lock(&self.mappings).remove(&bus_address);
        if let Some(mapping) = mapping {
            self.drop_mapping(&mapping);
        }
    }
}
