//! Two-entry stream buffer.
use rust_hdl::prelude::*;

/// Registered valid/ready buffer of two `W`-bit entries: cuts the paths of data, valid *and* ready.
///
/// ```text
///             +--------+
///  in_data -->|        |--> out_data
/// in_valid -->|  Skid  |--> out_valid
/// in_ready <--|        |<-- out_ready
///    reset -->|>       |
///             +--------+
/// ```
/// A beat moves on a side at an edge with valid and ready both high. `in_ready`, `out_valid` and
/// `out_data` come straight from registers and depend on no input of the same cycle.
///
/// **Timing.** One cycle from in to out; one beat per cycle in steady state. `out_data` is stable
/// while `out_valid` waits for `out_ready`. When the output stalls, one more beat is taken, then
/// `in_ready` falls.
///
/// **Reset.** Empties it: `out_valid` low, `in_ready` high. Beats offered during reset are lost.
/// **Misuse.** None: `in_valid` without `in_ready` and `out_ready` without `out_valid` do nothing.
#[derive(LogicBlock)]
pub struct Skid<const W: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub in_data: Signal<In, Bits<W>>,
    pub in_valid: Signal<In, Bit>,
    pub in_ready: Signal<Out, Bit>,
    pub out_data: Signal<Out, Bits<W>>,
    pub out_valid: Signal<Out, Bit>,
    pub out_ready: Signal<In, Bit>,
    _spare: Bits<W>,
}

impl<const W: usize> Default for Skid<W> {
    fn default() -> Self {
        Self {
            clock: Default::default(),
            reset: Default::default(),
            in_data: Default::default(),
            in_valid: Default::default(),
            in_ready: Signal::new_with_default(true),
            out_data: Default::default(),
            out_valid: Default::default(),
            out_ready: Default::default(),
            _spare: Default::default(),
        }
    }
}

impl<const W: usize> Logic for Skid<W> {
    fn update(&mut self) {
        if !self.clock.pos_edge() {
            return;
        }
        let taken = self.in_valid.val() && self.in_ready.val();
        if self.out_ready.val() || !self.out_valid.val() {
            self.out_data.next = if self.in_ready.val() { self.in_data.val() } else { self._spare };
            self.out_valid.next = taken || !self.in_ready.val();
            self.in_ready.next = true;
        } else if taken {
            self._spare = self.in_data.val();
            self.in_ready.next = false;
        }
        if self.reset.val() {
            self.out_valid.next = false;
            self.in_ready.next = true;
        }
    }
    fn connect(&mut self) {
        self.in_ready.connect();
        self.out_data.connect();
        self.out_valid.connect();
    }
    fn hdl(&self) -> Verilog {
        // The spare entry is full exactly while in_ready is low.
        Verilog::Custom(format!(
            "\
reg [{w}:0] spare;
initial begin
   in_ready = 1'b1;
   out_valid = 1'b0;
end
wire taken = in_valid & in_ready;
always @(posedge clock) begin
   if (out_ready | ~out_valid) begin
      out_data <= in_ready ? in_data : spare;
      out_valid <= taken | ~in_ready;
      in_ready <= 1'b1;
   end else if (taken) begin
      spare <= in_data;
      in_ready <= 1'b0;
   end
   if (reset) begin
      out_valid <= 1'b0;
      in_ready <= 1'b1;
   end
end
",
            w = W - 1,
        ))
    }
    fn timing(&self) -> Vec<TimingInfo> {
        vec![TimingInfo {
            name: "skid".into(),
            clock: "clock".into(),
            inputs: ["reset", "in_data", "in_valid", "out_ready"].map(Into::into).into(),
            outputs: ["in_ready", "out_data", "out_valid"].map(Into::into).into(),
        }]
    }
}
