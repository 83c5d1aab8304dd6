//! NICs, VIs and completion queues, and what each holds. They hold each other, so all are defined
//! here; what they do is in modules of their own.

use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, AtomicU64, AtomicUsize};
use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, Weak};
use std::thread::ThreadId;

use port::lock::Lock;
use port::work_queue::WorkQueue;
use port::{Completed, CompletionQueue, DmaMemory, NetAddress, Queue, ViPort, ViStopped};

use crate::attributes::{MemAttributes, RemoteViAttributes, ViAttributes};
use crate::descriptor::{Completion, Descriptor};
use crate::error::{ErrorCode, ResourceCode, Result};
use crate::queue_pair::QueuePairSlot;

/// An open NIC (`VIP_NIC_HANDLE`). Clones are the same handle.
#[derive(Clone, Debug)]
#[doc(alias = "VIP_NIC_HANDLE")]
pub struct Nic {
    pub(crate) inner: Arc<NicInner>,
}

pub(crate) struct NicInner {
    /// Tags and how many VIs and registrations use each.
    pub(crate) tags: Mutex<BTreeMap<u16, u32>>,
    pub(crate) memory: Mutex<BTreeMap<u32, (DmaMemory, MemAttributes)>>,
    pub(crate) vis: Mutex<BTreeMap<u16, Weak<ViInner>>>,
    /// VIs that may have a connection with a peer under way.
    pub(crate) peering: Mutex<Vec<Weak<ViInner>>>,
    /// How many there are, readable without the lock.
    pub(crate) peering_count: AtomicUsize,
    /// The name service, if it was started.
    pub(crate) names: Mutex<Option<Names>>,
    pub(crate) notifier: Arc<Notifier>,
    pub(crate) waiting: Waiting,
    /// The completion queue of work queues that have none of the program's.
    pub(crate) own_queue: Mutex<Option<Arc<dyn CompletionQueue>>>,
    /// Held while it is made; may be held across `relax`.
    pub(crate) making_own_queue: Mutex<()>,
    pub(crate) handlers: Handlers,
    pub(crate) lost: AtomicBool,
    pub(crate) closed: AtomicBool,
    /// Behind everything that has its bus.
    pub(crate) port: Arc<dyn ViPort>,
}

/// A virtual interface (`VIP_VI_HANDLE`). Clones are the same VI; the last one destroys it.
#[derive(Clone)]
#[doc(alias = "VIP_VI_HANDLE")]
pub struct Vi {
    pub(crate) inner: Arc<ViInner>,
}

/// One work queue with its lock and its completion queue.
#[derive(Debug)]
pub(crate) struct Side {
    pub(crate) queue: &'static Lock<WorkQueue>,
    pub(crate) cq: Option<Cq>,
    /// Held from when software has completed descriptors until its completion queue knows.
    pub(crate) reporting: Mutex<()>,
    /// Number of the completion queue that the NIC reports to: the program's or the library's.
    pub(crate) event_queue: Option<u16>,
}

/// Completions of a VI's queues that were reported to its completion queues.
pub(crate) type Reported = Arc<[AtomicU64; 2]>;

pub(crate) struct ViInner {
    pub(crate) number: u16,
    pub(crate) attributes: Mutex<ViAttributes>,
    pub(crate) extensions: Mutex<port::Extensions>,
    /// The protection tag of the attributes, for posting.
    pub(crate) tag: AtomicU16,
    /// A [`ViState`], or [`GONE`].
    pub(crate) state: AtomicU8,
    pub(crate) sides: [Side; 2],
    /// Where the work queues of both sides are.
    pub(crate) slot: QueuePairSlot,
    pub(crate) reported: Reported,
    /// Held while the connection is taken down; may be held across `relax`.
    pub(crate) teardown: Mutex<()>,
    /// The NIC stopped the VI before the connection was known here.
    pub(crate) early_stop: Mutex<Option<ViStopped>>,
    pub(crate) user_data: AtomicU64,
    /// Whoever sets a connection up is to give up.
    pub(crate) abandoned: AtomicBool,
    /// A connection with a peer that is being set up; may be held across `relax`.
    pub(crate) peering: Mutex<Option<Peering>>,
    /// Behind everything that has its bus, as in the port.
    pub(crate) nic: Nic,
}

/// A completion queue (`VIP_CQ_HANDLE`). Clones are the same queue; the last one destroys it.
#[derive(Clone, Debug)]
#[doc(alias = "VIP_CQ_HANDLE")]
pub struct Cq {
    pub(crate) inner: Arc<CqInner>,
}

#[derive(Debug)]
pub(crate) struct CqInner {
    pub(crate) number: u16,
    pub(crate) state: Mutex<CqState>,
    /// Held while the ring is changed; may be held across `relax`.
    pub(crate) changing: Mutex<()>,
    pub(crate) destroyed: AtomicBool,
    /// Behind everything that has its bus, as in the port.
    pub(crate) nic: Nic,
}

#[derive(Debug)]
pub(crate) struct CqState {
    pub(crate) ring: Arc<dyn CompletionQueue>,
    /// Entries are counted from the statuses, not from the records.
    pub(crate) recount: bool,
    /// The record whose completions are being handed out.
    pub(crate) current: Option<Completed>,
    /// Records that come before those of the ring.
    pub(crate) pending: VecDeque<Completed>,
    pub(crate) vis: BTreeMap<u16, (Weak<ViInner>, Reported)>,
    /// VIs that were looked at; they are not dropped under the lock.
    pub(crate) looked_at: Vec<Vi>,
}

/// An entry of a completion queue: take the descriptor with [`Vi::done`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CqEntry {
    /// The VI.
    pub vi: Vi,
    /// Which of its queues.
    pub queue: Queue,
}

/// A connection with a peer.
#[derive(Debug)]
pub(crate) enum Peering {
    /// Under way, as this request of the port.
    Pending { request: u32, local: NetAddress, remote: NetAddress, ends_at: u64 },
    /// Over; the program has not asked since.
    Ended(Result<RemoteViAttributes>),
}

/// How the waiting functions of a NIC wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// They poll, always: least latency, and a processor each. Completions cause no events that
    /// nobody asked for.
    Poll,
    /// They poll for so long, and then sleep until the NIC wakes them.
    Sleep {
        /// How long they poll; zero sleeps at once.
        after: Duration,
    },
}

/// Names and host addresses, in the order of the file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Names(pub(crate) Vec<(String, Vec<u8>)>);

/// The handler of a NIC.
#[derive(Default)]
pub(crate) struct Handlers {
    pub(crate) handler: Mutex<Option<ErrorHandler>>,
    /// Who is in a handler, and the address of the VI that it is about, as a number.
    pub(crate) running: Mutex<Vec<(ThreadId, Option<usize>)>>,
}

/// What a request waits for, and whom it calls.
pub(crate) enum Request {
    Work { vi: Weak<ViInner>, queue: Queue, handler: Box<dyn FnOnce(Completion) + Send> },
    Entry { cq: Weak<CqInner>, handler: Box<dyn FnOnce(CqEntry) + Send> },
}

#[derive(Default)]
pub(crate) struct NotifierState {
    pub(crate) requests: Vec<Request>,
    /// The thread is serving requests, or about to.
    pub(crate) serving: bool,
    /// The thread, and the process that it is in: a child after fork does not have it.
    pub(crate) thread: Option<(u32, ThreadId)>,
    /// The source whose handler runs, by its address.
    pub(crate) calling: Option<usize>,
    pub(crate) stopped: bool,
}

/// The requests of a NIC and their thread.
#[derive(Default)]
pub(crate) struct Notifier {
    pub(crate) state: Mutex<NotifierState>,
}

/// `VIP_ERROR_DESCRIPTOR`: an asynchronous error.
#[derive(Clone, Debug)]
pub struct ErrorDescriptor {
    /// The VI that it is about.
    pub vi: Option<Vi>,
    /// The descriptor that it is about. By now another thread may have taken it, and given its memory
    /// back.
    pub descriptor: Option<Descriptor>,
    /// The operation that the descriptor's status names, as [`crate::Status::operation`]; 0 without
    /// one.
    pub operation: u32,
    /// Kind of object.
    pub resource: ResourceCode,
    /// What happened.
    pub code: ErrorCode,
}

impl fmt::Display for ErrorDescriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "asynchronous error {:?} on {:?}", self.code, self.resource)?;
        if let Some(vi) = &self.vi {
            write!(f, " {}", vi.number())?;
        }
        Ok(())
    }
}

/// An error handler. It may not call functions that wait.
pub type ErrorHandler = Arc<dyn Fn(&ErrorDescriptor) + Send + Sync>;
