//! What the scenarios in `e2e` are made of. Each scenario is a function of the [`DeviceKind`], and
//! runs on every kind that this build has; [`on_every_kind`] makes the tests.
//!
//! | module | what |
//! |---|---|
//! | [`kind`] | the kinds of device; the check of what the RTL did on its host port |
//! | [`pair`] | two nodes for programs: driver and VIPL on each ([`Pair`], [`Buffer`]) |
//! | [`bare`] | two nodes without software: registers, admin ring, doorbells ([`Bare`]) |
//! | [`served`] | programs in other processes, on a simulator in another process |
//! | [`forger`] | frames that no honest peer sends |
//! | [`vi`] | VIs, descriptors and messages on a [`Bare`] pair |
//!
//! `testplan.md` says which test covers what.
#![forbid(unsafe_code)]

pub mod bare;
pub mod forger;
pub mod kind;
pub mod pair;
pub mod served;
pub mod vi;

pub use bare::Bare;
pub use kind::{DeviceKind, device, skipped};
pub use pair::{Buffer, LEVELS, LONG, Node, Pair, Setup, code, driver_error, error_bits, pattern};

/// Makes a test of each named function on each kind of device: `model::name` and, with the feature
/// `rtl`, `rtl::name`.
#[macro_export]
macro_rules! on_every_kind {
    ($($name:ident),* $(,)?) => {
        mod model {
            $(#[test]
            fn $name() {
                super::$name($crate::DeviceKind::Model);
            })*
        }
        $crate::on_rtl!($($name),*);
    };
}

/// The same for scenarios that only the RTL has: what the host does between request and completion.
#[macro_export]
macro_rules! on_rtl {
    ($($name:ident),* $(,)?) => {
        #[cfg(feature = "rtl")]
        mod rtl {
            $(#[test]
            fn $name() {
                super::$name($crate::DeviceKind::Rtl);
            })*
        }
    };
}
