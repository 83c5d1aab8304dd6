//! VIPL on two nodes with the behavioural model, through the real driver.

mod support;

mod completion;
mod connection;
mod errors;
mod faults;
mod stress;
mod threads;
mod transfer;
