//! Merges reads and writes of the device, TLP by TLP.
//!
//! Reads and writes take turns when both wait; each keeps its own order. Nothing depends on the
//! order between the two: a block that must see its own write before it reads waits for the write
//! to be accepted. Its output is chosen from the two buffers by registers: no input is on the way.
use super::TlpServer;
use crate::leaf::Skid;
use rust_hdl::prelude::*;

/// See the module's text. While `hold` is up no new TLP starts; `idle` then says that none is under
/// way either, which is when the blocks behind it may be reset.
#[derive(LogicBlock, Default)]
pub struct Rq {
    pub clock: Signal<In, Clock>,
    /// Of the device, not the soft reset: a TLP under way is sent to its end.
    pub reset: Signal<In, Bit>,
    pub hold: Signal<In, Bit>,
    pub idle: Signal<Out, Bit>,
    pub read: TlpServer,
    pub write: TlpServer,
    pub rq_valid: Signal<Out, Bit>,
    pub rq_data: Signal<Out, Bits<64>>,
    pub rq_last: Signal<Out, Bit>,
    pub rq_ready: Signal<In, Bit>,
    read_skid: Skid<65>,
    write_skid: Skid<65>,
    /// A TLP is under way.
    in_tlp: DFF<Bit>,
    /// A beat was offered and not taken.
    waits: DFF<Bit>,
    /// Of the TLP under way or offered, else of the one before.
    writing: DFF<Bit>,
    quiet: DFF<Bit>,
    /// A TLP has begun to come in.
    read_begun: DFF<Bit>,
    write_begun: DFF<Bit>,
    read_open: Signal<Local, Bit>,
    write_open: Signal<Local, Bit>,
    choose_write: Signal<Local, Bit>,
    valid: Signal<Local, Bit>,
    beat: Signal<Local, Bits<65>>,
    moves: Signal<Local, Bit>,
}

impl Logic for Rq {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, in_tlp, waits, writing, quiet, read_begun, write_begun);
        clock!(self, clock, read_skid, write_skid);
        self.read_skid.reset.next = self.reset.val();
        self.write_skid.reset.next = self.reset.val();

        // What has begun comes in whole, also under `hold`.
        self.read_open.next = self.read_begun.q.val() | (!self.hold.val());
        self.read_skid.in_valid.next = self.read.valid.val() & self.read_open.val();
        self.read_skid.in_data.next = (bit_cast::<65, 1>(self.read.last.val().into()) << 64)
            | bit_cast::<65, 64>(self.read.data.val());
        self.read.ready.next = self.read_skid.in_ready.val() & self.read_open.val();
        if self.read.valid.val() & self.read_skid.in_ready.val() & self.read_open.val() {
            self.read_begun.d.next = !self.read.last.val();
        }
        self.write_open.next = self.write_begun.q.val() | (!self.hold.val());
        self.write_skid.in_valid.next = self.write.valid.val() & self.write_open.val();
        self.write_skid.in_data.next = (bit_cast::<65, 1>(self.write.last.val().into()) << 64)
            | bit_cast::<65, 64>(self.write.data.val());
        self.write.ready.next = self.write_skid.in_ready.val() & self.write_open.val();
        if self.write.valid.val() & self.write_skid.in_ready.val() & self.write_open.val() {
            self.write_begun.d.next = !self.write.last.val();
        }

        // Turns.
        self.choose_write.next = self.write_skid.out_valid.val()
            & ((!self.read_skid.out_valid.val()) | (!self.writing.q.val()));
        if self.in_tlp.q.val() | self.waits.q.val() {
            self.choose_write.next = self.writing.q.val();
        }
        self.valid.next = self.read_skid.out_valid.val();
        self.beat.next = self.read_skid.out_data.val();
        if self.choose_write.val() {
            self.valid.next = self.write_skid.out_valid.val();
            self.beat.next = self.write_skid.out_data.val();
        }
        self.write_skid.out_ready.next = self.rq_ready.val() & self.choose_write.val();
        self.read_skid.out_ready.next = self.rq_ready.val() & (!self.choose_write.val());
        self.moves.next = self.valid.val() & self.rq_ready.val();
        self.waits.d.next = self.valid.val() & (!self.rq_ready.val());
        if self.moves.val() {
            self.in_tlp.d.next = !self.beat.val().get_bit(64);
        }
        if self.valid.val() {
            self.writing.d.next = self.choose_write.val();
        }
        self.rq_valid.next = self.valid.val();
        self.rq_data.next = self.beat.val().get_bits::<64>(0);
        self.rq_last.next = self.beat.val().get_bit(64);
        self.quiet.d.next = self.hold.val()
            & (!(self.read_begun.q.val() | self.write_begun.q.val() | self.in_tlp.q.val()))
            & (!(self.read_skid.out_valid.val() | self.write_skid.out_valid.val()));
        self.idle.next = self.quiet.q.val();
        if self.reset.val() {
            self.in_tlp.d.next = false;
            self.waits.d.next = false;
            self.writing.d.next = false;
            self.quiet.d.next = false;
            self.read_begun.d.next = false;
            self.write_begun.d.next = false;
        }
    }
}
