//! The thread that lets NICs make progress while their programs do something else.
//!
//! Requests of other nodes are to be answered at once even if nobody waits for any (no match), and
//! a program that only computes is to be notified that its connection broke. What a waiting program
//! does itself is not left to this thread, so it looks seldom.

use std::cell::Cell;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Once, PoisonError, Weak};
use std::time::{Duration, Instant};

use port::process;
use port::sync::{lock, try_lock};

use crate::guard::tell;
use crate::object::NicObject;

/// Time between two looks.
const PERIOD: Duration = Duration::from_micros(500);
/// Longest wait for the end of a look, in which a handler of the program may run.
const ROUND_BOUND: Duration = Duration::from_secs(1);
/// How long a thread that waits for it sleeps.
const NAP: Duration = Duration::from_micros(50);

#[derive(Debug, Default)]
struct Served {
    nics: Vec<Weak<NicObject>>,
    /// The process whose thread runs: a child has none of its parent's.
    running_in: Option<u32>,
}

static SERVED: Mutex<Served> = Mutex::new(Served { nics: Vec::new(), running_in: None });
static OPENED: Condvar = Condvar::new();
/// Held during a look at all NICs; before `SERVED`.
static ROUND: Mutex<()> = Mutex::new(());

/// Serves a NIC from now on, until it is closed.
pub fn serve(nic: &Arc<NicObject>) {
    static HANDLERS: Once = Once::new();
    // Behind those of the NIC's bus: what comes last is called first.
    HANDLERS.call_once(|| {
        let registered = process::around_forks(before_fork, after_fork, after_fork);
        if !registered || !process::at_exit(at_exit) {
            tell("no memory for handlers: children may stand still, and errors be reported at the end");
        }
    });
    let mut served = lock(&SERVED);
    served.nics.push(Arc::downgrade(nic));
    OPENED.notify_one();
    let own = Some(std::process::id());
    if served.running_in != own {
        let started = std::thread::Builder::new().name("vipl-service".to_owned()).spawn(run);
        served.running_in = own.filter(|_| started.is_ok());
        if let Err(error) = started {
            tell(&format!("no thread for the service of NICs: {error}"));
        }
    }
}

thread_local! {
    /// This is the service's thread.
    static IS_SERVICE: Cell<bool> = const { Cell::new(false) };
    /// The round, while this thread forks.
    static FORKING: Cell<Option<MutexGuard<'static, ()>>> = const { Cell::new(None) };
}

fn run() {
    IS_SERVICE.set(true);
    loop {
        let mut served = lock(&SERVED);
        while served.nics.is_empty() {
            served = OPENED.wait(served).unwrap_or_else(PoisonError::into_inner);
        }
        drop(served);
        {
            let _round = lock(&ROUND);
            let nics: Vec<_> = {
                let mut served = lock(&SERVED);
                served.nics.retain(|nic| nic.strong_count() > 0);
                served.nics.iter().filter_map(Weak::upgrade).collect()
            };
            for nic in nics {
                nic.nic.progress();
            }
        }
        std::thread::sleep(PERIOD);
    }
}

/// Takes the round, unless this is the service's thread, or a handler of the program takes its time.
fn round() -> Option<MutexGuard<'static, ()>> {
    let end = Instant::now() + ROUND_BOUND;
    while !IS_SERVICE.get() {
        if let Some(round) = try_lock(&ROUND) {
            return Some(round);
        }
        if Instant::now() >= end {
            break;
        }
        std::thread::sleep(NAP);
    }
    None
}

/// Waits until the service has finished what it had begun before: NICs that were closed. Not for a
/// handler that takes its time, and not in one.
pub fn settle() {
    drop(round());
}

/// The child is not to find locks that the service's thread holds, which it does not have.
extern "C" fn before_fork() {
    FORKING.set(round());
}

extern "C" fn after_fork() {
    drop(FORKING.take());
}

/// What a handler would use of the program is about to go: none is notified of errors any more.
extern "C" fn at_exit() {
    let nics: Vec<_> = lock(&SERVED).nics.iter().filter_map(Weak::upgrade).collect();
    nics.iter().for_each(|nic| nic.nic.error_callback(Some(Arc::new(|_| ()))));
}
