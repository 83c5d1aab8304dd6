//! Memories with one write port and a stated collision policy.
use rust_hdl::prelude::*;

/// Simple dual-port block RAM of 2^`A` words of `W` bits: one write port, one registered read port,
/// one clock.
///
/// ```text
///                  +-----------+
///  read_address -->|           |--> read_data   (one cycle later)
/// write_address -->|  SdpRam   |
///    write_data -->|   W x 2^A |
///  write_enable -->|           |
///         clock -->|>          |
///                  +-----------+
/// ```
/// **Timing.** `read_data` after a clock edge is the word at the `read_address` before that edge.
/// There is no read enable. A word written at an edge is readable at the next one.
///
/// **Collision.** Reading and writing one address at the same edge reads **nothing of use**: memories of
/// FPGAs do not define it, and a bypass would cost 2 `W` flip-flops, 1.3 `W` LUTs and a level of logic
/// behind the memory. Whoever reads must not look at that word; in simulation it is the complement of
/// the old one, so that a look is found.
///
/// **Start.** All words are zero at power-up; `read_data` is undefined in hardware before the first
/// edge (zero in simulation). There is no reset.
///
/// **Cost.** DP16KD on ECP5, RAMB36 on Xilinx.
#[derive(LogicBlock)]
pub struct SdpRam<const W: usize, const A: usize> {
    pub clock: Signal<In, Clock>,
    pub read_address: Signal<In, Bits<A>>,
    pub read_data: Signal<Out, Bits<W>>,
    pub write_address: Signal<In, Bits<A>>,
    pub write_data: Signal<In, Bits<W>>,
    pub write_enable: Signal<In, Bit>,
    _words: Vec<Bits<W>>,
}

impl<const W: usize, const A: usize> Default for SdpRam<W, A> {
    fn default() -> Self {
        Self {
            clock: Default::default(),
            read_address: Default::default(),
            read_data: Default::default(),
            write_address: Default::default(),
            write_data: Default::default(),
            write_enable: Default::default(),
            _words: vec![Default::default(); 1 << A],
        }
    }
}

impl<const W: usize, const A: usize> Logic for SdpRam<W, A> {
    fn update(&mut self) {
        if self.clock.pos_edge() {
            self.read_data.next = self._words[self.read_address.val().index()];
            if self.write_enable.val() {
                if self.read_address.val() == self.write_address.val() {
                    self.read_data.next = !self._words[self.read_address.val().index()];
                }
                self._words[self.write_address.val().index()] = self.write_data.val();
            }
        }
    }
    fn connect(&mut self) {
        self.read_data.connect();
    }
    fn hdl(&self) -> Verilog {
        Verilog::Custom(format!(
            "\
(* no_rw_check *) reg [{w}:0] words [0:{last}];
integer i;
initial for (i = 0; i <= {last}; i = i + 1) words[i] = 0;
always @(posedge clock) begin
   if (write_enable) words[write_address] <= write_data;
   read_data <= words[read_address];
`ifndef SYNTHESIS
   if (write_enable & (write_address == read_address)) read_data <= ~words[read_address];
`endif
end
",
            w = W - 1,
            last = (1 << A) - 1,
        ))
    }
    fn timing(&self) -> Vec<TimingInfo> {
        vec![TimingInfo {
            name: "sdp_ram".into(),
            clock: "clock".into(),
            inputs: ["read_address", "write_address", "write_data", "write_enable"]
                .map(Into::into)
                .into(),
            outputs: vec!["read_data".into()],
        }]
    }
}

/// [`SdpRam`] with two independent read ports: two copies of the memory, written together.
///
/// Timing, collision policy and start are those of [`SdpRam`], for each read port by itself.
#[derive(LogicBlock, Default)]
pub struct SdpRam2<const W: usize, const A: usize> {
    pub clock: Signal<In, Clock>,
    pub read_address_a: Signal<In, Bits<A>>,
    pub read_data_a: Signal<Out, Bits<W>>,
    pub read_address_b: Signal<In, Bits<A>>,
    pub read_data_b: Signal<Out, Bits<W>>,
    pub write_address: Signal<In, Bits<A>>,
    pub write_data: Signal<In, Bits<W>>,
    pub write_enable: Signal<In, Bit>,
    copy_a: SdpRam<W, A>,
    copy_b: SdpRam<W, A>,
}

impl<const W: usize, const A: usize> Logic for SdpRam2<W, A> {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, copy_a, copy_b);
        self.copy_a.read_address.next = self.read_address_a.val();
        self.copy_b.read_address.next = self.read_address_b.val();
        self.read_data_a.next = self.copy_a.read_data.val();
        self.read_data_b.next = self.copy_b.read_data.val();
        self.copy_a.write_address.next = self.write_address.val();
        self.copy_a.write_data.next = self.write_data.val();
        self.copy_a.write_enable.next = self.write_enable.val();
        self.copy_b.write_address.next = self.write_address.val();
        self.copy_b.write_data.next = self.write_data.val();
        self.copy_b.write_enable.next = self.write_enable.val();
    }
}

/// LUT RAM of 2^`A` words of `W` bits: combinational read, synchronous write.
///
/// ```text
///                  +-----------+
///  read_address -->|           |--> read_data   (same cycle)
/// write_address -->|  LutRam   |
///    write_data -->|   W x 2^A |
///  write_enable -->|           |
///         clock -->|>          |
///                  +-----------+
/// ```
/// **Timing.** `read_data` follows `read_address` without a clock edge. A word written at an edge
/// appears right after it, also on a `read_data` that is looking at it.
///
/// **Start.** All words are zero at power-up. There is no reset.
///
/// **Cost.** `W` x 2^`A` / 64 slices: for small `A` only (up to 5 or 6).
#[derive(LogicBlock)]
pub struct LutRam<const W: usize, const A: usize> {
    pub clock: Signal<In, Clock>,
    pub read_address: Signal<In, Bits<A>>,
    pub read_data: Signal<Out, Bits<W>>,
    pub write_address: Signal<In, Bits<A>>,
    pub write_data: Signal<In, Bits<W>>,
    pub write_enable: Signal<In, Bit>,
    _words: Vec<Bits<W>>,
}

impl<const W: usize, const A: usize> Default for LutRam<W, A> {
    fn default() -> Self {
        Self {
            clock: Default::default(),
            read_address: Default::default(),
            read_data: Default::default(),
            write_address: Default::default(),
            write_data: Default::default(),
            write_enable: Default::default(),
            _words: vec![Default::default(); 1 << A],
        }
    }
}

impl<const W: usize, const A: usize> Logic for LutRam<W, A> {
    fn update(&mut self) {
        if self.clock.pos_edge() && self.write_enable.val() {
            self._words[self.write_address.val().index()] = self.write_data.val();
        }
        self.read_data.next = self._words[self.read_address.val().index()];
    }
    fn connect(&mut self) {
        self.read_data.connect();
    }
    fn hdl(&self) -> Verilog {
        Verilog::Custom(format!(
            "\
reg [{w}:0] words [0:{last}];
integer i;
initial for (i = 0; i <= {last}; i = i + 1) words[i] = 0;
always @(posedge clock)
   if (write_enable) words[write_address] <= write_data;
always @(*) read_data = words[read_address];
",
            w = W - 1,
            last = (1 << A) - 1,
        ))
    }
    fn timing(&self) -> Vec<TimingInfo> {
        vec![TimingInfo {
            name: "lut_ram".into(),
            clock: "clock".into(),
            inputs: ["write_address", "write_data", "write_enable"].map(Into::into).into(),
            outputs: vec![],
        }]
    }
}
