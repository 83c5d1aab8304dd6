//! Sends the pieces of read requests.
//!
//! ```text
//! Idle -> [Head0 ->] Head1 -> Idle
//!   `---> Drop -> Idle                 no tag will come: the piece fails
//! ```
//! In Idle a piece meets a tag: the completion side learns what to expect and the delivery side
//! where it stands in order. Header beat 0 is offered in that cycle.
use crate::leaf::Number;
use crate::pcie::TlpClient;
use nic_regs::tlp;
use rust_hdl::prelude::*;

#[derive(LogicState, Copy, Clone, Debug, PartialEq)]
pub enum IssueState {
    /// Waits for a piece and a tag, then offers header beat 0.
    Idle,
    /// It was not taken at once.
    Head0,
    /// Sends header beat 1.
    Head1,
    /// Removes a piece that has failed.
    Drop,
}

/// See the module's text.
#[derive(LogicBlock, Default)]
pub struct Issue {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub requester: Signal<In, Bits<16>>,
    /// The piece at the head of the cutter.
    pub piece_valid: Signal<In, Bit>,
    pub address: Signal<In, Bits<64>>,
    pub length_dw: Signal<In, Bits<10>>,
    pub first_be: Signal<In, Bits<4>>,
    pub last_be: Signal<In, Bits<4>>,
    pub piece_take: Signal<Out, Bit>,
    pub tag_valid: Signal<In, Bit>,
    pub tag: Signal<In, Bits<5>>,
    /// Pulse: this piece uses this tag.
    pub open: Signal<Out, Bit>,
    /// All tags are in quarantine.
    pub refuse: Signal<In, Bit>,
    /// Pulse: this piece fails, without a tag.
    pub refused: Signal<Out, Bit>,
    /// No piece is in flight.
    pub idle: Signal<Out, Bit>,
    pub sent: Signal<Out, Bit>,
    pub sent_tag: Signal<Out, Bits<5>>,
    pub out: TlpClient,
    state: DFF<IssueState>,
    used_tag: DFF<Bits<5>>,
    tag_now: Signal<Local, Bits<5>>,
    kind: Number<64, { (tlp::MEM_READ as u64) << 24 }>,
    dword_mask: Number<64, { !3 }>,
}

impl Logic for Issue {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, used_tag);
        self.open.next = false;
        self.refused.next = false;
        self.idle.next = self.state.q.val() == IssueState::Idle;
        self.sent.next = false;
        self.piece_take.next = false;
        self.sent_tag.next = self.used_tag.q.val();
        self.tag_now.next = self.used_tag.q.val();
        if self.state.q.val() == IssueState::Idle {
            self.tag_now.next = self.tag.val();
        }
        self.out.valid.next = false;
        self.out.last.next = false;
        self.out.data.next = self.kind.val()
            | bit_cast::<64, 10>(self.length_dw.val())
            | (bit_cast::<64, 4>(self.first_be.val()) << 32)
            | (bit_cast::<64, 4>(self.last_be.val()) << 36)
            | (bit_cast::<64, 5>(self.tag_now.val()) << 40)
            | (bit_cast::<64, 16>(self.requester.val()) << 48);
        match self.state.q.val() {
            IssueState::Idle => {
                self.used_tag.d.next = self.tag.val();
                if self.piece_valid.val() & self.tag_valid.val() {
                    self.open.next = !self.reset.val();
                    self.out.valid.next = !self.reset.val();
                    self.state.d.next = IssueState::Head0;
                    if self.out.ready.val() {
                        self.state.d.next = IssueState::Head1;
                    }
                } else if self.piece_valid.val() & self.refuse.val() {
                    self.refused.next = !self.reset.val();
                    self.state.d.next = IssueState::Drop;
                }
            }
            IssueState::Drop => {
                self.piece_take.next = true;
                self.state.d.next = IssueState::Idle;
            }
            IssueState::Head0 => {
                self.out.valid.next = true;
                if self.out.ready.val() {
                    self.state.d.next = IssueState::Head1;
                }
            }
            IssueState::Head1 => {
                self.out.valid.next = true;
                self.out.last.next = true;
                self.out.data.next = self.address.val() & self.dword_mask.val();
                if self.out.ready.val() {
                    self.sent.next = true;
                    self.piece_take.next = true;
                    self.state.d.next = IssueState::Idle;
                }
            }
            _ => {
                self.state.d.next = IssueState::Idle;
            }
        }
        if self.reset.val() {
            self.state.d.next = IssueState::Idle;
            self.sent.next = false;
        }
    }
}
