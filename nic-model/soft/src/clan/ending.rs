//! How work ends: descriptors that are completed, VIs that stop (contract, sections 4 to 6).

use port::desc::status;
use port::{Queue, Reliability, StopReason};

use super::net::Net;
use super::state::State;
use super::wire::Transfer;
use crate::via::descriptor::{Descriptor, Fault};
use crate::via::vi::refused;

/// What became of a send.
pub(super) enum Sent {
    /// It is done, in whatever way.
    Done,
    /// It is tried again later.
    Later,
    /// The VI stopped, or the peer no longer exists.
    Stopped,
}

/// Stops the VI: nothing is carried out any more, and the program learns why.
pub(super) fn stop(net: &Net, state: &mut State, reason: StopReason, queue: Queue, status: u32) {
    if state.vi.stop(reason, queue, status) {
        net.port.wake();
    }
}

/// Stops the VI for a reason of its own, of which the peer learns too.
pub(super) fn stop_both(net: &Net, state: &mut State, reason: StopReason, queue: Queue) {
    let flags = match reason {
        StopReason::DescriptorUnreachable => status::PROTECTION_ERROR,
        _ => status::DESC_FLUSHED_ERROR,
    };
    notify(net, state, reason);
    stop(net, state, reason, queue, flags);
}

/// Notifies the peer that this VI stopped.
fn notify(net: &Net, state: &mut State, reason: StopReason) {
    if let Some(link) = &mut state.link {
        // A peer that cannot be reached finds out by itself; one whose queue is full by the message.
        let _ = link.send(Transfer::Stopped(reason));
        net.send_stop(link, reason);
    }
}

/// A descriptor cannot be carried out: completes it, and stops the VI as its level says.
pub(super) fn fail(
    net: &Net,
    state: &mut State,
    queue: Queue,
    descriptor: Option<&Descriptor>,
    fault: Fault,
) -> Sent {
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
) -> Sent {
    if state.vi.fail(queue, descriptor, fault) {
        return Sent::Done;
    }
    stop_both(net, state, reason, queue);
    Sent::Stopped
}

/// The peer has no receive descriptor: no data is moved (paper 3.3.4).
pub(super) fn no_receive(
    net: &Net,
    state: &mut State,
    descriptor: &Descriptor,
    length: u32,
    operation: u32,
) -> Sent {
    let level = state.vi.settings.reliability;
    if matches!(level, Reliability::Unreliable) {
        return complete(state, descriptor, length, operation);
    }
    let Some(link) = &mut state.link else { return Sent::Stopped };
    if !link.send(Transfer::NoReceive).unwrap_or(true) {
        return Sent::Later;
    }
    net.send_stop(link, StopReason::ReceiveQueueEmpty);
    let bits = match level {
        Reliability::Reception => status::REMOTE_DESC_ERROR,
        _ => {
            complete(state, descriptor, length, operation);
            status::TRANSPORT_ERROR
        }
    };
    stop(net, state, StopReason::ConnectionLost, Queue::Send, bits);
    Sent::Stopped
}

/// Completes a send.
#[inline]
pub(super) fn complete(
    state: &mut State,
    descriptor: &Descriptor,
    length: u32,
    operation: u32,
) -> Sent {
    descriptor.complete(&state.vi.known, length, None, operation);
    state.vi.report(Queue::Send);
    Sent::Done
}

/// The VI at the other end stopped, or its node no longer exists.
pub(super) fn peer_stopped(net: &Net, state: &mut State, reason: StopReason) {
    let (reason, bits) = refused(state.vi.settings.reliability, reason);
    stop(net, state, reason, Queue::Send, bits);
}
