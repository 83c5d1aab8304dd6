//! The module around the design: few pins, and nothing to trim away.

use std::fmt::Write as _;

use super::{Job, Port};

/// The Verilog of the module `harness`.
///
/// One pin feeds a shift register that is as long as all inputs together, so every input comes from
/// its own flip-flop and no tool can take it for a constant. Every output bit is captured in a
/// flip-flop, and a chain of registered XORs carries all of them to one pin. Paths through the
/// design thus begin and end in registers, as they do on a board.
pub(super) fn text(job: &Job) -> String {
    let ports = || job.ports.iter().filter(|port| port.name != job.clock);
    let inputs: usize = ports().filter(|port| port.input).map(|port| port.width).sum();
    let outputs: usize = ports().filter(|port| !port.input).map(|port| port.width).sum();
    // A design without inputs or outputs still needs registers that are one bit wide.
    let (drive_high, seen_high) = (inputs.max(1) - 1, outputs.max(1) - 1);
    let mut text = format!(
        "module harness(input wire clock, input wire serial_in, output reg serial_out);\n\
         reg [{drive_high}:0] drive;\n\
         wire [{seen_high}:0] seen;\n\
         reg [{seen_high}:0] captured;\n\
         reg [{seen_high}:0] fold;\n\
         always @(posedge clock) begin\n\
         \x20   drive <= (drive << 1) | serial_in;\n\
         \x20   captured <= seen;\n\
         \x20   fold <= (fold << 1) ^ captured;\n\
         \x20   serial_out <= fold[{seen_high}];\n\
         end\n"
    );
    if outputs == 0 {
        text.push_str("assign seen = drive[0];\n");
    }
    let _ = write!(text, "{} dut(\n    .{}(clock)", identifier(&job.top), identifier(&job.clock));
    let (mut drive_at, mut seen_at) = (0, 0);
    for port in ports() {
        let (bus, at) = if port.input { ("drive", &mut drive_at) } else { ("seen", &mut seen_at) };
        let _ = write!(text, ",\n    .{}({bus}[{}])", identifier(&port.name), part(port, *at));
        *at += port.width;
    }
    text.push_str("\n);\nendmodule\n");
    text
}

fn part(port: &Port, at: usize) -> String {
    format!("{}:{at}", at + port.width - 1)
}

/// The name as Verilog reads it: escaped when it is not a plain one.
fn identifier(name: &str) -> String {
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "_$".contains(c))
        && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if plain { name.to_owned() } else { format!("\\{name} ") }
}
