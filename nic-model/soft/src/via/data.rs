//! The data of a descriptor, from and to bytes.

use super::descriptor::Pieces;
use super::region::Known;

/// Copies bytes of a descriptor's data, from an offset on.
#[inline]
pub(crate) fn gather(known: &Known, pieces: &Pieces, offset: usize, to: &mut [u8]) {
    let mut at = 0;
    for piece in pieces.part(offset, to.len()) {
        let end = at + piece.length;
        known.at(piece.place).memory.copy_to(piece.offset, &mut to[at..end]);
        at = end;
    }
}

/// Puts bytes where a descriptor's data is. What is beyond its end goes nowhere.
#[inline]
pub(crate) fn scatter(known: &Known, pieces: &Pieces, offset: usize, bytes: &[u8]) {
    let mut at = 0;
    for piece in pieces.part(offset, bytes.len()) {
        let end = at + piece.length;
        known.at(piece.place).memory.copy_from(piece.offset, &bytes[at..end]);
        at = end;
    }
}
