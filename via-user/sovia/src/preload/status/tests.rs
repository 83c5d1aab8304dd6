//! Files of processes that run, have ended, or were killed.

use core::net::SocketAddr;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use super::layout::{FILE_BYTES, HEADER_BYTES, RECORDS};
use super::read::{living_in, of_run_in, read_all};
use super::{Direction, Phase, ProcessStatus, Reason, Record, Status};
use crate::connection::Credits;
use crate::preload::Process;

/// A folder of a test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("viaduct-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn open(&self, process: Process, run: Option<Process>) -> Arc<Status> {
        Arc::new(Status::open_in(&self.0, process, run).unwrap())
    }

    fn only(&self) -> ProcessStatus {
        let mut all = read_all(&self.0).unwrap();
        assert_eq!(all.len(), 1, "{all:?}");
        all.remove(0)
    }

    fn files(&self) -> usize {
        fs::read_dir(&self.0).unwrap().count()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const DEAD: Process = Process { id: 1, started: u64::MAX };

fn end(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn record(status: &Arc<Status>) -> Record {
    Record::new(status, end("127.0.0.1:80"), end("[::1]:40000")).unwrap()
}

fn reason(text: &str, stays: u64, backs: u64) -> Reason {
    Reason { text: text.to_owned(), stays, backs }
}

#[test]
fn a_connection_is_read_as_it_was_shown() {
    let folder = Folder::new("status-shown");
    let own = Process::own();
    let status = folder.open(own, None);
    status.set_device("shm:?node=a", "shm a");
    let record = record(&status);
    let seen = folder.only();
    assert_eq!((seen.process, seen.is_alive, seen.is_current), (own, true, true));
    assert_eq!((seen.device.as_str(), seen.nic.as_str()), ("shm:?node=a", "shm a"));
    let comm = fs::read_to_string("/proc/self/comm").unwrap();
    assert_eq!(seen.program, comm.trim());
    let first = seen.connections[0].clone();
    assert_eq!((first.local, first.peer), (end("127.0.0.1:80"), end("[::1]:40000")));
    assert_eq!((first.state(), first.reason.as_deref()), ("TCP", None));
    assert!(first.since > 1_700_000_000);
    record.offer();
    let offered = folder.only().connections.remove(0);
    assert_eq!(offered.reason.as_deref(), Some("nobody has offered its other end"));
    record.link();
    let state = || folder.only().connections[0].state();
    assert_eq!(state(), "moving");
    record.sends(Direction::Via);
    assert_eq!(state(), "VIA sending");
    record.receives(Direction::Via);
    assert_eq!(state(), "VIA");
    record.sent(1000, Credits { left: 31, window: 32 });
    record.sent(24, Credits { left: 30, window: 32 });
    record.received(7);
    let moved = folder.only();
    let connection = &moved.connections[0];
    assert_eq!((connection.sent, connection.received), (1024, 7));
    assert_eq!(connection.credits, Credits { left: 30, window: 32 });
    record.stay("several processes use it");
    record.stay("another reason, which is not the first");
    record.sends(Direction::Over);
    record.receives(Direction::Over);
    let left = folder.only();
    assert_eq!(left.connections[0].state(), "back on TCP");
    assert_eq!(left.connections[0].reason.as_deref(), Some("several processes use it"));
    assert_eq!(left.totals.reasons, [reason("several processes use it", 0, 1)]);
    drop(record);
    let closed = folder.only();
    assert!(closed.connections.is_empty());
    assert_eq!((closed.totals.connections, closed.totals.moved), (1, 1));
    assert_eq!((closed.totals.sent, closed.totals.received), (1024, 7));
    status.end();
    assert_eq!(folder.files(), 0);
}

#[test]
fn more_connections_than_records_are_counted() {
    let folder = Folder::new("status-many");
    let status = folder.open(Process::own(), None);
    let records: Vec<_> = (0..RECORDS + 3).map(|_| record(&status)).collect();
    let seen = folder.only();
    assert_eq!((seen.connections.len(), seen.more), (RECORDS, 3));
    records.last().unwrap().sent(5, Credits::default());
    drop(records);
    let seen = folder.only();
    assert_eq!((seen.connections.len(), seen.more, seen.totals.sent), (0, 0, 5));
    assert_eq!(seen.totals.connections, RECORDS as u64 + 3);
    let again = record(&status);
    assert_eq!(folder.only().connections[0].sent, 0, "a record begins anew");
    drop(again);
}

#[test]
fn reasons_are_counted_and_more_of_them_than_there_is_room_for_are_one() {
    let folder = Folder::new("status-reasons");
    let status = folder.open(Process::own(), None);
    for number in 0..40 {
        status.count_stay(&format!("reason {number}"));
        status.count_stay("reason 0");
    }
    let long = "ü".repeat(100);
    drop(record(&status));
    let totals = folder.only().totals;
    assert_eq!(totals.reasons[0], reason("reason 0", 41, 0));
    let others = totals.reasons.last().unwrap();
    assert_eq!(others.text, "other reasons");
    assert_eq!(totals.reasons.iter().map(|reason| reason.stays).sum::<u64>(), 81);
    assert_eq!(totals.connections, 81);
    // A long one is cut, and still found again.
    let folder = Folder::new("status-long");
    let status = folder.open(Process::own(), None);
    status.count_stay(&long);
    status.count_stay(&long);
    let found = folder.only().totals.reasons;
    assert!(long.starts_with(&found[0].text) && found[0].stays == 2, "{found:?}");
}

#[test]
fn files_of_killed_processes_are_removed_unless_a_run_adds_them_up() {
    let folder = Folder::new("status-killed");
    let run = Process::own();
    let killed = folder.open(DEAD, Some(run));
    let one = record(&killed);
    one.link();
    one.sent(10, Credits::default());
    let other = record(&killed);
    let ended = folder.open(Process { id: 2, ..DEAD }, Some(run));
    drop(record(&ended));
    ended.end();
    assert_eq!(fs::metadata(folder.0.join("2-18446744073709551615")).unwrap().len(), 4096);
    assert!(living_in(&folder.0).unwrap().is_empty());
    assert_eq!(folder.files(), 2, "they belong to a run that goes on");
    let mut totals = super::Totals::default();
    let all = of_run_in(&folder.0, run).unwrap();
    all.iter().for_each(|status| totals.add(&status.final_totals()));
    assert_eq!((totals.connections, totals.moved, totals.sent), (3, 1, 10));
    let short = Phase::Plain.why_unmoved().unwrap();
    assert_eq!(totals.reasons, [reason(short, 2, 0)]);
    assert_eq!(folder.files(), 0);
    drop((one, other));
    // Of no run, of one that has ended, and half made.
    let _alone = folder.open(DEAD, None);
    let _orphan = folder.open(Process { id: 2, ..DEAD }, Some(Process { id: 3, ..DEAD }));
    fs::write(folder.0.join("4-18446744073709551615"), b"half").unwrap();
    fs::write(folder.0.join("5-18446744073709551615.end"), b"half").unwrap();
    assert_eq!(folder.files(), 4);
    assert!(living_in(&folder.0).unwrap().is_empty());
    assert_eq!(folder.files(), 0);
}

#[test]
fn the_sums_go_on_after_an_exec() {
    let folder = Folder::new("status-exec");
    let own = Process::own();
    let before = folder.open(own, None);
    let connection = record(&before);
    connection.sent(3, Credits::default());
    core::mem::forget(connection);
    let after = folder.open(own, None);
    let seen = folder.only();
    assert_eq!((seen.connections.len(), seen.totals.sent), (0, 3));
    drop(record(&after));
    assert_eq!(folder.only().totals.connections, 2);
}

#[test]
fn a_file_has_all_its_blocks() {
    use std::os::unix::fs::MetadataExt;
    let folder = Folder::new("status-blocks");
    let status = folder.open(Process::own(), None);
    let found = fs::metadata(folder.0.join(Process::own().to_string())).unwrap();
    assert_eq!(found.len(), FILE_BYTES as u64);
    assert!(found.blocks() * 512 >= FILE_BYTES as u64);
    assert_eq!(found.mode() & 0o777, 0o600);
    const { assert!(FILE_BYTES > HEADER_BYTES) };
    drop(status);
}
