//! The harness and the reports by themselves, and the whole flow where the tools are.

use std::env;

use serde_json::json;

use super::report::{Block, blocks_of, parse_timing};
use super::*;

/// A small design in the names that RustHDL gives: a sum in a block with a register in it, and a
/// memory that needs a block RAM.
const DESIGN: &str = "
module top(input wire clock, input wire [15:0] bus$data, input wire bus$valid,
           input wire [9:0] address, output reg [15:0] result, output wire any);
  wire [15:0] total;
  wire [15:0] word;
  top$sum sum(.clock(clock), .data(bus$data), .total(total));
  top$store store(.clock(clock), .enable(bus$valid), .address(address), .data(total), .word(word));
  always @(posedge clock) result <= word ^ total;
  assign any = |word;
endmodule
module top$sum(input wire clock, input wire [15:0] data, output wire [15:0] total);
  top$sum$total_reg total_reg(.clock(clock), .d(total + data), .q(total));
endmodule
module top$sum$total_reg(input wire clock, input wire [15:0] d, output reg [15:0] q);
  always @(posedge clock) q <= d;
endmodule
module top$store(input wire clock, input wire enable, input wire [9:0] address,
                 input wire [15:0] data, output reg [15:0] word);
  reg [15:0] cells [0:1023];
  always @(posedge clock) begin
    if (enable) cells[address] <= data;
    word <= cells[address];
  end
endmodule
";

fn port(name: &str, width: usize, input: bool) -> Port {
    Port { name: name.to_owned(), width, input }
}

fn job(folder: &str) -> Job {
    let ports = vec![
        port("clock", 1, true),
        port("bus$data", 16, true),
        port("bus$valid", 1, true),
        port("address", 10, true),
        port("result", 16, false),
        port("any", 1, false),
    ];
    let folder = env::temp_dir().join(format!("viaduct-{folder}-{}", std::process::id()));
    Job::new(DESIGN.to_owned(), "top", ports, folder)
}

#[test]
fn harness_connects_every_bit_once() {
    let text = harness::text(&job("harness"));
    for connection in [
        ".clock(clock)",
        ".bus$data(drive[15:0])",
        ".bus$valid(drive[16:16])",
        ".address(drive[26:17])",
        ".result(seen[15:0])",
        ".any(seen[16:16])",
    ] {
        assert_eq!(text.matches(connection).count(), 1, "{connection} in\n{text}");
    }
    assert!(text.contains("reg [26:0] drive;") && text.contains("wire [16:0] seen;"));
}

#[test]
fn ports_are_read_as_rust_hdl_declares_them() {
    let verilog = "
module top(clock,bus$data,sum);
    // Module arguments
    input wire  clock;
    input wire signed [63:0] bus$data;
    output reg  [7:0] sum;
    reg [3:0] state;
endmodule

module top$inner(a);
    input wire  a;
endmodule
";
    let ports = ports_of(verilog, "top").expect("plain ports");
    assert_eq!(ports, [port("clock", 1, true), port("bus$data", 64, true), port("sum", 8, false)]);
    assert!(ports_of(verilog, "other").is_err());
    // A port of another kind must not be overlooked.
    let bidirectional = verilog.replace("output reg  [7:0] sum", "inout wire [7:0] sum");
    assert!(ports_of(&bidirectional, "top").is_err());
}

#[test]
fn a_block_costs_what_its_cells_cost() {
    let cell = |kind: &str| json!({"type": kind});
    let flat = json!({"modules": {"leaf": {"cells": {}}, "harness": {"cells": {
        "captured_TRELLIS_FF_Q": cell("TRELLIS_FF"),
        "dut.any_LUT4_Z": cell("LUT4"),
        "dut.a.sum_CCU2C_S0": cell("CCU2C"),
        "dut.a$out_LUT4_Z": cell("LUT4"),
        "dut.a.words.0.0": cell("DP16KD"),
        "dut.a.x_PFUMX_Z": cell("PFUMX"),
        "dut.ab.q_TRELLIS_FF_Q": cell("TRELLIS_FF"),
        "dut.ab.words.0.0": cell("TRELLIS_DPR16X4"),
    }}}});
    let blocks = blocks_of(&flat, "top", &["a", "ab"]).expect("a netlist");
    let found: Vec<_> = blocks
        .iter()
        .map(|Block { name, cost }| (name.as_str(), cost.luts, cost.flip_flops, cost.block_rams))
        .collect();
    assert_eq!(found, [("top", 1 + 3 + 4, 1, 1), ("top$a", 3, 0, 1), ("top$ab", 4, 1, 0)]);
    assert_eq!(blocks[2].cost.lut_rams, 1);
    assert!(blocks_of(&json!({}), "top", &[]).is_none());
}

#[test]
fn critical_path_is_listed_by_block() {
    let hop = |cell: &str, kind: &str, delay: f64| {
        let from = json!({"cell": cell});
        json!({"from": from, "type": kind, "delay": delay})
    };
    let report = json!({
        "fmax": {"clk": {"achieved": 93.0, "constraint": 100.0}},
        "utilization": {
            "DP16KD": {"available": 208, "used": 1},
            "DCUA": {"available": 2, "used": 0},
        },
        "critical_paths": [
            {"from": "<async>", "to": "posedge clk", "path": [hop("x", "routing", 99.0)]},
            {"from": "posedge clk", "to": "posedge clk", "path": [
                hop("dut.sum.q_TRELLIS_FF_Q", "clk-to-q", 0.5),
                hop("dut.sum.q_TRELLIS_FF_Q", "routing", 1.0),
                hop("dut.store.x_LUT4_Z", "logic", 0.25),
                hop("dut.result_LUT4_Z", "logic", 0.25),
                hop("captured_TRELLIS_FF_Q", "setup", 0.0),
            ]},
        ],
    });
    let timing = parse_timing(&report, "top", &["top", "top$sum", "top$store"]);
    assert_eq!(timing.achieved_mhz, Some(93.0));
    assert_eq!(timing.used.len(), 1);
    let blocks: Vec<&str> = timing.path.iter().map(|part| part.block.as_str()).collect();
    assert_eq!(blocks, ["top$sum", "top$store", "top", "harness"]);
    assert!((timing.path[0].logic_ns - 0.5).abs() < 1e-9);
    assert!((timing.path[0].routing_ns - 1.0).abs() < 1e-9);
}

#[test]
fn a_design_without_ports_is_refused() {
    let mut job = job("refused");
    job.ports.retain(|port| port.name == "clock");
    assert!(matches!(run(&job, &mut io::sink()), Err(SynthError::Job(_))));
}

/// Needs the synthesis tools on the PATH, as `cargo xtask test` puts them there.
#[test]
fn small_design_is_synthesised_placed_and_routed() {
    if crate::path::find("yosys").is_none() || crate::path::find("nextpnr-ecp5").is_none() {
        return;
    }
    let job = job("flow");
    let report = run(&job, &mut io::sink()).expect("the flow runs");
    assert!(report.fits());
    assert_eq!(report.total().block_rams, 1);
    assert_eq!(report.blocks.len(), 3);
    let timing = report.timing.clone().expect("it was placed");
    assert!(timing.achieved_mhz.is_some_and(|mhz| mhz > 20.0), "{timing:?}");
    assert!(!timing.path.is_empty());
    let text = report.to_string();
    assert!(text.contains("MHz**") && text.contains("| · store"), "{text}");
    let _ = fs::remove_dir_all(&job.folder);
}

#[test]
fn a_design_that_does_not_parse_shows_the_tools_words() {
    if crate::path::find("yosys").is_none() {
        return;
    }
    let mut job = job("broken");
    job.verilog = "module top(input wire clock; endmodule".to_owned();
    let error = run(&job, &mut io::sink()).expect_err("no Verilog");
    assert!(error.to_string().contains("syntax error"), "{error}");
    let _ = fs::remove_dir_all(&job.folder);
}
