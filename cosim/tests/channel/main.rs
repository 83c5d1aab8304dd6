//! The channel on the Verilated block: several channels over faulty links, and one channel against
//! a scripted peer.
#![cfg(feature = "blocks")]
#![allow(clippy::cast_possible_truncation, reason = "random numbers are cut to their field")]

mod down;
mod network;
mod node;
mod peer;
mod rate;
mod reliable;
mod reset;
mod staging;
mod taker;
mod time_outs;
