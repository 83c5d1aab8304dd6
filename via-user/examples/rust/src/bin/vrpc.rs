//! vrpc: remote procedure calls. A server with two procedures, and a client with several threads, each
//! of which has its own connection.
//!
//! Arguments as of vpingpong. A request is the number of a procedure and its numbers, eight bytes each,
//! little-endian; so is an answer. The server ends with its last client.
#![expect(clippy::print_stdout, reason = "what the program is for")]

use std::io::Write;
use std::time::{Duration, Instant};

use via_rpc::{Client, Device, Error, Event, Request, Server, Settings};
use vipl::{INFINITE, Nic};
use vipl_examples::{Outcome, example, host_of};

const ENDPOINT: &str = "numbers";
const CLIENTS: u64 = 4;
const CALLS: u64 = 50;
/// One number: the sum of those that follow.
const SUM: u64 = 1;
/// The numbers that follow, the smallest first.
const SORT: u64 = 2;
/// How long an answer may take.
const ANSWER: Duration = Duration::from_secs(10);
/// How long a client waits for the server to be there.
const START: Duration = Duration::from_secs(30);

fn numbers(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.as_chunks().0.iter().copied().map(u64::from_le_bytes)
}

/// A request that makes no sense is dropped: the client learns that it is not answered.
fn answer(request: Request, body: &[u8]) -> Outcome<()> {
    // Marshalled in registered memory, from which it is sent.
    let mut buffer = request.buffer(body.len())?;
    let mut rest = numbers(body);
    match rest.next() {
        Some(SUM) => buffer.write_all(&rest.fold(0, u64::wrapping_add).to_le_bytes())?,
        Some(SORT) => {
            let mut sorted: Vec<u64> = rest.collect();
            sorted.sort_unstable();
            sorted.iter().try_for_each(|number| buffer.write_all(&number.to_le_bytes()))?;
        }
        _ => return Ok(()),
    }
    Ok(request.reply_with(buffer)?)
}

fn server(device: &str) -> Outcome<()> {
    let device = Device::new(Nic::open(device::open(device)?))?;
    let server = Server::bind(&device, ENDPOINT, &Settings::default())?;
    let (mut clients, mut ended, mut calls) = (0, 0, 0);
    let mut body = Vec::new();
    while clients < CLIENTS || ended < clients {
        match server.next(&mut body, INFINITE)? {
            Event::Connected(_) => clients += 1,
            Event::Ended(..) => ended += 1,
            Event::Request(request) => {
                calls += 1;
                // A client that has died meanwhile does not end the server.
                if let Err(error) = answer(request, &body) {
                    println!("no answer: {error}");
                }
            }
        }
    }
    println!("{clients} clients made {calls} calls");
    Ok(())
}

/// Calls a procedure.
fn call(client: &mut Client, procedure: u64, arguments: &[u64]) -> Outcome<Vec<u64>> {
    let mut request = client.buffer(8 + 8 * arguments.len())?;
    request.write_all(&procedure.to_le_bytes())?;
    arguments.iter().try_for_each(|number| request.write_all(&number.to_le_bytes()))?;
    let mut answer = Vec::new();
    client.call_with(request, &mut answer, ANSWER)?;
    Ok(numbers(&answer).collect())
}

/// Connects as soon as the server is there.
fn connect(device: &Device, host: &[u8]) -> Outcome<Client> {
    let end = Instant::now() + START;
    loop {
        match Client::connect(device, host, ENDPOINT, &Settings::default(), ANSWER) {
            Err(Error::Refused(_) | Error::TimedOut) if Instant::now() < end => {}
            connected => return Ok(connected?),
        }
    }
}

fn work(device: &Device, host: &[u8], number: u64) -> Outcome<()> {
    let mut client = connect(device, host)?;
    for round in 1..=CALLS {
        // Up to 24,000 bytes: several packets.
        let arguments: Vec<u64> = (0..60 * round).map(|k| (k * 7919 + number) % 10_007).collect();
        if call(&mut client, SUM, &arguments)? != [arguments.iter().sum::<u64>()] {
            return Err("a wrong sum".into());
        }
        if !call(&mut client, SORT, &arguments)?.is_sorted() {
            return Err("wrong order".into());
        }
    }
    Ok(())
}

fn client(device: &str, server: &str) -> Outcome<()> {
    let nic = Nic::open(device::open(device)?);
    let host = host_of(&nic, server)?;
    let device = Device::new(nic)?;
    std::thread::scope(|scope| {
        let work = |number| {
            scope.spawn({
                let (device, host) = (&device, &host);
                move || work(device, host, number)
            })
        };
        let threads: Vec<_> = (0..CLIENTS).map(work).collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().map_err(|_| "a thread of the client failed")?)
    })?;
    println!("sum and sort are right");
    Ok(())
}

fn main() -> Outcome<()> {
    example(server, client)
}
