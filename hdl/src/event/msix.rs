//! MSI-X: the table of 32 vectors, their mask bits, and the vectors that want to interrupt.
//!
//! A vector stays `pending` until its write is started; a masked one just waits, and so does one that
//! rests after its last write (moderation, contract 10.4). After reset all vectors are masked and
//! `clear` walks over the table.
//!
//! A scanner looks at one vector a cycle: a rest ends up to 34 cycles late.

use crate::leaf::{FirstOne, LutRam, Number};
use nic_regs::limits::MSIX_VECTOR_COUNT;
use rust_hdl::prelude::*;

const _: () = assert!(MSIX_VECTOR_COUNT == 32, "vectors have 5 bits");

#[derive(LogicBlock, Default)]
pub struct MsixTable {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Zero the entry `clear_index`.
    pub clear: Signal<In, Bit>,
    pub clear_index: Signal<In, Bits<5>>,
    /// Dword of the table to read (same cycle, unless `sending`) or write.
    pub index: Signal<In, Bits<7>>,
    pub write: Signal<In, Bit>,
    pub wdata: Signal<In, Bits<32>>,
    pub rdata: Signal<Out, Bits<32>>,
    /// Least cycles between two writes of a vector; 0: any.
    pub moderation: Signal<In, Bits<24>>,
    /// Two sources of interrupts.
    pub fire: Signal<In, Bit>,
    pub fire_vector: Signal<In, Bits<5>>,
    pub fire_record: Signal<In, Bit>,
    pub fire_record_vector: Signal<In, Bits<5>>,
    /// An unmasked vector is pending (a cycle later).
    pub any: Signal<Out, Bit>,
    /// One of them is chosen (a cycle later); `address` and `data` are its while `sending`, which
    /// also clears it.
    pub chosen: Signal<Out, Bit>,
    pub sending: Signal<In, Bit>,
    pub address: Signal<Out, Bits<64>>,
    pub data: Signal<Out, Bits<32>>,
    low_ram: LutRam<32, 5>,
    high_ram: LutRam<32, 5>,
    data_ram: LutRam<32, 5>,
    first: FirstOne<32>,
    masked: DFF<Bits<32>>,
    pending: DFF<Bits<32>>,
    any_now: DFF<Bit>,
    chosen_now: DFF<Bit>,
    chosen_vector: DFF<Bits<5>>,
    /// Vectors whose last write is not long ago; when it was.
    resting: DFF<Bits<32>>,
    sent_ram: LutRam<25, 5>,
    now: DFF<Bits<25>>,
    // Scanner: cycle 0 `scan`, cycle 1 `age`.
    scan: DFF<Bits<5>>,
    age: DFF<Bits<25>>,
    age_vector: DFF<Bits<5>>,
    age_rests: DFF<Bit>,
    least: Signal<Local, Bits<25>>,
    rested_bit: Signal<Local, Bits<32>>,
    rests_bit: Signal<Local, Bits<32>>,
    wanted: Signal<Local, Bits<32>>,
    entry: Signal<Local, Bits<5>>,
    read_entry: Signal<Local, Bits<5>>,
    write_entry: Signal<Local, Bits<5>>,
    entry_bit: Signal<Local, Bits<32>>,
    fire_bit: Signal<Local, Bits<32>>,
    record_bit: Signal<Local, Bits<32>>,
    sent_bit: Signal<Local, Bits<32>>,
    first_vector: Signal<Local, Bits<8>>,
    written: Signal<Local, Bits<32>>,
    one: Number<32, 1>,
    all_masked: Number<32, 0xffff_ffff>,
    /// Bits 1:0 of an address are zero.
    aligned: Number<32, 0xffff_fffc>,
}

impl Logic for MsixTable {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, masked, pending, chosen_now, chosen_vector, resting, now, scan);
        dff_setup!(self, clock, age, age_vector, age_rests, any_now);
        clock!(self, clock, low_ram, high_ram, data_ram, sent_ram);
        self.entry.next = self.index.val().get_bits::<5>(2);
        // Not `entry`: what leads to a LUT RAM's address shares no local with what uses its data.
        self.read_entry.next = self.index.val().get_bits::<5>(2);
        if self.sending.val() {
            self.read_entry.next = self.chosen_vector.q.val();
        }
        self.low_ram.read_address.next = self.read_entry.val();
        self.high_ram.read_address.next = self.read_entry.val();
        self.data_ram.read_address.next = self.read_entry.val();
        self.address.next = (bit_cast::<64, 32>(self.high_ram.read_data.val()) << 32)
            | bit_cast::<64, 32>(self.low_ram.read_data.val());
        self.data.next = self.data_ram.read_data.val();
        self.rdata.next = self.low_ram.read_data.val();
        if self.index.val().get_bit(1) & self.index.val().get_bit(0) {
            self.rdata.next =
                bit_cast::<32, 1>(self.masked.q.val().get_bit(self.entry.val().index()).into());
        } else if self.index.val().get_bit(1) {
            self.rdata.next = self.data_ram.read_data.val();
        } else if self.index.val().get_bit(0) {
            self.rdata.next = self.high_ram.read_data.val();
        }

        self.write_entry.next = self.entry.val();
        self.written.next = self.wdata.val();
        if self.clear.val() {
            self.write_entry.next = self.clear_index.val();
            self.written.next = 0.into();
        }
        self.low_ram.write_address.next = self.write_entry.val();
        self.high_ram.write_address.next = self.write_entry.val();
        self.data_ram.write_address.next = self.write_entry.val();
        self.low_ram.write_data.next = self.written.val() & self.aligned.val();
        self.high_ram.write_data.next = self.written.val();
        self.data_ram.write_data.next = self.written.val();
        self.low_ram.write_enable.next = self.clear.val()
            | (self.write.val() & (!self.index.val().get_bit(1)) & (!self.index.val().get_bit(0)));
        self.high_ram.write_enable.next = self.clear.val()
            | (self.write.val() & (!self.index.val().get_bit(1)) & self.index.val().get_bit(0));
        self.data_ram.write_enable.next = self.clear.val()
            | (self.write.val() & self.index.val().get_bit(1) & (!self.index.val().get_bit(0)));
        self.entry_bit.next = self.one.val() << self.entry.val();
        if self.write.val() & self.index.val().get_bit(1) & self.index.val().get_bit(0) {
            if self.wdata.val().get_bit(0) {
                self.masked.d.next = self.masked.q.val() | self.entry_bit.val();
            } else {
                self.masked.d.next = self.masked.q.val() & (!self.entry_bit.val());
            }
        }

        self.wanted.next = self.pending.q.val() & (!self.masked.q.val()) & (!self.resting.q.val());
        self.any_now.d.next = self.wanted.val().any();
        self.any.next = self.any_now.q.val();
        self.first.value.next = self.wanted.val();
        self.chosen_now.d.next = self.first.found.val();
        self.first_vector.next = self.first.index.val();
        self.chosen_vector.d.next = self.first_vector.val().get_bits::<5>(0);
        self.chosen.next = self.chosen_now.q.val();
        self.fire_bit.next = 0.into();
        self.record_bit.next = 0.into();
        self.sent_bit.next = 0.into();
        if self.fire.val() {
            self.fire_bit.next = self.one.val() << self.fire_vector.val();
        }
        if self.fire_record.val() {
            self.record_bit.next = self.one.val() << self.fire_record_vector.val();
        }
        if self.sending.val() {
            self.sent_bit.next = self.one.val() << self.chosen_vector.q.val();
            self.chosen_now.d.next = false;
        }
        self.pending.d.next = (self.pending.q.val() & (!self.sent_bit.val()))
            | self.fire_bit.val()
            | self.record_bit.val();
        // Moderation. A vector that rests is not sent, so what the scanner found two cycles ago holds.
        self.now.d.next = self.now.q.val() + 1;
        self.sent_ram.write_address.next = self.chosen_vector.q.val();
        self.sent_ram.write_data.next = self.now.q.val();
        self.sent_ram.write_enable.next = self.sending.val();
        self.sent_ram.read_address.next = self.scan.q.val();
        self.scan.d.next = self.scan.q.val() + 1;
        self.age.d.next = self.now.q.val() - self.sent_ram.read_data.val();
        self.age_vector.d.next = self.scan.q.val();
        self.age_rests.d.next = self.resting.q.val().get_bit(self.scan.q.val().index());
        self.rested_bit.next = 0.into();
        self.least.next = bit_cast::<25, 24>(self.moderation.val());
        if self.age_rests.q.val() & (self.age.q.val() >= self.least.val()) {
            self.rested_bit.next = self.one.val() << self.age_vector.q.val();
        }
        self.rests_bit.next = 0.into();
        if self.moderation.val().any() {
            self.rests_bit.next = self.sent_bit.val();
        }
        self.resting.d.next =
            (self.resting.q.val() | self.rests_bit.val()) & (!self.rested_bit.val());
        if self.reset.val() {
            self.resting.d.next = 0.into();
            self.age_rests.d.next = false;
            self.masked.d.next = self.all_masked.val();
            self.pending.d.next = 0.into();
            self.any_now.d.next = false;
            self.chosen_now.d.next = false;
        }
    }
}
