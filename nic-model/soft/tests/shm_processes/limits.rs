//! Limits of the system.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use port::clan::{AccessRights, ClanPeer, ClanPort, Cookie};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use soft_nic::shm::ShmNode;

use super::echo::{memory, node, with_queue};
use super::peer::{Held, Peer, Setting, next_line, say};
use super::support::own;
use super::traffic::{Folder, server};

/// Processor time of this process, in ticks of 10 ms, from its `/proc/self/stat`.
fn ticks(stat: &File) -> u64 {
    let mut bytes = [0; 1024];
    let length = stat.read_at(&mut bytes, 0).unwrap();
    let stat = String::from_utf8_lossy(&bytes[..length]);
    let fields = stat.rsplit(')').next().unwrap().split_whitespace().skip(11).take(2);
    fields.map(|field| field.parse::<u64>().unwrap()).sum()
}

/// A node that has no descriptor left. Arguments: the domain of node `main` that is used; cookies of
/// mapped and of other memory.
pub(crate) fn run(setting: &Setting) {
    let node = node(&setting.folder, "limited");
    let (port, _queue, _) = with_queue(&node);
    let main = ClanPeer { host: b"main".to_vec(), domain: setting.number(0) };
    let [mapped, other] = [1, 2].map(|index| Cookie::from_bits(setting.number(index)).unwrap());
    port.attach(&main, mapped).unwrap().store(0, &[1]).unwrap();
    let stat = File::open("/proc/self/stat").unwrap();
    let before = getrlimit(Resource::Nofile);
    let held = Held::now();
    // The limit is one of their numbers, and the lowest number is taken first.
    let lowest = File::open("/dev/null").unwrap().as_raw_fd();
    let none = Rlimit { current: Some(lowest.unsigned_abs().into()), ..before };
    setrlimit(Resource::Nofile, none).unwrap();
    // The service may have had one until now.
    std::thread::sleep(Duration::from_millis(20));
    let filled: Vec<File> = core::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    let text = port.attach(&main, mapped).map(drop).unwrap_err().to_string();
    assert!(text.contains("descriptor") && text.contains("Too many open files"), "{text}");
    // It needs none.
    port.attach(&main, other).unwrap().store(0, &[2]).unwrap();
    let third = ClanPeer { host: b"third".to_vec(), domain: 0 };
    let text = port.send_message(&third, &[0; 48]).unwrap_err().to_string();
    assert!(text.contains("Too many open files"), "{text}");
    let text = port.allocate(4096).unwrap_err().to_string();
    assert!(text.contains("Too many open files"), "{text}");
    let text = ShmNode::open_in(&setting.folder, None).unwrap_err().to_string();
    assert!(text.contains("Too many open files"), "{text}");
    say("full");
    // Somebody connects meanwhile, and is not refused; the service does not turn round and round.
    let start = ticks(&stat);
    std::thread::sleep(Duration::from_millis(300));
    let used = ticks(&stat) - start;
    assert!(used < 15, "{used} of 30 ticks");
    setrlimit(Resource::Nofile, before).unwrap();
    drop(filled);
    port.attach(&main, mapped).unwrap().store(0, &[3]).unwrap();
    drop(stat);
    // The test has connected.
    Held { fds: held.fds + 1, ..held }.settle();
    say("free");
    next_line();
}

#[test]
fn a_node_without_descriptors_says_so_and_works_again_later() {
    let folder = Folder::new("limits");
    let third = server(&folder, "third", false);
    let node = node(&folder, "main");
    let port = node.port().unwrap();
    let to = ClanPeer { host: b"limited".to_vec(), domain: 0 };
    let regions = [true, false].map(|is_mapped| {
        let memory = memory(&port, is_mapped, 4096);
        let region = port.register(&memory).unwrap();
        (port.open(region, &to, AccessRights::ALL).unwrap().to_bits().to_string(), memory)
    });
    let [(mapped, memory), (other, _)] = &regions;
    let limited = Peer::start("limited", &folder, &[&own(&port).domain.to_string(), mapped, other]);
    assert_eq!(limited.line(), "full");
    // It has to wait until there are descriptors again.
    port.send_message(&to, &[1; 48]).unwrap();
    assert_eq!(limited.line(), "free");
    assert_eq!(memory.load_u64(0), 3);
    limited.end();
    third.end();
}
