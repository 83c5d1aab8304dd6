//! Every block of `hdl::blocks!`, reset in the midst of anything, is as new.
//!
//! Nothing is written per block. Its inputs are random until the reset, also as no neighbour would drive them, then
//! all 0, then those of a single bit 1. Behind it the block must do in every cycle what it does when it was never
//! used. Only single bits are looked at, but for those of [`KEPT`]: what is wider is data.
#![cfg(feature = "blocks")]

use cosim::verilated::blocks::ALL;
use cosim::verilated::{Port, Verilated};
use std::collections::BTreeSet;
use stimulus::Stimulus;

mod stimulus;

/// Resets of each block.
const ROUNDS: u64 = 300;
/// Cycles before the first reset, and one more before each further one: tables that are cleared behind the one
/// before are ready by then.
const BUSY: u64 = 1_040;
/// Cycles that are compared behind it, of either kind.
const IDLE: usize = 60;

/// Outputs of one bit that may show what was before: block, beginning of the port. An entry that does not is an
/// error too.
const KEPT: &[(&str, &str)] = &[
    // They say something only while another one is high.
    ("fifo_1x2", "data_out"),
    ("skid_1", "out_data"),
    ("rq", "rq_last"),
    ("cq", "cc_last"),
    ("dma_read", "desc_send_rsp_last"),
    ("dma_read", "desc_send_rsp_error"),
    ("dma_read", "desc_recv_rsp_last"),
    ("dma_read", "desc_recv_rsp_error"),
    ("dma_read", "gather_rsp_last"),
    ("dma_read", "gather_rsp_error"),
    ("dma_read", "admin_rsp_last"),
    ("dma_read", "admin_rsp_error"),
    ("tpt", "set_ok"),
    ("tpt", "desc_send_ok"),
    ("tpt", "desc_recv_ok"),
    ("vi", "send_ctx_"),
    ("vi", "send_need_next"),
    ("vi", "recv_ctx_"),
    ("event", "write_last"),
    ("admin", "tpt_clear"),
    ("admin", "event_queue_wide"),
    ("send", "pool_ask_sequenced"),
    ("recv", "desc_tpt_check_generation"),
    ("recv", "desc_tpt_va_mode"),
    ("recv", "vi_next_valid"),
    ("recv", "vi_queue"),
    ("recv", "vi_refuse"),
    ("recv", "vi_sends"),
    ("recv", "vi_write"),
    // Whose turn it is.
    ("dma_read", "gather_req_ready"),
    ("dma_read", "admin_req_ready"),
    ("dma_read", "desc_send_req_ready"),
    ("dma_read", "desc_recv_req_ready"),
    // They follow their cause a few cycles behind. The reset of the NIC lasts 16 cycles, this one lasts one.
    ("dma_read", "exhausted"),
    ("channel", "sending"),
    ("channel", "kill_valid"),
    // A beat that is offered to the link stays (`hdl::link::out`).
    ("channel", "tx_valid"),
    ("channel", "tx_last"),
];

/// The outputs of one bit.
fn bits(block: &dyn Verilated) -> impl Iterator<Item = (usize, &'static Port)> {
    block.outputs().iter().enumerate().filter(|(_, port)| port.bits == 1)
}

/// A cycle with the given inputs, and the outputs of one bit.
fn cycle(block: &mut dyn Verilated, mut value: impl FnMut(usize, &Port) -> Vec<u64>) -> Vec<bool> {
    for (index, port) in block.inputs().iter().enumerate() {
        block.set(index, &value(index, port));
    }
    block.cycle();
    let bit = |index: usize| {
        let mut words = [0];
        block.get(index, &mut words);
        words[0] != 0
    };
    bits(block).map(|(index, _)| bit(index)).collect()
}

/// A reset, and what the block does behind it while nobody asks for anything, then while everybody does.
fn reset(block: &mut dyn Verilated) -> Vec<Vec<bool>> {
    cycle(block, |_, port| vec![u64::from(port.name == "reset"); port.words()]);
    let asks = |port: &Port| port.bits == 1 && !port.name.ends_with("reset");
    let value = |at: usize, port: &Port| vec![u64::from(at >= IDLE && asks(port)); port.words()];
    (0..2 * IDLE).map(|at| cycle(block, |_, port| value(at, port))).collect()
}

/// Anything but a reset for some cycles.
fn use_it(block: &mut dyn Verilated, stimulus: &mut Stimulus, cycles: u64) {
    for now in 0..cycles {
        let values = stimulus.next(now);
        cycle(block, |index, port| match port.name.ends_with("reset") {
            true => vec![0; port.words()],
            false => values[index].clone(),
        });
    }
}

fn check(name: &str) {
    let entry = ALL.iter().find(|entry| entry.name == name).expect("it is in the table");
    let mut block = (entry.open)();
    if !block.inputs().iter().any(|port| port.name == "reset") {
        return;
    }
    let names: Vec<_> = bits(&*block).map(|(_, port)| port.name).collect();
    let new = reset(&mut *block);
    let mut stimulus = Stimulus::new(1, block.inputs());
    let mut kept: BTreeSet<&(&str, &str)> = BTreeSet::new();
    for round in 0..ROUNDS {
        use_it(&mut *block, &mut stimulus, BUSY + round);
        for (at, (now, new)) in reset(&mut *block).iter().zip(&new).enumerate() {
            for port in (0..names.len()).filter(|&port| now[port] != new[port]) {
                let (port, is) = (names[port], now[port]);
                let entry = |known: &&(_, &str)| known.0 == name && port.starts_with(known.1);
                let known = KEPT.iter().find(entry);
                kept.extend(known);
                assert!(
                    known.is_some(),
                    "{port} is {is} {at} cycles behind reset {round}, and is not when nothing was before"
                );
            }
        }
    }
    let unused = |known: &&(&str, _)| known.0 == name && !kept.contains(known);
    let unused: Vec<_> = KEPT.iter().filter(unused).collect();
    assert!(unused.is_empty(), "these keep nothing, remove them from KEPT: {unused:?}");
}

macro_rules! tests {
    ($($name:ident: $block:ty $([$($option:ident),*])?;)*) => {
        $(
            #[test]
            fn $name() {
                check(stringify!($name));
            }
        )*
    };
}

hdl::blocks!(tests);
