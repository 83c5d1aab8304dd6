//! Out-of-band messages: section 7.8.

use nic_regs::admin::{AdminStatus, NO_QUEUE};
use nic_regs::counter::Counter;
use nic_regs::event::{Event, Kind};
use nic_regs::frame::{Header, MESSAGE_BYTES, Type, flag};

use crate::bits::{small8, small16};
use crate::device::HostBus;
use crate::event::Delivery;
use crate::frame::Frame;
use crate::nic::Model;

impl Model {
    /// MessageSend to a node and a domain that exist.
    pub(crate) fn send_message(&mut self, node: u8, domain: u16, text: &[u8]) -> AdminStatus {
        if !self.channels.is_open(node) {
            return AdminStatus::PeerDown;
        }
        let header = Header {
            kind: small8(Type::Message as usize),
            length: small16(MESSAGE_BYTES),
            dst_node: node,
            dst_vi: domain,
            flags: flag::SEQUENCED,
            ..Header::default()
        };
        if !self.channels.admits(node, &header) {
            return AdminStatus::Busy;
        }
        self.channels.enqueue(Frame { header, payload: text.to_vec() });
        self.count(Counter::MessagesSent);
        AdminStatus::Ok
    }

    /// A message has arrived: to its domain's queue, or back.
    pub(crate) fn take_message(&mut self, frame: &Frame, incarnation: u64, host: &mut dyn HostBus) {
        let node = frame.header.src_node;
        let domain = usize::from(frame.header.dst_vi);
        let queue = self.message_queues.get(domain).copied().unwrap_or(NO_QUEUE);
        let wide = self.events.get(queue).is_some_and(|q| q.wide);
        let event = Event {
            kind: small8(Kind::Message as usize),
            index: u16::from(node),
            ..Event::default()
        };
        if wide && self.post_event(queue, event, Some(&frame.payload), host) == Delivery::Written {
            self.count(Counter::MessagesReceived);
        } else {
            self.count(Counter::MessagesRefused);
            self.owe_message_refused(node, incarnation);
        }
    }
}
