//! The part of a NIC that runs when somebody polls: error events, messages, connections, peers.

use core::sync::atomic::Ordering;

use nic_regs::admin::PeerState;
use nic_regs::doorbell::Queue;
use nic_regs::event::{Event, Kind};
use nic_regs::vi::StopReason;

use super::{Nic, NicConfig};
use crate::error::Error;
use crate::peer::{Epochs, Peers};
use crate::sync::try_lock;
use port::connection::Connections;
use port::{PortEvent, ViStopped};

/// Pause before a frame that the device had no room for is tried again.
const BUSY_PAUSE_NS: u64 = 5_000;

/// See [`crate::nic`].
#[derive(Debug)]
pub(crate) struct Control {
    pub(crate) peers: Peers,
    pub(crate) connections: Connections,
    /// The card is absent, and everybody was notified.
    pub(crate) lost: bool,
}

impl Control {
    pub(super) fn new(seed: u64, config: &NicConfig) -> Self {
        let mut random = Epochs::new(seed.wrapping_mul(0x2545_f491_4f6c_dd1d));
        let (exchange, connection) = (random.next_u32(), (random.next_u32() & 0xffff) as u16);
        Self {
            peers: Peers::new(seed, config.credits, &config.peers),
            connections: Connections::new(exchange, connection).with_time_scale(config.time_scale),
            lost: false,
        }
    }
}

const fn byte(value: u32, lsb: u32) -> u8 {
    (value >> lsb).to_le_bytes()[0]
}

/// The device's reason, as far as VIPL distinguishes it.
const fn stop_reason(reason: StopReason) -> port::StopReason {
    match reason {
        StopReason::Disconnected => port::StopReason::Disconnected,
        StopReason::Refused | StopReason::PeerDown => port::StopReason::ConnectionLost,
        StopReason::ReceiveEmpty => port::StopReason::ReceiveQueueEmpty,
        StopReason::Descriptor | StopReason::HostRead => port::StopReason::DescriptorUnreachable,
        StopReason::RdmaWrite => port::StopReason::RdmaWriteRefused,
        StopReason::RdmaRead => port::StopReason::RdmaReadRefused,
        StopReason::None | StopReason::Format | StopReason::Protection | StopReason::Length => {
            port::StopReason::DescriptorError
        }
    }
}

impl Nic {
    /// Runs the control part if it has something to do and nobody else runs it. Cheap otherwise.
    pub(crate) fn progress(&self) {
        let due = || self.deadline.load(Ordering::Acquire) <= self.bus.now_ns();
        if !self.errors.has_event() && !self.messages.has_event() && !due() {
            return;
        }
        if let Some(mut control) = try_lock(&self.control) {
            self.run(&mut control);
        }
    }

    /// Runs the control part.
    pub(crate) fn run(&self, control: &mut Control) {
        if self.presence.check(&*self.bus).is_err() {
            self.card_lost(control);
        }
        while let Some(event) = self.errors.take() {
            self.handle(control, event);
        }
        while let Some((event, message)) = self.messages.take_wide() {
            if Kind::from_bits(event.kind.into()) == Some(Kind::Message) {
                let node = event.index.to_le_bytes()[0].into();
                control.connections.receive(self.bus.now_ns(), node, &message);
            }
        }
        let now = self.bus.now_ns();
        control.connections.on_timer(now);
        control.peers.on_timer(&self.admin, now);
        let blocked = self.pump(control);
        // Found meanwhile, here or by another thread: nothing would bring anybody here again.
        if self.presence.is_lost() {
            self.card_lost(control);
        }
        let deadlines = [
            control.connections.next_deadline(),
            control.peers.next_deadline(),
            blocked.then_some(self.bus.now_ns() + BUSY_PAUSE_NS),
            Some(self.presence.next_look()),
        ];
        let next = deadlines.into_iter().flatten().min().unwrap_or(u64::MAX);
        self.deadline.store(next, Ordering::Release);
    }

    /// Sends what the connection manager has to send. True if the device has no room.
    fn pump(&self, control: &mut Control) -> bool {
        while let Some((node, message)) = control.connections.transmit() {
            let number = u8::try_from(node).ok();
            let open = number.filter(|node| control.peers.state(*node) == PeerState::Open);
            let Some(node) = open else {
                control.connections.transmitted(false);
                continue;
            };
            match self.admin.message_send(node, super::CONTROL_DOMAIN, &message) {
                Err(error) if error.is_busy() => return true,
                sent => control.connections.transmitted(sent.is_ok()),
            }
        }
        false
    }

    fn handle(&self, control: &mut Control, event: Event) {
        let node = event.index.to_le_bytes()[0];
        let now = self.bus.now_ns();
        match Kind::from_bits(event.kind.into()) {
            Some(Kind::ViError) => self.vi_error(event),
            Some(Kind::PeerUp) => {
                control.peers.up(node);
                control.connections.peer_up(now, node.into());
            }
            Some(Kind::PeerDown) => {
                // A channel to the node itself opens over a link that echoes, or never.
                if node == self.node && control.peers.state(node) == PeerState::Opening {
                    control.peers.lost(node);
                    let why = Error::NoEcho { node }.into();
                    control.connections.unreachable(node.into(), &why);
                    return;
                }
                // The program may have closed the channel and opened it again, and this be the report
                // of that close.
                let state = match control.peers.state(node) {
                    PeerState::Closed => PeerState::Closed,
                    _ => self.admin.peer_state(node).unwrap_or(PeerState::Closed),
                };
                control.peers.down(node, state, now);
                control.connections.peer_down(now, node.into());
            }
            // A refused message is repeated by its timer.
            _ => {}
        }
    }

    /// Notifies everybody that nothing will come from the card any more.
    fn card_lost(&self, control: &mut Control) {
        if core::mem::replace(&mut control.lost, true) {
            return;
        }
        let now = self.bus.now_ns();
        for node in 0..self.capabilities.peers {
            control.peers.lost(node);
            control.connections.peer_down(now, node.into());
        }
        self.events.iter().for_each(|list| list.push(PortEvent::CardLost));
        self.wake();
    }

    fn vi_error(&self, event: Event) {
        let reason = StopReason::from_bits(byte(event.word1, 0).into());
        let stopped = ViStopped {
            vi: event.index,
            reason: stop_reason(reason.unwrap_or(StopReason::None)),
            queue: if event.word1 >> 16 & 1 != 0 { Queue::Recv } else { Queue::Send },
            status: event.word2,
        };
        let owner = self.vis.owner(event.index);
        if let Some(list) = owner.and_then(|domain| self.events.get(usize::from(domain))) {
            list.push(PortEvent::ViStopped(stopped));
            self.wake();
        }
    }
}
