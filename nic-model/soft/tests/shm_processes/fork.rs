//! Children after fork, and `exec`: the node is their parent's, and ends with it.
#![expect(unsafe_code, reason = "fork of the C library")]

use core::time::Duration;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Instant;

use port::clan::{
    AccessRights, ClanEvent, ClanPeer, ClanPort, Cookie, DmaError, DmaRequest, Remote,
};
use port::{DmaMemory, WaitOps};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use super::echo::{next, node, with_queue};
use super::peer::{BOUND, Peer, Setting, next_line, say};
use super::support::on_write;
use super::traffic::Folder;

// In the C library.
unsafe extern "C" {
    safe fn fork() -> i32;
    safe fn _exit(code: i32) -> !;
}

/// A node that does what it is asked. Argument: its name.
///
/// | line | |
/// |---|---|
/// | `attach NODE DOMAIN COOKIE` | attaches a region |
/// | `open NODE DOMAIN` | opens a region of its own to a domain |
/// | `store INDEX VALUE` | stores to the first word of an attached region |
/// | `lost` | nodes that it was notified of |
/// | `exec` | becomes another program |
/// | `exit` | exits, and drops nothing |
pub(crate) fn leave(setting: &Setting) {
    let node = node(&setting.folder, &setting.arguments[0]);
    let (port, queue, _) = with_queue(&node);
    let region = port.register(&port.allocate(4096).unwrap()).unwrap();
    let mut remotes: Vec<Box<dyn Remote>> = Vec::new();
    say("ready");
    while let Some(line) = next_line() {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["attach", node, domain, bits] => {
                let owner = ClanPeer { host: node.into(), domain: domain.parse().unwrap() };
                let cookie = Cookie::from_bits(bits.parse().unwrap()).unwrap();
                remotes.push(port.attach(&owner, cookie).unwrap());
                say("attached");
            }
            ["open", node, domain] => {
                let to = ClanPeer { host: node.into(), domain: domain.parse().unwrap() };
                say(&port.open(region, &to, AccessRights::ALL).unwrap().to_bits().to_string());
            }
            ["store", index, value] => {
                let remote = &mut remotes[index.parse::<usize>().unwrap()];
                say(&format!("{:?}", remote.store(0, &[value.parse().unwrap()])));
            }
            ["lost"] => {
                let events = core::iter::from_fn(|| queue.poll());
                let lost = events.filter(|event| matches!(event, ClanEvent::NodeLost { .. }));
                say(&format!("{:?}", lost.collect::<Vec<_>>()));
            }
            ["exec"] => panic!("{}", Command::new("sleep").arg("1000").exec()),
            ["exit"] => std::process::exit(0),
            _ => return,
        }
    }
}

/// A node that forks. Argument: a cookie of domain 0 of node `main`.
pub(crate) fn run(setting: &Setting) {
    let node = node(&setting.folder, "forker");
    let (port, queue, _) = with_queue(&node);
    let main = ClanPeer { host: b"main".to_vec(), domain: 0 };
    let cookie = Cookie::from_bits(setting.number(0)).unwrap();
    let mut remote = port.attach(&main, cookie).unwrap();
    let own_region = port.register(&port.allocate(4096).unwrap()).unwrap();
    let own_cookie = port.open(own_region, &main, AccessRights::ALL).unwrap();
    port.set_tripwire(&on_write(own_cookie, 0, &queue)).unwrap();
    let mut dma = port.dma_queue(queue.number()).unwrap();
    port.send_message(&main, &super::echo::with_cookie(0, own_cookie)).unwrap();
    // The child finds an event that it must not take.
    assert_eq!(next_line().as_deref(), Some("fork"));
    let Some(child) = Pid::from_raw(fork()) else {
        let absent = |result: port::Result<()>| {
            let error = result.unwrap_err().to_string();
            assert!(error.contains("in a child after fork"), "{error}");
        };
        absent(port.attach(&main, cookie).map(drop));
        absent(port.register(&DmaMemory::new(8).unwrap()).map(drop));
        absent(port.deregister(own_region));
        absent(port.revoke(own_cookie));
        absent(port.send_message(&main, &[0; 48]));
        absent(port.event_queue().map(drop));
        absent(port.dma_queue(queue.number()).map(drop));
        absent(port.discover().map(drop));
        let request = DmaRequest { offset: 0, source: DmaMemory::new(8).unwrap(), notify: None };
        absent(dma.submit(&mut *remote, request));
        assert_eq!(remote.store(0, &[666]), Err(DmaError::Lost));
        assert_eq!(remote.duplicate().store(0, &[666]), Err(DmaError::Lost));
        assert_eq!(queue.poll(), None);
        queue.arm();
        port.sleep(port.wake_count(), 1_000, port::Wait::bounded("nothing", 0));
        drop((remote, dma, queue, port));
        drop(node);
        // A node of its own.
        let own = super::echo::node(&setting.folder, "child");
        own.port().unwrap().send_message(&main, &[5; 48]).unwrap();
        drop(own);
        say(&format!("child {}", std::process::id()));
        std::thread::sleep(Duration::from_secs(1000));
        _exit(0);
    };
    assert_eq!(next(&port, &*queue, BOUND), Some(ClanEvent::Tripwire { tag: 0 }));
    remote.store(0, &[1]).unwrap();
    say(&format!("parent of {}", child.as_raw_nonzero()));
    next_line();
}

/// Kills a process that is nobody's child here.
struct Killed(Pid);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::KILL);
    }
}

#[test]
fn a_child_after_fork_finds_the_node_absent_and_does_not_keep_it() {
    let folder = Folder::new("fork");
    let node = node(&folder, "main");
    let (port, queue, _) = with_queue(&node);
    for is_mapped in [true, false] {
        let memory = super::echo::memory(&port, is_mapped, 4096);
        let region = port.register(&memory).unwrap();
        let forker = ClanPeer { host: b"forker".to_vec(), domain: 0 };
        let cookie = port.open(region, &forker, AccessRights::ALL).unwrap();
        let mut process = Peer::start("forker", &folder, &[&cookie.to_bits().to_string()]);
        let Some(ClanEvent::Message { message, .. }) = next(&port, &*queue, BOUND) else {
            panic!()
        };
        let theirs = super::echo::cookie_of(&message);
        port.attach(&forker, theirs).unwrap().store(0, &[1]).unwrap();
        process.tell("fork");
        let mut lines = [process.line(), process.line()];
        lines.sort();
        let [child, parent] = lines;
        let child: i32 = child.strip_prefix("child ").unwrap().parse().unwrap();
        assert_eq!(parent, format!("parent of {child}"));
        let child = Killed(Pid::from_raw(child).unwrap());
        let child_host = b"child".to_vec();
        let from = ClanPeer { host: child_host.clone(), domain: 0 };
        let event = next(&port, &*queue, BOUND);
        assert_eq!(event, Some(ClanEvent::Message { from, message: [5; 48] }));
        // It has ended its own node.
        assert_eq!(next(&port, &*queue, BOUND), Some(ClanEvent::NodeLost { host: child_host }));
        assert_eq!(memory.load_u64(0), 1);
        let start = Instant::now();
        process.signal(Signal::KILL);
        let host = b"forker".to_vec();
        assert_eq!(next(&port, &*queue, BOUND), Some(ClanEvent::NodeLost { host }));
        assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
        test_kill_process(child.0).unwrap();
        port.deregister(region).unwrap();
    }
}

#[test]
fn a_process_that_becomes_another_program_is_lost() {
    let folder = Folder::new("exec");
    let node = node(&folder, "main");
    let (port, queue, own) = with_queue(&node);
    let memory = port.allocate(4096).unwrap();
    let region = port.register(&memory).unwrap();
    let mut process = Peer::start("leaver", &folder, &["leaver"]);
    assert_eq!(process.line(), "ready");
    let to = ClanPeer { host: b"leaver".to_vec(), domain: 0 };
    let cookie = port.open(region, &to, AccessRights::ALL).unwrap();
    let line = format!("attach main {} {}", own.domain, cookie.to_bits());
    assert_eq!(process.ask(&line), "attached");
    process.tell("exec");
    let lost = ClanEvent::NodeLost { host: b"leaver".to_vec() };
    assert_eq!(next(&port, &*queue, BOUND), Some(lost));
    assert!(process.is_running());
    port.deregister(region).unwrap();
    super::echo::node(&folder, "leaver");
}
