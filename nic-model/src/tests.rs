//! Tests of the whole device: two models, a wire, and a host without a driver. One module per
//! section of the contract.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "test data; addresses and counts are small"
)]

mod support;

mod admin;
mod channel;
mod csr;
mod descriptor;
mod doorbell;
mod event;
mod fault;
mod memory;
mod message;
mod push;
mod random;
mod raw;
mod rdma;
mod rdma_fault;
mod rdma_raw;
mod receive;
mod send;
mod timers;
mod transfer;
mod vi;
