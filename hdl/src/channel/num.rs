//! A shared number as a field that needs no line in `Default`.
use rust_hdl::core::prelude::Probe;
use rust_hdl::prelude::*;

/// The constant `V` in `N` bits, for kernels: a [`Constant`] whose value is in its type, so that
/// blocks can derive `Default`. Prints as `localparam name = N'hV;`.
#[derive(Clone, Debug)]
pub struct Num<const N: usize, const V: u64>(Constant<Bits<N>>);

impl<const N: usize, const V: u64> Default for Num<N, V> {
    fn default() -> Self {
        const { assert!(N >= 64 || V >> N == 0, "the number does not fit its width") };
        Self(Constant::new(V.to_bits()))
    }
}

impl<const N: usize, const V: u64> Num<N, V> {
    /// The number; for kernels.
    #[must_use]
    pub fn val(&self) -> Bits<N> {
        self.0.val()
    }
}

impl<const N: usize, const V: u64> Logic for Num<N, V> {
    fn update(&mut self) {}
}

impl<const N: usize, const V: u64> Block for Num<N, V> {
    fn connect_all(&mut self) {}
    fn update_all(&mut self) {}
    fn has_changed(&self) -> bool {
        false
    }
    fn accept(&self, name: &str, probe: &mut dyn Probe) {
        self.0.accept(name, probe);
    }
}
