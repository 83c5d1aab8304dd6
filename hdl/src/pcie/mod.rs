//! The host port: requests of the host, requests of the device, and their completions, as streams
//! of TLP beats (`nic_regs::tlp`).
//!
//! ```text
//!  cq ==> [cq] --> csr, doorbells           [dma_read] ==\
//!  cc <== [cq]                              [dma_write] ==> [rq] ==> rq
//!                                 rc ==> [dma_read]
//! ```
//!
//! | module | what |
//! |---|---|
//! | [`cq`] | host requests: BAR accesses, and their completions |
//! | [`parse`] | TLPs taken apart |
//! | [`doorbell`] | BAR2 writes, sorted into token doorbells, event doorbells and words of pushes |
//! | [`push`] | push lines, collected word by word |
//! | [`cutter`] | cuts requests of four clients into TLP-sized pieces |
//! | [`dma_read`] | host reads of four clients |
//! | [`read`] | the parts of `dma_read` |
//! | [`dma_write`] | host writes of four clients |
//! | [`rq`] | merges reads and writes |

pub mod cq;
pub mod cutter;
pub mod dma_read;
pub mod dma_write;
pub mod doorbell;
pub mod parse;
pub mod push;
pub mod read;
pub mod rq;

use rust_hdl::prelude::*;

/// A stream of TLP beats inside the host port; `last` ends a TLP.
#[derive(Clone, Debug, Default, LogicInterface)]
#[join = "TlpServer"]
pub struct TlpClient {
    pub valid: Signal<Out, Bit>,
    pub data: Signal<Out, Bits<64>>,
    pub last: Signal<Out, Bit>,
    pub ready: Signal<In, Bit>,
}

/// The receiving side of [`TlpClient`].
#[derive(Clone, Debug, Default, LogicInterface)]
#[join = "TlpClient"]
pub struct TlpServer {
    pub valid: Signal<In, Bit>,
    pub data: Signal<In, Bits<64>>,
    pub last: Signal<In, Bit>,
    pub ready: Signal<Out, Bit>,
}
