//! `libsovia.so`: TCP connections of programs that were never compiled for it go over VIA.
//!
//! The dynamic linker loads it before a program (`viaduct run`), so that the program's calls come here
//! first ([`ffi`]). A connection whose two ends are both under it moves to a stream of SOVIA; each
//! other call is the kernel's. See `docs/sockets.md`.
//!
//! | | |
//! |---|---|
//! | [`ffi`] | the functions that programs call |
//! | [`io`], [`poll`], [`epoll`] | what these do: receive and send, wait |
//! | [`moving`], [`leaving`] | how connections come to VIA, and how they leave it |
//! | [`table`], [`socket`] | what each descriptor is; a connection |
//! | [`service`] | the device, and the requests of other processes |
//! | [`claim`], [`key`] | who has which connection, for all processes |
//! | [`link`](mod@link) | a connection's stream of VIA, and how each direction moves there and back |
//! | [`view`] | what links say to who waits |
//! | [`wait`] | waiting for streams and descriptors at once |
//! | [`patience`] | and for what comes soon |
//! | [`status`] | what `viaduct top` shows of this process |
//! | [`per_process`] | what a child after a fork makes anew |
//! | [`borrowed`] | what the table and connections hold, for a call |
//! | [`real`], [`kernel`], [`buffers`], [`errno`] | the C library, TCP, the program's memory |

// The library's own tests have no such functions, which would be those of the tests as well.
#![cfg_attr(test, allow(dead_code, reason = "called by programs alone"))]

mod borrowed;
mod buffers;
mod claim;
mod epoll;
mod errno;
#[cfg(not(test))]
mod ffi;
mod io;
mod kernel;
mod key;
mod leaving;
mod link;
mod log;
mod moving;
mod patience;
mod per_process;
mod poll;
mod real;
mod service;
mod socket;
mod status;
mod table;
mod view;
mod wait;
