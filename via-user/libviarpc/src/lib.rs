//! `libviarpc.so`: remote calls of `via-rpc` for C, as `via-user/include/viarpc.h` declares them. `tirpc_via.c`
//! makes of it a transport for programs of SunRPC.
//!
//! | module | what |
//! |---|---|
//! | `ffi` | the exported functions |
//! | [`failure`] | errors to codes, and the text of the last one |
//! | [`node`] | the device of this process, and hosts by name |
//! | [`place`] | where `localhost` finds the servers of this machine |
//! | [`client`], [`server`] | what the handles stand for |

pub mod client;
pub mod failure;
mod ffi;
pub mod node;
pub mod place;
pub mod server;
