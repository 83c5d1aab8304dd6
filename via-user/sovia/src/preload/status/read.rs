//! The side that reads, at any time.

use core::net::SocketAddr;
use core::sync::atomic::Ordering;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use port::{DmaMemory, trust};

use super::layout::{self, Direction, Phase, load};
use super::layout::{header, reason, record};
use crate::connection::Credits;
use crate::preload::Process;

/// A connection at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionStatus {
    /// Number of the connection in its process.
    pub serial: u64,
    /// The process's end.
    pub local: SocketAddr,
    /// The other one.
    pub peer: SocketAddr,
    /// Since when the library knows it: seconds since 1970.
    pub since: u64,
    /// How far it is.
    pub phase: Phase,
    /// How far what is sent is.
    pub sends: Direction,
    /// How far what is received is.
    pub receives: Direction,
    /// Bytes by VIA.
    pub sent: u64,
    /// Bytes by VIA.
    pub received: u64,
    /// Packets that can be sent before the other side has acknowledged some, as of the last send.
    pub credits: Credits,
    /// Why it stays TCP, or goes back.
    pub reason: Option<String>,
}

impl ConnectionStatus {
    /// Its state in a word or two.
    #[must_use]
    pub const fn state(&self) -> &'static str {
        match (self.sends, self.receives, self.phase) {
            (Direction::Via, Direction::Via, _) => "VIA",
            (Direction::Via, ..) => "VIA sending",
            (_, Direction::Via, _) => "VIA receiving",
            (Direction::Over, Direction::Over, _) | (_, _, Phase::Left) => "back on TCP",
            (_, _, Phase::Linked) => "moving",
            _ => "TCP",
        }
    }

    /// Whether some of it is by VIA.
    #[must_use]
    pub const fn is_accelerated(&self) -> bool {
        matches!(self.sends, Direction::Via) || matches!(self.receives, Direction::Via)
    }
}

/// How many connections have a reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// The reason.
    pub text: String,
    /// Connections that stay TCP for it.
    pub stays: u64,
    /// Connections that went back to TCP for it.
    pub backs: u64,
}

/// Sums over all connections of some processes, also those that were closed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Connections that were seen. If both ends are seen, that is two.
    pub connections: u64,
    /// Those that moved to VIA.
    pub moved: u64,
    /// Bytes by VIA.
    pub sent: u64,
    /// Bytes by VIA.
    pub received: u64,
    /// Why others did not move, or went back.
    pub reasons: Vec<Reason>,
}

impl Totals {
    /// Adds those of more processes.
    pub fn add(&mut self, other: &Self) {
        self.connections += other.connections;
        self.moved += other.moved;
        self.sent += other.sent;
        self.received += other.received;
        for reason in &other.reasons {
            self.add_reason(&reason.text, reason.stays, reason.backs);
        }
    }

    fn add_reason(&mut self, text: &str, stays: u64, backs: u64) {
        match self.reasons.iter_mut().find(|reason| reason.text == text) {
            Some(reason) => {
                reason.stays += stays;
                reason.backs += backs;
            }
            None => self.reasons.push(Reason { text: text.to_owned(), stays, backs }),
        }
    }
}

/// A process at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessStatus {
    /// The process.
    pub process: Process,
    /// It has not ended.
    pub is_alive: bool,
    /// It runs the program that made this, and no other one after an `exec`.
    pub is_current: bool,
    /// Who adds it up.
    pub run: Option<Process>,
    /// The program's name, as the kernel has it.
    pub program: String,
    /// URL of its device; empty for the default one.
    pub device: String,
    /// What that is; empty if it has not been opened.
    pub nic: String,
    /// Its connections.
    pub connections: Vec<ConnectionStatus>,
    /// How many more it has, for which there are no records.
    pub more: u64,
    /// Sums, also over those that it has closed.
    pub totals: Totals,
    path: PathBuf,
}

impl ProcessStatus {
    fn read(path: PathBuf, process: Process) -> Option<Self> {
        let file = OpenOptions::new().read(true).write(true).open(&path).ok()?;
        let length = usize::try_from(file.metadata().ok()?.len()).ok()?;
        let memory = DmaMemory::map_published(file.as_fd(), length).ok()?;
        let records = length.checked_sub(layout::HEADER_BYTES)? / layout::RECORD_BYTES;
        let magic = memory.atomic_u64(header::MAGIC).load(Ordering::Acquire);
        if magic != layout::MAGIC {
            return None;
        }
        let image = process.program().map(|program| program.image);
        let shown = load(&memory, header::IMAGE);
        let run = Process {
            id: u32::try_from(load(&memory, header::RUN)).unwrap_or(0),
            started: load(&memory, header::RUN_STARTED),
        };
        let reasons = reasons(&memory);
        let records = (0..records.min(layout::used(&memory))).map(layout::record_at);
        let connections: Vec<_> =
            records.filter_map(|at| connection(&memory, at, &reasons)).collect();
        let mut totals = Totals {
            connections: load(&memory, header::CONNECTIONS),
            moved: load(&memory, header::MOVED),
            sent: load(&memory, header::SENT),
            received: load(&memory, header::RECEIVED),
            reasons: Vec::new(),
        };
        totals.sent += connections.iter().map(|connection| connection.sent).sum::<u64>();
        totals.received += connections.iter().map(|connection| connection.received).sum::<u64>();
        // Two threads may have written one reason twice.
        for reason in reasons.iter().filter(|reason| reason.stays + reason.backs > 0) {
            totals.add_reason(&reason.text, reason.stays, reason.backs);
        }
        Some(Self {
            process,
            is_alive: image.is_some(),
            is_current: image.is_some_and(|image| image == shown || image == 0 || shown == 0),
            run: (run.id > 0).then_some(run),
            program: layout::load_text(&memory, header::PROGRAM, layout::NAME_BYTES),
            device: layout::load_text(&memory, header::DEVICE, layout::DEVICE_BYTES),
            nic: layout::load_text(&memory, header::NIC, layout::NAME_BYTES),
            connections,
            more: load(&memory, header::UNLISTED),
            totals,
            path,
        })
    }

    /// Its sums once it has ended: also with the reasons of connections that it had until then.
    #[must_use]
    pub fn final_totals(&self) -> Totals {
        let mut totals = self.totals.clone();
        for connection in &self.connections {
            if let Some(why) = connection.phase.why_unmoved() {
                totals.add_reason(why, 1, 0);
            }
        }
        totals
    }
}

fn reasons(memory: &DmaMemory) -> Vec<Reason> {
    let of = |index| {
        let at = layout::reason_at(index);
        let is_there = memory.atomic_u64(at + reason::STATE).load(Ordering::Acquire) == 2;
        let text = if is_there {
            layout::load_text(memory, at + reason::TEXT, reason::TEXT_BYTES)
        } else {
            "other reasons".to_owned()
        };
        let [stays, backs] =
            [reason::STAYS, reason::BACKS].map(|counter| load(memory, at + counter));
        Reason { text, stays, backs }
    };
    (0..layout::REASONS).map(of).collect()
}

/// The connection of a record. None: there is none, or it is another one meanwhile.
fn connection(memory: &DmaMemory, at: usize, reasons: &[Reason]) -> Option<ConnectionStatus> {
    let phase = || Phase::of(memory.atomic_u64(at + record::PHASE).load(Ordering::Acquire));
    let serial = || load(memory, at + record::SERIAL);
    let found = phase()?;
    let credits = memory.load_u64(at + record::CREDITS);
    let [left, window] =
        [credits & 0xffff, credits >> 32].map(|half| u16::try_from(half).unwrap_or(0));
    let why = usize::try_from(load(memory, at + record::REASON)).unwrap_or(0);
    let reason = why.checked_sub(1).and_then(|index| reasons.get(index));
    let status = ConnectionStatus {
        serial: serial(),
        local: layout::load_end(memory, at + record::LOCAL),
        peer: layout::load_end(memory, at + record::PEER),
        since: load(memory, at + record::SINCE),
        phase: found,
        sends: Direction::of(load(memory, at + record::SENDS)),
        receives: Direction::of(load(memory, at + record::RECEIVES)),
        sent: memory.load_u64(at + record::SENT),
        received: memory.load_u64(at + record::RECEIVED),
        credits: Credits { left, window },
        reason: match found.why_unmoved() {
            Some(why) if found == Phase::Offered => Some(why.to_owned()),
            _ => reason.map(|reason| reason.text.clone()),
        },
    };
    core::sync::atomic::fence(Ordering::Acquire);
    (phase().is_some() && serial() == status.serial).then_some(status)
}

/// All files of a folder, and the processes that they are of.
pub(super) fn read_all(folder: &Path) -> io::Result<Vec<ProcessStatus>> {
    match trust::check_folder(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        checked => checked?,
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)?.flatten() {
        let path = entry.path();
        let process = path.file_stem().and_then(|name| name.to_str()?.parse::<Process>().ok());
        let Some(process) = process else { continue };
        let is_whole = path.extension().is_none();
        match ProcessStatus::read(path.clone(), process).filter(|_| is_whole) {
            Some(status) => found.push(status),
            // Of a process that was killed before it was whole; or another layout's.
            None if !process.is_alive() => drop(fs::remove_file(path)),
            None => {}
        }
    }
    Ok(found)
}

/// The processes that run. The files of others are removed, unless somebody still adds them up.
///
/// # Errors
/// The folder cannot be read, or is another user's.
pub fn living() -> io::Result<Vec<ProcessStatus>> {
    living_in(&super::folder())
}

pub(super) fn living_in(folder: &Path) -> io::Result<Vec<ProcessStatus>> {
    let mut all = read_all(folder)?;
    for ended in all.iter().filter(|status| !status.is_alive) {
        if !ended.run.is_some_and(|run| run.is_alive()) {
            let _ = fs::remove_file(&ended.path);
        }
    }
    all.retain(|status| status.is_current);
    Ok(all)
}

/// The processes that `run` adds up. The files of those that have ended are removed.
///
/// # Errors
/// As [`living`].
pub fn of_run(run: Process) -> io::Result<Vec<ProcessStatus>> {
    of_run_in(&super::folder(), run)
}

pub(super) fn of_run_in(folder: &Path, run: Process) -> io::Result<Vec<ProcessStatus>> {
    let mut all = read_all(folder)?;
    all.retain(|status| status.run == Some(run));
    for ended in all.iter().filter(|status| !status.is_alive) {
        let _ = fs::remove_file(&ended.path);
    }
    Ok(all)
}
