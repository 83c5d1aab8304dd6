//! The segment that was looked up last: one that names the same handle and lies behind it in its
//! region needs no look-up of its own, for any VI of the same tag and domain.
//!
//! ```text
//! cycle 0  the handle that comes is compared (`named`, `same` in the next cycle)
//! cycle 1  address and handle are registers: distances from the known one, bus address
//! cycle 2  does it lie there; `bus`
//! cycle 3  `covers`
//! ```

use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct RegionCache {
    pub clock: Signal<In, Clock>,
    /// Pulse: another tag or domain, or the regions may have changed.
    pub forget: Signal<In, Bit>,
    /// The handle that comes, while `names`.
    pub names: Signal<In, Bit>,
    pub named: Signal<In, Bits<32>>,
    /// It is that of the segment that is known.
    pub same: Signal<Out, Bit>,
    /// The segment, stable from the next cycle on.
    pub address: Signal<In, Bits<64>>,
    pub handle: Signal<In, Bits<32>>,
    pub length: Signal<In, Bits<32>>,
    /// With `same`: it lies in the region behind the one that is known, at this bus address.
    pub covers: Signal<Out, Bit>,
    pub bus: Signal<Out, Bits<64>>,
    /// Pulse: the region table's answer for it was good, with so many bytes to the region's end.
    pub learn: Signal<In, Bit>,
    pub found: Signal<In, Bits<64>>,
    pub room: Signal<In, Bits<32>>,
    known: DFF<Bit>,
    known_va: DFF<Bits<64>>,
    known_handle: DFF<Bits<32>>,
    known_bus: DFF<Bits<64>>,
    known_room: DFF<Bits<32>>,
    // Of what is known: the region's end; from addresses to bus addresses.
    limit: DFF<Bits<64>>,
    shift: DFF<Bits<64>>,
    same_at: DFF<Bit>,
    gap: DFF<Bits<64>>,
    slack: DFF<Bits<64>>,
    bus_at: DFF<Bits<64>>,
    covers_at: DFF<Bit>,
}

impl Logic for RegionCache {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, known, known_va, known_handle, known_bus, known_room, limit, shift);
        dff_setup!(self, clock, same_at, gap, slack, bus_at, covers_at);
        if self.names.val() {
            self.same_at.d.next =
                self.known.q.val() & (self.named.val() == self.known_handle.q.val());
        }
        self.same.next = self.same_at.q.val();

        // Regions do not wrap, though the end may be that of the address space: 0.
        self.limit.d.next = self.known_va.q.val() + bit_cast::<64, 32>(self.known_room.q.val());
        self.shift.d.next = self.known_bus.q.val() - self.known_va.q.val();
        self.gap.d.next = self.address.val() - self.known_va.q.val();
        self.slack.d.next = self.limit.q.val() - self.address.val();
        self.bus_at.d.next = self.address.val() + self.shift.q.val();
        self.covers_at.d.next = (!self.gap.q.val().get_bits::<32>(32).any())
            & (!self.slack.q.val().get_bits::<32>(32).any())
            & (self.slack.q.val().get_bits::<32>(0) >= self.length.val());
        self.covers.next = self.covers_at.q.val();
        self.bus.next = self.bus_at.q.val();

        if self.learn.val() {
            self.known.d.next = true;
            self.known_va.d.next = self.address.val();
            self.known_handle.d.next = self.handle.val();
            self.known_bus.d.next = self.found.val();
            self.known_room.d.next = self.room.val();
        }
        if self.forget.val() {
            self.known.d.next = false;
            self.same_at.d.next = false;
        }
    }
}
