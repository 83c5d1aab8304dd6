//! The exported functions. Each is described in `vipl.h`; here is only what it takes to call `vipl`.
#![expect(unsafe_code, reason = "names of exported functions")]

mod code;
mod completion;
mod connection;
mod memory;
mod name;
mod nic;
mod transfer;
mod vi;
