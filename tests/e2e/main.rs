//! Every scenario on every kind of device; see `testplan.md`.

mod case;

mod absent;
mod admin;
mod attributes;
mod channel;
mod completion;
mod connection;
mod csr_walk;
mod desc;
mod doorbell;
mod ended;
mod event;
mod failed;
mod fairness;
mod fence;
mod fetch;
mod forger;
#[cfg(feature = "guest")]
mod guest;
mod handlers;
mod host;
mod mixed;
mod notify;
mod own_node;
#[cfg(feature = "rtl")]
mod pcie;
mod peer;
mod push;
mod rdma;
mod reset;
mod semantics;
mod send_recv;
mod served;
mod simulation;
mod stress;
mod threads;
mod tpt;
mod unmatched;
mod vi;
mod waiting;
