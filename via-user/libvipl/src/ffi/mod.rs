//! The exported functions. Each is described in `vipl.h` or `clan.h`; here is only what it takes to
//! call `vipl` and `port::clan`.
#![expect(unsafe_code, reason = "names of exported functions")]

mod clan_event;
mod clan_port;
mod clan_region;
mod clan_remote;
mod code;
mod completion;
mod connection;
mod memory;
mod name;
mod nic;
mod transfer;
mod vi;
