//! What every VIA in software needs, whatever carries its messages: regions and their tags,
//! descriptors, completion queues, the state of a VI, tables of what has numbers.
//!
//! The rules are those of the contract (`docs/contract.md`, sections 3 to 5), so that a program finds
//! the same statuses here as on a NIC.

pub(crate) mod completion;
pub(crate) mod data;
pub(crate) mod descriptor;
pub(crate) mod region;
pub(crate) mod table;
pub(crate) mod vi;
