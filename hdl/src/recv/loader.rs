//! Fetches and resolves receive descriptors (contract 3, 2.3): one for the frame, or those that
//! follow what is at hand.
//!
//! A job starts at a token (or, `again`, reads Next of the descriptor at `bus` first; or, `resume`,
//! with the successor of the last one) and goes on to the successor while the posted count covers
//! it, the shelf has room and nobody else waits. One read may bring up to four descriptors: one
//! that lies in what was read is taken from there, if Next says that it is the successor and the
//! count covered it when the read was issued. A fault ends the job; only the frame's (`serving`) is
//! reported.
//!
//! ```text
//! Idle -> Seek -> Open -> Parse -> Follow -> Parse (it is in the buffer) | Seek;  Parse -> Idle
//! Idle -> Seek -> Open -> Renewed (again) -> Seek | Idle;  Idle -> Follow (resume)
//! ```

use super::loader_state::LoadState;
use super::reader::Reader;
use super::resolver::Resolver;
use crate::desc::{Extent, Outcome};
use crate::ifs::{ReadClient, TptClient};
use crate::leaf::Number;
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Loader {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    // The job, see `super::jobs`.
    pub start: Signal<In, Bit>,
    pub idle: Signal<Out, Bit>,
    pub serving: Signal<In, Bit>,
    pub again: Signal<In, Bit>,
    pub resume: Signal<In, Bit>,
    pub follow: Signal<In, Bit>,
    pub job_bus: Signal<In, Bits<64>>,
    pub tag: Signal<In, Bits<16>>,
    pub domain: Signal<In, Bits<8>>,
    pub region: Signal<In, Bits<16>>,
    pub offset: Signal<In, Bits<26>>,
    pub segments: Signal<In, Bits<5>>,
    pub covered: Signal<In, Bits<16>>,
    pub room: Signal<In, Bits<3>>,
    /// Somebody waits: take no further descriptor.
    pub hurry: Signal<In, Bit>,
    /// The last job can go on at the next descriptor; until it is to forget that.
    pub forget: Signal<In, Bit>,
    pub resumable: Signal<Out, Bit>,
    // The frame's answer; the results stay until the next job.
    pub done: Signal<Out, Bit>,
    pub outcome: Signal<Out, Bits<3>>,
    pub unreached: Signal<Out, Bit>,
    pub bus: Signal<Out, Bits<64>>,
    pub successor: Signal<Out, Bits<43>>,
    /// Pulse: a descriptor was fetched and resolved.
    pub fetched: Signal<Out, Bit>,
    // The shelf: an entry, one more entry in the row, the last entry's address and successor.
    pub entry_write: Signal<Out, Bit>,
    pub entry_data: Signal<Out, Bits<62>>,
    pub successor_write: Signal<Out, Bit>,
    pub tail_write: Signal<Out, Bit>,
    pub segment_write: Signal<Out, Bit>,
    pub segment_number: Signal<Out, Bits<4>>,
    pub segment_bus: Signal<Out, Bits<64>>,
    pub segment_length: Signal<Out, Bits<32>>,
    pub read: ReadClient,
    pub tpt: TptClient,
    extent: Extent,
    reader: Reader,
    resolver: Resolver,
    state: DFF<LoadState>,
    first: DFF<Bit>,
    failed: DFF<Bits<3>>,
    covered_at: DFF<Bits<16>>,
    room_at: DFF<Bits<3>>,
    hint: DFF<Bits<5>>,
    region_at: DFF<Bits<16>>,
    offset_at: DFF<Bits<26>>,
    // The descriptor's first word in the buffer.
    base: DFF<Bits<5>>,
    can_resume: DFF<Bit>,
    done_out: DFF<Bit>,
    fetched_out: DFF<Bit>,
    reached: Signal<Local, Bits<5>>,
    renewing: Signal<Local, Bit>,
    one_covered: Number<16, 1>,
    goes_on: Signal<Local, Bit>,
    fits: Signal<Local, Bit>,
    one: Number<3, 1>,
    failed_descriptor: Number<3, { Outcome::Descriptor as u64 }>,
    failed_host_read: Number<3, { Outcome::HostRead as u64 }>,
}

impl Logic for Loader {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, first, failed, covered_at, room_at, hint, region_at);
        dff_setup!(self, clock, offset_at, base, can_resume, done_out, fetched_out);
        clock!(self, clock, reader, resolver);
        self.resolver.reset.next = self.reset.val();
        self.reader.reset.next = self.reset.val();
        ReadClient::link(&mut self.read, &mut self.reader.read);

        self.renewing.next = self.again.val() & self.first.q.val();
        self.goes_on.next = self.covered_at.q.val() > self.one_covered.val();

        // Results.
        self.idle.next = self.state.q.val() == LoadState::Idle;
        self.resumable.next = self.can_resume.q.val();
        self.done.next = self.done_out.q.val();
        self.done_out.d.next = false;
        self.outcome.next = self.failed.q.val();
        self.unreached.next = (self.failed.q.val() == self.failed_descriptor.val())
            | (self.failed.q.val() == self.failed_host_read.val());
        self.bus.next = self.reader.bus.val();
        self.successor.next = self.resolver.token.val();
        self.fetched.next = self.fetched_out.q.val();
        self.fetched_out.d.next = false;
        self.entry_write.next = false;
        self.successor_write.next = false;
        self.tail_write.next = false;
        self.entry_data.next = bit_cast::<62, 16>(self.region_at.q.val())
            | (bit_cast::<62, 26>(self.offset_at.q.val()) << 16)
            | (bit_cast::<62, 20>(self.resolver.total.val()) << 42);
        self.segment_write.next = self.resolver.segment_write.val();
        self.segment_number.next = self.resolver.segment_number.val();
        self.segment_bus.next = self.resolver.segment_bus.val();
        self.segment_length.next = self.resolver.segment_length.val();

        // Look-ups: the reader and the resolver never have one at the same time.
        self.tpt.valid.next = self.reader.tpt.valid.val() | self.resolver.tpt.valid.val();
        self.tpt.index.next = self.resolver.tpt.index.val();
        self.tpt.generation.next = self.resolver.tpt.generation.val();
        self.tpt.check_generation.next = !self.reader.tpt.valid.val();
        self.tpt.va_mode.next = !self.reader.tpt.valid.val();
        self.tpt.address.next = self.resolver.tpt.address.val();
        self.tpt.length.next = self.resolver.tpt.length.val();
        if self.reader.tpt.valid.val() {
            self.tpt.index.next = self.reader.tpt.index.val();
            self.tpt.address.next = self.reader.tpt.address.val();
            self.tpt.length.next = self.reader.tpt.length.val();
        }
        self.tpt.tag.next = self.tag.val();
        self.tpt.domain.next = self.domain.val();
        self.tpt.rights.next = 0.into();
        self.reader.tpt.done.next = self.reader.tpt.valid.val() & self.tpt.done.val();
        self.reader.tpt.ok.next = self.tpt.ok.val();
        self.reader.tpt.bus.next = self.tpt.bus.val();
        self.reader.tpt.room.next = self.tpt.room.val();
        self.reader.tpt.offset_64.next = self.tpt.offset_64.val();
        self.resolver.tpt.done.next = self.resolver.tpt.valid.val() & self.tpt.done.val();
        self.resolver.tpt.ok.next = self.tpt.ok.val();
        self.resolver.tpt.bus.next = self.tpt.bus.val();
        self.resolver.tpt.room.next = self.tpt.room.val();
        self.resolver.tpt.offset_64.next = self.tpt.offset_64.val();

        // Reads.
        self.extent.hint.next = self.hint.q.val();
        self.extent.covered.next = self.covered_at.q.val();
        self.extent.follow.next = self.follow.val();
        self.reader.seek.next = (self.state.q.val() == LoadState::Seek) & (!self.renewing.val());
        self.reader.region.next = self.region_at.q.val();
        self.reader.offset.next = self.offset_at.q.val();
        self.reader.wanted.next = self.extent.bytes.val();
        self.reader.renew.next = (self.state.q.val() == LoadState::Seek) & self.renewing.val();
        self.reader.renew_bus.next = self.job_bus.val();
        self.reader.rest.next = self.resolver.rest.val();
        self.reader.need.next = self.resolver.need.val();
        self.reader.step.next =
            (self.state.q.val() == LoadState::Follow) & self.resolver.follows.val();
        self.reader.stride.next = self.resolver.stride.val();
        self.reader.word.next = self.resolver.word.val();

        // The descriptor and its successor.
        self.resolver.start.next = ((self.state.q.val() == LoadState::Follow)
            & self.resolver.follows.val())
            | ((self.state.q.val() == LoadState::Open) & self.reader.opened.val());
        self.resolver.only_next.next = self.renewing.val();
        self.resolver.covers.next = self.goes_on.val() | self.renewing.val();
        self.resolver.forget.next = self.start.val() & (!self.resume.val());
        self.resolver.unreadable.next = false;
        self.resolver.region.next = self.region_at.q.val();
        self.resolver.offset.next = self.offset_at.q.val();
        self.resolver.opened.next = self.reader.opened.val();
        self.resolver.space.next = self.reader.space.val();
        self.resolver.have.next = self.reader.have.val();
        self.resolver.present.next = self.reader.present.val();
        self.resolver.even.next = self.reader.even.val();
        self.resolver.odd.next = self.reader.odd.val();
        self.resolver.reading.next = self.reader.reading.val();
        self.resolver.failed.next = self.reader.failed.val();
        self.reached.next = self.base.q.val() + self.resolver.stride.val().get_bits::<5>(4);
        self.resolver.from.next = 0.into();
        if self.state.q.val() == LoadState::Follow {
            self.resolver.from.next = self.reached.val();
        }
        self.fits.next = self.room_at.q.val() > self.one.val();

        match self.state.q.val() {
            LoadState::Idle => {
                self.first.d.next = true;
                if self.start.val() {
                    self.can_resume.d.next = false;
                    self.room_at.d.next = self.room.val();
                    self.state.d.next = LoadState::Follow;
                    if !self.resume.val() {
                        self.region_at.d.next = self.region.val();
                        self.offset_at.d.next = self.offset.val();
                        self.hint.d.next = self.segments.val();
                        self.covered_at.d.next = self.covered.val();
                        self.state.d.next = LoadState::Seek;
                    }
                }
            }
            LoadState::Follow => {
                self.covered_at.d.next = self.covered_at.q.val() - 1;
                self.region_at.d.next = self.resolver.token.val().get_bits::<16>(0);
                self.offset_at.d.next = self.resolver.token.val().get_bits::<26>(16);
                self.base.d.next = self.reached.val();
                self.state.d.next = LoadState::Seek;
                if self.resolver.follows.val() {
                    self.state.d.next = LoadState::Parse;
                }
            }
            LoadState::Seek => {
                self.base.d.next = 0.into();
                self.state.d.next = LoadState::Open;
                self.failed.d.next = 0.into();
            }
            LoadState::Open => {
                if self.reader.nowhere.val() {
                    self.failed.d.next = self.failed_descriptor.val();
                    if self.reader.unread.val() {
                        self.failed.d.next = self.failed_host_read.val();
                    }
                    self.done_out.d.next = self.serving.val() & self.first.q.val();
                    self.state.d.next = LoadState::Idle;
                } else if self.reader.opened.val() {
                    self.state.d.next = LoadState::Parse;
                    if self.renewing.val() {
                        self.state.d.next = LoadState::Renewed;
                    }
                }
            }
            LoadState::Parse => {
                if self.resolver.done.val() & (!self.reader.reading.val()) {
                    self.state.d.next = LoadState::Idle;
                    self.hint.d.next = self.resolver.hint.val();
                    self.first.d.next = false;
                    self.done_out.d.next = self.serving.val() & self.first.q.val();
                    self.failed.d.next = self.resolver.outcome.val();
                    if self.reader.failed.val() {
                        self.failed.d.next = self.failed_host_read.val();
                    } else if self.resolver.anew.val() {
                        self.first.d.next = self.first.q.val();
                        self.done_out.d.next = false;
                        self.state.d.next = LoadState::Seek;
                    } else if !self.resolver.outcome.val().any() {
                        self.entry_write.next = true;
                        self.successor_write.next = true;
                        self.tail_write.next = true;
                        self.fetched_out.d.next = true;
                        self.can_resume.d.next = self.goes_on.val();
                        if self.goes_on.val() & self.fits.val() & (!self.hurry.val()) {
                            self.can_resume.d.next = false;
                            self.room_at.d.next = self.room_at.q.val() - 1;
                            self.state.d.next = LoadState::Follow;
                        }
                    }
                }
            }
            LoadState::Renewed => {
                if self.resolver.done.val() & (!self.reader.reading.val()) {
                    self.first.d.next = false;
                    self.done_out.d.next = self.serving.val();
                    self.state.d.next = LoadState::Idle;
                    if self.reader.failed.val() {
                        self.resolver.unreadable.next = true;
                    } else {
                        self.tail_write.next = true;
                        if !self.serving.val() {
                            self.successor_write.next = true;
                            self.region_at.d.next = self.resolver.token.val().get_bits::<16>(0);
                            self.offset_at.d.next = self.resolver.token.val().get_bits::<26>(16);
                            self.state.d.next = LoadState::Seek;
                        }
                    }
                }
            }
            _ => {
                self.state.d.next = LoadState::Idle;
            }
        }
        if self.forget.val() {
            self.can_resume.d.next = false;
        }
        if self.reset.val() {
            self.state.d.next = LoadState::Idle;
            self.can_resume.d.next = false;
            self.done_out.d.next = false;
            self.fetched_out.d.next = false;
        }
    }
}
