//! A process that is stopped: whoever needs it waits for a bounded time, and nobody else waits.

use std::time::{Duration, Instant};

use port::clan::{AccessRights, ClanPeer, ClanPort, Cookie, DmaError, RegionNumber};
use rustix::process::Signal;

use super::echo::{Background, Client, node};
use super::peer::Peer;
use super::support::own;
use super::traffic::{Folder, server};

/// The bound of `shm:`, and what a busy machine adds to it.
const BOUND: core::ops::Range<Duration> = Duration::from_millis(1_900)..Duration::from_secs(8);

/// What an action says, which takes the time that `shm:` waits for another node.
fn after_bound(action: impl FnOnce() -> port::Result<()>) -> String {
    let start = Instant::now();
    let text = action().unwrap_err().to_string();
    assert!(BOUND.contains(&start.elapsed()), "{text}: after {:?}", start.elapsed());
    text
}

const NOT_CONFIRMED: &str = "node 'holder' does not confirm that it no longer uses the region: its process \
                             may be stopped";
const SILENT: &str = "node 'holder' does not answer: its process may be stopped";

#[test]
fn a_stopped_process_is_waited_for_in_bounds_and_goes_on_later() {
    let folder = Folder::new("stop");
    let (third, mut holder) =
        (server(&folder, "third", false), Peer::start("leaver", &folder, &["holder"]));
    assert_eq!(holder.line(), "ready");
    let node = node(&folder, "main");
    let traffic = Background::start(&node, "third");
    let port = node.port().unwrap();
    let to = ClanPeer { host: b"holder".to_vec(), domain: 0 };
    let memories = [0, 1, 2].map(|_| port.allocate(4096).unwrap());
    let regions = memories.each_ref().map(|memory| port.register(memory).unwrap());
    let open = |region: RegionNumber| port.open(region, &to, AccessRights::ALL).unwrap();
    let cookies = regions.map(open);
    let ours = own(&port);
    for cookie in cookies {
        let line = format!("attach main {} {}", ours.domain, cookie.to_bits());
        assert_eq!(holder.ask(&line), "attached");
    }
    let theirs: u64 = holder.ask(&format!("open main {}", ours.domain)).parse().unwrap();
    let theirs = Cookie::from_bits(theirs).unwrap();
    let theirs_to_us = ClanPeer { host: b"holder".to_vec(), domain: 0 };
    holder.stop();
    traffic.goes_on();
    std::thread::scope(|scope| {
        let waits = [
            scope.spawn(|| after_bound(|| port.revoke(cookies[0]))),
            scope.spawn(|| after_bound(|| port.deregister(regions[1]))),
            scope.spawn(|| after_bound(|| port.attach(&theirs_to_us, theirs).map(drop))),
            // A node that is not connected yet.
            scope.spawn(|| {
                let late = super::echo::node(&folder, "late");
                let port = late.port().unwrap();
                after_bound(|| port.send_message(&to, &[1; 48]))
            }),
            // A port with regions: all of them are one wait.
            scope.spawn(|| {
                let start = Instant::now();
                let other = node.port().unwrap();
                for memory in &memories {
                    let _ = other.register(memory).unwrap();
                }
                drop(other);
                assert!(start.elapsed() < BOUND.end);
                SILENT.to_owned()
            }),
        ];
        // Messages find no room at some time, and nobody waits for it.
        let full = (0..100_000).find_map(|_| port.send_message(&to, &[1; 48]).err());
        assert_eq!(full.unwrap().to_string(), SILENT);
        let texts = waits.map(|wait| wait.join().unwrap());
        assert_eq!(texts, [NOT_CONFIRMED, NOT_CONFIRMED, SILENT, SILENT, SILENT]);
    });
    traffic.goes_on();
    holder.signal(Signal::CONT);
    port.revoke(cookies[0]).unwrap();
    port.deregister(regions[1]).unwrap();
    // Its third grant is as good as before.
    assert_eq!(holder.ask("store 2 77"), "Ok(())");
    assert_eq!(memories[2].load_u64(0), 77);
    for index in [0, 1] {
        assert_eq!(
            holder.ask(&format!("store {index} 1")),
            format!("{:?}", Err::<(), _>(DmaError::Refused))
        );
    }
    // Nor was anybody lost to it, not even who gave up waiting for it.
    assert_eq!(holder.ask("lost"), "[]");
    let mut remote = port.attach(&theirs_to_us, theirs).unwrap();
    remote.store(0, &[1]).unwrap();
    traffic.end();
    holder.end();
    third.end();
}

/// Who repeats its messages, as all must, reaches it once it goes on.
#[test]
fn a_process_that_takes_no_messages_for_a_while_is_not_unreachable() {
    let folder = Folder::new("full");
    let mut holder = Peer::start("leaver", &folder, &["holder"]);
    assert_eq!(holder.line(), "ready");
    let node = node(&folder, "main");
    let port = node.port().unwrap();
    let to = ClanPeer { host: b"holder".to_vec(), domain: 0 };
    let send = || port.send_message(&to, &[1; 48]);
    send().unwrap();
    holder.stop();
    let full = (0..100_000).find_map(|_| send().err()).unwrap();
    assert!(!matches!(full, port::Error::NotReachable(_)), "{full}");
    assert!(full.to_string().contains("has not taken its messages"), "{full}");
    holder.signal(Signal::CONT);
    let end = Instant::now() + BOUND.end;
    while send().is_err() {
        assert!(Instant::now() < end, "it takes no messages");
    }
    assert_eq!(holder.ask("lost"), "[]");
    holder.end();
}

#[test]
fn regions_of_a_closed_port_are_held_until_a_stopped_process_confirms() {
    let folder = Folder::new("orphan");
    let mut holder = Peer::start("leaver", &folder, &["holder"]);
    assert_eq!(holder.line(), "ready");
    let node = node(&folder, "main");
    let port = node.port().unwrap();
    let to = ClanPeer { host: b"holder".to_vec(), domain: 0 };
    let before = super::peer::Held::now();
    for _ in 0..3 {
        let region = port.register(&port.allocate(4096).unwrap()).unwrap();
        let cookie = port.open(region, &to, AccessRights::ALL).unwrap();
        let line = format!("attach main {} {}", own(&port).domain, cookie.to_bits());
        assert_eq!(holder.ask(&line), "attached");
    }
    holder.stop();
    let start = Instant::now();
    port.close();
    assert!(BOUND.contains(&start.elapsed()), "{:?}", start.elapsed());
    assert_eq!(super::peer::Held::now().mappings, before.mappings + 3);
    holder.signal(Signal::CONT);
    // The connection of the other process is new.
    super::peer::Held { fds: before.fds + 1, ..before }.settle();
    holder.end();
}

#[test]
fn a_server_that_is_stopped_in_the_middle_of_traffic_goes_on_with_it() {
    let folder = Folder::new("middle");
    let server = server(&folder, "server", false);
    let node = node(&folder, "main");
    let mut clients = [true, false].map(|is_mapped| Client::new(&node, "server", is_mapped, false));
    for round in 0..60 {
        // At no point in particular.
        server.stop();
        std::thread::scope(|scope| {
            scope.spawn(|| clients.iter_mut().for_each(Client::round));
            std::thread::sleep(Duration::from_micros(100 * (round % 8)));
            server.signal(Signal::CONT);
        });
        clients.iter_mut().for_each(Client::round);
    }
    server.end();
}
