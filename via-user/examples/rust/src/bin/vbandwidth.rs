//! vbandwidth: bytes a second of a stream of messages.
//!
//! Arguments as of vpingpong. VIA has no flow control: the server says with an empty message how many
//! receives it has posted anew.
#![expect(clippy::print_stdout, reason = "what the program is for")]

use std::time::Instant;

use vipl::{Descriptor, INFINITE, Reliability, VipReturn};
use vipl_examples::{DESCRIPTOR, Outcome, Station, example};

const BYTES: u32 = 16_384;
/// Messages under way.
const WINDOW: usize = 16;
/// Messages that a credit stands for.
const CREDIT_MESSAGES: usize = WINDOW / 2;
const MESSAGES: usize = 2000;
// A descriptor for each message of the window, two for the credits, then the data.
const CREDIT: usize = DESCRIPTOR * WINDOW;
const DATA: usize = 4096;
const MEMORY: usize = DATA + WINDOW * BYTES as usize;

/// The descriptor of a message of the window and its data.
fn message(station: &Station, number: usize) -> Outcome<Descriptor> {
    let slot = number % WINDOW;
    station.prepare(DESCRIPTOR * slot, DATA + slot * BYTES as usize, BYTES)
}

fn server(device: &str) -> Outcome<()> {
    let station = Station::open(device, MEMORY, false)?;
    let vi = station.create_vi(Reliability::Delivery, None)?;
    for i in 0..WINDOW {
        vi.post_recv(&message(&station, i)?)?;
    }
    station.serve(&vi, "bandwidth")?;
    for i in 0..MESSAGES {
        // Receives are done in the order in which they were posted.
        vi.recv_wait(INFINITE)?;
        vi.post_recv(&message(&station, i)?)?;
        // The client does not wait for credits of its last window, and may be gone.
        if (i + 1).is_multiple_of(CREDIT_MESSAGES) && i + WINDOW < MESSAGES {
            vi.post_send(&station.prepare(CREDIT, DATA, 0)?)?;
            vi.send_wait(INFINITE)?;
        }
    }
    station.nic.close();
    Ok(())
}

fn client(device: &str, server: &str) -> Outcome<()> {
    let station = Station::open(device, MEMORY, false)?;
    let vi = station.create_vi(Reliability::Delivery, None)?;
    // Two credits may be under way.
    for i in 0..2 {
        vi.post_recv(&station.prepare(CREDIT + DESCRIPTOR * i, DATA, 0)?)?;
    }
    station.ask(&vi, server, "bandwidth")?;
    let start = Instant::now();
    let (mut credits, mut sent, mut finished) = (WINDOW, 0, 0);
    while finished < MESSAGES {
        while sent < MESSAGES && credits > 0 && sent - finished < WINDOW {
            vi.post_send(&message(&station, sent)?)?;
            sent += 1;
            credits -= 1;
        }
        if sent > finished {
            vi.send_wait(INFINITE)?;
            finished += 1;
        }
        if sent == MESSAGES {
            // Nobody waits for credits any more: the server may be gone.
            continue;
        }
        let credit = if credits == 0 { vi.recv_wait(INFINITE) } else { vi.recv_done() };
        match credit {
            Ok(descriptor) => {
                // As it was: a receive of nothing.
                descriptor.prepare(&[station.region.segment(DATA, 0)], None)?;
                vi.post_recv(&descriptor)?;
                credits += CREDIT_MESSAGES;
            }
            Err(nothing) if nothing.code == VipReturn::NotDone => {}
            Err(error) => return Err(error.into()),
        }
    }
    let us = start.elapsed().as_secs_f64() * 1e6;
    let megabytes = f64::from(BYTES) * MESSAGES as f64 / us;
    println!("{MESSAGES} messages of {BYTES} bytes, {megabytes:.1} MB/s");
    station.nic.close();
    Ok(())
}

fn main() -> Outcome<()> {
    example(server, client)
}
