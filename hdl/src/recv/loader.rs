//! Resolves receive descriptors (contract 3, 2.3) as they come, and puts them in the descriptor cache.
//!
//! ```text
//! orders --> Reader (look-up, read) ==> up to four reads ==> Resolver --> the descriptor cache
//! ```
//! A read belongs to one VI. It may bring several descriptors: one that lies in what was read is
//! used if Next says that it is the successor and the count covered it when the read was ordered.
//! What a read brought is offered when it has ended well. A read that was predicted is used if the
//! read before it in the stream led there. A fault ends the read; only the frame's (`serving`, which
//! is alone) is reported.
//!
//! ```text
//! Idle -> Parse -> [Parse ...] -> End -> Idle;  Idle -> Renewed -> Idle;  Idle -> Parse -> Drop -> Idle
//! ```

use super::loader_state::LoadState;
use super::reader::Reader;
use super::resolver::Resolver;
use crate::desc::Outcome;
use crate::ifs::{ReadClient, TptClient};
use crate::leaf::Number;
use crate::tpt::Lookups;
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Loader {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    // Orders, see `super::reader`.
    pub idle: Signal<Out, Bit>,
    pub order: Signal<In, Bit>,
    pub renew: Signal<In, Bit>,
    pub predicted: Signal<In, Bit>,
    pub stream: Signal<In, Bit>,
    pub region: Signal<In, Bits<16>>,
    pub offset: Signal<In, Bits<26>>,
    pub job_bus: Signal<In, Bits<64>>,
    pub wanted: Signal<In, Bits<9>>,
    pub owner: Signal<In, Bits<60>>,
    pub predictable: Signal<Out, Bit>,
    /// The order under way is the frame's.
    pub serving: Signal<In, Bit>,
    /// Somebody waits: take no further descriptor.
    pub hurry: Signal<In, Bit>,
    pub forget: Signal<In, Bit>,
    // Orders that are over; see `super::outstanding`.
    pub lost: Signal<Out, Bit>,
    pub lost_row: Signal<Out, Bits<4>>,
    pub lost_stream: Signal<Out, Bit>,
    pub ended: Signal<Out, Bit>,
    pub ended_vi: Signal<Out, Bits<10>>,
    pub ended_row: Signal<Out, Bits<4>>,
    pub ended_stream: Signal<Out, Bit>,
    pub confirms: Signal<Out, Bit>,
    /// With `ended`: more of this VI is to be read, so many segments at first (the frame's: again).
    pub more: Signal<Out, Bit>,
    pub hint: Signal<Out, Bits<5>>,
    /// Descriptors lie one behind the other, as far as is known.
    pub near: Signal<Out, Bit>,
    // The frame's answer; the results stay until the next order.
    pub done: Signal<Out, Bit>,
    pub outcome: Signal<Out, Bits<3>>,
    pub unreached: Signal<Out, Bit>,
    pub bus: Signal<Out, Bits<64>>,
    pub successor: Signal<Out, Bits<43>>,
    /// Pulse: a descriptor was fetched and resolved.
    pub fetched: Signal<Out, Bit>,
    // The descriptor cache: an entry of this row; entries are offered, up to before a place.
    pub row: Signal<Out, Bits<4>>,
    pub place: Signal<Out, Bits<3>>,
    pub entry_write: Signal<Out, Bit>,
    pub entry_data: Signal<Out, Bits<63>>,
    pub successor_write: Signal<Out, Bit>,
    pub segment_write: Signal<Out, Bit>,
    pub segment_number: Signal<Out, Bits<4>>,
    pub segment_bus: Signal<Out, Bits<64>>,
    pub segment_length: Signal<Out, Bits<32>>,
    /// A row may be written by somebody else.
    pub row_busy: Signal<In, Bit>,
    pub offer: Signal<Out, Bit>,
    /// VI 12:3, place behind the last one 2:0.
    pub offer_data: Signal<Out, Bits<13>>,
    /// The row's last entry: address and successor.
    pub tail_write: Signal<Out, Bit>,
    pub tail_bus: Signal<Out, Bits<64>>,
    pub tail_successor: Signal<Out, Bits<43>>,
    pub read: ReadClient,
    pub tpt: TptClient,
    reader: Reader,
    resolver: Resolver,
    lookups: Lookups,
    state: DFF<LoadState>,
    failed: DFF<Bits<3>>,
    // The descriptor in flight: where it is, its first word in the read, bytes from there on.
    region_at: DFF<Bits<16>>,
    offset_at: DFF<Bits<26>>,
    bus_at: DFF<Bits<64>>,
    space: DFF<Bits<32>>,
    have: DFF<Bits<9>>,
    base: DFF<Bits<5>>,
    covered: DFF<Bits<16>>,
    room: DFF<Bits<3>>,
    place_at: DFF<Bits<3>>,
    // The last entry that was written, and whether it is still to be offered.
    last_bus: DFF<Bits<64>>,
    last_successor: DFF<Bits<43>>,
    waits: DFF<Bit>,
    // Where the stream leads.
    chain: DFF<Bits<43>>,
    tag: DFF<Bits<16>>,
    domain: DFF<Bits<8>>,
    near_at: DFF<Bit>,
    done_out: DFF<Bit>,
    fetched_out: DFF<Bit>,
    // Lost, ended, more, confirms, lost_stream, ended_stream; lost_row, ended_row, ended_vi.
    over_out: DFF<Bits<6>>,
    whose_out: DFF<Bits<18>>,
    hint_out: DFF<Bits<5>>,
    again: Signal<Local, Bit>,
    leads_on: Signal<Local, Bit>,
    vi: Signal<Local, Bits<10>>,
    reached: Signal<Local, Bits<5>>,
    goes_on: Signal<Local, Bit>,
    fits: Signal<Local, Bit>,
    resolved: Signal<Local, Bit>,
    good: Signal<Local, Bit>,
    goes: Signal<Local, Bit>,
    leads: Signal<Local, Bit>,
    over: Signal<Local, Bit>,
    one_covered: Number<16, 1>,
    one: Number<3, 1>,
    line: Number<9, 64>,
    failed_descriptor: Number<3, { Outcome::Descriptor as u64 }>,
    failed_host_read: Number<3, { Outcome::HostRead as u64 }>,
}

impl Logic for Loader {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, failed, region_at, offset_at, bus_at, space, have, base);
        dff_setup!(self, clock, covered, room, place_at, last_bus, last_successor, waits, chain);
        dff_setup!(self, clock, tag, domain, near_at, done_out, fetched_out);
        dff_setup!(self, clock, over_out, whose_out, hint_out);
        clock!(self, clock, reader, resolver, lookups);
        self.resolver.reset.next = self.reset.val();
        self.reader.reset.next = self.reset.val();
        self.lookups.reset.next = self.reset.val();
        ReadClient::link(&mut self.read, &mut self.reader.read);
        TptClient::link(&mut self.tpt, &mut self.lookups.tpt);
        TptClient::join(&mut self.resolver.tpt, &mut self.lookups.first);
        TptClient::join(&mut self.reader.tpt, &mut self.lookups.second);

        // Orders.
        self.idle.next = self.reader.idle.val();
        self.reader.order.next = self.order.val();
        self.reader.renew.next = self.renew.val();
        self.reader.predicted.next = self.predicted.val();
        self.reader.stream.next = self.stream.val();
        self.reader.region.next = self.region.val();
        self.reader.offset.next = self.offset.val();
        self.reader.bus.next = self.job_bus.val();
        self.reader.wanted.next = self.wanted.val();
        self.reader.owner.next = self.owner.val();
        self.predictable.next = self.reader.predictable.val();
        self.vi.next = self.reader.read_owner.val().get_bits::<10>(0);
        self.whose_out.d.next = bit_cast::<18, 4>(self.reader.lost_row.val())
            | (bit_cast::<18, 4>(self.reader.read_owner.val().get_bits::<4>(56)) << 4)
            | (bit_cast::<18, 10>(self.vi.val()) << 8);
        self.lost.next = self.over_out.q.val().get_bit(0);
        self.lost_row.next = self.whose_out.q.val().get_bits::<4>(0);
        self.lost_stream.next = self.over_out.q.val().get_bit(4);

        // The read in flight.
        self.row.next = self.reader.read_owner.val().get_bits::<4>(56);
        self.goes_on.next = self.one_covered.val() < self.covered.q.val();
        self.fits.next = self.one.val() < self.room.q.val();
        self.reached.next = self.base.q.val() + self.resolver.stride.val().get_bits::<5>(4);
        self.resolved.next = (!self.resolver.outcome.val().any()) & (!self.resolver.anew.val());
        self.good.next = self.resolved.val() & (!self.reader.failed.val());
        self.goes.next = self.resolved.val()
            & self.goes_on.val()
            & self.fits.val()
            & self.resolver.follows.val()
            & (!self.reader.failed_late.val())
            & (!self.serving.val())
            & (!self.hurry.val());
        // The successor lies right behind what was read, all of which was used.
        self.leads.next = self.resolved.val()
            & self.goes_on.val()
            & self.resolver.near.val()
            & (self.resolver.stride.val() == self.line.val())
            & (self.have.q.val() == self.line.val());
        self.over.next = false;
        self.reader.chain.next = self.chain.q.val();

        // Results.
        self.done.next = self.done_out.q.val();
        self.done_out.d.next = false;
        self.outcome.next = self.failed.q.val();
        self.unreached.next = (self.failed.q.val() == self.failed_descriptor.val())
            | (self.failed.q.val() == self.failed_host_read.val());
        self.bus.next = self.bus_at.q.val();
        self.successor.next = self.resolver.token.val();
        self.fetched.next = self.fetched_out.q.val();
        self.fetched_out.d.next = false;
        self.hint_out.d.next = self.resolver.hint.val();
        self.hint.next = self.hint_out.q.val();
        self.near.next = self.near_at.q.val();
        self.again.next = false;
        self.leads_on.next = false;
        self.ended.next = self.over_out.q.val().get_bit(1);
        self.more.next = self.over_out.q.val().get_bit(2);
        self.confirms.next = self.over_out.q.val().get_bit(3);
        self.ended_row.next = self.whose_out.q.val().get_bits::<4>(4);
        self.ended_vi.next = self.whose_out.q.val().get_bits::<10>(8);
        self.ended_stream.next = self.over_out.q.val().get_bit(5);

        // The descriptor cache.
        self.place.next = self.place_at.q.val();
        self.entry_write.next = false;
        self.successor_write.next = false;
        self.entry_data.next = bit_cast::<63, 16>(self.region_at.q.val())
            | (bit_cast::<63, 26>(self.offset_at.q.val()) << 16)
            | (bit_cast::<63, 20>(self.resolver.total.val()) << 42)
            | (bit_cast::<63, 1>(self.resolver.short.val().into()) << 62);
        self.segment_write.next = self.resolver.segment_write.val();
        self.segment_number.next = self.resolver.segment_number.val();
        self.segment_bus.next = self.resolver.segment_bus.val();
        self.segment_length.next = self.resolver.segment_length.val();
        self.offer.next = self.waits.q.val()
            & (!self.reader.reading_late.val())
            & (!self.reader.failed_late.val())
            & (!self.row_busy.val());
        self.offer_data.next =
            (bit_cast::<13, 10>(self.vi.val()) << 3) | bit_cast::<13, 3>(self.place_at.q.val());
        if self.offer.val() {
            self.waits.d.next = false;
        }
        self.tail_write.next = self.offer.val();
        self.tail_bus.next = self.last_bus.q.val();
        self.tail_successor.next = self.last_successor.q.val();

        // The descriptor and its successor.
        self.resolver.start.next = false;
        self.resolver.stop.next = false;
        self.resolver.from.next = self.reached.val();
        if self.state.q.val() == LoadState::Idle {
            self.resolver.from.next = 0.into();
        }
        self.resolver.only_next.next = self.reader.read_renew.val();
        self.resolver.covers.next = self.goes_on.val() | self.reader.read_renew.val();
        self.resolver.forget.next = self.forget.val();
        self.resolver.unreadable.next = false;
        self.resolver.region.next = self.region_at.q.val();
        self.resolver.offset.next = self.offset_at.q.val();
        self.resolver.space.next = self.space.q.val();
        self.resolver.have.next = self.have.q.val();
        self.resolver.present.next = self.reader.present.val();
        self.resolver.even.next = self.reader.even.val();
        self.resolver.odd.next = self.reader.odd.val();
        self.resolver.tag.next = self.tag.q.val();
        self.resolver.domain.next = self.domain.q.val();
        self.reader.word.next = self.resolver.word.val();

        match self.state.q.val() {
            LoadState::Idle => {
                if self.reader.ready.val() {
                    self.region_at.d.next = self.reader.read_region.val();
                    self.offset_at.d.next = self.reader.read_offset.val();
                    self.bus_at.d.next = self.reader.read_bus.val();
                    self.space.d.next = self.reader.space.val();
                    self.have.d.next = self.reader.have.val();
                    self.base.d.next = 0.into();
                    self.place_at.d.next = self.reader.read_owner.val().get_bits::<3>(10);
                    self.room.d.next = self.reader.read_owner.val().get_bits::<3>(13);
                    self.tag.d.next = self.reader.read_owner.val().get_bits::<16>(16);
                    self.domain.d.next = self.reader.read_owner.val().get_bits::<8>(32);
                    self.covered.d.next = self.reader.read_owner.val().get_bits::<16>(40);
                    self.failed.d.next = 0.into();
                    if (self.tag.q.val() != self.reader.read_owner.val().get_bits::<16>(16))
                        | (self.domain.q.val() != self.reader.read_owner.val().get_bits::<8>(32))
                    {
                        self.resolver.forget.next = true;
                    }
                    self.resolver.start.next = true;
                    self.state.d.next = LoadState::Parse;
                    if self.reader.read_renew.val() {
                        self.state.d.next = LoadState::Renewed;
                    }
                }
            }
            LoadState::Parse => {
                if self.reader.astray.val() {
                    self.resolver.stop.next = true;
                    self.state.d.next = LoadState::Drop;
                } else if self.resolver.done.val() {
                    self.state.d.next = LoadState::End;
                    if self.good.val() {
                        self.entry_write.next = true;
                        self.successor_write.next = true;
                        self.place_at.d.next = self.place_at.q.val() + 1;
                        self.last_bus.d.next = self.bus_at.q.val();
                        self.last_successor.d.next = self.resolver.token.val();
                        self.waits.d.next = true;
                        self.fetched_out.d.next = true;
                        if self.goes_on.val() {
                            self.near_at.d.next = self.resolver.near.val();
                        }
                    }
                    if self.goes.val() {
                        self.resolver.start.next = true;
                        self.region_at.d.next = self.resolver.token.val().get_bits::<16>(0);
                        self.offset_at.d.next = self.resolver.token.val().get_bits::<26>(16);
                        self.bus_at.d.next =
                            self.bus_at.q.val() + bit_cast::<64, 9>(self.resolver.stride.val());
                        self.space.d.next =
                            self.space.q.val() - bit_cast::<32, 9>(self.resolver.stride.val());
                        self.have.d.next = self.have.q.val() - self.resolver.stride.val();
                        self.base.d.next = self.reached.val();
                        self.covered.d.next = self.covered.q.val() - 1;
                        self.room.d.next = self.room.q.val() - 1;
                        self.state.d.next = LoadState::Parse;
                    }
                }
            }
            LoadState::Renewed => {
                if self.resolver.done.val() & (!self.reader.reading_late.val()) {
                    self.over.next = true;
                    self.done_out.d.next = self.serving.val();
                    if self.reader.failed_late.val() {
                        self.resolver.unreadable.next = true;
                    } else {
                        self.tail_write.next = true;
                        self.tail_bus.next = self.bus_at.q.val();
                        self.tail_successor.next = self.resolver.token.val();
                        if !self.serving.val() {
                            self.place.next = self.place_at.q.val() - 1;
                            self.successor_write.next = true;
                            self.again.next = true;
                        }
                    }
                }
            }
            LoadState::End => {
                if !self.reader.reading_late.val() {
                    if self.reader.failed_late.val() {
                        self.over.next = true;
                        self.waits.d.next = false;
                        self.failed.d.next = self.failed_host_read.val();
                        self.done_out.d.next = self.serving.val();
                    } else if (!self.waits.q.val()) | (self.offer.val() & (!self.serving.val())) {
                        self.over.next = true;
                        self.failed.d.next = self.resolver.outcome.val();
                        self.again.next = self.resolver.anew.val();
                        self.leads_on.next = self.leads.val();
                        self.done_out.d.next = self.serving.val() & (!self.resolver.anew.val());
                    }
                }
            }
            LoadState::Drop => {
                if !self.reader.reading_late.val() {
                    self.over.next = true;
                    self.again.next = true;
                }
            }
            _ => {
                self.state.d.next = LoadState::Idle;
            }
        }
        self.over_out.d.next = bit_cast::<6, 1>(self.reader.nowhere.val().into())
            | (bit_cast::<6, 1>(self.over.val().into()) << 1)
            | (bit_cast::<6, 1>(self.again.val().into()) << 2)
            | (bit_cast::<6, 1>(self.leads_on.val().into()) << 3)
            | (bit_cast::<6, 1>(self.reader.lost_stream.val().into()) << 4)
            | (bit_cast::<6, 1>(self.reader.read_stream.val().into()) << 5);
        self.reader.finish.next = self.over.val();
        if self.over.val() {
            self.state.d.next = LoadState::Idle;
            if self.reader.read_stream.val() {
                self.chain.d.next = 0.into();
                if self.leads_on.val() {
                    self.chain.d.next = self.last_successor.q.val();
                }
            }
        }
        if self.reader.nowhere.val() {
            self.failed.d.next = self.failed_descriptor.val();
            if self.reader.unread.val() {
                self.failed.d.next = self.failed_host_read.val();
            }
            self.done_out.d.next = self.serving.val();
        }
        if self.forget.val() {
            self.chain.d.next = 0.into();
        }
        if self.reset.val() {
            self.state.d.next = LoadState::Idle;
            self.done_out.d.next = false;
            self.fetched_out.d.next = false;
            self.over_out.d.next = 0.into();
            self.waits.d.next = false;
            self.near_at.d.next = true;
        }
    }
}
