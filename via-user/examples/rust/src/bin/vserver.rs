//! vserver: a server with many clients and one completion queue.
//!
//! Arguments as of vpingpong. The server answers each request with its bytes reversed; a client opens
//! several connections and checks the answers.
#![expect(clippy::print_stdout, reason = "what the program is for")]

use vipl::{Descriptor, INFINITE, Queue, Reliability, Vi};
use vipl_examples::{DESCRIPTOR, Outcome, Station, example};

const CLIENTS: usize = 8;
const REQUESTS: usize = 50;
const BYTES: usize = 64;
const MEMORY: usize = 16_384;
/// Where the data begins, behind the descriptors.
const DATA: usize = 8192;

/// The receive descriptor of a connection and the place of its requests (or answers).
fn recv(station: &Station, connection: usize) -> Outcome<Descriptor> {
    station.prepare(2 * DESCRIPTOR * connection, place_in(connection), u32::try_from(BYTES)?)
}

/// The send descriptor of a connection.
fn send(station: &Station, connection: usize, length: u32) -> Outcome<Descriptor> {
    let at = 2 * DESCRIPTOR * connection + DESCRIPTOR;
    station.prepare(at, place_out(connection), length)
}

const fn place_in(connection: usize) -> usize {
    DATA + 2 * BYTES * connection
}

const fn place_out(connection: usize) -> usize {
    place_in(connection) + BYTES
}

fn server(device: &str) -> Outcome<()> {
    let station = Station::open(device, MEMORY, false)?;
    let memory = station.region.memory();
    // One place to look, however many VIs there are.
    let cq = station.nic.create_cq(1024)?;
    let mut vis: Vec<Vi> = Vec::new();
    for connection in 0..CLIENTS {
        let vi = station.create_vi(Reliability::Reception, Some(&cq))?;
        vi.post_recv(&recv(&station, connection)?)?;
        station.serve(&vi, "reverse")?;
        vis.push(vi);
    }
    let mut finished = 0;
    while finished < CLIENTS * REQUESTS {
        // The queue says where something is done; the descriptor is taken from there.
        let entry = cq.wait(INFINITE).map_err(vipl::Error::from)?;
        let done = entry.vi.done(entry.queue)?;
        if entry.queue == Queue::Send {
            finished += 1;
            continue;
        }
        let connection = vis.iter().position(|vi| *vi == entry.vi).ok_or("a VI of nobody")?;
        let length = done.length();
        let mut request = memory.to_vec(place_in(connection), length as usize);
        request.reverse();
        memory.copy_from(place_out(connection), &request);
        // First the receive, then the answer: it makes the client send again.
        entry.vi.post_recv(&recv(&station, connection)?)?;
        entry.vi.post_send(&send(&station, connection, length)?)?;
    }
    println!("answered {finished} requests of {CLIENTS} clients");
    station.nic.close();
    Ok(())
}

fn client(device: &str, server: &str) -> Outcome<()> {
    let station = Station::open(device, MEMORY, false)?;
    let memory = station.region.memory();
    let mut vis = Vec::new();
    for _ in 0..CLIENTS {
        let vi = station.create_vi(Reliability::Reception, None)?;
        station.ask(&vi, server, "reverse")?;
        vis.push(vi);
    }
    for round in 0..REQUESTS {
        // Some bytes, others on each connection.
        let length = 1 + round % BYTES;
        let request = |connection: usize| {
            (0..length).map(move |k| u8::try_from((k + connection) % 256).unwrap_or(0))
        };
        for (connection, vi) in vis.iter().enumerate() {
            memory.copy_from(place_out(connection), &request(connection).collect::<Vec<_>>());
            vi.post_recv(&recv(&station, connection)?)?;
            vi.post_send(&send(&station, connection, u32::try_from(length)?)?)?;
        }
        for (connection, vi) in vis.iter().enumerate() {
            vi.send_wait(INFINITE)?;
            vi.recv_wait(INFINITE)?;
            let answer = memory.to_vec(place_in(connection), length);
            if !request(connection).rev().eq(answer) {
                return Err("a wrong answer".into());
            }
        }
    }
    station.nic.close();
    Ok(())
}

fn main() -> Outcome<()> {
    example(server, client)
}
