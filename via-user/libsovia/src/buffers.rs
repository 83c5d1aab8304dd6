//! The program's memory, as its calls name it: one buffer, or a list of them.
#![expect(unsafe_code, reason = "what programs point to")]

use core::ffi::c_void;

use libc::iovec;

/// Buffers of one call. The program promises that they are there while the call lasts, as it does to the
/// C library.
#[derive(Debug)]
pub(crate) struct Buffers {
    one: [iovec; 1],
    list: *const iovec,
    count: usize,
    /// Bytes of them that are done.
    done: usize,
}

impl Buffers {
    /// One buffer.
    pub(crate) const fn one(base: *mut c_void, length: usize) -> Self {
        let one = [iovec { iov_base: base, iov_len: length }];
        Self { one, list: core::ptr::null(), count: 1, done: 0 }
    }

    /// A list.
    pub(crate) const fn list(list: *const iovec, count: usize) -> Self {
        let one = [iovec { iov_base: core::ptr::null_mut(), iov_len: 0 }];
        Self { one, list, count, done: 0 }
    }

    fn entry(&self, index: usize) -> iovec {
        if self.list.is_null() {
            return self.one[0];
        }
        let entry = self.list.wrapping_add(index);
        // SAFETY: the program's list has so many entries.
        unsafe { *entry }
    }

    /// All their bytes.
    pub(crate) fn len(&self) -> usize {
        (0..self.count).map(|index| self.entry(index).iov_len).sum()
    }

    /// Bytes that are done.
    pub(crate) const fn done(&self) -> usize {
        self.done
    }

    /// Counts bytes as done.
    pub(crate) const fn advance(&mut self, bytes: usize) {
        self.done += bytes;
    }

    /// The rest of the buffer in which the first byte is that is not done; empty at the end.
    fn rest(&self) -> (*mut u8, usize) {
        let mut before = self.done;
        for index in 0..self.count {
            let entry = self.entry(index);
            if before < entry.iov_len {
                // Within the buffer.
                let place = entry.iov_base.cast::<u8>().wrapping_add(before);
                return (place, entry.iov_len - before);
            }
            before -= entry.iov_len;
        }
        (core::ptr::NonNull::dangling().as_ptr(), 0)
    }

    /// A copy of the next bytes.
    pub(crate) fn next(&self, count: usize) -> Vec<u8> {
        let mut copy = Vec::with_capacity(count);
        let mut rest = Self { one: self.one, ..*self };
        while copy.len() < count {
            let source = rest.source();
            let length = source.len().min(count - copy.len());
            if length == 0 {
                break;
            }
            copy.extend_from_slice(&source[..length]);
            rest.advance(length);
        }
        copy
    }

    /// What is to be sent next.
    pub(crate) fn source(&self) -> &[u8] {
        let (place, length) = self.rest();
        // SAFETY: the program's, see the type.
        unsafe { core::slice::from_raw_parts(place, length) }
    }

    /// Where what comes next goes.
    pub(crate) fn target(&mut self) -> &mut [u8] {
        let (place, length) = self.rest();
        // SAFETY: the program's, see the type.
        unsafe { core::slice::from_raw_parts_mut(place, length) }
    }
}
