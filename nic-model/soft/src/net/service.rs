//! The thread of a node that answers its peers while the program does something else.
//!
//! It does nothing as long as threads of the program look or sleep on the socket themselves: it only
//! looks every few milliseconds whether they still do. Once they do not, or doze, it sleeps on the socket.

use core::sync::atomic::Ordering;
use std::sync::Arc;
use std::thread::JoinHandle;

use port::process;

use super::error::{Error, Result};
use super::node::{BURST, Node};

/// How long nobody may look before the thread takes over, and so how late peers are answered then.
const PERIOD_NS: u64 = 2_000_000;
/// How long it sleeps on the socket in one piece at most.
const SLEEP_MAX_NS: u64 = 1_000_000_000;

/// Starts the thread of a node.
///
/// # Errors
/// There is none to be had.
pub(super) fn start(node: &Arc<Node>) -> Result<JoinHandle<()>> {
    let node = Arc::clone(node);
    let thread = std::thread::Builder::new().name("via udp".to_owned());
    let started = process::without_signals(|| thread.spawn(move || run(&node)));
    started.map_err(Error::system("a thread"))
}

fn run(node: &Node) {
    let mut looks = node.looks.load(Ordering::Relaxed);
    while !node.ended.load(Ordering::Acquire) {
        let is_used = {
            let before = core::mem::replace(&mut looks, node.looks.load(Ordering::Relaxed));
            before != looks
        };
        if node.net.wakes.has_sleepers() {
            node.service_waits.store(true, Ordering::SeqCst);
            if node.net.wakes.has_sleepers() {
                node.service.sleep(None, SLEEP_MAX_NS);
            }
            node.service_waits.store(false, Ordering::SeqCst);
        } else if is_used && !node.net.wakes.has_dozers() {
            node.service.sleep(None, PERIOD_NS);
        } else {
            let left = node.deadline().saturating_sub(node.net.now());
            node.service.sleep(Some(&node.net.socket), left.min(SLEEP_MAX_NS));
            // Not if a thread of the program has begun to look, and stays awake.
            if looks == node.looks.load(Ordering::Relaxed) || node.net.wakes.has_dozers() {
                node.progress(BURST);
            }
        }
    }
}
