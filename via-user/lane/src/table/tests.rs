//! Connections are numbers here.

use super::*;

const LOW: &[u8] = b"a";
const OWN: &[u8] = b"m";
const HIGH: &[u8] = b"z";

fn host(bytes: &[u8]) -> Host {
    bytes.to_vec()
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn table(own: &[u8], named: &[&[u8]]) -> Table<u32> {
    let own_ip = format!("10.7.0.{}/24", own[0]);
    let networks = Networks::new(vec![own_ip.parse().unwrap()]).unwrap();
    let named: Vec<Host> = named.iter().map(|named| host(named)).collect();
    Table::new(host(own), networks, &named)
}

/// A table with one node that is up.
fn up(other: &[u8]) -> Table<u32> {
    let mut table = table(OWN, &[]);
    assert!(table.next_search(0));
    table.found(&[host(other)]);
    assert_eq!(table.next_request(0), Some(host(other)));
    assert_eq!(table.connected(&host(other), 1, true, 0), None);
    let hello = table.hello(&host(other), &1, &[ip("10.7.0.2"), ip("fd07::2")], 0);
    assert_eq!(hello, Greeted::Up);
    table
}

#[test]
fn packets_go_to_the_node_that_has_the_address() {
    let mut table = up(LOW);
    assert_eq!(table.route(ip("10.7.0.2")), Some(&1));
    assert_eq!(table.route(ip("fd07::2")), Some(&1));
    assert_eq!(table.route(ip("10.7.0.3")), None);
    assert_eq!(table.everyone().collect::<Vec<_>>(), [&1]);
    assert!(table.lost(&host(LOW), &1));
    assert!(!table.lost(&host(LOW), &1));
    assert_eq!((table.route(ip("10.7.0.2")), table.everyone().count()), (None, 0));
}

#[test]
fn nothing_goes_to_a_node_before_its_hello() {
    let mut table = table(OWN, &[LOW]);
    assert_eq!(table.next_request(0), Some(host(LOW)));
    table.connected(&host(LOW), 1, true, 5);
    assert_eq!(table.everyone().count(), 0);
    assert_eq!(table.hello(&host(LOW), &2, &[ip("10.7.0.2")], 6), Greeted::Ignored);
    table.search = false;
    assert_eq!(table.next_deadline(), Some(5 + HELLO_NS));
    assert_eq!(table.overdue(4 + HELLO_NS), []);
    assert_eq!(table.overdue(5 + HELLO_NS), [1]);
    assert_eq!(table.hello(&host(LOW), &1, &[ip("10.7.0.2")], 7), Greeted::Ignored);
}

#[test]
fn a_packet_for_an_unknown_address_searches_and_asks_everyone_but_not_all_the_time() {
    let mut table = table(OWN, &[LOW, OWN]);
    assert!(table.next_search(0) && !table.next_search(0));
    assert_eq!(table.next_request(0), Some(host(LOW)));
    assert_eq!(table.next_request(0), None, "not the own node, and not twice");
    table.request_failed(&host(LOW), false, 10);
    assert_eq!((table.next_request(10), table.next_deadline()), (None, None));
    assert!(table.want(Some(ip("10.7.0.9"))));
    assert!(!table.want(Some(ip("10.7.0.9"))), "no news");
    assert_eq!(table.next_deadline(), Some(RETRY_NS));
    assert!(!table.next_search(RETRY_NS - 1) && table.next_search(RETRY_NS));
    assert_eq!(table.next_request(9 + RETRY_NS), None);
    assert_eq!(table.next_request(10 + RETRY_NS), Some(host(LOW)));
}

#[test]
fn a_packet_for_a_lost_node_asks_that_node_alone() {
    let mut table = up(LOW);
    table.found(&[host(HIGH)]);
    assert_eq!(table.next_request(0), Some(host(HIGH)));
    table.connected(&host(HIGH), 2, true, 0);
    assert_eq!(table.hello(&host(HIGH), &2, &[ip("10.7.0.3")], 0), Greeted::Up);
    assert!(table.lost(&host(LOW), &1) && table.lost(&host(HIGH), &2));
    assert_eq!(table.next_request(0), None, "nobody wants one");
    assert!(table.want(Some(ip("fd07::2"))));
    assert_eq!((table.next_request(0), table.next_request(0)), (Some(host(LOW)), None));
    assert!(!table.search);
    // To everyone, all that are not up are asked.
    assert!(table.want(None) && table.search);
    assert_eq!(table.next_request(0), Some(host(HIGH)));
}

#[test]
fn nodes_that_were_found_and_do_not_answer_are_left_alone_for_longer() {
    for (silent, until) in [(true, SILENT_NS), (false, RETRY_NS)] {
        let mut table = table(OWN, &[HIGH]);
        table.found(&[host(LOW), host(OWN)]);
        assert_eq!(table.next_request(0), Some(host(HIGH)), "named ones first");
        assert_eq!(table.next_request(0), Some(host(LOW)));
        assert_eq!(table.next_request(0), None);
        table.request_failed(&host(LOW), silent, 0);
        table.request_failed(&host(HIGH), silent, 0);
        table.want(None);
        assert_eq!(table.next_request(RETRY_NS), Some(host(HIGH)));
        assert_eq!(table.next_request(until - 1), None);
        assert_eq!(table.next_request(until), Some(host(LOW)));
        // One that asks by itself is answered at any time.
        table.request_failed(&host(LOW), silent, until);
        assert_eq!(table.requested(&host(LOW), until), Requested::Accept(None));
    }
}

#[test]
fn nodes_that_are_not_found_any_more_are_forgotten_unless_named_or_connected() {
    let mut table = up(LOW);
    table.found(&[host(LOW), host(HIGH)]);
    table.found(&[]);
    assert_eq!(table.hosts.keys().collect::<Vec<_>>(), [&host(LOW)]);
    table.lost(&host(LOW), &1);
    table.found(&[]);
    assert!(table.hosts.is_empty());
}

/// Two tables that request each other at once, with the messages in any order.
#[test]
fn requests_that_cross_become_one_connection() {
    for low_arrives_first in [true, false] {
        let (mut low, mut high) = (table(LOW, &[HIGH]), table(HIGH, &[LOW]));
        assert_eq!(low.next_request(0), Some(host(HIGH)));
        assert_eq!(high.next_request(0), Some(host(LOW)));
        let at_high = |high: &mut Table<u32>| {
            assert_eq!(high.requested(&host(LOW), 0), Requested::Accept(None));
            assert_eq!(high.connected(&host(LOW), 7, false, 0), None);
        };
        if low_arrives_first {
            at_high(&mut high);
        }
        assert_eq!(low.requested(&host(HIGH), 0), Requested::Reject);
        high.request_failed(&host(LOW), false, 0);
        if !low_arrives_first {
            at_high(&mut high);
        }
        assert_eq!(low.connected(&host(HIGH), 7, true, 0), None);
        assert_eq!(low.hello(&host(HIGH), &7, &[ip("10.7.0.122")], 0), Greeted::Up);
        assert_eq!(high.hello(&host(LOW), &7, &[ip("10.7.0.97")], 0), Greeted::Up);
    }
}

/// Both have come about after all: each side keeps the one that the lower node has requested.
#[test]
fn of_two_connections_both_sides_keep_the_same() {
    for first in [7, 8] {
        let (mut low, mut high) = (table(LOW, &[HIGH]), table(HIGH, &[LOW]));
        let mut closed = Vec::new();
        for link in [first, 15 - first] {
            // 7 is what the low node has requested.
            closed.push(low.connected(&host(HIGH), link, link == 7, 0));
            closed.push(high.connected(&host(LOW), link, link == 8, 0));
        }
        assert_eq!(closed, [None, None, Some(8), Some(8)]);
        assert_eq!(low.hello(&host(HIGH), &7, &[ip("10.7.0.122")], 0), Greeted::Up);
        assert_eq!(high.hello(&host(LOW), &7, &[ip("10.7.0.97")], 0), Greeted::Up);
    }
}

#[test]
fn a_node_that_requests_again_has_lost_its_connection() {
    let mut table = up(HIGH);
    let later = CROSSING_NS;
    assert_eq!(table.requested(&host(HIGH), later), Requested::Accept(Some(1)));
    assert_eq!(table.route(ip("10.7.0.2")), None);
    // The request is void after all: this node asks.
    table.accept_failed(&host(HIGH));
    assert_eq!(table.next_request(later), Some(host(HIGH)));
}

/// The other side's request is looked at when it is void already.
#[test]
fn a_request_that_has_crossed_does_not_end_the_connection() {
    let mut table = up(HIGH);
    assert_eq!(table.requested(&host(HIGH), CROSSING_NS - 1), Requested::Reject);
    assert_eq!(table.route(ip("10.7.0.2")), Some(&1));
    // Later ones are of a node that has lost the connection; and so are those of a node that goes first.
    assert_eq!(table.requested(&host(HIGH), CROSSING_NS), Requested::Accept(Some(1)));
    assert_eq!(up(LOW).requested(&host(LOW), 0), Requested::Accept(Some(1)));
}

/// Nobody listened yet at the other side, which then asked for itself.
#[test]
fn a_node_whose_request_was_rejected_in_vain_is_asked_again_at_once() {
    let mut table = table(OWN, &[]);
    table.found(&[host(HIGH)]);
    assert_eq!(table.next_request(0), Some(host(HIGH)));
    assert_eq!(table.requested(&host(HIGH), 0), Requested::Reject);
    table.request_failed(&host(HIGH), false, 0);
    assert_eq!(table.next_request(0), Some(host(HIGH)));
    table.request_failed(&host(HIGH), false, 0);
    assert_eq!(table.next_request(0), None);
}

#[test]
fn addresses_of_others_are_refused() {
    let mut table = up(LOW);
    for (address, conflict) in [
        ("10.7.0.109", Conflict::Own(ip("10.7.0.109"))),
        ("fd07::2", Conflict::Other(ip("fd07::2"))),
    ] {
        let now = table.hosts.get(HIGH).map_or(0, |entry| entry.retry_at);
        assert_eq!(table.requested(&host(HIGH), now), Requested::Accept(None));
        assert_eq!(table.connected(&host(HIGH), 2, false, now), None);
        let addresses = [ip("10.7.0.3"), ip(address)];
        let hello = table.hello(&host(HIGH), &2, &addresses, now);
        assert_eq!(hello, Greeted::Refused(conflict));
        assert_eq!(table.route(ip("10.7.0.3")), None);
        // For a while neither side asks in vain.
        table.want(None);
        assert_eq!(table.next_request(now + REFUSED_NS - 1), None);
        assert_eq!(table.requested(&host(HIGH), now + REFUSED_NS - 1), Requested::Reject);
    }
    assert_eq!(table.route(ip("fd07::2")), Some(&1));
}
