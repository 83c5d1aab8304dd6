//! Processes of the same user that do not keep the rules.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use port::DmaMemory;
use port::clan::{AccessRights, ClanPeer, ClanPort, Cookie, RegionNumber};

use super::echo::{Background, node};
use super::kills::{chance, seed};
use super::peer::{Held, Peer, note};
use super::raw::{self, packet};
use super::traffic::{Folder, server};

/// Bytes of a control segment, in whole pages.
const CONTROL: u64 = 105 * 4096;

#[test]
fn hello_of_another_version_is_refused_and_the_reason_is_given() {
    let folder = Folder::new("version");
    let node = node(&folder, "node");
    for more in ["", "name", "and what else a later version may have in a packet like this one"] {
        let socket = raw::dial(&folder, "node");
        assert!(raw::send(&socket, &raw::hello(7, 1, more), &[]));
        let (answer, _) = raw::receive(&socket);
        assert_eq!(answer[0], raw::REFUSED);
        let text = String::from_utf8(answer[1..].to_vec()).unwrap();
        let expected = "it speaks version 5, and this program speaks version 7: use one build of the library \
                        for both";
        assert_eq!(text, expected);
        assert_eq!(raw::receive(&socket).0, [], "the connection ends");
    }
    // The other way, the reason is in the error.
    let listener = raw::listener(&folder, "later");
    let later = std::thread::spawn(move || {
        let socket = rustix::net::accept(&listener).unwrap();
        assert_eq!(raw::receive(&socket).0[0], raw::HELLO);
        assert!(raw::send(&socket, &packet(raw::REFUSED, &[b"it is \x1b[31mlater"]), &[]));
        raw::receive(&socket);
    });
    let to = ClanPeer { host: b"later".to_vec(), domain: 0 };
    let error = node.port().unwrap().send_message(&to, &[0; 48]).unwrap_err();
    assert_eq!(error.to_string(), "node 'later' refuses: it is  [31mlater");
    later.join().unwrap();
}

/// Bytes that a packet might be.
fn junk(seed: u64, place: u64) -> Vec<u8> {
    let length = usize::try_from(chance(seed, place) % 70).unwrap();
    let byte = |i: usize| chance(seed, place << 8 | i as u64).to_le_bytes()[0];
    let mut bytes: Vec<u8> = (0..length).map(byte).collect();
    if let Some(kind) = bytes.first_mut() {
        *kind %= 14;
    }
    bytes
}

#[test]
fn malformed_packets_end_their_connections_and_nothing_else() {
    let seed = seed();
    let folder = Folder::new("malformed");
    let third = server(&folder, "third", false);
    let node = node(&folder, "node");
    let traffic = Background::start(&node, "third");
    let before = Held::now();
    for round in 0..400 {
        let socket = raw::dial(&folder, "node");
        if round % 2 == 0 {
            assert!(raw::send(&socket, &raw::hello(raw::VERSION, round, "raw"), &[]));
        }
        // Descriptors come with all of them, and more than anybody takes.
        let fds = [raw::pipe_end(), raw::pipe_end(), raw::pipe_end()];
        for i in 0..20 {
            if !raw::send(&socket, &junk(seed, round * 100 + i), &raw::borrowed(&fds)) {
                break;
            }
        }
    }
    traffic.goes_on();
    before.settle();
    traffic.end();
    drop(node);
    third.end();
}

#[test]
fn floods_and_connections_that_say_nothing_keep_nobody_from_a_node() {
    let folder = Folder::new("flood");
    let mut node = server(&folder, "node", false);
    let before = node.held();
    let (flood, _, _) = raw::join(&folder, "node", (1, "flood"));
    let silent: Vec<OwnedFd> = (0..600).map(|_| raw::dial(&folder, "node")).collect();
    let held = node.held();
    assert!(held.fds < 300, "{held:?}");
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Requests whose answers nobody takes, and messages to nobody.
            let attach = packet(4, &[&[1, 0, 0, 0], &[0; 8], &[0; 2]]);
            let message = packet(10, &[&[0, 0], &[77, 0], &[0; 48]]);
            while !is_over.load(Ordering::Relaxed) {
                raw::send(&flood, &attach, &[]);
                raw::send(&flood, &message, &[]);
            }
        });
        let client = Peer::start("client", &folder, &["client", "node", "100", "false"]);
        assert_eq!([client.line(), client.line()], ["ready", "done"]);
        client.end();
        is_over.store(true, Ordering::Relaxed);
    });
    assert_eq!(node.line(), "lost client");
    drop((silent, flood));
    assert_eq!(node.line(), "lost flood");
    before.settle_by(|| node.held());
    node.end();
}

#[test]
fn a_process_that_claims_to_be_another_one_does_not_end_its_connections() {
    let folder = Folder::new("claims");
    let mut node = server(&folder, "node", false);
    let client = Peer::start("client", &folder, &["client", "node", "200", "false"]);
    assert_eq!(client.line(), "ready");
    let (_, identity, _) = raw::join(&folder, "client", (5, "x"));
    for _ in 0..10 {
        let (socket, _, _) = raw::join(&folder, "node", (identity, "client"));
        raw::send(&socket, &packet(11, &[]), &[]);
        assert_eq!(raw::receive(&socket).0, [], "the connection ends");
    }
    assert_eq!(client.line(), "done");
    assert!(!node.ask("held").contains("lost"));
    client.end();
    assert_eq!(node.line(), "lost client");
    node.end();
}

/// A node written by hand. It answers the first packet with `welcome`, and all requests by `answer`,
/// which gets their number.
fn owner(
    folder: &Folder,
    name: &str,
    welcome: Vec<OwnedFd>,
    answer: impl Fn(&OwnedFd, &[u8]) + Send + 'static,
) -> std::thread::JoinHandle<()> {
    let listener = raw::listener(folder, name);
    std::thread::spawn(move || {
        let socket = rustix::net::accept(&listener).unwrap();
        assert_eq!(raw::receive(&socket).0[0], raw::HELLO);
        let hello = packet(raw::WELCOME, &[&[3; 8]]);
        raw::send(&socket, &hello, &raw::borrowed(&welcome));
        loop {
            match raw::receive(&socket).0.as_slice() {
                [] => return,
                // A request for a region.
                [4, request @ ..] => answer(&socket, &request[..4]),
                _ => {}
            }
        }
    })
}

const COOKIE: Cookie = Cookie { region: RegionNumber(1), rights: AccessRights::ALL, generation: 1 };

#[test]
fn a_node_that_sends_descriptors_of_the_wrong_kind_is_refused() {
    let folder = Folder::new("kinds");
    let node = node(&folder, "node");
    let port = node.port().unwrap();
    let good = || raw::memory_file(CONTROL, true);
    // Whatever can be written to may be its waker.
    let three = |control, space| vec![control, space, raw::pipe_end()];
    let cases: Vec<(&str, Vec<OwnedFd>)> = vec![
        ("not understood", vec![]),
        ("not understood", vec![good(), raw::own_space()]),
        ("control segment is of no use", three(raw::pipe_end(), raw::own_space())),
        ("control segment is of no use", three(raw::memory_file(CONTROL, false), raw::own_space())),
        ("control segment is of no use", three(raw::memory_file(4096, true), raw::own_space())),
        ("address space is of no use", three(good(), raw::pipe_end())),
        ("address space is of no use", three(good(), good())),
        ("descriptor of another node's memory", (0..8).map(|_| good()).collect()),
    ];
    let before = Held::now();
    let count = cases.iter().map(|(_, fds)| fds.len()).sum::<usize>();
    for (i, (text, fds)) in cases.into_iter().enumerate() {
        let name = format!("owner{i}");
        let owner = owner(&folder, &name, fds, |_, _| ());
        let to = ClanPeer { host: name.into(), domain: 0 };
        let error = port.attach(&to, COOKIE).unwrap_err().to_string();
        assert!(error.contains(text), "{i}: {error}");
        owner.join().unwrap();
    }
    Held { fds: before.fds - count, ..before }.settle();
}

/// An answer to a request for a region.
fn attached(request: &[u8], region: u16, is_file: bool, (start, length): (u64, u64)) -> Vec<u8> {
    let fields: [&[u8]; 6] = [
        request,
        &[1, 0, 0, 0],
        &region.to_le_bytes(),
        &[is_file.into()],
        &start.to_le_bytes(),
        &length.to_le_bytes(),
    ];
    packet(raw::ATTACHED, &fields)
}

#[test]
fn a_region_that_is_none_is_an_error_and_no_access() {
    let folder = Folder::new("regions");
    let node = node(&folder, "node");
    let port = node.port().unwrap();
    type Case = (&'static str, fn(&OwnedFd, &[u8]));
    let cases: [Case; 9] = [
        ("descriptor of another node's memory", |to, request| {
            raw::send(to, &attached(request, 1, true, (0, 4096)), &[]);
        }),
        ("cannot be mapped", |to, request| {
            raw::send(to, &attached(request, 1, true, (0, 4096)), &[raw::pipe_end().as_fd()]);
        }),
        ("cannot be mapped", |to, request| {
            let file = raw::memory_file(4096, false);
            raw::send(to, &attached(request, 1, true, (0, 4096)), &[file.as_fd()]);
        }),
        ("cannot be mapped", |to, request| {
            let file = raw::memory_file(4096, true);
            raw::send(to, &attached(request, 1, true, (4096, 1)), &[file.as_fd()]);
        }),
        ("cannot be mapped", |to, request| {
            let file = raw::memory_file(1 << 60, true);
            raw::send(to, &attached(request, 1, true, (0, 1 << 60)), &[file.as_fd()]);
        }),
        ("there is no node", |to, request| {
            raw::send(to, &attached(request, 4096, false, (0, 4096)), &[]);
        }),
        ("there is no node", |to, request| {
            raw::send(to, &attached(request, 1, false, (u64::MAX, 4096)), &[]);
        }),
        ("there is no node", |to, _| {
            raw::send(to, &[99], &[]);
        }),
        ("does not answer", |to, _| {
            // Of another request.
            raw::send(to, &attached(&[9; 4], 1, false, (0, 4096)), &[]);
        }),
    ];
    let before = Held::now();
    for (i, (text, answer)) in cases.into_iter().enumerate() {
        let (name, welcome) = (
            format!("owner{i}"),
            vec![raw::memory_file(CONTROL, true), raw::own_space(), raw::pipe_end()],
        );
        let owner = owner(&folder, &name, welcome, answer);
        let host = name.clone().into_bytes();
        let to = ClanPeer { host, domain: 0 };
        let error = port.attach(&to, COOKIE).unwrap_err().to_string();
        assert!(error.contains(text), "{i}: {error}");
        // It is connected until it ends.
        drop(owner);
    }
    drop(port);
    drop(node);
    let end = Instant::now() + Duration::from_secs(20);
    while Held::now().fds > before.fds {
        assert!(Instant::now() < end, "{:?}, and before {before:?}", Held::now());
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_region_at_no_address_is_lost_and_one_that_is_revoked_is_refused() {
    let folder = Folder::new("address");
    let node = node(&folder, "node");
    let port = node.port().unwrap();
    let welcome = vec![raw::memory_file(CONTROL, true), raw::own_space(), raw::pipe_end()];
    let (revoke, when) = std::sync::mpsc::channel::<()>();
    let when = std::sync::Mutex::new(when);
    let owner = owner(&folder, "owner", welcome, move |to, request| {
        raw::send(to, &attached(request, 1, false, (8, 1 << 40)), &[]);
        when.lock().unwrap().recv().unwrap();
        for grant in [1_u32, 1, 7, u32::MAX] {
            raw::send(to, &packet(8, &[&grant.to_le_bytes()]), &[]);
        }
    });
    let to = ClanPeer { host: b"owner".to_vec(), domain: 0 };
    let mut remote = port.attach(&to, COOKIE).unwrap();
    let memory = DmaMemory::new(4096).unwrap();
    let lost = Err(port::clan::DmaError::Lost);
    for offset in [0, 4096, (1 << 40) - 4096] {
        assert_eq!(remote.store(offset, &[1]), lost);
        assert_eq!(remote.write(offset, &memory), lost);
        assert_eq!(remote.read(offset, &memory, 0), lost);
    }
    revoke.send(()).unwrap();
    let end = Instant::now() + Duration::from_secs(20);
    while remote.store(0, &[1]) != Err(port::clan::DmaError::Refused) {
        assert!(Instant::now() < end);
    }
    drop((port, node));
    owner.join().unwrap();
}

#[test]
fn any_contents_of_control_segments_cost_events_and_nothing_else() {
    let seed = seed();
    let folder = Folder::new("scribble");
    let server = server(&folder, "server", true);
    let client = Peer::start("client", &folder, &["client", "server", "60", "true"]);
    assert_eq!(client.line(), "ready");
    let is_over = Arc::new(AtomicBool::new(false));
    let scribblers = ["server", "client"].map(|name| {
        let (socket, _, control) = raw::join(&folder, name, (9, "scribbler"));
        let bytes = usize::try_from(CONTROL).unwrap();
        let control = DmaMemory::map_file(control.as_fd(), 0, bytes).unwrap();
        let is_over = Arc::clone(&is_over);
        std::thread::spawn(move || {
            let (_socket, mut passes) = (socket, 0);
            while !is_over.load(Ordering::Relaxed) {
                for word in 0..bytes / 8 {
                    let place = u64::from(u32::MAX) * passes + word as u64;
                    // Sparse, dense, and what tripwires look like.
                    let random = chance(seed, place);
                    let value = match passes % 3 {
                        0 => random,
                        1 => random & chance(seed ^ 1, place) & chance(seed ^ 2, place),
                        _ => random | 7 << 61,
                    };
                    control.store_u64(8 * word, value);
                }
                passes += 1;
            }
            passes
        })
    });
    assert_eq!(client.line(), "done");
    is_over.store(true, Ordering::Relaxed);
    let passes = scribblers.map(|scribbler| scribbler.join().unwrap());
    note(&format!("{passes:?} times over all words"));
    client.end();
    server.end();
}
