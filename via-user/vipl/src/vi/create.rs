//! VIs are created, and get other attributes.

use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use port::Queue;
use port::desc::control;
use port::sync::lock;
use port::work_queue::{WorkQueue, WorkQueueConfig};
use port::{Extensions, PortAttributes, RdmaAccess, ViSettings};

use crate::attributes::{Reliability, ViAttributes, ViState};
use crate::error::{Result, VipReturn};
use crate::nic::DESCRIPTORS_PER_QUEUE;
use crate::objects::{Cq, Nic, Reported, Side, Vi, ViInner};
use crate::queue_pair::QueuePairSlot;

impl Nic {
    /// Whether a VI can have these attributes on this NIC.
    fn check_vi(&self, attributes: &ViAttributes) -> Result<()> {
        let port = self.port().attributes();
        if attributes.max_transfer_size == 0 || attributes.max_transfer_size > port.max_transfer {
            return Err(VipReturn::InvalidMtu.into());
        }
        let unreliable = attributes.reliability == Reliability::Unreliable;
        if attributes.enable_rdma_read && (unreliable || !port.rdma_read) {
            return Err(VipReturn::InvalidRdmaRead.into());
        }
        if attributes.enable_rdma_write && !port.rdma_write {
            return Err(VipReturn::ErrorNotSupported.into());
        }
        Ok(())
    }

    /// Creates a VI, Idle. A completion queue is chosen for each work queue, or none.
    ///
    /// # Errors
    /// [`VipReturn::InvalidMtu`], [`VipReturn::InvalidPtag`], [`VipReturn::InvalidRdmaRead`],
    /// [`VipReturn::ErrorResource`]; [`VipReturn::InvalidParameter`] for a completion queue of
    /// another NIC or one that is destroyed; [`VipReturn::ErrorNotSupported`] to allow RDMA writes
    /// that the NIC does not have.
    #[doc(alias = "VipCreateVi")]
    pub fn create_vi(
        &self,
        attributes: ViAttributes,
        send_cq: Option<&Cq>,
        recv_cq: Option<&Cq>,
    ) -> Result<Vi> {
        self.check_open()?;
        for cq in [send_cq, recv_cq].into_iter().flatten() {
            cq.check(self)?;
        }
        self.check_vi(&attributes)?;
        self.use_tag(attributes.ptag)?;
        let queues = [send_cq, recv_cq].map(|cq| cq.map(Cq::number).or_else(|| self.own_queue()));
        let created = self.port().create_vi(settings(&attributes, Extensions::default(), queues));
        let number = created.inspect_err(|_| self.release_tag(attributes.ptag))?;
        let port = self.port().attributes();
        let work = |queue| {
            WorkQueue::new(WorkQueueConfig {
                queue,
                limit: DESCRIPTORS_PER_QUEUE,
                operations: operations(port),
                push: port.push,
                doorbell: self.port().doorbell(number, queue),
            })
        };
        let Some(slot) = QueuePairSlot::take([Queue::Send, Queue::Recv].map(work)) else {
            self.release_tag(attributes.ptag);
            self.port().destroy_vi(number)?;
            return Err(VipReturn::ErrorResource.into());
        };
        let side = |queue, cq: Option<&Cq>| Side {
            queue: slot.queue(queue),
            cq: cq.cloned(),
            reporting: Mutex::new(()),
            event_queue: queues[queue as usize],
        };
        let inner = Arc::new(ViInner {
            nic: self.clone(),
            number,
            attributes: Mutex::new(attributes),
            extensions: Mutex::default(),
            tag: AtomicU16::new(attributes.ptag.0),
            state: AtomicU8::new(ViState::Idle as u8),
            sides: [side(Queue::Send, send_cq), side(Queue::Recv, recv_cq)],
            slot,
            reported: Reported::default(),
            teardown: Mutex::new(()),
            early_stop: Mutex::new(None),
            user_data: AtomicU64::new(0),
            abandoned: AtomicBool::new(false),
            peering: Mutex::new(None),
        });
        lock(&self.inner().vis).insert(number, Arc::downgrade(&inner));
        for cq in [send_cq, recv_cq].into_iter().flatten() {
            cq.attach(number, &inner, &inner.reported);
        }
        Ok(Vi { inner })
    }
}

/// The attributes of a VI as the port takes them.
const fn settings(
    attributes: &ViAttributes,
    extensions: Extensions,
    queues: [Option<u16>; 2],
) -> ViSettings {
    ViSettings {
        reliability: attributes.reliability,
        tag: attributes.ptag.0,
        max_transfer: attributes.max_transfer_size,
        send_queue: queues[Queue::Send as usize],
        recv_queue: queues[Queue::Recv as usize],
        rdma: RdmaAccess { write: attributes.enable_rdma_write, read: attributes.enable_rdma_read },
        extensions,
    }
}

impl Vi {
    /// Changes the attributes of an Idle VI. It stays the same VI, with the same number and
    /// completion queues, and what is posted to receive stays posted: the new attributes hold for
    /// it.
    ///
    /// # Errors
    /// [`VipReturn::InvalidState`] unless Idle; the codes of [`Nic::create_vi`] for the attributes:
    /// nothing has changed then. [`VipReturn::ErrorResource`] if the NIC failed; the VI is then of
    /// no use but to be destroyed.
    #[doc(alias = "VipSetViAttributes")]
    pub fn set_attributes(&self, attributes: ViAttributes) -> Result<()> {
        let nic = self.nic();
        self.check(nic)?;
        nic.check_vi(&attributes)?;
        nic.use_tag(attributes.ptag)?;
        let before = self.exchange(attributes, self.extensions());
        // What may be read depends on the tag.
        for queue in [Queue::Send, Queue::Recv] {
            self.side(queue).lock().forget_all();
        }
        nic.release_tag(before.as_ref().map_or(attributes.ptag, |before| before.ptag));
        before.map(drop)
    }

    /// What the VI does beyond the specification.
    #[doc(alias = "VipQueryViExtensions")]
    #[must_use]
    pub fn extensions(&self) -> Extensions {
        *lock(&self.inner.extensions)
    }

    /// Has an Idle VI do more than the specification says, from its next connection on; what is posted
    /// to receive stays posted. Extension of Viaduct ("VIA over the CLAN Network", 3.5 and 3.7).
    ///
    /// # Errors
    /// [`VipReturn::ErrorNotSupported`] if the NIC cannot; [`VipReturn::InvalidState`] unless Idle;
    /// [`VipReturn::ErrorResource`] as for [`Vi::set_attributes`].
    #[doc(alias = "VipSetViExtensions")]
    pub fn set_extensions(&self, extensions: Extensions) -> Result<()> {
        let nic = self.nic();
        self.check(nic)?;
        if !nic.port().attributes().extensions && extensions != Extensions::default() {
            return Err(VipReturn::ErrorNotSupported.into());
        }
        self.exchange(self.attributes(), extensions).map(drop)
    }

    /// Gives the VI other attributes and extensions, and what attributes it had.
    fn exchange(&self, attributes: ViAttributes, extensions: Extensions) -> Result<ViAttributes> {
        let port = self.nic().port();
        // Nobody connects it meanwhile.
        self.change(ViState::Idle, ViState::ConnectPending)?;
        let queues = [Queue::Send, Queue::Recv].map(|queue| self.side(queue).event_queue);
        let settings = settings(&attributes, extensions, queues);
        let set = self.anew(|| Ok(port.set_vi(self.number(), settings)?)).map(|()| {
            self.inner.tag.store(attributes.ptag.0, Ordering::Relaxed);
            *lock(&self.inner.extensions) = extensions;
            core::mem::replace(&mut *lock(&self.inner.attributes), attributes)
        });
        self.connect_failed(false)?;
        set
    }
}

/// Operations of sends that a port has: a bit for each value of the control bits. What none has is
/// for the NIC to refuse.
const fn operations(port: &PortAttributes) -> u8 {
    let lacks = (!port.rdma_write as u8) << control::OP_RDMA_WRITE
        | (!port.rdma_read as u8) << control::OP_RDMA_READ;
    !lacks
}
