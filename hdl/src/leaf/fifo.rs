//! Synchronous FIFO.
use rust_hdl::prelude::*;

/// Synchronous first-word-fall-through FIFO of 2^`A` entries of `W` bits; `A` is 2 to 15.
///
/// ```text
///             +--------+
///  data_in -->|        |--> data_out     (valid while not empty)
///    write -->|        |<-- read
///     full <--|  Fifo  |--> empty
/// almost_full<|        |--> level
///    reset -->|>       |--> fault
///             +--------+
/// ```
/// `data_out` shows the oldest entry whenever `empty` is low; `read` removes it at the edge. All
/// outputs except `data_out` of the small version come straight from registers.
///
/// | output | meaning |
/// |---|---|
/// | `full` | `level` is 2^`A` |
/// | `almost_full` | `level` is at least 2^`A` - 2: stop a producer that has one beat in flight |
/// | `level` | entries accepted and not yet read |
/// | `fault` | sticky until reset: a write while `full`, or a read while `empty` |
///
/// **Timing.** Up to `A` = 5 it is LUT RAM: an entry written at an edge is visible after it. Above,
/// it is block RAM with an output register and is visible after two more edges: `empty` can be high
/// for two cycles while `level` is not zero. Either sustains a write and a read per cycle.
///
/// **Misuse.** A write while `full` (even together with a read) and a read while `empty` (even
/// together with a write) are ignored and raise `fault`. **Reset.** Empties it and clears `fault`;
/// `data_out` keeps a meaningless value.
#[derive(LogicBlock)]
pub struct Fifo<const W: usize, const A: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub write: Signal<In, Bit>,
    pub data_in: Signal<In, Bits<W>>,
    pub full: Signal<Out, Bit>,
    pub almost_full: Signal<Out, Bit>,
    pub read: Signal<In, Bit>,
    pub data_out: Signal<Out, Bits<W>>,
    pub empty: Signal<Out, Bit>,
    pub level: Signal<Out, Bits<16>>,
    pub fault: Signal<Out, Bit>,
    _words: Vec<Bits<W>>,
    _write_at: usize,
    _read_at: usize,
    _level: usize,
    _fetched: bool,
    _fetched_word: Bits<W>,
}

impl<const W: usize, const A: usize> Default for Fifo<W, A> {
    fn default() -> Self {
        const { assert!(A >= 2 && A <= 15, "Fifo takes an address of 2 to 15 bits") };
        Self {
            clock: Default::default(),
            reset: Default::default(),
            write: Default::default(),
            data_in: Default::default(),
            full: Default::default(),
            almost_full: Default::default(),
            read: Default::default(),
            data_out: Default::default(),
            empty: Signal::new_with_default(true),
            level: Default::default(),
            fault: Default::default(),
            _words: vec![Default::default(); 1 << A],
            _write_at: 0,
            _read_at: 0,
            _level: 0,
            _fetched: false,
            _fetched_word: Default::default(),
        }
    }
}

impl<const W: usize, const A: usize> Fifo<W, A> {
    const DEPTH: usize = 1 << A;
    /// Depth decides the memory: at 64 entries and more a block RAM is cheaper than LUTs.
    const IN_BLOCK_RAM: bool = A > 5;

    /// The memory and its pointers at one edge: `push` and `pop` are already checked.
    fn move_words(&mut self, push: bool, pop: bool) {
        if Self::IN_BLOCK_RAM {
            let unread = self._level - usize::from(self._fetched) - usize::from(!self.empty.val());
            let shift = self._fetched && (pop || self.empty.val());
            let fetch = unread > 0 && (shift || !self._fetched);
            if shift {
                self.data_out.next = self._fetched_word;
            }
            self.empty.next = !shift && (pop || self.empty.val());
            if fetch {
                self._fetched_word = self._words[self._read_at];
                self._read_at = (self._read_at + 1) % Self::DEPTH;
            }
            self._fetched = fetch || (self._fetched && !shift);
        } else if pop {
            self._read_at = (self._read_at + 1) % Self::DEPTH;
        }
        if push {
            self._words[self._write_at] = self.data_in.val();
            self._write_at = (self._write_at + 1) % Self::DEPTH;
        }
    }
}

impl<const W: usize, const A: usize> Logic for Fifo<W, A> {
    fn update(&mut self) {
        if self.clock.pos_edge() {
            let (write, read) = (self.write.val(), self.read.val());
            let (full, empty) = (self.full.val(), self.empty.val());
            self.move_words(write && !full, read && !empty);
            self._level = self._level + usize::from(write && !full) - usize::from(read && !empty);
            self.fault.next = self.fault.val() || (write && full) || (read && empty);
            if self.reset.val() {
                (self._level, self._write_at, self._read_at) = (0, 0, 0);
                self._fetched = false;
                self.fault.next = false;
            }
            self.level.next = self._level.to_bits();
            self.full.next = self._level == Self::DEPTH;
            self.almost_full.next = self._level >= Self::DEPTH - 2;
            if self.reset.val() || !Self::IN_BLOCK_RAM {
                self.empty.next = self._level == 0;
            }
        }
        if !Self::IN_BLOCK_RAM {
            self.data_out.next = self._words[self._read_at];
        }
    }
    fn connect(&mut self) {
        self.full.connect();
        self.almost_full.connect();
        self.data_out.connect();
        self.empty.connect();
        self.level.connect();
        self.fault.connect();
    }
    fn hdl(&self) -> Verilog {
        let storage = if Self::IN_BLOCK_RAM { BLOCK_RAM } else { LUT_RAM };
        let text = [COMMON, storage].concat();
        Verilog::Custom(
            text.replace("WIDTH-1", &(W - 1).to_string())
                .replace("DEPTH-1", &(Self::DEPTH - 1).to_string())
                .replace("DEPTH-3", &(Self::DEPTH - 3).to_string())
                .replace("ADDRESS-1", &(A - 1).to_string())
                .replace("ADDRESS", &A.to_string()),
        )
    }
    fn timing(&self) -> Vec<TimingInfo> {
        vec![TimingInfo {
            name: "fifo".into(),
            clock: "clock".into(),
            inputs: ["reset", "write", "data_in", "read"].map(Into::into).into(),
            outputs: ["full", "almost_full", "empty", "level", "fault"].map(Into::into).into(),
        }]
    }
}

/// Pointers, level and flags. The flags are registers computed from the old level, so that `write`
/// and `read` may arrive late: what they become is chosen by `push` alone, `pop` only enables them.
/// `no_rw_check` tells synthesis that no word is read while it is written, which saves a bypass on
/// ECP5.
const COMMON: &str = "\
(* no_rw_check *) reg [WIDTH-1:0] words [0:DEPTH-1];
reg [ADDRESS-1:0] write_at;
reg [ADDRESS-1:0] read_at;
reg [ADDRESS:0] held;
initial begin
   write_at = 0; read_at = 0; held = 0;
   full = 1'b0; almost_full = 1'b0; empty = 1'b1; fault = 1'b0;
end
wire push = write & ~full;
wire pop = read & ~empty;
always @(*) level = held;
always @(posedge clock) begin
   if (push) write_at <= write_at + 1'b1;
   if (push ^ pop) begin
      held <= push ? held + 1'b1 : held - 1'b1;
      full <= push & (held == DEPTH-1);
      almost_full <= push ? (held >= DEPTH-3) : (held >= DEPTH-1);
   end
   if ((write & full) | (read & empty)) fault <= 1'b1;
   if (reset) begin
      write_at <= 0; held <= 0;
      full <= 1'b0; almost_full <= 1'b0; fault <= 1'b0;
   end
end
always @(posedge clock) if (push) words[write_at] <= data_in;
";

/// Combinational read: the head of the memory is the head of the FIFO.
const LUT_RAM: &str = "\
always @(*) data_out = words[read_at];
always @(posedge clock) begin
   if (pop) read_at <= read_at + 1'b1;
   if (push ^ pop) empty <= ~push & (held == 1);
   if (reset) begin read_at <= 0; empty <= 1'b1; end
end
";

/// Registered read, then an output register: a fetched word shifts on as soon as the output is
/// free. `unread` counts what is still in the memory alone, so a fetch never meets the write of its
/// own word.
const BLOCK_RAM: &str = "\
reg [WIDTH-1:0] fetched_word;
reg fetched;
reg [ADDRESS:0] unread;
initial begin fetched = 1'b0; unread = 0; end
wire shift = fetched & (pop | empty);
wire fetch = (|unread) & (shift | ~fetched);
always @(posedge clock) if (fetch) fetched_word <= words[read_at];
always @(posedge clock) begin
   if (shift) data_out <= fetched_word;
   if (fetch) read_at <= read_at + 1'b1;
   empty <= ~shift & (pop | empty);
   fetched <= fetch | (fetched & ~shift);
   if (push ^ fetch) unread <= push ? unread + 1'b1 : unread - 1'b1;
   if (reset) begin read_at <= 0; unread <= 0; fetched <= 1'b0; empty <= 1'b1; end
end
";
