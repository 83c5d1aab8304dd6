//! Frames onto the link, beat by beat. A frame gets acknowledgement, credit and tag when it starts.

use nic_regs::admin::PeerState;
use nic_regs::counter::Counter;
use nic_regs::csr::{NODE, Stamp};
use nic_regs::frame::{Header, Type, VERSION, flag};
use nic_regs::limits::LINK_PAYLOAD_BYTES;

use super::peer::{NextFrame, retry_after};
use super::{Channels, Peer};
use crate::bits::{low8, small8, small16};
use crate::context::Context;
use crate::device::{Beat, Link};
use crate::frame::Frame;
use crate::trace::Trace;
use crate::vi::Vis;

/// The frame that is on its way out.
#[derive(Clone, Debug)]
pub(super) struct Emitter {
    beats: Vec<u64>,
    at: usize,
    /// `None`: the rest of a frame that a reset cut short.
    header: Option<Header>,
    incarnation: u64,
    /// Chunks to free at the end (unsequenced frames).
    chunks: usize,
}

/// Where the next frame comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// The channel itself.
    Control(Type, u8),
    /// The pool, at the cursor.
    Pool,
    /// The unsequenced frames.
    Unsequenced,
}

impl Peer {
    /// Takes the next frame to transmit: a pending one, or one that entered the channel.
    fn next_source(&mut self) -> Option<Source> {
        let pending = &mut self.pending;
        if std::mem::take(&mut pending.syn) {
            return Some(Source::Control(Type::Syn, 0));
        }
        if std::mem::take(&mut pending.syn_ack) {
            return Some(Source::Control(Type::SynAck, 0));
        }
        if pending.reset.is_some() {
            return Some(Source::Control(Type::Rst, 0));
        }
        if std::mem::take(&mut pending.nak) {
            return Some(Source::Control(Type::Ack, flag::NAK));
        }
        if pending.messages_refused != 0 {
            pending.messages_refused -= 1;
            return Some(Source::Control(Type::MessageRefused, 0));
        }
        match self.next_frame() {
            Some(NextFrame::Sequenced) => Some(Source::Pool),
            Some(NextFrame::Unsequenced) => Some(Source::Unsequenced),
            None => std::mem::take(&mut self.pending.ack).then_some(Source::Control(Type::Ack, 0)),
        }
    }

    /// Takes a frame from its source, and the chunks that are free when it is sent.
    fn take(&mut self, node: u8, source: Source) -> Option<(Frame, usize)> {
        match source {
            Source::Control(kind, flags) => {
                let header = Header {
                    kind: small8(kind as usize),
                    dst_node: node,
                    flags,
                    word: match kind {
                        Type::Syn | Type::SynAck => self.our_epoch,
                        _ => 0,
                    },
                    ..Header::default()
                };
                Some((Frame { header, payload: Vec::new() }, 0))
            }
            Source::Pool => {
                let frame = self.pool.get(self.cursor)?.frame.clone();
                if self.cursor == self.reached {
                    let credits = small8(frame.header.credits());
                    self.credits_sent = self.credits_sent.wrapping_add(credits);
                    self.reached += 1;
                    self.answered &= self.retries != 0;
                }
                self.cursor += 1;
                Some((frame, 0))
            }
            Source::Unsequenced => {
                let frame = self.unsequenced.pop_front()?.frame;
                let chunks = frame.chunks();
                Some((frame, chunks))
            }
        }
    }

    /// Fills in what every transmission carries, and notes that it was carried.
    fn stamp(&mut self, header: &mut Header) {
        header.version = VERSION;
        let kind = Type::from_bits(header.kind);
        if kind == Some(Type::Rst) {
            header.tag = self.pending.reset.take().unwrap_or(0);
        }
        if self.state == PeerState::Closed || kind == Some(Type::Rst) {
            return;
        }
        header.credit = self.our_limit();
        match kind {
            Some(Type::Syn) => header.acknowledgement = small16(LINK_PAYLOAD_BYTES),
            Some(Type::SynAck) => {
                header.acknowledgement = small16(LINK_PAYLOAD_BYTES);
                header.tag = self.tag();
            }
            _ => {
                header.tag = self.tag();
                header.acknowledgement = self.expected;
                self.pending.ack = false;
                self.ack_deadline = None;
            }
        }
    }
}

impl Channels {
    /// A reset: what is on the link ends at once, with a beat that cannot be a CRC; everything else
    /// is forgotten.
    pub(crate) fn after_reset(&mut self) -> Self {
        let cut = self.emitter.take().filter(|e| e.at != 0).map(|e| Emitter {
            beats: vec![e.beats.last().copied().unwrap_or(0) ^ u64::from(u32::MAX)],
            at: 0,
            header: None,
            incarnation: 0,
            chunks: 0,
        });
        Self { emitter: cut, ..Self::default() }
    }

    /// Puts a beat on the link, if it takes one.
    pub(crate) fn transmit_step(
        &mut self,
        link: &mut dyn Link,
        vis: &mut Vis,
        cx: &mut Context<'_>,
    ) {
        if !link.ready(cx.now) {
            return;
        }
        if self.emitter.is_none() {
            self.emitter = self.start_frame(cx);
        }
        let Some(emitter) = &mut self.emitter else { return };
        let last = emitter.at + 1 == emitter.beats.len();
        link.send(cx.now, Beat { data: emitter.beats[emitter.at], last });
        emitter.at += 1;
        let (first, header) = (emitter.at == 1, emitter.header);
        // Frames of a read have no such flag; a stage is stamped once.
        let begins = |header: &Header| {
            let kind = Type::from_bits(header.kind);
            header.flags & flag::FIRST != 0
                || matches!(kind, Some(Type::ReadRequest | Type::ReadResponse))
        };
        if let Some(header) = header.filter(begins) {
            if first {
                cx.stamp(header.src_vi, Stamp::FirstBeatOut);
            }
            if last {
                cx.stamp(header.src_vi, Stamp::LastBeatOut);
            }
        }
        if last {
            self.end_frame(vis, cx);
        }
    }

    fn start_frame(&mut self, cx: &mut Context<'_>) -> Option<Emitter> {
        let own = low8(self.settings.node.get(NODE::NUMBER));
        while let Some(node) = self.ring.pop_front() {
            self.in_ring.set(usize::from(node), false);
            let peer = self.peer_mut(node);
            let incarnation = peer.incarnation;
            let Some(source) = peer.next_source() else { continue };
            let again = source == Source::Pool && peer.cursor < peer.reached;
            let Some((mut frame, chunks)) = peer.take(node, source) else { continue };
            peer.stamp(&mut frame.header);
            frame.header.src_node = own;
            self.make_ready(node);
            match source {
                Source::Control(Type::Ack, _) => cx.count(Counter::AcksSent),
                Source::Control(Type::Rst, _) => cx.count(Counter::ResetsSent),
                _ if again => cx.count(Counter::FramesRetransmitted),
                _ => {}
            }
            let header = Some(frame.header);
            return Some(Emitter { beats: frame.to_beats(), at: 0, header, incarnation, chunks });
        }
        None
    }

    fn end_frame(&mut self, vis: &mut Vis, cx: &mut Context<'_>) {
        let Some(emitter) = self.emitter.take() else { return };
        let Some(header) = emitter.header else { return };
        cx.count(Counter::FramesSent);
        cx.trace(Trace::FrameOut { header });
        let timeout = self.settings.retry_timeout;
        let peer = self.peer_mut(header.dst_node);
        if peer.incarnation != emitter.incarnation {
            return;
        }
        peer.last_sent = cx.now;
        peer.chunks -= emitter.chunks;
        if header.flags & flag::SEQUENCED != 0 && peer.reached != 0 {
            let deadline = cx.now + retry_after(timeout, peer.retries);
            peer.retry_deadline = Some(deadline);
            self.remind(deadline);
        }
        if emitter.chunks != 0 {
            self.free_chunks += emitter.chunks;
            vis.retry();
        }
    }
}
