//! One work queue of every VI: head token, last token, posted count, and the successor rule
//! (contract 2.2, 2.3).
//!
//! ```text
//! post   count 0: head = last = token            else: last = token           count + 1
//! unpost count 0: head = last = token            else: head = token           count + 1
//! pop    count 1: empty    count 2: head = last  count > 2: head = next if it is valid, else `need_next`, nothing done
//! ```
//! The RAMs are read at `read_address`; one cycle later their outputs are registered, and in the
//! cycle after that the outputs describe the queue and one of `post`, `unpost`, `pop`, `clear` may
//! change it
//! at `write_address`, the same VI.

use crate::leaf::SdpRam;
use nic_regs::limits::POSTED_MAX;
use rust_hdl::prelude::*;

const _: () = assert!(POSTED_MAX == u16::MAX, "a count that is all ones is full");

/// The send queues or the receive queues. A token is region 15:0, offset 41:16, segments 46:42.
#[derive(LogicBlock, Default)]
pub struct WorkQueue {
    pub clock: Signal<In, Clock>,
    pub read_address: Signal<In, Bits<10>>,
    pub write_address: Signal<In, Bits<10>>,
    pub post: Signal<In, Bit>,
    /// The token goes to the head of the queue.
    pub unpost: Signal<In, Bit>,
    pub token: Signal<In, Bits<47>>,
    pub pop: Signal<In, Bit>,
    /// `next_token` was read when the count already covered the successor.
    pub next_valid: Signal<In, Bit>,
    /// Region and offset of the successor.
    pub next_token: Signal<In, Bits<42>>,
    pub clear: Signal<In, Bit>,
    pub head: Signal<Out, Bits<47>>,
    pub count: Signal<Out, Bits<16>>,
    /// The count is above 2. That of the VI in stage 1 is 0.
    pub many: Signal<Out, Bit>,
    // Of the VI in stage 1.
    pub coming_empty: Signal<Out, Bit>,
    pub coming_full: Signal<Out, Bit>,
    /// The pop needs a valid successor; it was not done.
    pub need_next: Signal<Out, Bit>,
    /// The pop took a descriptor.
    pub popped: Signal<Out, Bit>,
    /// After this operation, which is no `post`, the queue is not empty.
    pub left: Signal<Out, Bit>,
    head_ram: SdpRam<47, 10>,
    last_ram: SdpRam<47, 10>,
    /// Count 15:0; 0, 1, 2 or more 17:16.
    count_ram: SdpRam<18, 10>,
    head_now: DFF<Bits<47>>,
    last_now: DFF<Bits<47>>,
    count_now: DFF<Bits<18>>,
    total: Signal<Local, Bits<16>>,
    few: Signal<Local, Bits<2>>,
    few_more: Signal<Local, Bits<2>>,
    few_less: Signal<Local, Bits<2>>,
    three: Signal<Local, Bit>,
    none: Signal<Local, Bit>,
    one: Signal<Local, Bit>,
    two: Signal<Local, Bit>,
    lacks_next: Signal<Local, Bit>,
    taking: Signal<Local, Bit>,
    more: Signal<Local, Bits<16>>,
    less: Signal<Local, Bits<16>>,
}

impl Logic for WorkQueue {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, head_now, last_now, count_now);
        clock!(self, clock, head_ram, last_ram, count_ram);
        self.head_ram.read_address.next = self.read_address.val();
        self.last_ram.read_address.next = self.read_address.val();
        self.count_ram.read_address.next = self.read_address.val();
        self.head_now.d.next = self.head_ram.read_data.val();
        self.last_now.d.next = self.last_ram.read_data.val();
        self.count_now.d.next = self.count_ram.read_data.val();
        self.head.next = self.head_now.q.val();
        self.total.next = self.count_now.q.val().get_bits::<16>(0);
        self.count.next = self.total.val();

        // What the count is was found out when it was written, since all depends on it.
        self.few.next = self.count_now.q.val().get_bits::<2>(16);
        self.none.next = !self.few.val().any();
        self.many.next = self.few.val().all();
        self.coming_empty.next = !self.count_ram.read_data.val().get_bits::<2>(16).any();
        self.coming_full.next = self.count_ram.read_data.val().get_bits::<16>(0).all();
        self.one.next = (!self.few.val().get_bit(1)) & self.few.val().get_bit(0);
        self.two.next = self.few.val().get_bit(1) & (!self.few.val().get_bit(0));
        self.three.next = (!self.total.val().get_bits::<14>(2).any())
            & self.total.val().get_bit(1)
            & self.total.val().get_bit(0);
        self.more.next = self.total.val() + 1;
        self.less.next = self.total.val() - 1;
        self.lacks_next.next = self.few.val().all() & (!self.next_valid.val());
        self.taking.next = self.pop.val() & (!self.none.val()) & (!self.lacks_next.val());
        self.need_next.next = self.pop.val() & self.lacks_next.val();
        self.popped.next = self.taking.val();
        self.left.next = (!self.none.val()) | self.unpost.val();
        if self.clear.val() | (self.pop.val() & self.one.val()) {
            self.left.next = false;
        }

        self.head_ram.write_address.next = self.write_address.val();
        self.head_ram.write_enable.next = (self.post.val() & self.none.val())
            | self.unpost.val()
            | (self.taking.val() & (!self.one.val()));
        self.head_ram.write_data.next = self.token.val();
        if self.pop.val() & self.two.val() {
            self.head_ram.write_data.next = self.last_now.q.val();
        } else if self.pop.val() {
            // Next carries no segment count: the hint is that of the descriptor before.
            self.head_ram.write_data.next = bit_cast::<47, 42>(self.next_token.val())
                | (bit_cast::<47, 5>(self.head_now.q.val().get_bits::<5>(42)) << 42);
        }
        self.last_ram.write_address.next = self.write_address.val();
        self.last_ram.write_enable.next = self.post.val() | (self.unpost.val() & self.none.val());
        self.last_ram.write_data.next = self.token.val();
        self.count_ram.write_address.next = self.write_address.val();
        self.count_ram.write_enable.next =
            self.post.val() | self.unpost.val() | self.taking.val() | self.clear.val();
        self.few_more.next = self.few.val() + 1;
        self.few_less.next = self.few.val() - 1;
        if self.few.val().all() {
            self.few_more.next = self.few.val();
            if !self.three.val() {
                self.few_less.next = self.few.val();
            }
        }
        self.count_ram.write_data.next =
            bit_cast::<18, 16>(self.more.val()) | (bit_cast::<18, 2>(self.few_more.val()) << 16);
        if self.clear.val() {
            self.count_ram.write_data.next = 0.into();
        } else if self.pop.val() {
            self.count_ram.write_data.next = bit_cast::<18, 16>(self.less.val())
                | (bit_cast::<18, 2>(self.few_less.val()) << 16);
        }
    }
}
