//! The NIC: wires only. Every port of every block is joined here; the only logic is the or of pulses and resets.

use crate::admin::Admin;
use crate::channel::Channel;
use crate::csr::Csr;
use crate::event::EventQueues;
use crate::ifs::*;
use crate::pcie::cq::Cq;
use crate::pcie::dma_read::DmaRead;
use crate::pcie::dma_write::DmaWrite;
use crate::pcie::rq::Rq;
use crate::recv::Recv;
use crate::send::Send;
use crate::tpt::Tpt;
use crate::vi::Vi;
use rust_hdl::prelude::*;

/// ```text
///            +-----------------------------------------------+
///   cq  ====>| requests of the host          to the link     |====> tx
///   cc <====| completions to the host                        |
///   rq <====| requests of the device         from the link   |<==== rx
///   rc  ====>| completions to the device                     |
///            +-----------------------------------------------+
/// ```
/// Streams of 64-bit beats (`nic_regs::tlp`, `nic_regs::frame`), one clock, synchronous reset.
#[derive(LogicBlock, Default)]
pub struct Top {
    /// Core clock.
    pub clock: Signal<In, Clock>,
    /// Synchronous, active high.
    pub reset: Signal<In, Bit>,
    pub cq_valid: Signal<In, Bit>,
    pub cq_data: Signal<In, Bits<64>>,
    pub cq_last: Signal<In, Bit>,
    pub cq_bar: Signal<In, Bits<3>>,
    pub cq_ready: Signal<Out, Bit>,
    pub cc_valid: Signal<Out, Bit>,
    pub cc_data: Signal<Out, Bits<64>>,
    pub cc_last: Signal<Out, Bit>,
    pub cc_ready: Signal<In, Bit>,
    pub rq_valid: Signal<Out, Bit>,
    pub rq_data: Signal<Out, Bits<64>>,
    pub rq_last: Signal<Out, Bit>,
    pub rq_ready: Signal<In, Bit>,
    pub rc_valid: Signal<In, Bit>,
    pub rc_data: Signal<In, Bits<64>>,
    pub rc_last: Signal<In, Bit>,
    pub tx_valid: Signal<Out, Bit>,
    pub tx_data: Signal<Out, Bits<64>>,
    pub tx_last: Signal<Out, Bit>,
    pub tx_ready: Signal<In, Bit>,
    pub rx_valid: Signal<In, Bit>,
    pub rx_data: Signal<In, Bits<64>>,
    pub rx_last: Signal<In, Bit>,
    cq: Cq,
    csr: Csr,
    dma_read: DmaRead,
    dma_write: DmaWrite,
    rq: Rq,
    admin: Admin,
    tpt: Tpt,
    vi: Vi,
    events: EventQueues,
    send: Send,
    recv: Recv,
    channel: Channel,
    core_reset: DFF<Bit>,
    ready: DFF<Bit>,
    counts: DFF<Bits<64>>,
}
