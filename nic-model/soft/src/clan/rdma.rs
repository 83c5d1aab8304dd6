//! RDMA: the region that a descriptor names is asked of its owner once, and then written and read by
//! the cookie in the answer.
//!
//! Both are messages beside the data path, so that an owner whose program looks at other things still
//! answers. When the owner changes a region, its cookies are void; who finds that asks again.

use port::clan::{AccessRights, ClanPort, Cookie, DmaError, Message};
use port::desc::status;
use port::{Handle, Queue, Reliability, StopReason};

use super::ending::{self, Sent};
use super::link::Link;
use super::net::Net;
use super::state::State;
use super::targets::Target;
use super::wire::Transfer;
use crate::via::descriptor::{Descriptor, Fault, Operation, Pieces};

/// First bytes of the messages.
pub(super) const QUERY: u8 = 0xc2;
pub(super) const ANSWER: u8 = 0xc3;
/// When a question is asked again.
const AGAIN_NS: u64 = 100_000_000;
/// Regions of the peer that are remembered.
const TARGETS: usize = 64;

fn message(kind: u8, link: &Link, handle: u32) -> Message {
    let mut message: Message = [0; 48];
    message[0] = kind;
    message[2..4].copy_from_slice(&link.remote.vi.to_le_bytes());
    message[4..6].copy_from_slice(&link.remote.connection.to_le_bytes());
    message[8..12].copy_from_slice(&handle.to_le_bytes());
    message
}

fn u64_at(message: &Message, at: usize) -> u64 {
    u64::from_le_bytes(core::array::from_fn(|i| message[at + i]))
}

fn handle_of(message: &Message) -> u32 {
    u32::from_le_bytes(core::array::from_fn(|i| message[8 + i]))
}

/// The peer asks for a region.
pub(super) fn asked(net: &Net, state: &mut State, question: &Message) {
    let handle = handle_of(question);
    let (tag, allows) = (state.vi.settings.tag, state.vi.settings.rdma);
    let region = state.vi.regions.get(Handle(handle)).filter(|region| region.tag == tag);
    let Some(link) = &mut state.link else { return };
    let cookie = region.as_ref().and_then(|region| {
        let rights = AccessRights {
            read: region.rdma.read && allows.read,
            write: region.rdma.write && allows.write,
        };
        if !rights.read && !rights.write {
            return None;
        }
        link.open_rdma(&*net.port, Handle(handle), &region.memory, rights).ok()
    });
    let mut answer = message(ANSWER, link, handle);
    let address = region.map_or(0, |region| region.memory.address());
    let cookie = cookie.map_or(u64::MAX, Cookie::to_bits);
    answer[16..24].copy_from_slice(&address.to_le_bytes());
    answer[24..32].copy_from_slice(&cookie.to_le_bytes());
    // Lost, it is asked for again.
    let _ = net.port.send_message(&link.peer, &answer);
}

/// The peer's answer.
pub(super) fn answered(net: &Net, state: &mut State, answer: &Message) {
    let handle = handle_of(answer);
    let Some(link) = &mut state.link else { return };
    if link.targets.asked.is_none_or(|(asked, _)| asked != handle) {
        return;
    }
    link.targets.asked = None;
    let cookie = Cookie::from_bits(u64_at(answer, 24));
    let target = cookie.and_then(|cookie| {
        let remote = net.port.attach(&link.peer, cookie).ok()?;
        Some(Target { address: u64_at(answer, 16), rights: cookie.rights, remote })
    });
    let known = &mut link.targets.known;
    if known.len() >= TARGETS {
        known.remove(0);
    }
    known.push((handle, target));
}

/// What became of an access.
enum Access {
    Done,
    /// The answer is not here yet.
    Later,
    Refused,
    Lost,
}

/// Carries an RDMA out.
pub(super) fn send(
    net: &Net,
    state: &mut State,
    descriptor: &Descriptor,
    operation: Operation,
    pieces: &Pieces,
) -> Sent {
    let (reason, address, handle) = match operation {
        Operation::Write(address, handle) => (StopReason::RdmaWriteRefused, address, handle),
        Operation::Read(address, handle) => (StopReason::RdmaReadRefused, address, handle),
        Operation::Message => return Sent::Done,
    };
    let is_write = matches!(operation, Operation::Write(..));
    let Some(link) = &mut state.link else { return Sent::Stopped };
    let allowed = if is_write { link.remote.rdma_write } else { link.remote.rdma_read };
    if !allowed {
        let fault = Fault::Bad(status::RDMA_PROT_ERROR);
        return ending::fail_for(net, state, Queue::Send, Some(descriptor), fault, reason);
    }
    let immediate = descriptor.has_immediate().then_some(descriptor.immediate);
    let waits = state.vi.settings.extensions.defer_send && link.room().is_none();
    if immediate.is_some() && (link.messages.room() == 0 || waits) {
        return Sent::Later;
    }
    let access = if pieces.total == 0 {
        Access::Done
    } else {
        access(net, state, (address, handle), is_write, pieces)
    };
    let length = u32::try_from(pieces.total).unwrap_or(u32::MAX);
    match access {
        Access::Later => Sent::Later,
        Access::Refused => refused(net, state, descriptor, operation, length),
        Access::Lost => {
            let lost = status::TRANSPORT_ERROR;
            ending::stop(net, state, StopReason::ConnectionLost, Queue::Send, lost);
            Sent::Stopped
        }
        Access::Done => match immediate {
            Some(immediate) => notify(net, state, descriptor, length, immediate),
            None => ending::complete(state, descriptor, length, operation.status()),
        },
    }
}

/// The data is written: the peer's oldest receive takes the immediate data.
fn notify(
    net: &Net,
    state: &mut State,
    descriptor: &Descriptor,
    length: u32,
    immediate: u32,
) -> Sent {
    let Some(room) = state.link.as_ref().and_then(Link::room) else {
        return ending::no_receive(net, state, descriptor, length, status::OP_RDMA_WRITE);
    };
    let Some(link) = &mut state.link else { return Sent::Stopped };
    if link.send(Transfer::Written { length, immediate }).is_err() {
        let lost = status::TRANSPORT_ERROR;
        ending::stop(net, state, StopReason::ConnectionLost, Queue::Send, lost);
        return Sent::Stopped;
    }
    link.take_room(&*net.port, &room);
    ending::complete(state, descriptor, length, status::OP_RDMA_WRITE)
}

/// The owner does not allow the access: both VIs stop, unless the level is Unreliable.
fn refused(
    net: &Net,
    state: &mut State,
    descriptor: &Descriptor,
    operation: Operation,
    length: u32,
) -> Sent {
    let level = state.vi.settings.reliability;
    let is_write = matches!(operation, Operation::Write(..));
    if matches!(level, Reliability::Unreliable) {
        return ending::complete(state, descriptor, length, operation.status());
    }
    if let Some(link) = &mut state.link {
        // A peer that does not take it finds the connection closed.
        let _ = link.send(Transfer::RdmaRefused { is_write });
        net.send_stop(link, StopReason::ConnectionLost);
    }
    let bits = if is_write && !matches!(level, Reliability::Reception) {
        ending::complete(state, descriptor, length, operation.status());
        status::TRANSPORT_ERROR
    } else {
        status::RDMA_PROT_ERROR
    };
    ending::stop(net, state, StopReason::ConnectionLost, Queue::Send, bits);
    Sent::Stopped
}

fn access(
    net: &Net,
    state: &mut State,
    (address, handle): (u64, u32),
    is_write: bool,
    pieces: &Pieces,
) -> Access {
    let Some(link) = &mut state.link else { return Access::Lost };
    let Some(place) = link.targets.known.iter().position(|(known, _)| *known == handle) else {
        return ask(&*net.port, link, handle);
    };
    let Some(target) = &mut link.targets.known[place].1 else {
        // An answer holds for one question: the owner may have changed its mind since.
        link.targets.known.remove(place);
        return Access::Refused;
    };
    let right = if is_write { target.rights.write } else { target.rights.read };
    let Some(mut at) = address.checked_sub(target.address).filter(|_| right) else {
        return Access::Refused;
    };
    let outside = at > target.remote.length() || pieces.total > target.remote.length() - at;
    if outside {
        return Access::Refused;
    }
    for piece in pieces.as_slice() {
        let memory = state.vi.known.at(piece.place).memory.slice(piece.offset, piece.length);
        let Ok(memory) = memory else { return Access::Refused };
        let done = if is_write {
            target.remote.write(at, &memory)
        } else {
            target.remote.read(at, &memory, u64::MAX)
        };
        match done {
            Ok(()) => at += piece.length as u64,
            Err(DmaError::Lost) => return Access::Lost,
            Err(DmaError::Refused) => {
                // The owner has changed the region: it says how.
                link.targets.known.remove(place);
                return ask(&*net.port, link, handle);
            }
        }
    }
    Access::Done
}

/// Asks the owner for a region.
fn ask(port: &dyn ClanPort, link: &mut Link, handle: u32) -> Access {
    let now = port.now_ns();
    let waits = link
        .targets
        .asked
        .is_some_and(|(asked, when)| asked == handle && now < when.saturating_add(AGAIN_NS));
    if !waits {
        let question = message(QUERY, link, handle);
        if port.send_message(&link.peer, &question).is_ok() {
            link.targets.asked = Some((handle, now));
        }
    }
    Access::Later
}
