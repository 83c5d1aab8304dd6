//! The receive side's tables, one entry a peer: written by [`super::accept::Accept`] (and `newest`
//! by the peer machine), read by everyone who needs them, each reader with a copy of its own.
//!
//! | table | bits | meaning |
//! |---|---|---|
//! | expected | 17 | next sequence number expected; bit 16: a NAK was asked for it |
//! | tag | 16 | epoch tag of the open channel |
//! | own, remote | 32 | epochs |
//! | acked | 16 | newest acknowledgement taken |
//! | gap | 16 | acknowledgement of the newest NAK |
//! | limit | 8 | the peer's credit limit for us |
//! | heard | 32 | when something good was last received (units of 16 cycles) |
//! | reset_tag | 16 | tag for the next RST |
//! | reason | 3 | why the channel went down last |
//! | newest | 16 | one above the highest sequence number ever sent |
//!
//! Nothing here is cleared by reset: an entry means something only while its peer is not Closed,
//! and opening writes it.
use crate::leaf::LutRam;
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct RxTables {
    pub clock: Signal<In, Clock>,
    pub write_peer: Signal<In, Bits<6>>,
    pub write_expected: Signal<In, Bit>,
    pub expected: Signal<In, Bits<17>>,
    /// Also writes `remote`.
    pub write_tag: Signal<In, Bit>,
    pub tag: Signal<In, Bits<16>>,
    pub remote: Signal<In, Bits<32>>,
    pub write_own: Signal<In, Bit>,
    pub own: Signal<In, Bits<32>>,
    pub write_acked: Signal<In, Bit>,
    pub acked: Signal<In, Bits<16>>,
    /// Writes the value of `acked`.
    pub write_nak: Signal<In, Bit>,
    pub write_limit: Signal<In, Bit>,
    pub limit: Signal<In, Bits<8>>,
    pub write_alive: Signal<In, Bit>,
    pub alive: Signal<In, Bits<32>>,
    pub write_reset_tag: Signal<In, Bit>,
    /// The tag to write, unless it is the channel's own (of `rx_peer`).
    pub reset_tag: Signal<In, Bits<16>>,
    pub reset_tag_own: Signal<In, Bit>,
    pub write_reason: Signal<In, Bit>,
    pub reason: Signal<In, Bits<3>>,
    pub write_newest: Signal<In, Bit>,
    pub newest_peer: Signal<In, Bits<6>>,
    pub newest: Signal<In, Bits<16>>,
    pub rx_peer: Signal<In, Bits<6>>,
    pub rx_expected: Signal<Out, Bits<17>>,
    pub rx_tag: Signal<Out, Bits<16>>,
    pub rx_own: Signal<Out, Bits<32>>,
    pub rx_remote: Signal<Out, Bits<32>>,
    pub rx_acked: Signal<Out, Bits<16>>,
    pub rx_newest: Signal<Out, Bits<16>>,
    pub rx_limit: Signal<Out, Bits<8>>,
    pub tx_peer: Signal<In, Bits<6>>,
    pub tx_expected: Signal<Out, Bits<17>>,
    pub tx_tag: Signal<Out, Bits<16>>,
    pub tx_own: Signal<Out, Bits<32>>,
    pub hub_peer: Signal<In, Bits<6>>,
    pub hub_acked: Signal<Out, Bits<16>>,
    pub hub_limit: Signal<Out, Bits<8>>,
    pub hub_nak: Signal<Out, Bits<16>>,
    pub hub_alive: Signal<Out, Bits<32>>,
    pub hub_reset_tag: Signal<Out, Bits<16>>,
    pub ask_peer: Signal<In, Bits<6>>,
    pub ask_limit: Signal<Out, Bits<8>>,
    pub event_peer: Signal<In, Bits<6>>,
    pub event_remote: Signal<Out, Bits<32>>,
    pub event_reason: Signal<Out, Bits<3>>,
    expected_rx: LutRam<17, 6>,
    expected_tx: LutRam<17, 6>,
    tag_rx: LutRam<16, 6>,
    tag_tx: LutRam<16, 6>,
    own_rx: LutRam<32, 6>,
    own_tx: LutRam<32, 6>,
    remote_rx: LutRam<32, 6>,
    remote_event: LutRam<32, 6>,
    acked_rx: LutRam<16, 6>,
    acked_hub: LutRam<16, 6>,
    nak_hub: LutRam<16, 6>,
    limit_rx: LutRam<8, 6>,
    limit_hub: LutRam<8, 6>,
    limit_ask: LutRam<8, 6>,
    received_hub: LutRam<32, 6>,
    reset_tag_hub: LutRam<16, 6>,
    reason_event: LutRam<3, 6>,
    newest_rx: LutRam<16, 6>,
}

impl Logic for RxTables {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(
            self,
            clock,
            expected_rx,
            expected_tx,
            tag_rx,
            tag_tx,
            own_rx,
            own_tx,
            remote_rx,
            remote_event,
            acked_rx,
            acked_hub,
            nak_hub,
            limit_rx,
            limit_hub,
            limit_ask,
            received_hub,
            reset_tag_hub,
            reason_event,
            newest_rx
        );
        self.expected_rx.read_address.next = self.rx_peer.val();
        self.rx_expected.next = self.expected_rx.read_data.val();
        self.expected_rx.write_address.next = self.write_peer.val();
        self.expected_rx.write_data.next = self.expected.val();
        self.expected_rx.write_enable.next = self.write_expected.val();
        self.expected_tx.read_address.next = self.tx_peer.val();
        self.tx_expected.next = self.expected_tx.read_data.val();
        self.expected_tx.write_address.next = self.write_peer.val();
        self.expected_tx.write_data.next = self.expected.val();
        self.expected_tx.write_enable.next = self.write_expected.val();
        self.tag_rx.read_address.next = self.rx_peer.val();
        self.rx_tag.next = self.tag_rx.read_data.val();
        self.tag_rx.write_address.next = self.write_peer.val();
        self.tag_rx.write_data.next = self.tag.val();
        self.tag_rx.write_enable.next = self.write_tag.val();
        self.tag_tx.read_address.next = self.tx_peer.val();
        self.tx_tag.next = self.tag_tx.read_data.val();
        self.tag_tx.write_address.next = self.write_peer.val();
        self.tag_tx.write_data.next = self.tag.val();
        self.tag_tx.write_enable.next = self.write_tag.val();
        self.own_rx.read_address.next = self.rx_peer.val();
        self.rx_own.next = self.own_rx.read_data.val();
        self.own_rx.write_address.next = self.write_peer.val();
        self.own_rx.write_data.next = self.own.val();
        self.own_rx.write_enable.next = self.write_own.val();
        self.own_tx.read_address.next = self.tx_peer.val();
        self.tx_own.next = self.own_tx.read_data.val();
        self.own_tx.write_address.next = self.write_peer.val();
        self.own_tx.write_data.next = self.own.val();
        self.own_tx.write_enable.next = self.write_own.val();
        self.remote_rx.read_address.next = self.rx_peer.val();
        self.rx_remote.next = self.remote_rx.read_data.val();
        self.remote_rx.write_address.next = self.write_peer.val();
        self.remote_rx.write_data.next = self.remote.val();
        self.remote_rx.write_enable.next = self.write_tag.val();
        self.remote_event.read_address.next = self.event_peer.val();
        self.event_remote.next = self.remote_event.read_data.val();
        self.remote_event.write_address.next = self.write_peer.val();
        self.remote_event.write_data.next = self.remote.val();
        self.remote_event.write_enable.next = self.write_tag.val();
        self.acked_rx.read_address.next = self.rx_peer.val();
        self.rx_acked.next = self.acked_rx.read_data.val();
        self.acked_rx.write_address.next = self.write_peer.val();
        self.acked_rx.write_data.next = self.acked.val();
        self.acked_rx.write_enable.next = self.write_acked.val();
        self.acked_hub.read_address.next = self.hub_peer.val();
        self.hub_acked.next = self.acked_hub.read_data.val();
        self.acked_hub.write_address.next = self.write_peer.val();
        self.acked_hub.write_data.next = self.acked.val();
        self.acked_hub.write_enable.next = self.write_acked.val();
        self.nak_hub.read_address.next = self.hub_peer.val();
        self.hub_nak.next = self.nak_hub.read_data.val();
        self.nak_hub.write_address.next = self.write_peer.val();
        self.nak_hub.write_data.next = self.acked.val();
        self.nak_hub.write_enable.next = self.write_nak.val();
        self.limit_rx.read_address.next = self.rx_peer.val();
        self.rx_limit.next = self.limit_rx.read_data.val();
        self.limit_rx.write_address.next = self.write_peer.val();
        self.limit_rx.write_data.next = self.limit.val();
        self.limit_rx.write_enable.next = self.write_limit.val();
        self.limit_hub.read_address.next = self.hub_peer.val();
        self.hub_limit.next = self.limit_hub.read_data.val();
        self.limit_hub.write_address.next = self.write_peer.val();
        self.limit_hub.write_data.next = self.limit.val();
        self.limit_hub.write_enable.next = self.write_limit.val();
        self.limit_ask.read_address.next = self.ask_peer.val();
        self.ask_limit.next = self.limit_ask.read_data.val();
        self.limit_ask.write_address.next = self.write_peer.val();
        self.limit_ask.write_data.next = self.limit.val();
        self.limit_ask.write_enable.next = self.write_limit.val();
        self.received_hub.read_address.next = self.hub_peer.val();
        self.hub_alive.next = self.received_hub.read_data.val();
        self.received_hub.write_address.next = self.write_peer.val();
        self.received_hub.write_data.next = self.alive.val();
        self.received_hub.write_enable.next = self.write_alive.val();
        self.reset_tag_hub.read_address.next = self.hub_peer.val();
        self.hub_reset_tag.next = self.reset_tag_hub.read_data.val();
        self.reset_tag_hub.write_address.next = self.write_peer.val();
        self.reset_tag_hub.write_data.next = self.reset_tag.val();
        if self.reset_tag_own.val() {
            self.reset_tag_hub.write_data.next = self.tag_rx.read_data.val();
        }
        self.reset_tag_hub.write_enable.next = self.write_reset_tag.val();
        self.reason_event.read_address.next = self.event_peer.val();
        self.event_reason.next = self.reason_event.read_data.val();
        self.reason_event.write_address.next = self.write_peer.val();
        self.reason_event.write_data.next = self.reason.val();
        self.reason_event.write_enable.next = self.write_reason.val();
        self.newest_rx.read_address.next = self.rx_peer.val();
        self.rx_newest.next = self.newest_rx.read_data.val();
        self.newest_rx.write_address.next = self.newest_peer.val();
        self.newest_rx.write_data.next = self.newest.val();
        self.newest_rx.write_enable.next = self.write_newest.val();
    }
}
