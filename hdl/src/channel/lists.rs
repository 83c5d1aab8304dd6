//! The lists of frames that wait at each peer, and what goes with them: one entry a peer in LUT
//! RAM, the entry in flight in registers, and the operations on it, each in one cycle. `load` writes
//! the entry in flight back and reads another peer's.
//!
//! A peer's frames form one list in the order of their commits: first those that were sent and not
//! acknowledged, then, from `turn` on, those still to be sent. Going back moves `turn` to the head.
//! Unsequenced frames leave the list when sent.
//!
//! | field | meaning |
//! |---|---|
//! | head, tail, live | the list; `live`: not empty |
//! | turn, todo | the frame to send now; `todo`: there is one |
//! | prior | the frame in front of `turn`, if `turn` is not the head |
//! | freed | sequence number of the oldest sequenced frame in the list |
//! | number | sequence number of the sequenced frame at or behind `turn` |
//! | top | one above the highest number ever sent |
//! | gap, nak_known | the number for which a NAK was obeyed |
//! | stamp, tries, mute | start of the retry time-out, time-outs without progress, silent ones in a row |
//! | sent | when anything was last sent |
//!
//! Nothing is cleared by reset: opening a channel writes its entry (`fresh`).
use super::credit_limit::CreditLimit;
use super::num::Num;
use crate::leaf::LutRam;
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Lists {
    pub clock: Signal<In, Clock>,
    pub now: Signal<In, Bits<32>>,
    pub peer: Signal<In, Bits<6>>,
    pub load: Signal<In, Bit>,
    pub peer_after: Signal<In, Bits<6>>,
    // Operations.
    /// Puts `frame` at the end.
    pub append: Signal<In, Bit>,
    /// There is nothing else to send: it goes to the transmitter at once.
    pub direct: Signal<In, Bit>,
    pub frame: Signal<In, Bits<7>>,
    pub unsequenced: Signal<In, Bit>,
    pub big: Signal<In, Bit>,
    pub units: Signal<In, Bits<5>>,
    /// The peer's credit limit.
    pub limit: Signal<In, Bits<8>>,
    /// The frame at `turn` goes to the transmitter.
    pub take: Signal<In, Bit>,
    /// Anything goes to the transmitter.
    pub sends: Signal<In, Bit>,
    /// The head leaves the list, acknowledged or given up.
    pub pop: Signal<In, Bit>,
    /// Something was acknowledged, or the channel is up: no time-out so far.
    pub progress: Signal<In, Bit>,
    /// A time-out: the time doubles, unless this was the longest; it is silent, unless the peer was
    /// heard.
    pub again: Signal<In, Bit>,
    pub longest: Signal<In, Bit>,
    pub alive: Signal<In, Bit>,
    /// Everything unacknowledged is to be sent again.
    pub rewind: Signal<In, Bit>,
    /// Remembers the gap at the head.
    pub obey: Signal<In, Bit>,
    /// An empty entry.
    pub fresh: Signal<In, Bit>,
    // The entry in flight.
    pub live: Signal<Out, Bit>,
    pub todo: Signal<Out, Bit>,
    pub head: Signal<Out, Bits<7>>,
    pub turn: Signal<Out, Bits<7>>,
    pub number: Signal<Out, Bits<16>>,
    pub number_after: Signal<Out, Bits<16>>,
    /// The frame at `turn` is unsequenced.
    pub no_sequence: Signal<Out, Bit>,
    /// It has more than one chunk.
    pub wide: Signal<Out, Bit>,
    /// The frame at `turn` is the last one.
    pub at_tail: Signal<Out, Bit>,
    /// All that was ever sent has been sent (again) since the last going back.
    pub newly: Signal<Out, Bit>,
    pub outstanding: Signal<Out, Bit>,
    pub freed: Signal<Out, Bits<16>>,
    /// A sequenced frame goes to the transmitter for the first time.
    pub counts: Signal<Out, Bit>,
    /// A NAK was obeyed for the head already.
    pub obeyed: Signal<Out, Bit>,
    // As in `CreditLimit`.
    pub turn_covered: Signal<Out, Bit>,
    pub put_covered: Signal<Out, Bit>,
    pub stamp: Signal<Out, Bits<32>>,
    /// tries 3:0, mute 7:4.
    pub tries: Signal<Out, Bits<8>>,
    /// Silence is counted from here on: the peer was not heard since.
    pub forget: Signal<Out, Bit>,
    pub sent: Signal<Out, Bits<32>>,
    /// head 6:0, tail 13:7, turn 20:14, prior 27:21, live 28, todo 29.
    places: LutRam<30, 6>,
    /// freed 15:0, top 31:16, number 47:32, gap 63:48.
    numbers: LutRam<64, 6>,
    /// stamp 31:0, tries 35:32, nak_known 36, mute 40:37.
    times: LutRam<41, 6>,
    sents: LutRam<32, 6>,
    /// The frame behind each, for the head and for the turn.
    links: LutRam<7, 7>,
    links_turn: LutRam<7, 7>,
    /// Unsequenced 0, large 1.
    looses: LutRam<2, 7>,
    credit_limit: CreditLimit,
    first: DFF<Bits<7>>,
    tail: DFF<Bits<7>>,
    place: DFF<Bits<7>>,
    prior: DFF<Bits<7>>,
    nonempty: DFF<Bit>,
    more: DFF<Bit>,
    done: DFF<Bits<16>>,
    top: DFF<Bits<16>>,
    following: DFF<Bits<16>>,
    nak: DFF<Bits<16>>,
    nak_known: DFF<Bit>,
    started: DFF<Bits<32>>,
    trial: DFF<Bits<4>>,
    mute: DFF<Bits<4>>,
    last_sent: DFF<Bits<32>>,
    after_first: DFF<Bits<7>>,
    link: DFF<Bits<7>>,
    link_write: Signal<Local, Bit>,
    link_at: Signal<Local, Bits<7>>,
    link_to: Signal<Local, Bits<7>>,
    is_no_sequence: DFF<Bit>,
    is_wide: DFF<Bit>,
    is_tail: DFF<Bit>,
    is_head: DFF<Bit>,
    alone: DFF<Bit>,
    done_after: DFF<Bits<16>>,
    following_after: DFF<Bits<16>>,
    is_new: DFF<Bit>,
    unsettled: DFF<Bit>,
    was_obeyed: DFF<Bit>,
    is_untried: DFF<Bit>,
    zero_4: Num<4, 0>,
}

impl Logic for Lists {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self, clock, first, tail, place, prior, nonempty, more, done, top, following, nak
        );
        dff_setup!(self, clock, nak_known, started, trial, mute, last_sent, is_untried, is_wide);
        dff_setup!(self, clock, link, is_no_sequence, is_tail, is_head, alone, done_after);
        dff_setup!(self, clock, following_after, is_new, unsettled, was_obeyed, after_first);
        clock!(self, clock, places, numbers, times, sents, links, links_turn, looses, credit_limit);
        // Registered before an operation: the links behind its frames, and comparisons.
        self.links.read_address.next = self.first.q.val();
        self.links_turn.read_address.next = self.place.q.val();
        self.looses.read_address.next = self.place.q.val();
        self.after_first.d.next = self.links.read_data.val();
        self.link.d.next = self.links_turn.read_data.val();
        self.is_no_sequence.d.next = self.looses.read_data.val().get_bit(0);
        self.is_wide.d.next = self.looses.read_data.val().get_bit(1);
        self.is_tail.d.next = self.place.q.val() == self.tail.q.val();
        self.is_head.d.next = self.place.q.val() == self.first.q.val();
        self.alone.d.next = self.first.q.val() == self.tail.q.val();
        self.done_after.d.next = self.done.q.val() + 1;
        self.following_after.d.next = self.following.q.val() + 1;
        self.is_new.d.next = self.following.q.val() == self.top.q.val();
        self.link_write.next = false;
        self.link_at.next = self.tail.q.val();
        self.link_to.next = self.frame.val();
        self.looses.write_enable.next = self.append.val();
        self.looses.write_address.next = self.frame.val();
        self.looses.write_data.next = bit_cast::<2, 1>(self.unsequenced.val().into())
            | (bit_cast::<2, 1>(self.big.val().into()) << 1);

        if self.load.val() {
            self.first.d.next = self.places.read_data.val().get_bits::<7>(0);
            self.tail.d.next = self.places.read_data.val().get_bits::<7>(7);
            self.place.d.next = self.places.read_data.val().get_bits::<7>(14);
            self.prior.d.next = self.places.read_data.val().get_bits::<7>(21);
            self.nonempty.d.next = self.places.read_data.val().get_bit(28);
            self.more.d.next = self.places.read_data.val().get_bit(29);
            self.done.d.next = self.numbers.read_data.val().get_bits::<16>(0);
            self.top.d.next = self.numbers.read_data.val().get_bits::<16>(16);
            self.following.d.next = self.numbers.read_data.val().get_bits::<16>(32);
            self.nak.d.next = self.numbers.read_data.val().get_bits::<16>(48);
            self.started.d.next = self.times.read_data.val().get_bits::<32>(0);
            self.trial.d.next = self.times.read_data.val().get_bits::<4>(32);
            self.nak_known.d.next = self.times.read_data.val().get_bit(36);
            self.mute.d.next = self.times.read_data.val().get_bits::<4>(37);
            self.last_sent.d.next = self.sents.read_data.val();
        } else if self.append.val() {
            self.link_write.next = self.nonempty.q.val();
            self.tail.d.next = self.frame.val();
            self.nonempty.d.next = true;
            if !self.nonempty.q.val() {
                self.first.d.next = self.frame.val();
            }
            if self.direct.val() {
                self.prior.d.next = self.frame.val();
                self.following.d.next = self.following_after.q.val();
                self.started.d.next = self.now.val();
                if self.is_new.q.val() {
                    self.top.d.next = self.following_after.q.val();
                }
            } else {
                self.more.d.next = true;
                if !self.more.q.val() {
                    self.place.d.next = self.frame.val();
                }
            }
        } else if self.take.val() {
            self.place.d.next = self.link.q.val();
            self.more.d.next = !self.is_tail.q.val();
            if !self.is_no_sequence.q.val() {
                self.prior.d.next = self.place.q.val();
                self.following.d.next = self.following_after.q.val();
                self.started.d.next = self.now.val();
                if self.is_new.q.val() {
                    self.top.d.next = self.following_after.q.val();
                }
            } else if self.is_head.q.val() {
                // An unsequenced frame leaves the list, at its head or further back.
                self.first.d.next = self.link.q.val();
                self.nonempty.d.next = !self.is_tail.q.val();
            } else {
                self.link_write.next = true;
                self.link_at.next = self.prior.q.val();
                self.link_to.next = self.link.q.val();
                if self.is_tail.q.val() {
                    self.tail.d.next = self.prior.q.val();
                }
            }
        } else if self.pop.val() {
            self.first.d.next = self.after_first.q.val();
            self.nonempty.d.next = !self.alone.q.val();
            self.done.d.next = self.done_after.q.val();
            // It was to be sent again: no longer.
            if self.more.q.val() & self.is_head.q.val() {
                self.place.d.next = self.after_first.q.val();
                self.more.d.next = !self.alone.q.val();
                self.following.d.next = self.done_after.q.val();
            }
        } else if self.rewind.val() {
            self.place.d.next = self.first.q.val();
            self.more.d.next = true;
            self.following.d.next = self.done.q.val();
        }
        if self.sends.val() | self.fresh.val() {
            self.last_sent.d.next = self.now.val();
        }
        if self.progress.val() | self.fresh.val() {
            self.trial.d.next = 0.into();
            self.mute.d.next = 0.into();
            self.started.d.next = self.now.val();
        } else if self.again.val() {
            if !self.longest.val() {
                self.trial.d.next = self.trial.q.val() + 1;
            }
            self.mute.d.next = self.mute.q.val() + 1;
            if self.alive.val() {
                self.mute.d.next = 0.into();
            }
            self.started.d.next = self.now.val();
        }
        if self.obey.val() {
            self.nak.d.next = self.done.q.val();
            self.nak_known.d.next = true;
        }
        if self.fresh.val() {
            self.nonempty.d.next = false;
            self.more.d.next = false;
            self.done.d.next = 0.into();
            self.top.d.next = 0.into();
            self.following.d.next = 0.into();
            self.nak_known.d.next = false;
        }

        self.live.next = self.nonempty.q.val();
        self.todo.next = self.more.q.val();
        self.head.next = self.first.q.val();
        self.turn.next = self.place.q.val();
        self.number.next = self.following.q.val();
        self.number_after.next = self.following_after.q.val();
        self.no_sequence.next = self.is_no_sequence.q.val();
        self.wide.next = self.is_wide.q.val();
        self.at_tail.next = self.is_tail.q.val();
        self.newly.next = self.is_new.q.val();
        self.unsettled.d.next = self.done.q.val() != self.top.q.val();
        self.counts.next = self.is_new.q.val()
            & ((self.take.val() & !self.is_no_sequence.q.val())
                | (self.append.val() & self.direct.val()));
        self.outstanding.next = self.unsettled.q.val();
        self.freed.next = self.done.q.val();
        self.was_obeyed.d.next = self.nak_known.q.val() & (self.nak.q.val() == self.done.q.val());
        self.obeyed.next = self.was_obeyed.q.val();
        self.stamp.next = self.started.q.val();
        self.tries.next =
            bit_cast::<8, 4>(self.trial.q.val()) | (bit_cast::<8, 4>(self.mute.q.val()) << 4);
        self.is_untried.d.next = self.trial.q.val() == self.zero_4.val();
        self.forget.next = self.fresh.val()
            | self.progress.val()
            | self.again.val()
            | (self.counts.val() & self.is_untried.q.val());
        self.sent.next = self.last_sent.q.val();

        self.credit_limit.peer.next = self.peer.val();
        self.credit_limit.load.next = self.load.val();
        self.credit_limit.peer_after.next = self.peer_after.val();
        self.credit_limit.fresh.next = self.fresh.val();
        self.credit_limit.limit.next = self.limit.val();
        self.credit_limit.frame.next = self.frame.val();
        self.credit_limit.units.next = self.units.val();
        self.credit_limit.append.next = self.append.val();
        self.credit_limit.turn.next = self.place.q.val();
        self.credit_limit.counts.next = self.counts.val();
        self.credit_limit.direct.next = self.direct.val();
        self.turn_covered.next = self.credit_limit.turn_covered.val();
        self.put_covered.next = self.credit_limit.put_covered.val();
        self.links.write_enable.next = self.link_write.val();
        self.links.write_address.next = self.link_at.val();
        self.links.write_data.next = self.link_to.val();
        self.links_turn.write_enable.next = self.link_write.val();
        self.links_turn.write_address.next = self.link_at.val();
        self.links_turn.write_data.next = self.link_to.val();
        self.places.read_address.next = self.peer_after.val();
        self.places.write_address.next = self.peer.val();
        self.places.write_enable.next = self.load.val();
        self.places.write_data.next = bit_cast::<30, 7>(self.first.q.val())
            | (bit_cast::<30, 7>(self.tail.q.val()) << 7)
            | (bit_cast::<30, 7>(self.place.q.val()) << 14)
            | (bit_cast::<30, 7>(self.prior.q.val()) << 21)
            | (bit_cast::<30, 1>(self.nonempty.q.val().into()) << 28)
            | (bit_cast::<30, 1>(self.more.q.val().into()) << 29);
        self.numbers.read_address.next = self.peer_after.val();
        self.numbers.write_address.next = self.peer.val();
        self.numbers.write_enable.next = self.load.val();
        self.numbers.write_data.next = bit_cast::<64, 16>(self.done.q.val())
            | (bit_cast::<64, 16>(self.top.q.val()) << 16)
            | (bit_cast::<64, 16>(self.following.q.val()) << 32)
            | (bit_cast::<64, 16>(self.nak.q.val()) << 48);
        self.times.read_address.next = self.peer_after.val();
        self.times.write_address.next = self.peer.val();
        self.times.write_enable.next = self.load.val();
        self.times.write_data.next = bit_cast::<41, 32>(self.started.q.val())
            | (bit_cast::<41, 4>(self.trial.q.val()) << 32)
            | (bit_cast::<41, 1>(self.nak_known.q.val().into()) << 36)
            | (bit_cast::<41, 4>(self.mute.q.val()) << 37);
        self.sents.read_address.next = self.peer_after.val();
        self.sents.write_address.next = self.peer.val();
        self.sents.write_enable.next = self.load.val();
        self.sents.write_data.next = self.last_sent.q.val();
    }
}
