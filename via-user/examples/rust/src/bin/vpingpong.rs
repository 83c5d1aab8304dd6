//! vpingpong: the time of a message there and back.
//!
//! ```text
//! vpingpong                  both sides in this process, on two simulated NICs
//! vpingpong DEVICE           the server
//! vpingpong DEVICE NODE      a client of the server on node NODE
//! ```
#![expect(clippy::print_stdout, reason = "what the program is for")]

use std::time::Instant;

use vipl::{INFINITE, Reliability, Vi};
use vipl_examples::{DESCRIPTOR, Outcome, Station, example};

const ROUNDS: u32 = 1000;
const BYTES: u32 = 8;
// Places in the memory: two descriptors, what is sent, what is received.
const SEND: usize = 0;
const RECV: usize = DESCRIPTOR;
const OUT: usize = 2 * DESCRIPTOR;
const IN: usize = 3 * DESCRIPTOR;
const MEMORY: usize = 4096;

fn send(station: &Station, vi: &Vi) -> Outcome<()> {
    vi.post_send(&station.prepare(SEND, OUT, BYTES)?)?;
    vi.send_wait(INFINITE)?;
    Ok(())
}

/// Waits for a message, and posts the receive for the next one. Only then may the other side be notified
/// that it can send again: here the answer does it.
fn receive(station: &Station, vi: &Vi) -> Outcome<()> {
    vi.recv_wait(INFINITE)?;
    vi.post_recv(&station.prepare(RECV, IN, BYTES)?)?;
    Ok(())
}

/// A VI with a receive posted: the first message may come as soon as it is connected.
fn start(device: &str) -> Outcome<(Station, Vi)> {
    let station = Station::open(device, MEMORY, false)?;
    let vi = station.create_vi(Reliability::Delivery, None)?;
    vi.post_recv(&station.prepare(RECV, IN, BYTES)?)?;
    Ok((station, vi))
}

fn server(device: &str) -> Outcome<()> {
    let (station, vi) = start(device)?;
    station.serve(&vi, "pingpong")?;
    for _ in 0..ROUNDS {
        receive(&station, &vi)?;
        send(&station, &vi)?;
    }
    vi.disconnect()?;
    station.nic.close();
    Ok(())
}

fn client(device: &str, server: &str) -> Outcome<()> {
    let (station, vi) = start(device)?;
    station.ask(&vi, server, "pingpong")?;
    let start = Instant::now();
    for _ in 0..ROUNDS {
        send(&station, &vi)?;
        receive(&station, &vi)?;
    }
    let us = start.elapsed().as_secs_f64() * 1e6 / f64::from(ROUNDS);
    println!("{ROUNDS} rounds of {BYTES} bytes, {us:.2} us each");
    vi.disconnect()?;
    station.nic.close();
    Ok(())
}

fn main() -> Outcome<()> {
    example(server, client)
}
