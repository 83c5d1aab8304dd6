//! A constant whose value is part of its type.
use rust_hdl::prelude::*;

/// The number `V`, `W` bits wide, as a `localparam` of the block that holds it.
///
/// Unlike RustHDL's `Constant` it implements `Default`, so that a block with many shared numbers
/// still derives its own `Default`: `regions: Number<32, { limits::REGION_COUNT as u64 }>`. In a
/// kernel it reads `self.regions.val()`.
#[derive(Copy, Clone, Debug)]
pub struct Number<const W: usize, const V: u64>(Constant<Bits<W>>);

impl<const W: usize, const V: u64> Number<W, V> {
    const FITS: () = assert!(W >= 64 || V < 1 << (W % 64), "number wider than its type");

    /// The value.
    #[must_use]
    pub fn val(&self) -> Bits<W> {
        self.0.val()
    }
}

impl<const W: usize, const V: u64> Default for Number<W, V> {
    fn default() -> Self {
        let () = Self::FITS;
        Self(Constant::new(V.to_bits()))
    }
}

impl<const W: usize, const V: u64> Logic for Number<W, V> {
    fn update(&mut self) {}

    fn connect(&mut self) {}
}

impl<const W: usize, const V: u64> Block for Number<W, V> {
    fn connect_all(&mut self) {}

    fn update_all(&mut self) {}

    fn has_changed(&self) -> bool {
        false
    }

    fn accept(&self, name: &str, probe: &mut dyn Probe) {
        self.0.accept(name, probe);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(LogicBlock, Default)]
    struct Sample {
        pub a: Signal<In, Bits<16>>,
        pub hit: Signal<Out, Bit>,
        answer: Number<16, 42>,
    }

    impl Logic for Sample {
        #[hdl_gen]
        fn update(&mut self) {
            self.hit.next = self.a.val() == self.answer.val();
        }
    }

    #[test]
    fn prints_as_a_localparam() {
        let mut block = Sample::default();
        block.connect_all();
        let verilog = generate_verilog(&block);
        assert!(verilog.contains("localparam  answer = 16'h2a;"), "{verilog}");
    }
}
