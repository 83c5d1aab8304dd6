//! The side of the process that is shown.

use core::fmt;
use core::net::SocketAddr;
use core::sync::atomic::{AtomicBool, Ordering};
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use port::{DmaMemory, fork, memory, trust};

use super::layout::{self, Direction, FILE_BYTES, FREE, Phase, RECORDS, TAKEN, load, store};
use super::layout::{header, reason, record};
use crate::connection::Credits;
use crate::preload::{self, Process};

/// What this process shows. None of it waits, and none takes a lock.
#[derive(Debug)]
pub struct Status {
    memory: DmaMemory,
    path: PathBuf,
    /// Number of this process among its forked ancestors: a child leaves its parent's alone.
    generation: u32,
    is_left: bool,
    /// Its sums are complete: no record is given to another connection.
    is_over: AtomicBool,
}

impl Status {
    /// That of this process, with a file of its own. `run` is who adds it up later.
    ///
    /// # Errors
    /// The file cannot be made, or has no room on its disk.
    pub fn open(run: Option<Process>) -> io::Result<Self> {
        let process = Process::own();
        trust::make_folder(&preload::folder())?;
        let folder = super::folder();
        trust::make_folder(&folder)?;
        Self::open_in(&folder, process, run)
    }

    pub(super) fn open_in(
        folder: &Path,
        process: Process,
        run: Option<Process>,
    ) -> io::Result<Self> {
        let path = folder.join(process.to_string());
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(0o600);
        let memory = match options.open(&path) {
            Ok(file) => prepare(&file).inspect_err(|_| drop(fs::remove_file(&path)))?,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => take_over(&path)?,
            Err(error) => return Err(error),
        };
        let generation = fork::generation();
        let (is_left, is_over) = (run.is_some(), AtomicBool::new(false));
        let status = Self { memory, path, generation, is_left, is_over };
        // Connections of the program that this process has run before.
        status.fold();
        let memory = &status.memory;
        store(memory, header::PROCESS, process.id.into());
        store(memory, header::STARTED, process.started);
        let program = process.program().unwrap_or_default();
        store(memory, header::IMAGE, program.image);
        let run = run.unwrap_or(Process { id: 0, started: 0 });
        store(memory, header::RUN, run.id.into());
        store(memory, header::RUN_STARTED, run.started);
        store(memory, header::UNLISTED, 0);
        layout::store_text(memory, header::PROGRAM, layout::NAME_BYTES, &program.name);
        memory.atomic_u64(header::MAGIC).store(layout::MAGIC, Ordering::Release);
        Ok(status)
    }

    fn is_own(&self) -> bool {
        self.generation == fork::generation()
    }

    /// The device on which connections are: its URL, which is empty for the default one, and what it is.
    pub fn set_device(&self, url: &str, nic: &str) {
        layout::store_text(&self.memory, header::DEVICE, layout::DEVICE_BYTES, url);
        layout::store_text(&self.memory, header::NIC, layout::NAME_BYTES, nic);
    }

    /// A connection that stays TCP, and of which nothing else is to be shown.
    pub fn count_stay(&self, why: &str) {
        layout::add(&self.memory, header::CONNECTIONS, 1);
        let _ = self.reason(why, false);
    }

    /// Counts a reason; its number, from 1.
    fn reason(&self, why: &str, is_back: bool) -> u64 {
        let counter = if is_back { reason::BACKS } else { reason::STAYS };
        let room = reason::TEXT_BYTES;
        let why = &why[..why.floor_char_boundary(room - 8)];
        let mut found = layout::REASONS - 1;
        for index in 0..layout::REASONS - 1 {
            let at = layout::reason_at(index);
            let state = self.memory.atomic_u64(at + reason::STATE);
            // Of two threads that have the same new reason at once each writes one.
            if state.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                layout::store_text(&self.memory, at + reason::TEXT, room, why);
                state.store(2, Ordering::Release);
            }
            if state.load(Ordering::Acquire) == 2
                && layout::load_text(&self.memory, at + reason::TEXT, room) == why
            {
                found = index;
                break;
            }
        }
        layout::add(&self.memory, layout::reason_at(found) + counter, 1);
        found as u64 + 1
    }

    /// A record that nobody has.
    fn take(&self) -> Option<DmaMemory> {
        if self.is_over.load(Ordering::Acquire) {
            return None;
        }
        let is_taken = |index: &usize| {
            let phase = self.memory.atomic_u64(layout::record_at(*index) + record::PHASE);
            phase.compare_exchange(FREE, TAKEN, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        };
        let index = (0..RECORDS).find(is_taken)?;
        let used = self.memory.atomic_u64(header::USED);
        used.fetch_max(index as u64 + 1, Ordering::AcqRel);
        self.memory.slice(layout::record_at(index), layout::RECORD_BYTES).ok()
    }

    /// Adds a connection to the sums, unless that was done: it has ended.
    fn end_one(&self, connection: &DmaMemory) {
        let phase = connection.atomic_u64(record::PHASE).swap(FREE, Ordering::AcqRel);
        let Some(phase) = Phase::of(phase) else { return };
        layout::add(&self.memory, header::SENT, connection.load_u64(record::SENT));
        layout::add(&self.memory, header::RECEIVED, connection.load_u64(record::RECEIVED));
        if let Some(why) = phase.why_unmoved() {
            let _ = self.reason(why, false);
        }
    }

    fn fold(&self) {
        let records = (0..layout::used(&self.memory)).map(layout::record_at);
        let records = records.filter_map(|at| self.memory.slice(at, layout::RECORD_BYTES).ok());
        records.for_each(|connection| self.end_one(&connection));
    }

    /// The process ends, and shows nothing any more. Who adds it up finds the sums in the file's place.
    pub fn end(&self) {
        if !self.is_own() {
            return;
        }
        self.is_over.store(true, Ordering::Release);
        if !self.is_left {
            let _ = fs::remove_file(&self.path);
            return;
        }
        self.fold();
        let sums = self.memory.to_vec(0, layout::HEADER_BYTES);
        let draft = self.path.with_extension("end");
        // If there is no room for it, the file itself has the same sums.
        if fs::write(&draft, sums).and_then(|()| fs::rename(&draft, &self.path)).is_err() {
            let _ = fs::remove_file(draft);
        }
    }
}

fn prepare(file: &File) -> io::Result<DmaMemory> {
    memory::reserve(file.as_fd(), FILE_BYTES)?;
    DmaMemory::map_published(file.as_fd(), FILE_BYTES)
}

/// The file of the program that this process has run before: its sums go on. One without all its pages is
/// of a process that could not make it.
fn take_over(path: &Path) -> io::Result<DmaMemory> {
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    if let Ok(memory) = DmaMemory::map_published(file.as_fd(), FILE_BYTES)
        && load(&memory, header::MAGIC) == layout::MAGIC
    {
        return Ok(memory);
    }
    fs::remove_file(path)?;
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create_new(true).mode(0o600).open(path)?;
    prepare(&file).inspect_err(|_| drop(fs::remove_file(path)))
}

/// Offsets in the line of a direction.
const SENT: usize = record::SENT - record::SENDS;
const CREDITS: usize = record::CREDITS - record::SENDS;
const RECEIVED: usize = record::RECEIVED - record::RECEIVES;

/// A connection as it is shown, until this is dropped. Each direction's methods are for one thread at a
/// time.
pub struct Record {
    status: Arc<Status>,
    memory: DmaMemory,
    is_listed: bool,
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "record {} of {}", load(&self.memory, record::SERIAL), self.status.path.display())
    }
}

impl Record {
    /// That of a new connection. One more than there are records for is only counted. None: there is no
    /// memory for that.
    #[must_use]
    pub fn new(status: &Arc<Status>, local: SocketAddr, peer: SocketAddr) -> Option<Self> {
        let taken = status.take();
        let is_listed = taken.is_some();
        let memory = match taken {
            Some(memory) => memory,
            None => DmaMemory::new(layout::RECORD_BYTES).ok()?,
        };
        layout::add(&status.memory, header::CONNECTIONS, 1);
        if !is_listed {
            layout::add(&status.memory, header::UNLISTED, 1);
        }
        let serial = status.memory.atomic_u64(header::SERIAL).fetch_add(1, Ordering::Relaxed) + 1;
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        for at in (record::SERIAL..layout::RECORD_BYTES).step_by(8) {
            store(&memory, at, 0);
        }
        store(&memory, record::SERIAL, serial);
        store(&memory, record::SINCE, since.map_or(0, |since| since.as_secs()));
        layout::store_end(&memory, record::LOCAL, local);
        layout::store_end(&memory, record::PEER, peer);
        memory.atomic_u64(record::PHASE).store(Phase::Plain as u64, Ordering::Release);
        Some(Self { status: Arc::clone(status), memory, is_listed })
    }

    /// Whether it is this process's, and not one's that it was forked from.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.status.is_own()
    }

    fn set_phase(&self, phase: Phase) {
        let word = self.memory.atomic_u64(record::PHASE);
        // One that was added up is not there any more.
        let _ = word.fetch_update(Ordering::AcqRel, Ordering::Relaxed, |old| {
            Phase::of(old).map(|_| phase as u64)
        });
    }

    /// This end has offered it.
    pub fn offer(&self) {
        self.set_phase(Phase::Offered);
    }

    /// It has a stream of VIA.
    pub fn link(&self) {
        layout::add(&self.status.memory, header::MOVED, 1);
        self.set_phase(Phase::Linked);
    }

    /// It stays TCP, or goes back, for the first reason that is given.
    pub fn stay(&self, why: &str) {
        let Some(phase) = Phase::of(load(&self.memory, record::PHASE)) else { return };
        let next = match phase {
            Phase::Stays | Phase::Left => return,
            Phase::Linked => Phase::Left,
            Phase::Plain | Phase::Offered => Phase::Stays,
        };
        let number = self.status.reason(why, next == Phase::Left);
        store(&self.memory, record::REASON, number);
        self.set_phase(next);
    }

    /// How far what is sent has come.
    #[inline]
    pub fn sends(&self, how: Direction) {
        store(&self.memory, record::SENDS, how as u64);
    }

    /// How far what is received has come.
    #[inline]
    pub fn receives(&self, how: Direction) {
        store(&self.memory, record::RECEIVES, how as u64);
    }

    /// More bytes were sent by VIA, after which so many credits are left.
    #[inline]
    pub fn sent(&self, bytes: usize, credits: Credits) {
        let Some(line) = self.memory.line(record::SENDS) else { return };
        line.store_u64(SENT, line.load_u64(SENT) + bytes as u64);
        line.store_u64(CREDITS, u64::from(credits.left) | u64::from(credits.window) << 32);
    }

    /// More bytes were received by VIA.
    #[inline]
    pub fn received(&self, bytes: usize) {
        let Some(line) = self.memory.line(record::RECEIVES) else { return };
        line.store_u64(RECEIVED, line.load_u64(RECEIVED) + bytes as u64);
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        if !self.is_own() {
            return;
        }
        self.status.end_one(&self.memory);
        if !self.is_listed {
            self.status.memory.atomic_u64(header::UNLISTED).fetch_sub(1, Ordering::Relaxed);
        }
    }
}
