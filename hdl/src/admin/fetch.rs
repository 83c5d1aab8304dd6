//! The entry: its host read, and its eight quadwords for as long as the command runs.
//!
//! The entry shifts in: after eight beats the first is in `quad0`. It does not change until the
//! next load, so that the arguments of calls are wires from here.

use crate::ifs::ReadClient;
use crate::leaf::Number;
use nic_regs::admin::ENTRY_BYTES;
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct EntryFetch {
    pub clock: Signal<In, Clock>,
    pub read: ReadClient,
    pub address: Signal<In, Bits<64>>,
    /// Asks for the entry, until it is `asked`.
    pub ask: Signal<In, Bit>,
    pub asked: Signal<Out, Bit>,
    /// Takes it, until `loaded`; `failed` comes with that.
    pub load: Signal<In, Bit>,
    pub loaded: Signal<Out, Bit>,
    pub failed: Signal<Out, Bit>,
    pub quad0: Signal<Out, Bits<64>>,
    pub quad1: Signal<Out, Bits<64>>,
    pub quad2: Signal<Out, Bits<64>>,
    pub quad3: Signal<Out, Bits<64>>,
    pub quad4: Signal<Out, Bits<64>>,
    pub quad5: Signal<Out, Bits<64>>,
    pub quad6: Signal<Out, Bits<64>>,
    pub quad7: Signal<Out, Bits<64>>,
    entry0: DFF<Bits<64>>,
    entry1: DFF<Bits<64>>,
    entry2: DFF<Bits<64>>,
    entry3: DFF<Bits<64>>,
    entry4: DFF<Bits<64>>,
    entry5: DFF<Bits<64>>,
    entry6: DFF<Bits<64>>,
    entry7: DFF<Bits<64>>,
    ends: Signal<Local, Bit>,
    entry_bytes: Number<13, ENTRY_BYTES>,
}

impl Logic for EntryFetch {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, entry0, entry1, entry2, entry3, entry4, entry5, entry6, entry7);
        self.read.req_valid.next = self.ask.val();
        self.read.req_address.next = self.address.val();
        self.read.req_length.next = self.entry_bytes.val();
        self.asked.next = self.read.req_ready.val();
        self.ends.next = self.load.val() & self.read.rsp_valid.val() & self.read.rsp_last.val();
        self.loaded.next = self.ends.val();
        self.failed.next = self.ends.val() & self.read.rsp_error.val();
        if self.load.val() & self.read.rsp_valid.val() {
            self.entry0.d.next = self.entry1.q.val();
            self.entry1.d.next = self.entry2.q.val();
            self.entry2.d.next = self.entry3.q.val();
            self.entry3.d.next = self.entry4.q.val();
            self.entry4.d.next = self.entry5.q.val();
            self.entry5.d.next = self.entry6.q.val();
            self.entry6.d.next = self.entry7.q.val();
            self.entry7.d.next = self.read.rsp_data.val();
        }
        self.quad0.next = self.entry0.q.val();
        self.quad1.next = self.entry1.q.val();
        self.quad2.next = self.entry2.q.val();
        self.quad3.next = self.entry3.q.val();
        self.quad4.next = self.entry4.q.val();
        self.quad5.next = self.entry5.q.val();
        self.quad6.next = self.entry6.q.val();
        self.quad7.next = self.entry7.q.val();
    }
}
