//! Fair arbiter.
use super::priority::{one_hot_to_index, ones_below};
use rust_hdl::prelude::*;

/// Round-robin arbiter over `N` requests (2 to 256), combinational grant.
///
/// ```text
///            +------------+--> grant        (one-hot, or zero)
/// request -->| RoundRobin |--> grant_index
/// advance -->|            |--> valid        (any request)
///   reset -->|>           |
///            +------------+
/// ```
/// **Timing.** `grant` follows `request` in the same cycle: the first request above the last
/// winner, wrapping around. The pointer moves past the current grant at an edge with `advance`;
/// hold `advance` low to keep a grant that the consumer has not taken. Without `advance` a grant
/// can still change when a request nearer to the pointer appears: hold the index in a register of
/// your own for a multi-beat transfer.
///
/// **Fairness.** A request that stays is granted after at most `N - 1` other grants.
///
/// **Reset.** The lowest index goes first. **Misuse.** `advance` without a request does nothing.
#[derive(LogicBlock)]
pub struct RoundRobin<const N: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub request: Signal<In, Bits<N>>,
    pub advance: Signal<In, Bit>,
    pub grant: Signal<Out, Bits<N>>,
    pub grant_index: Signal<Out, Bits<8>>,
    pub valid: Signal<Out, Bit>,
    /// The index that is looked at first.
    _first: usize,
}

impl<const N: usize> Default for RoundRobin<N> {
    fn default() -> Self {
        const { assert!(N >= 2 && N <= 256, "RoundRobin takes 2 to 256 requests") };
        Self {
            clock: Default::default(),
            reset: Default::default(),
            request: Default::default(),
            advance: Default::default(),
            grant: Default::default(),
            grant_index: Default::default(),
            valid: Default::default(),
            _first: 0,
        }
    }
}

impl<const N: usize> RoundRobin<N> {
    fn winner(&self) -> Option<usize> {
        let request = self.request.val();
        (0..N).map(|step| (self._first + step) % N).find(|&at| request.get_bit(at))
    }
}

impl<const N: usize> Logic for RoundRobin<N> {
    fn update(&mut self) {
        if self.clock.pos_edge() {
            if self.reset.val() {
                self._first = 0;
            } else if self.advance.val()
                && let Some(at) = self.winner()
            {
                self._first = (at + 1) % N;
            }
        }
        let winner = self.winner();
        self.valid.next = winner.is_some();
        self.grant_index.next = winner.unwrap_or(0).to_bits();
        self.grant.next = Bits::default();
        if let Some(at) = winner {
            self.grant.next = self.grant.next.replace_bit(at, true);
        }
    }
    fn connect(&mut self) {
        self.grant.connect();
        self.grant_index.connect();
        self.valid.connect();
    }
    fn hdl(&self) -> Verilog {
        // `above` has ones at the indices after the last winner; zero means that the search starts
        // at index 0. Both searches run side by side.
        Verilog::Custom(format!(
            "\
reg [{n}:0] above;
initial above = 0;
wire [{n}:0] late = request & above;
wire [{n}:0] late_ahead, request_ahead, past;
{below}wire [{n}:0] lowest = (|late) ? (late & ~late_ahead) : (request & ~request_ahead);
{past}always @(posedge clock)
   if (reset) above <= 0;
   else if (advance && |request) above <= past;
always @(*) begin
   grant = lowest;
   valid = |request;
{encoder}end
",
            n = N - 1,
            below =
                ones_below(N, "late", "late_ahead") + &ones_below(N, "request", "request_ahead"),
            past = ones_below(N, "lowest", "past"),
            encoder = one_hot_to_index(N, "lowest", "grant_index"),
        ))
    }
    fn timing(&self) -> Vec<TimingInfo> {
        vec![TimingInfo {
            name: "round_robin".into(),
            clock: "clock".into(),
            inputs: ["reset", "request", "advance"].map(Into::into).into(),
            outputs: vec![],
        }]
    }
}
