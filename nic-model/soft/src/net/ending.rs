//! How work ends: descriptors that are completed, VIs that stop (contract, sections 4 to 6).

use port::desc::status;
use port::{Queue, StopReason};

use super::context::Net;
use super::state::{Sending, State};
use crate::via::descriptor::{Descriptor, Fault};
use crate::via::vi::refused;

/// Stops the VI: nothing is carried out any more, and the program learns why.
pub(super) fn stop(net: &Net, state: &mut State, reason: StopReason, queue: Queue, status: u32) {
    if state.vi.stop(reason, queue, status) {
        net.wakes.wake();
    }
}

/// Stops the VI for a reason of its own, of which the peer learns too unless the level is Unreliable.
pub(super) fn stop_both(net: &Net, state: &mut State, reason: StopReason, queue: Queue) {
    if state.vi.is_stopped {
        return;
    }
    let flags = match reason {
        StopReason::DescriptorUnreachable => status::PROTECTION_ERROR,
        StopReason::ConnectionLost => status::TRANSPORT_ERROR,
        _ => status::DESC_FLUSHED_ERROR,
    };
    if let Some(link) = &mut state.link
        && !state.vi.is_unreliable()
    {
        link.push_stop(net.now(), reason);
    }
    stop(net, state, reason, queue, flags);
}

/// A descriptor cannot be carried out: completes it, and stops the VI as its level says. True if the
/// VI goes on.
pub(super) fn fail(
    net: &Net,
    state: &mut State,
    queue: Queue,
    descriptor: Option<&Descriptor>,
    fault: Fault,
) -> bool {
    fail_for(net, state, queue, descriptor, fault, fault.reason())
}

/// The same, for another reason than the fault's own.
pub(super) fn fail_for(
    net: &Net,
    state: &mut State,
    queue: Queue,
    descriptor: Option<&Descriptor>,
    fault: Fault,
    reason: StopReason,
) -> bool {
    if state.vi.fail(queue, descriptor, fault) {
        return true;
    }
    stop_both(net, state, reason, queue);
    false
}

/// Completes the oldest send.
#[inline]
pub(super) fn complete(state: &mut State, descriptor: &Descriptor, length: u32, operation: u32) {
    descriptor.complete(&state.vi.known, length, None, operation);
    state.vi.sends.pop_front();
    state.vi.report(Queue::Send);
}

/// The VI at the other end stopped, or its node no longer exists.
pub(super) fn peer_stopped(net: &Net, state: &mut State, reason: StopReason) {
    let (reason, mut bits) = refused(state.vi.settings.reliability, reason);
    if let Some(link) = &mut state.link {
        if matches!(link.sending, Sending::Reading { placed: 1.., .. }) {
            bits |= status::PARTIAL_ERROR;
        }
        link.is_void();
        link.is_over = true;
    }
    stop(net, state, reason, Queue::Send, bits);
}
