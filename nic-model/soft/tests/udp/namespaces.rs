//! Two hosts, which are network namespaces of this machine with a wire between them. They need root
//! and iproute2; without, the tests say that they were skipped.

use std::net::SocketAddr;
use std::process::Command;
use std::sync::Barrier;
use std::sync::atomic::AtomicUsize;

use port::Reliability::{self, Delivery, Reception};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use vipl::ViState;

use crate::ends::{End, options, request, serve};
use crate::faults::{lengths, prepare, receive_all, send_all};

/// Two hosts.
struct Hosts {
    names: [String; 2],
}

/// Says that a test, or its rest, was skipped.
#[expect(clippy::print_stderr, reason = "for who reads the test's output")]
fn skipped(why: &str) {
    eprintln!("skipped: {why}");
}

/// Runs a command of iproute2; what it complains about, if it does.
fn run(program: &str, words: &[&str]) -> Result<(), String> {
    match Command::new(program).args(words).output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Err(format!("{program}: {error}")),
    }
}

impl Hosts {
    /// Makes them, or says why the test is skipped.
    fn new(test: &str) -> Option<Self> {
        let id = format!("{test}{}", std::process::id());
        let hosts = Self { names: [format!("via-a-{id}"), format!("via-b-{id}")] };
        match hosts.make(&id) {
            Ok(()) => Some(hosts),
            Err(why) => {
                skipped(&format!("network namespaces need root and iproute2 ({why})"));
                None
            }
        }
    }

    fn make(&self, id: &str) -> Result<(), String> {
        let [a, b] = &self.names;
        run("ip", &["netns", "add", a])?;
        run("ip", &["netns", "add", b])?;
        let wires = [format!("va{id}"), format!("vb{id}")];
        let [left, right] = &wires;
        run("ip", &["link", "add", left, "type", "veth", "peer", "name", right])?;
        for ((host, wire), ip) in
            self.names.iter().zip(&wires).zip(["10.77.0.1/24", "10.77.0.2/24"])
        {
            run("ip", &["link", "set", wire, "netns", host])?;
            run("ip", &["-n", host, "link", "set", wire, "name", "wire"])?;
            run("ip", &["-n", host, "addr", "add", ip, "dev", "wire"])?;
            run("ip", &["-n", host, "link", "set", "wire", "up"])?;
        }
        Ok(())
    }

    fn set_mtu(&self, mtu: u32) {
        for host in &self.names {
            run("ip", &["-n", host, "link", "set", "wire", "mtu", &mtu.to_string()]).unwrap();
        }
    }

    /// Has this thread, and those that it starts, be on a host.
    fn enter(&self, host: usize) {
        let path = format!("/run/netns/{}", self.names[host]);
        let namespace = std::fs::File::open(path).unwrap();
        move_into_link_name_space(
            std::os::fd::AsFd::as_fd(&namespace),
            Some(LinkNameSpaceType::Network),
        )
        .unwrap();
    }

    /// Sends messages from one to the other; `change` is called when half of them have arrived.
    /// Returns what the sender has counted of packets that were longer than the path, and repeated.
    fn exchange(&self, level: Reliability, count: usize, change: impl Fn() + Sync) -> [u64; 2] {
        let [a, b] = ["10.77.0.1:22089", "10.77.0.2:22089"]
            .map(|address| address.parse::<SocketAddr>().unwrap());
        let (lengths, taken) = (lengths(count, 5), [0, 0].map(AtomicUsize::new));
        let (first, second) = lengths.split_at(count / 2);
        let half = Barrier::new(2);
        std::thread::scope(|scope| {
            let receiver = || {
                self.enter(1);
                let end = End::at(b, level, &options(20_000));
                prepare(&end);
                serve(&end, b).unwrap();
                receive_all(&end, first, &taken[0]);
                change();
                half.wait();
                // Their numbers, and so their slots, begin anew.
                prepare_again(&end, first.len());
                receive_all(&end, second, &taken[1]);
                assert_eq!(end.vi.state(), ViState::Connected);
                half.wait();
            };
            let receiver = scope.spawn(receiver);
            let sender = || {
                self.enter(0);
                let end = End::at(a, level, &options(20_000));
                request(&end, b).unwrap();
                send_all(&end, first, &taken[0]);
                half.wait();
                send_all(&end, second, &taken[1]);
                half.wait();
                [end.counter("longer than path MTU"), end.counter("retransmitted")]
            };
            let sender = scope.spawn(sender);
            receiver.join().unwrap();
            sender.join().unwrap()
        })
    }
}

/// Whole rounds of slots need nothing.
fn prepare_again(_end: &End, received: usize) {
    assert!(received.is_multiple_of(16), "{received}");
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for host in &self.names {
            let _ = run("ip", &["netns", "del", host]);
        }
    }
}

#[test]
fn the_mtu_of_a_path_may_change() {
    let Some(hosts) = Hosts::new("m") else { return };
    for level in [Delivery, Reception] {
        hosts.set_mtu(1_500);
        let [too_long, _] = hosts.exchange(level, 320, || hosts.set_mtu(700));
        assert!(too_long > 0, "{level:?}");
    }
    hosts.set_mtu(9_000);
    let [too_long, repeated] = hosts.exchange(Delivery, 320, || ());
    assert_eq!(too_long, 0);
    assert!(repeated < 20, "{repeated}");
}

#[test]
fn messages_arrive_once_and_in_order_between_hosts_whose_wire_loses_and_reorders() {
    let Some(hosts) = Hosts::new("n") else { return };
    let netem = "delay 2ms 1ms loss 10% duplicate 5% reorder 25%";
    for host in &hosts.names {
        let words = ["-n", host, "qdisc", "add", "dev", "wire", "root", "netem"];
        let words: Vec<&str> = words.into_iter().chain(netem.split(' ')).collect();
        if let Err(why) = run("tc", &words) {
            return skipped(&format!("this kernel has no netem ({why})"));
        }
    }
    for level in [Delivery, Reception] {
        let [_, repeated] = hosts.exchange(level, 320, || ());
        assert!(repeated > 0, "{level:?}");
    }
}
