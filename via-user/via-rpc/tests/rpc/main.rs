//! Servers and clients on devices that need no set-up.

mod calls;
mod hostile;
mod killed;

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use via_rpc::{Client, Device, Error, Server, Settings};
use vipl::Nic;

/// Bound of what must happen.
const SOON: Duration = Duration::from_secs(20);
/// Bound of what must not happen.
const BRIEFLY: Duration = Duration::from_millis(20);

fn open(url: &str) -> Device {
    Device::new(Nic::open(device::open(url).unwrap())).unwrap()
}

/// Two devices that reach each other.
fn devices(kind: &str) -> [Device; 2] {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let pair = NEXT.fetch_add(1, Ordering::Relaxed);
    let process = std::process::id();
    [0, 1].map(|node| match kind {
        "shm" => open(&format!("shm:?node=rpc-{process}-{pair}-{node}")),
        _ => open(&format!("sim:model?node={node}")),
    })
}

/// Connects while `server` receives, which negotiates.
fn connect(
    device: &Device,
    host: &[u8],
    endpoint: &str,
    settings: &Settings,
) -> Result<Client, Error> {
    Client::connect(device, host, endpoint, settings, SOON)
}

/// Serves until the guard is dropped: answers each request with its bytes reversed.
struct Reverser {
    stop: std::sync::Arc<std::sync::atomic::AtomicBool>,
    thread: Option<thread::JoinHandle<Server>>,
}

impl Reverser {
    fn start(server: Server) -> Self {
        let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let stopped = std::sync::Arc::clone(&stop);
        let run = move || {
            let mut body = Vec::new();
            while !stopped.load(Ordering::Acquire) {
                match server.receive_any(&mut body, BRIEFLY) {
                    Ok(request) => {
                        body.reverse();
                        // A client that died meanwhile is no trouble of the server's.
                        let _ = request.reply(&body);
                    }
                    Err(Error::TimedOut) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            server
        };
        Self { stop, thread: Some(thread::spawn(run)) }
    }

    fn stop(mut self) -> Server {
        self.stop.store(true, Ordering::Release);
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Reverser {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
            && !thread::panicking()
        {
            panic!("the server failed");
        }
    }
}

fn bytes(seed: usize, count: usize) -> Vec<u8> {
    (seed..seed + count).map(|at| (at * 7 + at / 251).to_le_bytes()[0]).collect()
}

fn reversed(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.reverse();
    bytes
}
