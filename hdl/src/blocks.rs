//! The table of blocks: the one list of what is Verilated, and compared with RustHDL's simulation
//! of the same block.

/// Calls `$each!` with the table of blocks.
///
/// One line is `name: Type [options];`. The name becomes a module in `cosim::verilated::blocks` and
/// a test in `cosim/tests/differential.rs`; the type is a path from the root of this crate.
/// Options:
///
/// - `traced`: with `cosim`'s feature `trace` the model can write waveforms (and is slower by a
///   fifth even when it does not);
/// - `large`: many C++ files, compiled side by side; no differential test, since RustHDL's
///   simulator is too slow for it.
///
/// Ports of a listed block are `Bit`, `Bits<N>`, `Signed<N>` or `Clock`, alone or in interfaces.
#[macro_export]
macro_rules! blocks {
    ($each:ident) => {
        $each! {
            sdp_ram_64x10: leaf::SdpRam<64, 10>;
            sdp_ram_1x1: leaf::SdpRam<1, 1>;
            sdp_ram2_32x6: leaf::SdpRam2<32, 6>;
            lut_ram_80x5: leaf::LutRam<80, 5>;
            lut_ram_1x1: leaf::LutRam<1, 1>;
            fifo_64x4: leaf::Fifo<64, 4> [traced];
            fifo_1x2: leaf::Fifo<1, 2>;
            fifo_72x6: leaf::Fifo<72, 6>;
            fifo_32x9: leaf::Fifo<32, 9>;
            skid_64: leaf::Skid<64>;
            skid_1: leaf::Skid<1>;
            round_robin_2: leaf::RoundRobin<2>;
            round_robin_9: leaf::RoundRobin<9>;
            first_one_2: leaf::FirstOne<2>;
            first_one_64: leaf::FirstOne<64>;
            first_one_100: leaf::FirstOne<100>;
            crc32_step: leaf::Crc32Step;
            rq: pcie::rq::Rq;
            dma_write: pcie::dma_write::DmaWrite;
            dma_read: pcie::dma_read::DmaRead [large];
            cq: pcie::cq::Cq [large];
            csr: csr::Csr [large];
            counters: counter::Counters;
            error_log: error_log::ErrorLog;
            anatomy: anatomy::Anatomy;
            tpt: tpt::Tpt [large];
            vi: vi::Vi [large];
            event: event::EventQueues [large];
            admin: admin::Admin;
            top: top::Top [traced, large];
            send: send::Send [large];
            recv: recv::Recv [large];
            channel: channel::Channel [traced, large];
        }
    };
}
