//! The table of event queues: where each ring is and whose, how far producer and consumer have
//! come, and what is wanted of it; and which queue takes the messages of a domain.
//!
//! ```text
//! cycle 0  `queue` is given (and held)
//! cycle 1  RAM outputs; `load` registers the entry
//! cycle 2  its fields; the sums are registered
//! cycle 3  the sums; a change is written back
//! ```

use crate::leaf::{LutRam, Number, SdpRam};
use nic_regs::limits::{DOMAIN_COUNT, EVENT_QUEUE_COUNT};
use rust_hdl::prelude::*;

const _: () = assert!(EVENT_QUEUE_COUNT == 256 && DOMAIN_COUNT == 64, "8 and 6 address bits");

#[derive(LogicBlock, Default)]
pub struct QueueTable {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// All entries are clear; until then `clear_index` is being cleared.
    pub ready: Signal<Out, Bit>,
    pub clear_index: Signal<Out, Bits<8>>,
    /// The queue for a domain's messages 7:0, bound 8 (same cycle).
    pub message_domain: Signal<In, Bits<6>>,
    pub message_queue: Signal<Out, Bits<9>>,
    pub queue: Signal<In, Bits<8>>,
    pub load: Signal<In, Bit>,
    /// A doorbell's consumer index.
    pub new_consumer: Signal<In, Bits<16>>,
    // Fields.
    pub exists: Signal<Out, Bit>,
    pub wide: Signal<Out, Bit>,
    pub domain: Signal<Out, Bits<6>>,
    pub vector: Signal<Out, Bits<5>>,
    pub armed: Signal<Out, Bit>,
    pub deferring: Signal<Out, Bit>,
    pub queued: Signal<Out, Bit>,
    // Sums: the next record's place and phase, entries in use with `new_consumer`, entries at all.
    pub full: Signal<Out, Bit>,
    pub record_address: Signal<Out, Bits<64>>,
    pub phase: Signal<Out, Bit>,
    pub new_fill: Signal<Out, Bits<16>>,
    pub size: Signal<Out, Bits<16>>,
    // Changes of the indexes: at most one of these, and `want_drain` alone or with `consume`.
    /// A record is put in, and disarms.
    pub produce: Signal<In, Bit>,
    /// A record found no room.
    pub put_off: Signal<In, Bit>,
    /// `new_consumer` is good; `arm` comes with it.
    pub consume: Signal<In, Bit>,
    pub arm: Signal<In, Bit>,
    pub create: Signal<In, Bit>,
    /// What was put off is being tried again.
    pub start_drain: Signal<In, Bit>,
    pub want_drain: Signal<In, Bit>,
    // Changes of the configuration.
    pub config_write: Signal<In, Bit>,
    pub config_word: Signal<In, Bits<17>>,
    pub base: Signal<In, Bits<58>>,
    pub bind_write: Signal<In, Bit>,
    pub bind_domain: Signal<In, Bits<6>>,
    pub bind_queue: Signal<In, Bits<9>>,
    /// Base without its low 6 bits.
    base_ram: SdpRam<58, 8>,
    /// Exists 0, wide 1, log2 5:2, domain 11:6, vector 16:12.
    config_ram: SdpRam<17, 8>,
    /// Producer 15:0, consumer 31:16, armed 32, deferring 33, queued for a drain 34.
    index_ram: SdpRam<35, 8>,
    bind_ram: LutRam<9, 6>,
    /// Bit 8: the tables are clear.
    clear_at: DFF<Bits<9>>,
    base_now: DFF<Bits<58>>,
    config_now: DFF<Bits<17>>,
    index_now: DFF<Bits<35>>,
    fill: DFF<Bits<16>>,
    fill_then: DFF<Bits<16>>,
    offset: DFF<Bits<22>>,
    phase_now: DFF<Bit>,
    size_now: DFF<Bits<16>>,
    log2: Signal<Local, Bits<4>>,
    producer: Signal<Local, Bits<16>>,
    consumer: Signal<Local, Bits<16>>,
    slot_mask: Signal<Local, Bits<16>>,
    slot: Signal<Local, Bits<16>>,
    index_write: Signal<Local, Bit>,
    next_producer: Signal<Local, Bits<16>>,
    next_consumer: Signal<Local, Bits<16>>,
    next_armed: Signal<Local, Bit>,
    next_deferring: Signal<Local, Bit>,
    next_queued: Signal<Local, Bit>,
    one: Number<16, 1>,
    full_mask: Number<16, 0xffff>,
}

impl Logic for QueueTable {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self, clock, clear_at, base_now, config_now, index_now, fill, fill_then, offset,
            phase_now, size_now
        );
        clock!(self, clock, base_ram, config_ram, index_ram, bind_ram);
        self.ready.next = self.clear_at.q.val().get_bit(8);
        self.clear_index.next = self.clear_at.q.val().get_bits::<8>(0);
        self.bind_ram.read_address.next = self.message_domain.val();
        self.message_queue.next = self.bind_ram.read_data.val();
        self.base_ram.read_address.next = self.queue.val();
        self.config_ram.read_address.next = self.queue.val();
        self.index_ram.read_address.next = self.queue.val();
        if self.load.val() {
            self.base_now.d.next = self.base_ram.read_data.val();
            self.config_now.d.next = self.config_ram.read_data.val();
            self.index_now.d.next = self.index_ram.read_data.val();
        }

        // Fields.
        self.exists.next = self.config_now.q.val().get_bit(0);
        self.wide.next = self.config_now.q.val().get_bit(1);
        self.log2.next = self.config_now.q.val().get_bits::<4>(2);
        self.domain.next = self.config_now.q.val().get_bits::<6>(6);
        self.vector.next = self.config_now.q.val().get_bits::<5>(12);
        self.producer.next = self.index_now.q.val().get_bits::<16>(0);
        self.consumer.next = self.index_now.q.val().get_bits::<16>(16);
        self.armed.next = self.index_now.q.val().get_bit(32);
        self.deferring.next = self.index_now.q.val().get_bit(33);
        self.queued.next = self.index_now.q.val().get_bit(34);

        // Sums.
        self.fill.d.next = self.producer.val() - self.consumer.val();
        self.fill_then.d.next = self.producer.val() - self.new_consumer.val();
        self.size_now.d.next = self.one.val() << self.log2.val();
        self.slot_mask.next = self.full_mask.val() << self.log2.val();
        self.slot.next = self.producer.val() & (!self.slot_mask.val());
        self.offset.d.next = bit_cast::<22, 16>(self.slot.val()) << 4;
        if self.config_now.q.val().get_bit(1) {
            self.offset.d.next = bit_cast::<22, 16>(self.slot.val()) << 6;
        }
        self.phase_now.d.next = !self.producer.val().get_bit(self.log2.val().index());
        self.full.next = self.fill.q.val().get_bit(self.log2.val().index());
        self.record_address.next = (bit_cast::<64, 58>(self.base_now.q.val()) << 6)
            + bit_cast::<64, 22>(self.offset.q.val());
        self.phase.next = self.phase_now.q.val();
        self.new_fill.next = self.fill_then.q.val();
        self.size.next = self.size_now.q.val();

        // The indexes after a change.
        self.index_write.next = self.want_drain.val();
        self.next_producer.next = self.producer.val();
        self.next_consumer.next = self.consumer.val();
        self.next_armed.next = self.index_now.q.val().get_bit(32);
        self.next_deferring.next = self.index_now.q.val().get_bit(33);
        self.next_queued.next = self.index_now.q.val().get_bit(34) | self.want_drain.val();
        if self.produce.val() {
            self.index_write.next = true;
            self.next_producer.next = self.producer.val() + 1;
            self.next_armed.next = false;
        } else if self.put_off.val() {
            self.index_write.next = true;
            self.next_deferring.next = true;
        } else if self.consume.val() {
            self.index_write.next = true;
            self.next_consumer.next = self.new_consumer.val();
            self.next_armed.next = self.arm.val();
        } else if self.create.val() {
            self.index_write.next = true;
            self.next_producer.next = 0.into();
            self.next_consumer.next = 0.into();
            self.next_armed.next = false;
        } else if self.start_drain.val() {
            self.index_write.next = true;
            self.next_deferring.next = false;
            self.next_queued.next = false;
        }
        self.index_ram.write_address.next = self.queue.val();
        self.index_ram.write_enable.next = self.index_write.val();
        self.index_ram.write_data.next = bit_cast::<35, 16>(self.next_producer.val())
            | (bit_cast::<35, 16>(self.next_consumer.val()) << 16)
            | (bit_cast::<35, 1>(self.next_armed.val().into()) << 32)
            | (bit_cast::<35, 1>(self.next_deferring.val().into()) << 33)
            | (bit_cast::<35, 1>(self.next_queued.val().into()) << 34);

        // The configuration after a change.
        self.base_ram.write_address.next = self.queue.val();
        self.base_ram.write_data.next = self.base.val();
        self.base_ram.write_enable.next = self.create.val();
        self.config_ram.write_address.next = self.queue.val();
        self.config_ram.write_data.next = self.config_word.val();
        self.config_ram.write_enable.next = self.config_write.val();
        self.bind_ram.write_address.next = self.bind_domain.val();
        self.bind_ram.write_data.next = self.bind_queue.val();
        self.bind_ram.write_enable.next = self.bind_write.val();

        // Clearing.
        if !self.clear_at.q.val().get_bit(8) {
            self.clear_at.d.next = self.clear_at.q.val() + 1;
            self.config_ram.write_address.next = self.clear_at.q.val().get_bits::<8>(0);
            self.config_ram.write_data.next = 0.into();
            self.config_ram.write_enable.next = true;
            self.index_ram.write_address.next = self.clear_at.q.val().get_bits::<8>(0);
            self.index_ram.write_data.next = 0.into();
            self.index_ram.write_enable.next = true;
            self.bind_ram.write_address.next = self.clear_at.q.val().get_bits::<6>(0);
            self.bind_ram.write_data.next = 0.into();
            self.bind_ram.write_enable.next = true;
        }
        if self.reset.val() {
            self.clear_at.d.next = 0.into();
        }
    }
}
