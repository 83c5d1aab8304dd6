//! A VI, as far as it is the same on every network.

use std::collections::VecDeque;
use std::sync::Arc;

use port::desc::status;
use port::doorbell::Post;
use port::events::EventList;
use port::{PortEvent, Queue, Reliability, Result, StopReason, ViSettings, ViStopped};

use super::completion::Records;
use super::descriptor::{Descriptor, Fault};
use super::region::{Known, Regions};

/// Its state.
#[derive(Debug)]
pub(crate) struct ViCore {
    pub(crate) number: u16,
    pub(crate) settings: ViSettings,
    pub(crate) regions: Arc<Regions>,
    events: Arc<EventList>,
    records: [Option<Arc<Records>>; 2],
    pub(crate) known: Known,
    /// What is posted and not completed.
    pub(crate) receives: VecDeque<Post>,
    pub(crate) sends: VecDeque<Post>,
    pub(crate) is_stopped: bool,
}

impl ViCore {
    pub(crate) fn new(
        (number, settings): (u16, ViSettings),
        regions: &Arc<Regions>,
        events: &Arc<EventList>,
        records: [Option<Arc<Records>>; 2],
    ) -> Self {
        Self {
            number,
            settings,
            regions: Arc::clone(regions),
            events: Arc::clone(events),
            records,
            known: Known::default(),
            receives: VecDeque::new(),
            sends: VecDeque::new(),
            is_stopped: false,
        }
    }

    /// Gets other attributes.
    pub(crate) fn set(&mut self, settings: ViSettings, records: [Option<Arc<Records>>; 2]) {
        (self.settings, self.records, self.known) = (settings, records, Known::default());
    }

    /// Forgets what was posted.
    pub(crate) fn empty(&mut self) {
        self.receives.clear();
        self.sends.clear();
    }

    /// As after its creation, with the same attributes.
    pub(crate) fn reset(&mut self) {
        self.empty();
        self.is_stopped = false;
        self.records.iter().flatten().for_each(|records| records.forget(self.number));
    }

    pub(crate) const fn is_unreliable(&self) -> bool {
        matches!(self.settings.reliability, Reliability::Unreliable)
    }

    /// Reports that the oldest descriptor of a queue is done.
    #[inline]
    pub(crate) fn report(&self, queue: Queue) {
        if let Some(records) = &self.records[queue as usize] {
            records.push(self.number, queue);
        }
    }

    /// Completes a descriptor that cannot be carried out, if it can be reached. True if the VI goes on,
    /// which only its level and the fault decide.
    pub(crate) fn fail(&self, queue: Queue, descriptor: Option<&Descriptor>, fault: Fault) -> bool {
        if let (Some(descriptor), Fault::Bad(bits)) = (descriptor, fault) {
            descriptor.complete(&self.known, 0, None, bits | descriptor.operation_bits(queue));
            self.report(queue);
        }
        self.is_unreliable() && fault != Fault::Unreachable
    }

    /// Stops: nothing is carried out any more, and the program learns why. False if it had.
    pub(crate) fn stop(&mut self, reason: StopReason, queue: Queue, status: u32) -> bool {
        if self.is_stopped {
            return false;
        }
        self.is_stopped = true;
        let stopped = ViStopped { vi: self.number, reason, queue, status };
        self.events.push(PortEvent::ViStopped(stopped));
        true
    }
}

/// Fails in a child after fork, to which the node is absent.
///
/// # Errors
/// That.
pub(crate) const fn check_presence(is_present: bool) -> Result<()> {
    let what = "node of its parent, in a child after fork";
    if is_present { Ok(()) } else { Err(port::Error::NotSupported { what }) }
}

/// Why a VI stops when its peer's has stopped for a reason, and the status of what is not done.
pub(crate) const fn refused(level: Reliability, reason: StopReason) -> (StopReason, u32) {
    let reception = matches!(level, Reliability::Reception);
    let bits = match reason {
        StopReason::Disconnected => {
            return (StopReason::Disconnected, status::DESC_FLUSHED_ERROR);
        }
        StopReason::RdmaWriteRefused if reception => status::RDMA_PROT_ERROR,
        StopReason::RdmaReadRefused => status::RDMA_PROT_ERROR,
        StopReason::ConnectionLost => status::TRANSPORT_ERROR,
        _ if reception => status::REMOTE_DESC_ERROR,
        _ => status::TRANSPORT_ERROR,
    };
    (StopReason::ConnectionLost, bits)
}

/// The number of a reason, as peers send it.
pub(crate) const fn reason_number(reason: StopReason) -> u8 {
    match reason {
        StopReason::DescriptorError => 1,
        StopReason::DescriptorUnreachable => 2,
        StopReason::ReceiveQueueEmpty => 3,
        StopReason::Disconnected => 4,
        StopReason::ConnectionLost => 5,
        StopReason::RdmaWriteRefused => 6,
        StopReason::RdmaReadRefused => 7,
    }
}

/// The reason with a number.
pub(crate) const fn reason_of(number: u8) -> Option<StopReason> {
    Some(match number {
        1 => StopReason::DescriptorError,
        2 => StopReason::DescriptorUnreachable,
        3 => StopReason::ReceiveQueueEmpty,
        4 => StopReason::Disconnected,
        5 => StopReason::ConnectionLost,
        6 => StopReason::RdmaWriteRefused,
        7 => StopReason::RdmaReadRefused,
        _ => return None,
    })
}
