//! The thread that lets NICs make progress while their programs do something else.
//!
//! Requests of other nodes are to be answered at once even if nobody waits for any (no match), and
//! a program that only computes is to be told that its connection broke. What a waiting program
//! does itself is not left to this thread, so it looks seldom.

use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::Duration;

use host_driver::sync::lock;

use crate::guard::tell;
use crate::object::NicObject;

/// Time between two looks.
const PERIOD: Duration = Duration::from_micros(500);

#[derive(Debug, Default)]
struct Served {
    nics: Vec<Weak<NicObject>>,
    /// The process whose thread runs: a child has none of its parent's.
    running_in: Option<u32>,
}

static SERVED: Mutex<Served> = Mutex::new(Served { nics: Vec::new(), running_in: None });
static OPENED: Condvar = Condvar::new();

/// Serves a NIC from now on, until it is gone.
pub fn serve(nic: &Arc<NicObject>) {
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

fn run() {
    loop {
        let mut served = lock(&SERVED);
        while served.nics.is_empty() {
            served = OPENED.wait(served).unwrap_or_else(PoisonError::into_inner);
        }
        served.nics.retain(|nic| nic.strong_count() > 0);
        let nics: Vec<_> = served.nics.iter().filter_map(Weak::upgrade).collect();
        drop(served);
        for nic in nics {
            nic.nic.progress();
        }
        std::thread::sleep(PERIOD);
    }
}
