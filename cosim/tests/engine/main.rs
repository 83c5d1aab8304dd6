//! The send and receive engines (with their descriptor engines) against fake neighbours with
//! random delays: host memory, region table, VI table, pool, staging. What they must do is what the
//! model's engines do on the same memory, regions and VI (`cosim::reference`, decision 0024).
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::print_stdout,
    reason = "random numbers below a bound; a summary of what was covered"
)]

mod host;
mod post;
mod recv;
mod send;
