//! CLAN's model for C, as `via-user/include/clan.h` declares it: a thin layer over `port::clan`.
//!
//! | module | what |
//! |---|---|
//! | [`abi`] | types and constants of the header, with their layout checked |
//! | [`object`] | what handles stand for |
//! | [`fault`] | return codes, and the text that says more |

pub mod abi;
pub mod fault;
pub mod object;
