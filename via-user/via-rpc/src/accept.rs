//! The threads of a server that take clients: one waits for requests, which would be refused if nobody
//! waited; another one makes connections of them, which takes long if a client is dead.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use vipl::{ConnectionRequest, NetAddress, Nic, VipReturn, Waiting};

use crate::error::{Error, Result};

/// Requests that wait to be accepted; more are rejected.
const BACKLOG: usize = 128;
/// How long a thread waits before it looks whether it is still wanted.
pub(crate) const LOOK: Duration = Duration::from_millis(100);

/// What takes clients for a server.
pub(crate) trait Accepts: Send + Sync + 'static {
    /// Makes a connection of a request, or drops it, which rejects it.
    fn accept(&self, request: ConnectionRequest);
    /// Is called from time to time.
    fn tend(&self);
    /// No client will come any more.
    fn fail(&self, error: Error);
}

/// The threads. They end with this.
#[derive(Debug)]
pub(crate) struct Acceptor {
    stopped: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Acceptor {
    pub(crate) fn start(nic: &Nic, local: NetAddress, server: &Arc<impl Accepts>) -> Result<Self> {
        let stopped = Arc::new(AtomicBool::new(false));
        let mut acceptor = Self { stopped: Arc::clone(&stopped), threads: Vec::new() };
        let (sender, requests) = sync_channel(BACKLOG);
        let (own, nic) = (Arc::clone(server), nic.clone());
        acceptor.spawn(move || listen(&nic, &local, &*own, &sender, &stopped))?;
        let own = Arc::clone(server);
        acceptor.spawn(move || connect(&*own, &requests))?;
        Ok(acceptor)
    }

    fn spawn(&mut self, run: impl FnOnce() + Send + 'static) -> Result<()> {
        let thread = std::thread::Builder::new().name("via-rpc server".to_owned());
        self.threads.push(thread.spawn(run).map_err(|error| Error::NoThread(Arc::new(error)))?);
        Ok(())
    }
}

impl Drop for Acceptor {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Release);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn listen(
    nic: &Nic,
    local: &NetAddress,
    server: &impl Accepts,
    requests: &SyncSender<ConnectionRequest>,
    stopped: &AtomicBool,
) {
    let mut listener = match nic.listen(local, BACKLOG) {
        Ok(listener) => listener,
        Err(error) => return server.fail(error.into()),
    };
    while !stopped.load(Ordering::Acquire) {
        // It sleeps also where the program's waits poll: that processor is theirs.
        match listener.wait_as(LOOK, Waiting::default()) {
            // Dropped if there are too many.
            Ok(request) => drop(requests.try_send(request)),
            Err(error) if error.code == VipReturn::Timeout => {}
            Err(error) => return server.fail(error.into()),
        }
        server.tend();
    }
}

fn connect(server: &impl Accepts, requests: &Receiver<ConnectionRequest>) {
    while let Ok(request) = requests.recv() {
        server.accept(request);
    }
}
