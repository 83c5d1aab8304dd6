//! VIPL over `udp:`, between two nodes of this process. In between is a relay that loses, repeats,
//! reorders and forges packets.
#![allow(missing_docs, unreachable_pub, reason = "a test")]

mod ends;
mod faults;
mod hostile;
mod messages;
mod namespaces;
mod open;
mod relay;
