//! The functions that programs call, as the C library has them. Each asks whether a descriptor is a
//! connection that may go by VIA, and hands everything else on.

mod descriptor;
mod environment;
mod execl;
mod names;
mod poll;
mod process;
mod receive;
mod send;
mod socket;
mod stdio;
mod syscall;

/// Functions that stand in for those of the C library.
macro_rules! stand_in {
    ($(
        $(#[$meta:meta])* $visible:vis fn $name:ident($($arg:ident: $type:ty),* $(,)?)
        $(-> $result:ty)? $body:block
    )*) => {$(
        $(#[$meta])*
        #[unsafe(no_mangle)]
        $visible extern "C" fn $name($($arg: $type),*) $(-> $result)? $body
    )*};
}
use stand_in;
