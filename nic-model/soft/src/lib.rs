//! NICs in software.
//!
//! | module | device | port |
//! |---|---|---|
//! | [`shm`] | `shm:`, CLAN's model in the memory of one machine | [`port::clan::ClanPort`] |

pub mod shm;
