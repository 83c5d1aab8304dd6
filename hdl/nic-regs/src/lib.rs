//! Every number the RTL, the model, and the driver must agree on.
//!
//! Nothing else lives here: no I/O, no dependencies, no `unsafe`. The numbers are here; what the
//! device does with them is `docs/contract.md`, of which the RTL (`hdl`) and the behavioural model
//! (`nic-model`) are two independent readings.
//!
//! | module | what |
//! |---|---|
//! | [`csr`] | BAR0: control and status registers |
//! | [`counter`] | the counters, by cause, and the error log record |
//! | [`doorbell`] | BAR2: doorbell pages, token and event doorbells |
//! | [`desc`] | VIA descriptors in host memory |
//! | [`tpt`] | region handles and rights |
//! | [`vi`] | VI states, reliability levels, stop reasons |
//! | [`admin`] | admin ring commands and completions |
//! | [`event`] | event queue records |
//! | [`frame`] | link frames, CRC-32 |
//! | [`tlp`] | the device-independent TLP stream of the host port |
//! | [`pci`] | PCI identity, and what of configuration space software may rely on |
//! | [`limits`] | sizes and capability limits |
#![no_std]
#![forbid(unsafe_code)]

pub mod admin;
pub mod counter;
pub mod csr;
pub mod desc;
pub mod doorbell;
pub mod event;
pub mod frame;
pub mod limits;
pub mod pci;
pub mod tlp;
pub mod tpt;
pub mod vi;

use core::fmt;
use core::marker::PhantomData;

/// How software may access a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Read only.
    Ro,
    /// Read and write.
    Rw,
    /// Write only; reads return zero.
    Wo,
    /// Read; writing 1 clears the bit.
    Rw1c,
}

/// Bits `hi:lo` of register `R`. The type parameter makes using a field with
/// the wrong register a compile error.
pub struct Field<R> {
    /// Most significant bit.
    pub hi: u32,
    /// Least significant bit.
    pub lo: u32,
    register: PhantomData<R>,
}

impl<R> Field<R> {
    /// Names bits `hi:lo`.
    #[must_use]
    pub const fn new(hi: u32, lo: u32) -> Self {
        assert!(lo <= hi && hi < 32, "field outside a 32-bit register");
        Self { hi, lo, register: PhantomData }
    }

    /// The field's bits, in place.
    #[must_use]
    pub const fn mask(self) -> u32 {
        mask(self.hi, self.lo)
    }
}

impl<R> Copy for Field<R> {}
impl<R> Clone for Field<R> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<R> fmt::Debug for Field<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}:{}]", self.hi, self.lo)
    }
}

/// One row of the register table, for the document, the model, and CSR tests.
#[derive(Clone, Copy, Debug)]
pub struct RegDesc {
    /// Register name, as in the table.
    pub name: &'static str,
    /// Byte offset in the BAR.
    pub offset: u32,
    /// Software access.
    pub access: Access,
    /// Value after reset.
    pub reset: u32,
    /// First doc line.
    pub doc: &'static str,
    /// `(name, hi, lo, doc)` of each field.
    pub fields: &'static [(&'static str, u32, u32, &'static str)],
}

const fn mask(hi: u32, lo: u32) -> u32 {
    (u32::MAX >> (31 - (hi - lo))) << lo
}

/// Compile-time check of a table: word aligned, ascending, inside the BAR,
/// fields disjoint, reset values inside the fields.
pub const fn check(regs: &[RegDesc], bar_size: u32) {
    let mut i = 0;
    while i < regs.len() {
        let reg = &regs[i];
        assert!(reg.offset & 3 == 0, "register not word aligned");
        assert!(reg.offset + 4 <= bar_size, "register outside the BAR");
        assert!(i == 0 || regs[i - 1].offset < reg.offset, "offsets must ascend");
        let mut used = 0;
        let mut f = 0;
        while f < reg.fields.len() {
            let (_, hi, lo, _) = reg.fields[f];
            assert!(used & mask(hi, lo) == 0, "fields overlap");
            used |= mask(hi, lo);
            f += 1;
        }
        assert!(reg.reset & !used == 0, "reset value outside the fields");
        i += 1;
    }
}

/// Declares one BAR's registers; see [`csr`] for the form.
#[macro_export]
macro_rules! registers {
    ($bar_size:literal; $($(#[doc = $rdoc:literal])+ $reg:ident @ $offset:literal $access:ident = $reset:literal {
        $($(#[doc = $fdoc:literal])+ $hi:literal : $lo:literal $field:ident;)*
    })*) => {
        $(
            $(#[doc = $rdoc])+
            #[allow(non_camel_case_types)]
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub struct $reg(pub u32);

            impl $reg {
                /// Byte offset in the BAR.
                pub const OFFSET: u32 = $offset;
                /// Value after reset.
                pub const RESET: Self = Self($reset);
                $($(#[doc = $fdoc])+ pub const $field: $crate::Field<$reg> = $crate::Field::new($hi, $lo);)*
                const DESC: $crate::RegDesc = $crate::RegDesc {
                    name: stringify!($reg),
                    offset: $offset,
                    access: $crate::Access::$access,
                    reset: $reset,
                    doc: concat!($($rdoc),+),
                    fields: &[$((stringify!($field), $hi, $lo, concat!($($fdoc),+))),*],
                };

                /// Reads one field.
                #[must_use]
                pub const fn get(self, field: $crate::Field<Self>) -> u32 {
                    (self.0 & field.mask()) >> field.lo
                }

                /// This value with one field replaced; panics if `value` does not fit.
                #[must_use]
                pub const fn with(self, field: $crate::Field<Self>, value: u32) -> Self {
                    assert!(value <= field.mask() >> field.lo, "value wider than its field");
                    Self((self.0 & !field.mask()) | (value << field.lo))
                }
            }
        )*

        /// Size of the BAR, in bytes.
        pub const BAR_SIZE: u32 = $bar_size;
        /// The table, in address order.
        pub const REGS: &[$crate::RegDesc] = &[$($reg::DESC),*];
        const _: () = $crate::check(REGS, BAR_SIZE);

        /// Every register by name, so that the model's `match` is exhaustive.
        #[allow(non_camel_case_types, missing_docs)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Reg { $($reg),* }

        impl Reg {
            /// The register at `offset`, if there is one.
            #[must_use]
            pub const fn decode(offset: u32) -> Option<Self> {
                match offset { $($reg::OFFSET => Some(Self::$reg),)* _ => None }
            }
        }
    };
}
