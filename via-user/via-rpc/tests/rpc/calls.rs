//! Calls as programs make them.

use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

use via_rpc::{Client, Error, Event, Server, Settings};

use crate::{BRIEFLY, Reverser, SOON, bytes, connect, devices, reversed};

/// Few credits and small packets, so that a message of some kilobytes needs RTS and CTS.
const SMALL: Settings = Settings {
    credits: 4,
    mtu: 256,
    max_message: 300_000,
    clients: 64,
    cached_buffers: 8,
    cached_bytes: 1 << 20,
};

fn calls_of_many_lengths(kind: &str, settings: [Settings; 2], lengths: &[usize]) {
    let [a, b] = devices(kind);
    let server = Reverser::start(Server::bind(&b, "reverse", &settings[1]).unwrap());
    let mut client = connect(&a, &b.host(), "reverse", &settings[0]).unwrap();
    let mut reply = Vec::new();
    for length in lengths {
        let request = bytes(*length, *length);
        client.call(&request, &mut reply, SOON).unwrap();
        assert!(reply == reversed(request), "{length} bytes");
    }
    drop(client);
    drop(server);
}

#[test]
fn messages_of_every_length_are_carried() {
    let lengths = [0, 1, 4, 247, 248, 249, 504, 505, 8183, 8184, 8185, 20_000, 300_000];
    let default = Settings::default();
    let other = Settings { credits: 255, mtu: 64, ..SMALL };
    for settings in [[default, default], [SMALL, default], [default, SMALL], [SMALL, other]] {
        calls_of_many_lengths("shm", settings, &lengths);
    }
}

#[test]
fn calls_run_on_a_simulated_nic() {
    let default = Settings::default();
    calls_of_many_lengths("sim", [SMALL, default], &[0, 4, 248, 249, 3000]);
}

/// Several clients at one completion queue, and several threads that receive.
#[test]
fn clients_do_not_disturb_each_other() {
    const CLIENTS: usize = 8;
    let [a, b] = devices("shm");
    let server = Server::bind(&b, "reverse", &SMALL).unwrap();
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut body = Vec::new();
                let end = Instant::now() + SOON;
                loop {
                    let request = server.receive_any(&mut body, SOON).unwrap();
                    body.reverse();
                    let is_last = body == b"end";
                    request.reply(&body).unwrap();
                    if is_last {
                        return;
                    }
                    assert!(Instant::now() < end);
                }
            });
        }
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let (a, host) = (&a, b.host());
                scope.spawn(move || {
                    let mut client = connect(a, &host, "reverse", &SMALL).unwrap();
                    let mut reply = Vec::new();
                    for round in 0..100 {
                        let request = bytes(number * 1000 + round, 1 + round * 37 % 3000);
                        client.call(&request, &mut reply, SOON).unwrap();
                        assert!(reply == reversed(request), "client {number}, round {round}");
                    }
                    client
                })
            })
            .collect();
        let clients: Vec<Client> =
            clients.into_iter().map(|client| client.join().unwrap()).collect();
        assert_eq!(server.clients(), CLIENTS);
        drop(clients);
        for _ in 0..2 {
            let mut client = connect(&a, &b.host(), "reverse", &SMALL).unwrap();
            client.call(b"dne", &mut Vec::new(), SOON).unwrap();
        }
    });
}

/// After the first calls, none allocates or registers a buffer: neither side, whatever its length.
#[test]
fn buffers_of_calls_are_used_again() {
    let [a, b] = devices("shm");
    let settings = Settings::default();
    let server = Reverser::start(Server::bind(&b, "reverse", &settings).unwrap());
    let mut client = connect(&a, &b.host(), "reverse", &settings).unwrap();
    let mut reply = Vec::new();
    let lengths = [4, 100, 4000, 50_000];
    let mut call = |client: &mut Client, length| {
        client.call(&bytes(0, length), &mut reply, SOON).unwrap();
    };
    lengths.iter().for_each(|length| call(&mut client, *length));
    let before = client.buffer_counters();
    for _ in 0..200 {
        lengths.iter().for_each(|length| call(&mut client, *length));
    }
    let after = client.buffer_counters();
    assert_eq!(after.misses, before.misses, "{after:?}");
    assert_eq!(after.hits, before.hits + 800);
    drop(client);
    // 4,000 bytes and 8 fit into the smallest one; a reply may find the last one still in flight.
    let counters = server.stop().buffer_counters();
    assert!(counters.misses <= 4, "{counters:?}");
    assert_eq!(counters.evictions, 0, "{counters:?}");
}

/// The cache gives up what was released first.
#[test]
fn too_many_idle_buffers_are_evicted() {
    let [a, b] = devices("shm");
    let settings = Settings { cached_buffers: 2, ..Settings::default() };
    let _server = Reverser::start(Server::bind(&b, "reverse", &settings).unwrap());
    let mut client = connect(&a, &b.host(), "reverse", &settings).unwrap();
    // Those of the negotiation are the smallest.
    let sizes = [10_000, 20_000, 40_000];
    let buffers = sizes.map(|size| client.buffer(size).unwrap());
    buffers.into_iter().for_each(drop);
    let counters = client.buffer_counters();
    assert_eq!((counters.idle, counters.evictions), (2, 2), "{counters:?}");
    for (size, hits) in [(40_000, 1), (20_000, 2), (10_000, 2)] {
        drop(client.buffer(size).unwrap());
        assert_eq!(client.buffer_counters().hits, counters.hits + hits, "{size} bytes");
    }
}

/// A message is marshalled in registered memory, and grows there.
#[test]
fn a_message_is_written_in_place() {
    let [a, b] = devices("shm");
    let settings = Settings::default();
    let _server = Reverser::start(Server::bind(&b, "reverse", &settings).unwrap());
    let mut client = connect(&a, &b.host(), "reverse", &settings).unwrap();
    let mut buffer = client.buffer(0).unwrap();
    for line in 0..5000 {
        writeln!(buffer, "line {line}").unwrap();
    }
    let length = buffer.len();
    let mut reply = Vec::new();
    client.call_with(buffer, &mut reply, SOON).unwrap();
    let text = String::from_utf8(reversed(reply)).unwrap();
    assert_eq!(text.len(), length);
    assert!(text.lines().enumerate().all(|(at, line)| line == format!("line {at}")));
}

#[test]
fn nobody_who_serves_and_what_cannot_be_are_errors() {
    let [a, b] = devices("shm");
    let settings = Settings { clients: 1, ..SMALL };
    let _server = Reverser::start(Server::bind(&b, "one", &settings).unwrap());
    let refused = connect(&a, &b.host(), "two", &settings).unwrap_err();
    assert!(matches!(&refused, Error::Refused(name) if name == "two"), "{refused}");
    let client = connect(&a, &b.host(), "one", &settings).unwrap();
    let rejected = connect(&a, &b.host(), "one", &settings).unwrap_err();
    assert!(matches!(&rejected, Error::Rejected(name) if name == "one"), "{rejected}");
    drop(client);
    // Its place is free as soon as the server has seen that.
    let end = Instant::now() + SOON;
    while let Err(error) = connect(&a, &b.host(), "one", &settings) {
        assert!(matches!(error, Error::Rejected(_)) && Instant::now() < end, "{error}");
    }
    for name in [String::new(), "x".repeat(61)] {
        let error = connect(&a, &b.host(), &name, &settings).unwrap_err();
        assert!(matches!(error, Error::Endpoint(_)), "{error}");
    }
    let wrong = Settings { credits: 0, ..settings };
    assert!(matches!(Server::bind(&b, "three", &wrong), Err(Error::Settings(_))));
    assert!(matches!(connect(&a, &b.host(), "one", &wrong), Err(Error::Settings(_))));
}

/// The shorter of both limits holds for both directions; the connection lives on.
#[test]
fn a_message_that_is_too_long_is_an_error_before_it_is_sent() {
    let [a, b] = devices("shm");
    let server = Server::bind(&b, "limit", &SMALL).unwrap();
    let settings = Settings { max_message: 1000, ..SMALL };
    thread::scope(|scope| {
        let serving = scope.spawn(|| {
            let mut body = Vec::new();
            let request = server.receive_any(&mut body, SOON).unwrap();
            let error = request.reply(&[0; 1001]).unwrap_err();
            assert!(matches!(error, Error::TooLong { length: 1001, most: 1000 }), "{error}");
            server.receive_any(&mut body, SOON).unwrap().reply(&[7; 1000]).unwrap();
        });
        let mut client = connect(&a, &b.host(), "limit", &settings).unwrap();
        let mut reply = Vec::new();
        let error = client.call(&[0; 1001], &mut reply, SOON).unwrap_err();
        assert!(matches!(error, Error::TooLong { length: 1001, most: 1000 }), "{error}");
        let error = client.call(b"long", &mut reply, SOON).unwrap_err();
        assert!(matches!(error, Error::Unanswered), "{error}");
        client.call(&[0; 1000], &mut reply, SOON).unwrap();
        assert_eq!(reply, [7; 1000]);
        serving.join().unwrap();
    });
}

/// An answer that comes after its call's time is not that of the next call.
#[test]
fn a_late_answer_is_dropped() {
    let [a, b] = devices("shm");
    let server = Server::bind(&b, "late", &SMALL).unwrap();
    thread::scope(|scope| {
        let serving = scope.spawn(|| {
            let mut body = Vec::new();
            let first = server.receive_any(&mut body, SOON).unwrap();
            assert_eq!(body, b"first");
            // Until the client has given up, and asks for something else.
            let second = server.receive_any(&mut body, SOON).unwrap();
            first.reply(b"answer to the first").unwrap();
            second.reply(b"answer to the second").unwrap();
            // A request that is dropped is answered, too.
            drop(server.receive_any(&mut body, SOON).unwrap());
        });
        let mut client = connect(&a, &b.host(), "late", &SMALL).unwrap();
        let mut reply = Vec::new();
        let start = Instant::now();
        let error = client.call(b"first", &mut reply, BRIEFLY).unwrap_err();
        assert!(matches!(error, Error::TimedOut), "{error}");
        assert!(start.elapsed() >= BRIEFLY);
        client.call(b"second", &mut reply, SOON).unwrap();
        assert_eq!(reply, b"answer to the second");
        let error = client.call(b"third", &mut reply, vipl::INFINITE).unwrap_err();
        assert!(matches!(error, Error::Unanswered), "{error}");
        serving.join().unwrap();
    });
}

/// A server learns of clients that come and go, and a client of a server that ends.
#[test]
fn both_sides_learn_of_the_others_end() {
    let [a, b] = devices("shm");
    let server = Server::bind(&b, "end", &SMALL).unwrap();
    thread::scope(|scope| {
        let (a, host) = (&a, b.host());
        let client = scope.spawn(move || {
            drop(connect(a, &host, "end", &SMALL).unwrap());
            let mut client = connect(a, &host, "end", &SMALL).unwrap();
            client.call(b"x", &mut Vec::new(), vipl::INFINITE).unwrap_err()
        });
        let mut body = Vec::new();
        let mut next = || server.next(&mut body, SOON).unwrap();
        let Event::Connected(first) = next() else { panic!("no client") };
        let mut kinds = Vec::new();
        // The second client may come before the first one's end is seen.
        let request = loop {
            match next() {
                Event::Connected(peer) => assert_ne!(peer, first),
                Event::Ended(peer, error) => {
                    assert_eq!(peer, first);
                    kinds.push(error);
                }
                Event::Request(request) => break request,
            }
        };
        assert!(kinds.len() <= 1 && kinds.iter().all(|error| matches!(error, Error::Lost)));
        drop(server);
        let error = client.join().unwrap();
        assert!(matches!(error, Error::Lost), "{error}");
        assert!(matches!(request.reply(b"too late"), Err(Error::Lost)));
    });
}

/// Who receives gets nothing in the given time, and goes on.
#[test]
fn receive_any_is_bounded() {
    let [_, b] = devices("shm");
    let server = Server::bind(&b, "nobody", &SMALL).unwrap();
    let start = Instant::now();
    let error = server.receive_any(&mut Vec::new(), Duration::from_millis(150)).unwrap_err();
    assert!(matches!(error, Error::TimedOut), "{error}");
    assert!(start.elapsed() >= Duration::from_millis(150));
}

/// A server that ends with an answer that needs more credits than its client has given.
#[test]
fn answers_that_wait_for_credits_arrive_when_the_server_ends() {
    let [a, b] = devices("shm");
    let server = Server::bind(&b, "farewell", &SMALL).unwrap();
    thread::scope(|scope| {
        let (a, host) = (&a, b.host());
        let client = scope.spawn(move || {
            let mut client = connect(a, &host, "farewell", &SMALL).unwrap();
            let mut reply = Vec::new();
            client.call(b"all", &mut reply, SOON).unwrap();
            let error = client.call(b"more", &mut Vec::new(), SOON).unwrap_err();
            assert!(matches!(error, Error::Lost), "{error}");
            reply
        });
        let answer = bytes(7, 300_000);
        server.receive_any(&mut Vec::new(), SOON).unwrap().reply(&answer).unwrap();
        drop(server);
        assert!(client.join().unwrap() == answer);
    });
}

/// A client that takes no answers keeps a server from ending for a while only.
#[test]
fn a_server_ends_although_a_client_takes_no_answers() {
    let [a, b] = devices("shm");
    let server = Server::bind(&b, "deaf", &SMALL).unwrap();
    thread::scope(|scope| {
        let (a, host) = (&a, b.host());
        let client = scope.spawn(move || {
            let mut client = connect(a, &host, "deaf", &SMALL).unwrap();
            let error = client.call(b"all", &mut Vec::new(), Duration::ZERO).unwrap_err();
            assert!(matches!(error, Error::TimedOut), "{error}");
            client
        });
        let request = server.receive_any(&mut Vec::new(), SOON).unwrap();
        let _client = client.join().unwrap();
        request.reply(&bytes(7, 300_000)).unwrap();
        let start = Instant::now();
        drop(server);
        assert!(start.elapsed() < SOON / 2);
    });
}
