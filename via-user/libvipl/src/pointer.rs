//! Arguments that point into the program.
//!
//! Only C makes values of these types, by calling an exported function; `vipl.h` says what each must
//! point to. So each is NULL, which is found out here, or good for the call. Nothing else can be
//! checked, and nothing is read or written through them later.
#![expect(unsafe_code, reason = "reads and writes what programs point to")]

use core::ffi::{CStr, c_char, c_int, c_uint, c_ulong, c_void};
use core::ptr::NonNull;

use vipl::VipReturn;

use crate::abi;
use crate::clan::abi as clan;
use crate::handle::Handle;

/// Types of the header: any bits are a value of them.
///
/// # Safety
/// Any bits are a value of the type.
pub unsafe trait Plain: Copy {}

// SAFETY: an integer.
unsafe impl Plain for u8 {}
// SAFETY: an integer.
unsafe impl Plain for c_int {}
// SAFETY: an integer.
unsafe impl Plain for c_uint {}
// SAFETY: an integer.
unsafe impl Plain for c_ulong {}
// SAFETY: an integer.
unsafe impl Plain for usize {}
// SAFETY: a raw pointer.
unsafe impl Plain for *mut c_void {}
// SAFETY: an integer inside.
unsafe impl Plain for Handle {}
// SAFETY: integers inside.
unsafe impl Plain for abi::NetAddress {}
// SAFETY: integers and a raw pointer inside.
unsafe impl Plain for abi::NicAttributes {}
// SAFETY: integers inside.
unsafe impl Plain for abi::ViAttributes {}
// SAFETY: as above.
unsafe impl Plain for abi::ViExtensions {}
// SAFETY: integers inside.
unsafe impl Plain for abi::MemAttributes {}
// SAFETY: integers and a raw pointer inside.
unsafe impl Plain for abi::AutodiscoveryList {}

// SAFETY: integers inside.
unsafe impl Plain for clan::Peer {}
// SAFETY: integers inside.
unsafe impl Plain for clan::Attributes {}
// SAFETY: integers inside.
unsafe impl Plain for clan::Event {}

/// Something to read.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub struct In<T>(*const T);

/// Something to write, and perhaps to read.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub struct Out<T>(*mut T);

/// A string that ends with 0.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub struct Text(*const c_char);

/// What a program gave with a handler; the handler alone looks at it.
#[derive(Clone, Copy, Debug)]
pub struct Context(usize);

impl Context {
    /// Keeps it.
    #[must_use]
    pub fn new(context: *mut c_void) -> Self {
        Self(context.expose_provenance())
    }

    /// It, for the handler.
    #[must_use]
    pub fn pointer(self) -> *mut c_void {
        core::ptr::with_exposed_provenance_mut(self.0)
    }
}

/// Memory of the program that is only named here, not touched.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub struct Place(*mut u8);

impl<T: Plain> In<T> {
    /// The value.
    ///
    /// # Errors
    /// [`VipReturn::InvalidParameter`] for NULL.
    pub fn get(self) -> Result<T, VipReturn> {
        if self.0.is_null() {
            return Err(VipReturn::InvalidParameter);
        }
        // SAFETY: not NULL, so it is good, as the module's text says; alignment is not assumed.
        Ok(unsafe { self.0.read_unaligned() })
    }

    /// Bytes that lie behind, from `offset` on.
    ///
    /// # Errors
    /// [`VipReturn::InvalidParameter`] for NULL.
    pub fn bytes(self, offset: usize, length: usize) -> Result<Vec<u8>, VipReturn> {
        if self.0.is_null() {
            return Err(VipReturn::InvalidParameter);
        }
        let start = self.0.cast::<u8>().wrapping_add(offset);
        let mut bytes = vec![0; length];
        // SAFETY: not NULL, so it is good for the bytes that the value in front of them counts.
        unsafe { start.copy_to_nonoverlapping(bytes.as_mut_ptr(), length) };
        Ok(bytes)
    }
}

impl In<u64> {
    /// The first `count` double words, at most `N`, with zeros behind them.
    ///
    /// # Errors
    /// [`VipReturn::InvalidParameter`] for NULL.
    #[inline]
    pub fn words<const N: usize>(self, count: usize) -> Result<[u64; N], VipReturn> {
        if self.0.is_null() {
            return Err(VipReturn::InvalidParameter);
        }
        let mut words = [0; N];
        let (target, bytes) = (words.as_mut_ptr().cast::<u8>(), 8 * count.min(N));
        // SAFETY: not NULL, so it is good for as many double words as `clan.h` asks for here; alignment
        // is not assumed.
        unsafe { self.0.cast::<u8>().copy_to_nonoverlapping(target, bytes) };
        Ok(words)
    }
}

/// As [`Out`], and not NULL.
#[derive(Clone, Copy, Debug)]
pub struct Good<T>(NonNull<T>);

impl<T: Plain> Good<T> {
    /// Sets the value.
    #[inline(always)]
    pub fn set(self, value: T) {
        // SAFETY: it is good, as the module's text says; alignment is not assumed.
        unsafe { self.0.as_ptr().write_unaligned(value) };
    }
}

impl<T: Plain> Out<T> {
    /// It, if it is not NULL.
    ///
    /// # Errors
    /// As [`Out::check`].
    #[inline(always)]
    pub fn good(self) -> Result<Good<T>, VipReturn> {
        NonNull::new(self.0).map(Good).ok_or(VipReturn::InvalidParameter)
    }

    /// Fails for NULL.
    ///
    /// # Errors
    /// [`VipReturn::InvalidParameter`].
    pub fn check(self) -> Result<(), VipReturn> {
        if self.0.is_null() { Err(VipReturn::InvalidParameter) } else { Ok(()) }
    }

    /// The value that is there.
    ///
    /// # Errors
    /// As [`Out::check`].
    pub fn get(self) -> Result<T, VipReturn> {
        In(self.0.cast_const()).get()
    }

    /// Sets the value.
    ///
    /// # Errors
    /// As [`Out::check`].
    pub fn set(self, value: T) -> Result<(), VipReturn> {
        self.check()?;
        // SAFETY: not NULL, so it is good, as the module's text says; alignment is not assumed.
        unsafe { self.0.write_unaligned(value) };
        Ok(())
    }

    /// Sets a value of an array.
    ///
    /// # Errors
    /// As [`Out::check`].
    pub fn set_at(self, index: usize, value: T) -> Result<(), VipReturn> {
        self.check()?;
        Self(self.0.wrapping_add(index)).set(value)
    }

    /// Sets bytes that lie behind, from `offset` on.
    ///
    /// # Errors
    /// As [`Out::check`].
    pub fn set_bytes(self, offset: usize, bytes: &[u8]) -> Result<(), VipReturn> {
        self.check()?;
        let start = self.0.cast::<u8>().wrapping_add(offset);
        // SAFETY: not NULL, so it is good for as many bytes as `vipl.h` asks for here.
        unsafe { start.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        Ok(())
    }

    /// The same as something else of the header.
    #[must_use]
    pub const fn cast<U>(self) -> Out<U> {
        Out(self.0.cast())
    }
}

impl Text {
    /// The text; what is not UTF-8 in it is replaced.
    ///
    /// # Errors
    /// [`VipReturn::InvalidParameter`] for NULL.
    pub fn get(self) -> Result<String, VipReturn> {
        if self.0.is_null() {
            return Err(VipReturn::InvalidParameter);
        }
        // SAFETY: not NULL, so it is a string that ends with 0.
        let text = unsafe { CStr::from_ptr(self.0) };
        Ok(text.to_string_lossy().into_owned())
    }

    /// The same as optional: None for NULL.
    #[must_use]
    pub fn optional(self) -> Option<String> {
        self.get().ok()
    }
}

impl Place {
    /// Whether it is NULL.
    #[must_use]
    pub const fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// The address.
    #[must_use]
    pub fn address(self) -> u64 {
        self.0.addr() as u64
    }

    /// The memory for a NIC to use.
    ///
    /// # Errors
    /// [`VipReturn::InvalidParameter`] for NULL, no bytes, or a range that wraps around.
    pub fn adopt(self, length: usize) -> Result<vipl::DmaMemory, VipReturn> {
        // SAFETY: the program registers this memory: `vipl.h` says that it stays there until it is
        // deregistered, and what VIPL is for is that the NIC changes it.
        unsafe { vipl::DmaMemory::adopt(self.0, length) }.map_err(|_| VipReturn::InvalidParameter)
    }
}
