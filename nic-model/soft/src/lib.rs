//! NICs in software.
//!
//! | module | device | port |
//! |---|---|---|
//! | [`shm`] | `shm:`, CLAN's model in the memory of one machine | [`port::clan::ClanPort`] |
//! | [`clan`] | VIA over any of these | [`port::ViPort`] |
//! | [`net`] | `udp:` and `eth:`, VIA over UDP and over raw Ethernet | [`port::ViPort`] |

pub mod clan;
pub mod net;
mod random;
pub mod shm;
mod via;
