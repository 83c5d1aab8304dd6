//! Many clients at once.

use std::os::fd::AsFd;
use std::time::Duration;

use nic_regs::csr;
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};
use tests::served::{SOON, Simulator};
use vfio_user::protocol::{Command, FDS_MAX, SetIrqs, Version, irq, region};

use super::malformed::Raw;

/// Clients of as many nodes, each with an eventfd for each of its 32 vectors: more descriptors than
/// a process may have by default (1,024).
#[test]
fn more_descriptors_than_a_process_has_by_default() {
    const NODES: u8 = 34;
    // The simulator begins with the usual limit, whatever this process has.
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(1024), ..limit }).unwrap();
    let simulator = Simulator::start("crowd", NODES, 0.0);
    setrlimit(Resource::Nofile, limit).unwrap();
    let event = rustix::event::eventfd(0, rustix::event::EventfdFlags::NONBLOCK).unwrap();
    let mut clients: Vec<Raw> =
        (0..NODES).map(|node| Raw::connect(&simulator.socket(node))).collect();
    for client in &mut clients {
        client.reply(Command::Version, &Version::OWN.to_bytes(), &[]);
        for start in (0..32).step_by(FDS_MAX) {
            let flags = irq::DATA_EVENTFD | irq::ACTION_TRIGGER;
            let count = FDS_MAX.try_into().unwrap();
            let set = SetIrqs { flags, index: irq::MSIX, start, count, data: &[] };
            client.reply(Command::SetIrqs, &set.to_bytes(), &[event.as_fd(); FDS_MAX]);
        }
    }
    // Connections that say nothing, more than a node lets wait: the oldest ones go.
    let silent: Vec<Raw> = (0..40).map(|_| Raw::connect(&simulator.socket(3))).collect();
    for client in &mut clients {
        let status = client.read(region::BAR0, csr::STATUS::OFFSET.into(), 4);
        assert_eq!(status, [1, 0, 0, 0]);
    }
    drop((clients, silent));
    simulator.stop();
}

/// There was no descriptor for the first client, and there is one later although no other client
/// went.
#[test]
fn who_finds_no_descriptor_waits_for_one() {
    let mut simulator = Simulator::start("nofile", 1, 0.0);
    let id = Pid::from_raw(simulator.process().id().try_into().unwrap()).unwrap();
    let limit = getrlimit(Resource::Nofile);
    // Enough to poll two sockets; it has more open already.
    prlimit(Some(id), Resource::Nofile, Rlimit { current: Some(3), ..limit }).unwrap();
    let mut client = Raw::connect(&simulator.socket(0));
    // It has tried by then.
    std::thread::sleep(Duration::from_millis(300));
    prlimit(Some(id), Resource::Nofile, limit).unwrap();
    client.bound(SOON);
    client.reply(Command::Version, &Version::OWN.to_bytes(), &[]);
    drop(client);
    simulator.stop();
}
