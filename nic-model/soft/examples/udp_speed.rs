//! What `udp:` and `eth:` cost beside plain sockets: the latency of 4 bytes, and the bandwidth of 32 KiB
//! messages, of VIPL and of UDP sockets that poll. Two threads of one process:
//!
//! - `cargo run --release -p soft-nic --example udp_speed`: the loopback interface;
//! - the same with `-- IP IP`: two addresses of this machine;
//! - the same with `-- eth:INTERFACE eth:INTERFACE`: two interfaces, such as a pair of veth.
#![expect(clippy::print_stdout, reason = "an example")]

use std::io::IoSlice;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nix::sys::socket::sockopt::{RcvBufForce, UdpGroSegment};
use nix::sys::socket::{ControlMessage, MsgFlags, SockaddrStorage, sendmsg, setsockopt};
use port::{DmaMemory, NetAddress, Reliability, ViPort};
use soft_nic::net::{NetNode, NetVia, Options};
use vipl::{Descriptor, MemAttributes, Nic, Region, Vi, ViAttributes, Waiting};

const ROUNDS: u32 = 50_000;
const LONG: Duration = Duration::from_secs(60);
/// Bytes of a long message, and how long they are sent.
const MESSAGE: usize = 32 << 10;
const TIME: Duration = Duration::from_secs(2);
/// Receives that are posted.
const SLOTS: usize = 64;

struct End {
    port: Arc<NetVia>,
    nic: Nic,
    region: Region,
    vi: Vi,
    host: Vec<u8>,
}

fn end(place: &str, level: Reliability) -> vipl::Result<End> {
    let node = match place.strip_prefix("eth:") {
        Some(name) => NetNode::eth(name, &Options::default()),
        None => NetNode::udp((ip(place), 0).into(), &Options::default()),
    };
    let node = node.unwrap_or_else(|why| panic!("{why}"));
    let port = node.port()?;
    let nic = Nic::open_with(Arc::clone(&port) as Arc<dyn ViPort>, Waiting::Poll);
    let tag = nic.create_ptag()?;
    let vi = nic.create_vi(ViAttributes::new(level, tag), None, None)?;
    let memory = DmaMemory::new(SLOTS * (64 + MESSAGE))?;
    let region = nic.register_mem(&memory, MemAttributes::new(tag))?;
    let host = port.attributes().host_address.clone();
    Ok(End { port, nic, region, vi, host })
}

impl End {
    fn descriptor(&self, slot: usize, length: usize) -> vipl::Result<Descriptor> {
        let descriptor = self.region.descriptor(slot * 64, 1)?;
        let data = SLOTS * 64 + slot * MESSAGE;
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        descriptor.prepare(&[self.region.segment(data, length)], None)?;
        Ok(descriptor)
    }
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap_or_else(|_| panic!("`{text}` is neither an IP address nor eth:INTERFACE"))
}

fn pair(places: &[String; 2], level: Reliability) -> vipl::Result<[End; 2]> {
    let (a, b) = (end(&places[0], level)?, end(&places[1], level)?);
    let service = NetAddress::new(&b.host, b"speed");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| b.nic.connect_wait(&service, LONG)?.accept(&b.vi));
        let from = NetAddress::new(&a.host, b"");
        // Nobody may wait yet.
        while let Err(error) = a.vi.connect_request(&from, &service, LONG) {
            if error.code != vipl::VipReturn::NoMatch {
                return Err(error);
            }
        }
        waiting.join().expect("the server")
    })?;
    Ok([a, b])
}

/// Half a round trip of 4 bytes over VIPL, in nanoseconds: the median.
fn latency(places: &[String; 2], level: Reliability) -> vipl::Result<u64> {
    let [a, b] = pair(places, level)?;
    let serve = |end: &End, is_first: bool, times: &mut Vec<u64>| -> vipl::Result<()> {
        let (receive, send) = (end.descriptor(0, 4)?, end.descriptor(1, 4)?);
        end.vi.post_recv(&receive)?;
        for _ in 0..ROUNDS {
            let start = Instant::now();
            if is_first {
                end.vi.post_send(&send)?;
            }
            end.vi.recv_wait(LONG).expect("a message");
            end.vi.post_recv(&receive)?;
            if !is_first {
                end.vi.post_send(&send)?;
            }
            end.vi.send_wait(LONG).expect("sent");
            times.push(u64::try_from(start.elapsed().as_nanos()).unwrap_or(0));
        }
        Ok(())
    };
    let mut times = Vec::new();
    std::thread::scope(|scope| {
        // The receive of b is there before a sends, or a's first message stops the VI.
        let other = scope.spawn(|| serve(&b, false, &mut Vec::new()));
        std::thread::sleep(Duration::from_millis(50));
        serve(&a, true, &mut times)?;
        other.join().expect("the server")
    })?;
    times.sort_unstable();
    Ok(times[times.len() / 2] / 2)
}

fn raw_pair(ips: [IpAddr; 2]) -> std::io::Result<[UdpSocket; 2]> {
    let [a, b] = [UdpSocket::bind((ips[0], 0))?, UdpSocket::bind((ips[1], 0))?];
    a.connect(b.local_addr()?)?;
    b.connect(a.local_addr()?)?;
    a.set_nonblocking(true)?;
    b.set_nonblocking(true)?;
    Ok([a, b])
}

fn raw_latency(ips: [IpAddr; 2], is_connected: bool) -> std::io::Result<u64> {
    let [a, b] = raw_pair(ips)?;
    let receive = |socket: &UdpSocket| while socket.recv_from(&mut [0; 64]).is_err() {};
    let [to_a, to_b] = [a.local_addr()?, b.local_addr()?];
    let [a, b] = if is_connected {
        [a, b]
    } else {
        let [c, d] = [UdpSocket::bind((ips[0], 0))?, UdpSocket::bind((ips[1], 0))?];
        c.set_nonblocking(true)?;
        d.set_nonblocking(true)?;
        [c, d]
    };
    let ends = if is_connected { [to_a, to_b] } else { [a.local_addr()?, b.local_addr()?] };
    let send = |socket: &UdpSocket, to: SocketAddr| {
        if is_connected { socket.send(&[0; 4]) } else { socket.send_to(&[0; 4], to) }
    };
    let mut times = Vec::new();
    std::thread::scope(|scope| -> std::io::Result<()> {
        scope.spawn(|| {
            for _ in 0..ROUNDS {
                receive(&b);
                let _ = send(&b, ends[0]);
            }
        });
        for _ in 0..ROUNDS {
            let start = Instant::now();
            send(&a, ends[1])?;
            receive(&a);
            times.push(u64::try_from(start.elapsed().as_nanos()).unwrap_or(0));
        }
        Ok(())
    })?;
    times.sort_unstable();
    Ok(times[times.len() / 2] / 2)
}

/// Megabytes a second over VIPL.
fn bandwidth(places: &[String; 2], level: Reliability) -> vipl::Result<u64> {
    let [a, b] = pair(places, level)?;
    let (taken, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let receives: Vec<Descriptor> =
        (0..SLOTS).map(|slot| b.descriptor(slot, MESSAGE)).collect::<vipl::Result<_>>()?;
    for receive in &receives {
        b.vi.post_recv(receive)?;
    }
    let sends: Vec<Descriptor> =
        (0..SLOTS).map(|slot| a.descriptor(slot, MESSAGE)).collect::<vipl::Result<_>>()?;
    let start = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                if b.vi.recv_wait(Duration::from_millis(100)).is_ok() {
                    let count = taken.load(Ordering::Relaxed);
                    let receive = &receives[usize::try_from(count).unwrap_or(0) % SLOTS];
                    b.vi.post_recv(receive).expect("posted");
                    taken.store(count + 1, Ordering::Release);
                }
            }
        });
        let (mut posted, mut done) = (0_u64, 0_u64);
        while start.elapsed() < TIME {
            // As many as there are receives.
            while posted == taken.load(Ordering::Acquire) + SLOTS as u64 {
                a.nic.progress();
                std::thread::yield_now();
            }
            if posted == done + SLOTS as u64 {
                a.vi.send_wait(LONG).expect("sent");
                done += 1;
            }
            a.vi.post_send(&sends[usize::try_from(posted).unwrap_or(0) % SLOTS])?;
            posted += 1;
        }
        is_over.store(true, Ordering::Relaxed);
        Ok::<_, vipl::Error>(())
    })?;
    for (name, count) in a.port.counters()? {
        if count > 0 && (name == "retransmitted" || name == "send buffer full") {
            println!("    {name}: {count}");
        }
    }
    Ok(taken.load(Ordering::Acquire) * MESSAGE as u64 / 1_000_000 / TIME.as_secs())
}

/// Megabytes a second that arrive of plain sockets: 32 KiB in a call, in datagrams of a size.
fn raw_bandwidth(ips: [IpAddr; 2], size: u16) -> std::io::Result<u64> {
    let [a, b] = raw_pair(ips)?;
    setsockopt(&b, UdpGroSegment, &true)?;
    // As large as those of a node.
    for socket in [&a, &b] {
        let _ = setsockopt(socket, RcvBufForce, &(1 << 20));
    }
    let (bytes, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let start = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // As many buffers as a program has that receives messages.
            let mut buffers = vec![vec![0; 1 << 16]; SLOTS];
            for at in (0..SLOTS).cycle() {
                loop {
                    if let Ok(length) = b.recv(&mut buffers[at]) {
                        bytes.fetch_add(length as u64, Ordering::Release);
                        break;
                    }
                    if is_over.load(Ordering::Relaxed) {
                        return;
                    }
                }
            }
        });
        let buffers = vec![vec![0; MESSAGE]; SLOTS];
        let control = [ControlMessage::UdpGsoSegments(&size)];
        let control = if usize::from(size) < MESSAGE { &control[..] } else { &[] };
        for buffer in buffers.iter().cycle() {
            if start.elapsed() > TIME {
                break;
            }
            // What the receiver's system does not keep is lost.
            let parts = [IoSlice::new(buffer)];
            let flags = MsgFlags::empty();
            let _ = sendmsg(a.as_raw_fd(), &parts, control, flags, None::<&SockaddrStorage>);
        }
        is_over.store(true, Ordering::Relaxed);
    });
    Ok(bytes.load(Ordering::Acquire) / 1_000_000 / TIME.as_secs())
}

fn main() {
    let mut places: Vec<String> = std::env::args().skip(1).collect();
    if places.is_empty() {
        places = ["127.0.0.1", "127.0.0.2"].map(str::to_owned).to_vec();
    }
    let places: [String; 2] = places.try_into().expect("two addresses, or two eth:INTERFACE");
    let is_eth = places[0].starts_with("eth:");
    let ips =
        if is_eth { ["127.0.0.1", "127.0.0.2"].map(ip) } else { [0, 1].map(|i| ip(&places[i])) };
    for (is_connected, name) in [(true, "connected sockets"), (false, "sockets")] {
        println!("{name:<18} 4 bytes {:>6} ns", raw_latency(ips, is_connected).expect("sockets"));
    }
    for level in [Reliability::Unreliable, Reliability::Delivery, Reliability::Reception] {
        let name = format!("{level:?}");
        println!("{name:<18} 4 bytes {:>6} ns", latency(&places, level).expect("VIPL"));
    }
    // With the node's own packets.
    let mtu = end(&places[0], Reliability::Delivery).expect("a node").nic.query().native_mtu;
    let size = u16::try_from(mtu).expect("a packet") + if mtu < 32_768 { 64 } else { 0 };
    println!("sockets            32 KiB {:>6} MB/s", raw_bandwidth(ips, size).expect("sockets"));
    for level in [Reliability::Delivery, Reliability::Reception] {
        let name = format!("{level:?}");
        println!("{name:<18} 32 KiB {:>6} MB/s", bandwidth(&places, level).expect("VIPL"));
    }
}
