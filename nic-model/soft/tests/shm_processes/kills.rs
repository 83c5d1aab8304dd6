//! A process that is killed at any instant harms nobody but itself.

use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use port::DmaMemory;
use port::clan::{
    AccessRights, ClanEvent, ClanPeer, ClanPort, Cookie, DmaError, EventQueue, RegionNumber,
};
use rustix::process::Signal;
use soft_nic::shm::{ShmNode, ShmPort};

use super::echo::{Background, cookie_of, memory, next, node, with_cookie, with_queue};
use super::peer::{BOUND, Held, Peer, note};
use super::support::on_write;
use super::traffic::{Folder, server};
use super::victim::{BYTES, MODES};

/// Rounds, unless `SHM_KILLS` says how many.
const ROUNDS: u64 = 60;
/// The first rounds, in which the allocator and the queues grow to their sizes.
const WARM_UP: u64 = 12;

/// A number that looks like chance, of a seed and a place (SplitMix64).
pub(crate) fn chance(seed: u64, place: u64) -> u64 {
    let mut z = seed.wrapping_add(place.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// The seed of this run, which its output names.
pub(crate) fn seed() -> u64 {
    let given = std::env::var("SHM_SEED").ok().map(|seed| seed.parse().unwrap());
    let time = std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(0, |time| time.as_secs());
    let seed = given.unwrap_or(time << 24 | u64::from(std::process::id()));
    note(&format!("SHM_SEED={seed}"));
    seed
}

struct Survivor {
    folder: Folder,
    port: ShmPort,
    queue: Arc<dyn EventQueue>,
    victim: ClanPeer,
    /// Watched by tripwires.
    memories: [(RegionNumber, DmaMemory); 2],
}

impl Survivor {
    fn new(folder: Folder, node: &ShmNode) -> Self {
        let (port, queue, own) = with_queue(node);
        assert_eq!(own.domain, 0);
        let victim = ClanPeer { host: b"victim".to_vec(), domain: 1 };
        let memories = [true, false].map(|is_mapped| {
            let memory = memory(&port, is_mapped, BYTES);
            (port.register(&memory).unwrap(), memory)
        });
        Self { folder, port, queue, victim, memories }
    }

    /// Events until the one that is looked for, or until `end`.
    fn until(&self, end: Instant, mut is_it: impl FnMut(ClanEvent) -> bool) -> bool {
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match next(&self.port, &*self.queue, left) {
                Some(event) if is_it(event.clone()) => return true,
                Some(_) => {}
                None => return false,
            }
        }
    }

    /// One round: time from the kill until it is reported.
    fn round(&self, round: u64, seed: u64) -> Duration {
        let random = chance(seed, round);
        let mode = MODES[usize::try_from(round).unwrap() % MODES.len()];
        let is_mapped = random & 1 == 0;
        let arguments = [mode, &is_mapped.to_string()];
        let victim = Peer::start("victim", &self.folder, &arguments);
        let mut theirs = None;
        let found = self.until(Instant::now() + BOUND, |event| {
            let ClanEvent::Message { message, .. } = event else { return false };
            theirs = Some(cookie_of(&message));
            true
        });
        assert!(found, "{mode}: no victim");
        let remote = self.port.attach(&self.victim, theirs.unwrap()).unwrap();
        let (region, _) = self.memories[usize::from(random & 2 == 0)];
        let ours = self.port.open(region, &self.victim, AccessRights::ALL).unwrap();
        let wire = self.port.set_tripwire(&on_write(ours, 0, &self.queue)).unwrap();
        self.port.send_message(&self.victim, &with_cookie(0, ours)).unwrap();
        assert_eq!(victim.line(), "ready");
        // This side is in the middle of an access as well.
        let is_over = Arc::new(AtomicBool::new(false));
        let writer = std::thread::spawn({
            let (mut remote, is_over) = (remote.duplicate(), Arc::clone(&is_over));
            move || {
                let block = DmaMemory::new(BYTES / 4).unwrap();
                loop {
                    let stored = remote.store(8, &[7]).and_then(|()| remote.write(4096, &block));
                    if stored.is_err() || is_over.load(Ordering::Relaxed) {
                        return stored;
                    }
                }
            }
        });
        let attach = |event: ClanEvent| {
            if let ClanEvent::Message { message: message @ [1, ..], .. } = event {
                // It may be revoked before, or while, it is used.
                if let Ok(mut remote) = self.port.attach(&self.victim, cookie_of(&message)) {
                    let _ = remote.store(64, &[1; 8]);
                }
            }
            false
        };
        let end = Instant::now() + Duration::from_micros(random >> 2 & 0x1fff);
        self.until(end, attach);
        let killed = Instant::now();
        victim.signal(Signal::KILL);
        let lost = ClanEvent::NodeLost { host: self.victim.host.clone() };
        assert!(self.until(killed + BOUND, |event| event == lost), "{mode}: not reported");
        let time = killed.elapsed();
        is_over.store(true, Ordering::Relaxed);
        self.after(remote, theirs.unwrap(), ours);
        assert!(matches!(writer.join().unwrap(), Ok(()) | Err(DmaError::Lost)));
        self.port.clear_tripwire(wire).unwrap();
        time
    }

    /// What is left of a victim.
    fn after(&self, mut remote: Box<dyn port::clan::Remote>, theirs: Cookie, ours: Cookie) {
        assert_eq!(remote.store(0, &[1]), Err(DmaError::Lost));
        let error = self.port.attach(&self.victim, theirs).map(drop).unwrap_err();
        assert_eq!(error.to_string(), "there is no node 'victim'");
        // Nobody is left who would have to confirm.
        let start = Instant::now();
        self.port.revoke(ours).unwrap();
        assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    }
}

#[test]
fn a_killed_process_is_reported_and_nobody_else_notices() {
    let rounds = std::env::var("SHM_KILLS").map_or(ROUNDS, |rounds| rounds.parse().unwrap());
    let seed = seed();
    let folder = Folder::new("kills");
    let mut third = server(&folder, "third", false);
    let node = node(&folder, "survivor");
    let survivor = Survivor::new(folder, &node);
    let traffic = Background::start(&node, "third");
    let mut times = Vec::new();
    let mut held = None;
    for round in 0..WARM_UP + rounds {
        if round == WARM_UP {
            third.said();
            held = Some((Held::now(), third.held()));
        }
        times.push(survivor.round(round, seed));
        traffic.goes_on();
        assert_eq!(third.line(), "lost victim");
    }
    let (here, there) = held.unwrap();
    here.settle();
    there.settle_by(|| third.held());
    times.sort();
    let (median, longest) = (times[times.len() / 2], times[times.len() - 1]);
    let blocks = traffic.rounds();
    note(&format!(
        "a lost node was reported after {median:?} (median), {longest:?} (longest), of {} kills; {blocks} \
         blocks with the third party meanwhile",
        times.len()
    ));
    assert!(longest < Duration::from_secs(2), "{longest:?}");
    traffic.end();
    drop(survivor);
    drop(node);
    third.end();
}
