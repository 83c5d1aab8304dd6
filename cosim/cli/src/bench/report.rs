//! The rows as a table, as JSON, as a snapshot.

use super::{Bar, Row};
use serde_json::json;
use std::fmt::Write as _;

/// Published open NICs, for comparison. What they are: `docs/hardware.md`.
pub(crate) const PEERS: &str = "\
For comparison, two open NICs in their own full-NIC simulations at 250 MHz with 60-byte Ethernet
frames: Corundum's mqnic (512-bit, 100G) and taxi's cndm-lite (512-bit, 100G).
                                                     mqnic      cndm-lite
  doorbell to first byte on the wire, net of PCIe    146        89           cycles
  wire to completion in host memory, net of PCIe     135        111          cycles
  sending, rings filled before                       7 to 12    98           cycles a packet
Both read the descriptor, then the data; 7 is with 8 queues, 12 with one.";

/// Rows that depend on the machine or on other tools, and so are in no snapshot.
const NOT_REPEATABLE: [&str; 2] = ["sim_cycles_per_s", "fmax_ecp5"];

pub(crate) fn table(rows: &[Row]) {
    if rows.is_empty() {
        return;
    }
    println!("{:<24} {:>10} {:<15} {:>10}  ok", "name", "measured", "unit", "bar");
    for row in rows {
        let value = row.value.map_or_else(|| "-".into(), |value| digits(value, row.unit));
        let sign = match row.bar {
            Bar::AtMost(_) => "<=",
            Bar::AtLeast(_) => ">=",
        };
        let bar = format!("{sign} {}", row.bar.value());
        let ok = row.ok.map_or("-", |ok| if ok { "yes" } else { "no" });
        let note = if row.note.is_empty() { String::new() } else { format!("  ({})", row.note) };
        println!("{:<24} {value:>10} {:<15} {bar:>10}  {ok:<3}{note}", row.name, row.unit);
    }
}

fn digits(value: f64, unit: &str) -> String {
    match unit {
        "cycles" | "cycles/s" | "rows" | "comparisons" => format!("{value:.0}"),
        "ratio" => format!("{value:.3}"),
        _ => format!("{value:.2}"),
    }
}

/// One object a line.
pub(crate) fn json(rows: &[Row]) {
    for row in rows {
        let bar = row.bar.value();
        let object = json!({
            "name": row.name, "value": row.value, "unit": row.unit, "bar": bar, "ok": row.ok,
        });
        println!("{object}");
    }
}

/// The figures that are the same in every run: one row a line, then the anatomy.
pub(crate) fn snapshot(rows: &[Row], anatomy: Option<&str>) -> String {
    let mut text = String::new();
    for row in rows.iter().filter(|row| !NOT_REPEATABLE.contains(&row.name)) {
        let value = row.value.map_or_else(|| "-".into(), |value| digits(value, row.unit));
        let note = if row.note.is_empty() { String::new() } else { format!(" ({})", row.note) };
        writeln!(text, "{} {value} {}{note}", row.name, row.unit)
            .expect("a string takes every write");
    }
    if let Some(anatomy) = anatomy {
        write!(text, "\n{anatomy}\n").expect("a string takes every write");
    }
    text
}
