//! What a VI's stop means to the VI at the other end (contract, section 6).

use port::desc::status;
use port::{Reliability, StopReason};

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
