//! Lowest set bit.
use rust_hdl::prelude::*;

/// Index of the lowest set bit of `value`, combinational.
///
/// ```text
///          +----------+--> found
/// value -->| FirstOne |
///          +----------+--> index
/// ```
/// `N` is 2 to 256. `index` is 0 while nothing is `found`.
///
/// **Timing.** No register: a carry chain over `N` bits, then an OR tree. Register around it above
/// 64 bits.
#[derive(LogicBlock)]
pub struct FirstOne<const N: usize> {
    pub value: Signal<In, Bits<N>>,
    pub index: Signal<Out, Bits<8>>,
    pub found: Signal<Out, Bit>,
}

impl<const N: usize> Default for FirstOne<N> {
    fn default() -> Self {
        const { assert!(N >= 2 && N <= 256, "FirstOne takes 2 to 256 bits") };
        Self { value: Default::default(), index: Default::default(), found: Default::default() }
    }
}

impl<const N: usize> Logic for FirstOne<N> {
    fn update(&mut self) {
        let value = self.value.val();
        let first = (0..N).find(|&at| value.get_bit(at));
        self.index.next = first.unwrap_or(0).to_bits();
        self.found.next = first.is_some();
    }
    fn connect(&mut self) {
        self.index.connect();
        self.found.connect();
    }
    fn hdl(&self) -> Verilog {
        Verilog::Custom(format!(
            "\
wire [{n}:0] lowest = value & (~value + 1'b1);
always @(*) begin
   found = |value;
{encoder}end
",
            n = N - 1,
            encoder = one_hot_to_index(N, "lowest", "index"),
        ))
    }
}

/// Verilog assignments that turn one-hot `from` of `width` bits into the 8-bit index `to` (zero for
/// zero).
pub(super) fn one_hot_to_index(width: usize, from: &str, to: &str) -> String {
    (0..8)
        .map(|bit| {
            let mask: String =
                (0..width).rev().map(|at| if at >> bit & 1 == 1 { '1' } else { '0' }).collect();
            format!("   {to}[{bit}] = |({from} & {width}'b{mask});\n")
        })
        .collect()
}

/// Verilog assignments of `to`: bit n says whether any bit of `from` below n is set.
pub(super) fn ones_below(width: usize, from: &str, to: &str) -> String {
    let mut text = format!("assign {to}[0] = 1'b0;\n");
    for at in 1..width {
        text.push_str(&format!("assign {to}[{at}] = |{from}[{}:0];\n", at - 1));
    }
    text
}
