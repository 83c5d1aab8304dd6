//! What the end of a descriptor means for its status, and for the VI: the table of contract 4.4,
//! 4.5, 5.2 and 6.1, for both engines. Combinational.

use crate::leaf::Number;
use nic_regs::desc::status;
use nic_regs::vi::StopReason;
use rust_hdl::prelude::*;

// The operation's number is its place in the status word.
const _: () = assert!(status::OP_MASK == 7 << 16);

/// Why an engine is done with a descriptor or a VI; the first five are [`super::Outcome`].
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Success.
    Done = 0,
    /// The descriptor cannot be reached.
    Descriptor = 1,
    /// The host port failed to read the descriptor.
    HostRead = 2,
    /// Malformed.
    Format = 3,
    /// A segment is not allowed.
    Protection = 4,
    /// Too long, or a frame that does not fit its message.
    Length = 5,
    /// The host port failed to read the data of a send.
    Data = 6,
    /// The peer's VI takes no RDMA writes (a send descriptor).
    WriteBarred = 7,
    /// No receive descriptor.
    ReceiveEmpty = 8,
    /// The peer refused a message.
    Refused = 9,
    /// The peer refused a message on a Reception VI.
    RefusedReception = 10,
    /// The peer disconnected.
    Disconnected = 11,
    /// A frame that does not fit its message, where no descriptor is in use.
    Misfit = 12,
    /// An RDMA write of the peer is not allowed.
    RdmaWrite = 13,
    /// The peer's VI takes no RDMA reads (a send descriptor).
    ReadBarred = 14,
    /// An RDMA read of the peer is not allowed.
    RdmaRead = 15,
}

#[derive(LogicBlock, Default)]
pub struct Verdict {
    /// See [`Cause`].
    pub cause: Signal<In, Bits<4>>,
    pub partial: Signal<In, Bit>,
    /// As in `status::OP_*`, 18:16.
    pub operation: Signal<In, Bits<3>>,
    /// The peer's reason for a refusal.
    pub detail: Signal<In, Bits<8>>,
    /// Immediate data is there (success only).
    pub immediate: Signal<In, Bit>,
    pub status_word: Signal<Out, Bits<32>>,
    pub reason: Signal<Out, Bits<8>>,
    pub stop_status: Signal<Out, Bits<32>>,
    /// The descriptor is completed with an error status; else the VI just stops (means nothing on
    /// success).
    pub completes: Signal<Out, Bit>,
    errors: Signal<Local, Bits<32>>,
    extra: Signal<Local, Bits<32>>,
    cause_done: Number<4, { Cause::Done as u64 }>,
    cause_descriptor: Number<4, { Cause::Descriptor as u64 }>,
    cause_host_read: Number<4, { Cause::HostRead as u64 }>,
    cause_format: Number<4, { Cause::Format as u64 }>,
    cause_protection: Number<4, { Cause::Protection as u64 }>,
    cause_length: Number<4, { Cause::Length as u64 }>,
    cause_data: Number<4, { Cause::Data as u64 }>,
    cause_write_barred: Number<4, { Cause::WriteBarred as u64 }>,
    cause_empty: Number<4, { Cause::ReceiveEmpty as u64 }>,
    cause_refused: Number<4, { Cause::Refused as u64 }>,
    cause_refused_reception: Number<4, { Cause::RefusedReception as u64 }>,
    cause_misfit: Number<4, { Cause::Misfit as u64 }>,
    cause_read_barred: Number<4, { Cause::ReadBarred as u64 }>,
    cause_rdma_read: Number<4, { Cause::RdmaRead as u64 }>,
    cause_rdma_write: Number<4, { Cause::RdmaWrite as u64 }>,
    reason_rdma_read: Number<8, { StopReason::RdmaRead as u64 }>,
    reason_rdma_write: Number<8, { StopReason::RdmaWrite as u64 }>,
    reason_format: Number<8, { StopReason::Format as u64 }>,
    reason_protection: Number<8, { StopReason::Protection as u64 }>,
    reason_length: Number<8, { StopReason::Length as u64 }>,
    reason_descriptor: Number<8, { StopReason::Descriptor as u64 }>,
    reason_host_read: Number<8, { StopReason::HostRead as u64 }>,
    reason_empty: Number<8, { StopReason::ReceiveEmpty as u64 }>,
    reason_refused: Number<8, { StopReason::Refused as u64 }>,
    reason_disconnected: Number<8, { StopReason::Disconnected as u64 }>,
    bit_done: Number<32, { status::DONE as u64 }>,
    bit_format: Number<32, { status::FORMAT_ERROR as u64 }>,
    bit_protection: Number<32, { status::PROTECTION_ERROR as u64 }>,
    bit_length: Number<32, { status::LENGTH_ERROR as u64 }>,
    bit_partial: Number<32, { status::PARTIAL_ERROR as u64 }>,
    bit_flushed: Number<32, { status::DESC_FLUSHED_ERROR as u64 }>,
    bit_transport: Number<32, { status::TRANSPORT_ERROR as u64 }>,
    bit_remote: Number<32, { status::REMOTE_DESC_ERROR as u64 }>,
    bit_immediate: Number<32, { status::IMMEDIATE as u64 }>,
    bit_rdma: Number<32, { status::RDMA_PROT_ERROR as u64 }>,
}

impl Logic for Verdict {
    #[hdl_gen]
    fn update(&mut self) {
        self.errors.next = 0.into();
        self.completes.next = false;
        self.reason.next = self.reason_disconnected.val();
        self.stop_status.next = self.bit_flushed.val();
        if self.cause.val() == self.cause_descriptor.val() {
            self.reason.next = self.reason_descriptor.val();
            self.stop_status.next = self.bit_protection.val();
        } else if self.cause.val() == self.cause_host_read.val() {
            self.reason.next = self.reason_host_read.val();
            self.stop_status.next = self.bit_transport.val();
        } else if self.cause.val() == self.cause_format.val() {
            self.completes.next = true;
            self.errors.next = self.bit_format.val();
            self.reason.next = self.reason_format.val();
        } else if self.cause.val() == self.cause_protection.val() {
            self.completes.next = true;
            self.errors.next = self.bit_protection.val();
            self.reason.next = self.reason_protection.val();
        } else if self.cause.val() == self.cause_length.val() {
            self.completes.next = true;
            self.errors.next = self.bit_length.val();
            self.reason.next = self.reason_length.val();
        } else if self.cause.val() == self.cause_data.val() {
            self.completes.next = true;
            self.errors.next = self.bit_transport.val();
            self.reason.next = self.reason_host_read.val();
        } else if self.cause.val() == self.cause_write_barred.val() {
            self.completes.next = true;
            self.errors.next = self.bit_rdma.val();
            self.reason.next = self.reason_rdma_write.val();
        } else if self.cause.val() == self.cause_empty.val() {
            self.reason.next = self.reason_empty.val();
        } else if self.cause.val() == self.cause_refused.val() {
            self.reason.next = self.reason_refused.val();
            self.stop_status.next = self.bit_transport.val();
            if self.detail.val() == self.reason_rdma_read.val() {
                self.stop_status.next = self.bit_rdma.val();
            }
        } else if self.cause.val() == self.cause_refused_reception.val() {
            self.reason.next = self.reason_refused.val();
            self.stop_status.next = self.bit_remote.val();
            if (self.detail.val() == self.reason_rdma_write.val())
                | (self.detail.val() == self.reason_rdma_read.val())
            {
                self.stop_status.next = self.bit_rdma.val();
            }
        } else if self.cause.val() == self.cause_misfit.val() {
            self.reason.next = self.reason_length.val();
        } else if self.cause.val() == self.cause_rdma_write.val() {
            self.reason.next = self.reason_rdma_write.val();
        } else if self.cause.val() == self.cause_read_barred.val() {
            self.completes.next = true;
            self.errors.next = self.bit_rdma.val();
            self.reason.next = self.reason_rdma_read.val();
        } else if self.cause.val() == self.cause_rdma_read.val() {
            self.reason.next = self.reason_rdma_read.val();
        }
        self.extra.next = 0.into();
        if self.cause.val() == self.cause_done.val() {
            if self.immediate.val() {
                self.extra.next = self.bit_immediate.val();
            }
        } else if self.partial.val() {
            self.extra.next = self.bit_partial.val();
        }
        self.status_word.next = self.bit_done.val()
            | self.errors.val()
            | self.extra.val()
            | (bit_cast::<32, 3>(self.operation.val()) << 16);
    }
}
