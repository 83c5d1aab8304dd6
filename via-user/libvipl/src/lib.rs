//! `libvipl.so`: VIPL for C, as `via-user/include/vipl.h` declares it. A thin layer over the crate
//! `vipl`. Beside it are the functions of `clan.h`, on `port::clan`.
//!
//! | module | what |
//! |---|---|
//! | `ffi` | the exported functions, by subject |
//! | [`abi`] | types and constants of the header, with their layout checked |
//! | `pointer` | arguments that point into the program: NULL or good |
//! | [`handle`] | handles: numbers that are checked before anything is done with them |
//! | [`object`] | what handles stand for |
//! | [`guard`] | errors to return codes; no panic leaves the library |
//! | [`service`] | the thread that answers for programs that are busy elsewhere |
//! | [`clan`] | the same for CLAN's model, as `clan.h` declares it: types, objects, errors |

pub mod abi;
pub mod clan;
mod ffi;
pub mod guard;
pub mod handle;
pub mod object;
pub mod pointer;
pub mod service;
