//! Access to memory of other nodes.

use core::fmt::Debug;

use super::event::DmaError;
use crate::error::Result;
use crate::memory::DmaMemory;

/// A region of another domain ([`super::ClanPort::attach`]). Every access is checked against the
/// cookie as it is then. For several threads there are several handles.
pub trait Remote: Debug + Send {
    /// Bytes of the region.
    fn length(&self) -> u64;

    /// Whether stores are processor stores. If not, each access costs a system call or more, and few
    /// large ones are better than many small ones.
    fn is_mapped(&self) -> bool;

    /// Another handle of the same region.
    fn duplicate(&self) -> Box<dyn Remote>;

    /// Stores double words from `offset` on, a multiple of 8, at rising addresses: at most 8 of them.
    /// Each is written as a whole.
    ///
    /// # Errors
    /// Revoked, no right to write, outside, or the owner exists no more.
    fn store(&mut self, offset: u64, words: &[u64]) -> core::result::Result<(), DmaError>;

    /// Copies memory of this program into the region. When this returns, the source may be used
    /// again.
    ///
    /// # Errors
    /// As [`Remote::store`].
    fn write(&mut self, offset: u64, source: &DmaMemory) -> core::result::Result<(), DmaError> {
        self.write_part(offset, source, 0, source.len())
    }

    /// The same of the `length` bytes at `start` of the source.
    ///
    /// # Errors
    /// As [`Remote::store`].
    fn write_part(
        &mut self,
        offset: u64,
        source: &DmaMemory,
        start: usize,
        length: usize,
    ) -> core::result::Result<(), DmaError>;

    /// The same of bytes that need not be in a memory of this network.
    ///
    /// # Errors
    /// As [`Remote::store`].
    fn write_bytes(&mut self, offset: u64, bytes: &[u8]) -> core::result::Result<(), DmaError>;

    /// Copies memory of the region into memory of this program, until `bound_ns` are over.
    ///
    /// # Errors
    /// As [`Remote::store`], of reading; [`DmaError::Lost`] if the time is over.
    fn read(
        &mut self,
        offset: u64,
        target: &DmaMemory,
        bound_ns: u64,
    ) -> core::result::Result<(), DmaError>;
}

/// A request to a DMA queue: a copy into a region of another domain.
#[derive(Clone, Debug)]
pub struct DmaRequest {
    /// Offset in the region.
    pub offset: u64,
    /// What is copied. It must not change before the request is done.
    pub source: DmaMemory,
    /// An event with this tag reports that it is done; None: only a failure is reported, with tag 0.
    pub notify: Option<u64>,
}

/// A queue of DMA requests, carried out one after the other (CLAN paper 3.3.3).
pub trait DmaQueue: Debug + Send {
    /// Enters a request to write a region.
    ///
    /// # Errors
    /// The queue is full; its events say when there is room again.
    fn submit(&mut self, remote: &mut dyn Remote, request: DmaRequest) -> Result<()>;
}
