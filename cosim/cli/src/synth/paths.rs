//! Long paths through several blocks, from the mapped netlist alone.
//!
//! Placement takes many minutes and names one path. This estimate takes seconds and names all: a
//! cell costs what its data sheet says, a wire that leaves a cell [`WIRE_NS`]. Routed paths take
//! half as long again, or more; but which paths are long, and which blocks they cross, is right.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use serde_json::Value;

/// Cost of a wire between two cells, in ns.
const WIRE_NS: f64 = 0.8;
/// From a flip-flop's clock to its output, in ns.
const REGISTER_NS: f64 = 0.5;
/// From a block RAM's clock to its output, in ns.
const BLOCK_RAM_NS: f64 = 4.0;
/// Carry from cell to cell, in ns; it has wires of its own.
const CARRY_NS: f64 = 0.06;
/// Groups of paths that are shown.
const SHOWN: usize = 12;

/// The longest path of those that cross the same blocks.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Crossing {
    /// Blocks of the top module in the order of the path.
    pub(crate) blocks: Vec<String>,
    /// The estimate, in ns.
    pub(crate) ns: f64,
    /// How many registers end such a path.
    pub(crate) ends: usize,
    /// A signal in each of the blocks.
    pub(crate) signals: Vec<String>,
}

/// All groups, longest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Paths(pub(crate) Vec<Crossing>);

type Net = u64;

#[derive(Debug)]
struct Cell<'a> {
    kind: &'a str,
    inputs: Vec<(&'a str, Net)>,
}

#[derive(Debug, Default)]
struct Netlist<'a> {
    cells: Vec<Cell<'a>>,
    /// Which cell drives a net.
    drivers: HashMap<Net, usize>,
    names: HashMap<Net, &'a str>,
    /// Time at which a net is stable, and the net before it.
    arrivals: HashMap<Net, (f64, Option<Net>)>,
}

fn is_register(kind: &str) -> bool {
    matches!(kind, "TRELLIS_FF" | "DP16KD" | "PDPW16KD")
}

/// Time from an input of a cell to its output, without the wire; None: no such path.
fn cell_ns(kind: &str, input: &str) -> Option<f64> {
    match (kind, input) {
        ("LUT4", _) => Some(0.24),
        ("CCU2C", "CIN") => Some(CARRY_NS - WIRE_NS),
        ("CCU2C", _) => Some(0.45),
        // The two halves of a wide LUT lie side by side.
        ("PFUMX", "ALUT" | "BLUT") | ("L6MUX21", "D0" | "D1") => Some(0.2 - WIRE_NS),
        ("PFUMX" | "L6MUX21", _) => Some(0.2),
        ("TRELLIS_DPR16X4", "RAD") => Some(0.25),
        _ => None,
    }
}

impl<'a> Netlist<'a> {
    fn new(flat: &'a Value) -> Option<Self> {
        let module = main_module(flat)?;
        let mut netlist = Self::default();
        for cell in module["cells"].as_object()?.values() {
            let kind = cell["type"].as_str()?;
            let at = netlist.cells.len();
            let mut inputs = Vec::new();
            for (port, nets) in cell["connections"].as_object()? {
                let output = cell["port_directions"][port] == "output";
                for net in nets.as_array()?.iter().filter_map(Value::as_u64) {
                    if output {
                        netlist.drivers.insert(net, at);
                    } else {
                        inputs.push((port.as_str(), net));
                    }
                }
            }
            netlist.cells.push(Cell { kind, inputs });
        }
        for (name, net) in module["netnames"].as_object()? {
            if net["hide_name"] == 1 {
                continue;
            }
            for bit in net["bits"].as_array()?.iter().filter_map(Value::as_u64) {
                let known = netlist.names.entry(bit).or_insert(name);
                if name.len() < known.len() {
                    *known = name;
                }
            }
        }
        Some(netlist)
    }

    /// What a net waits for: its cell's kind and the inputs that count.
    fn sources(&self, net: Net) -> Option<(&'a str, Vec<(f64, Net)>)> {
        let cell = &self.cells[*self.drivers.get(&net)?];
        let timed = |(port, net): &(&str, Net)| Some((cell_ns(cell.kind, port)? + WIRE_NS, *net));
        Some((cell.kind, cell.inputs.iter().filter_map(timed).collect()))
    }

    /// When a net is stable. There are no loops: Yosys has checked that.
    fn arrival(&mut self, net: Net) -> f64 {
        let mut stack = vec![net];
        while let Some(&at) = stack.last() {
            if self.arrivals.contains_key(&at) {
                stack.pop();
                continue;
            }
            let found = match self.sources(at) {
                None => (0.0, None),
                Some(("TRELLIS_FF", _)) => (REGISTER_NS, None),
                Some(("DP16KD" | "PDPW16KD", _)) => (BLOCK_RAM_NS, None),
                Some((_, inputs)) => {
                    let missing = |(_, net): &&(f64, Net)| !self.arrivals.contains_key(net);
                    let before = stack.len();
                    stack.extend(inputs.iter().filter(missing).map(|(_, net)| *net));
                    if stack.len() > before {
                        continue;
                    }
                    let arrival = |(ns, net): &(f64, Net)| (ns + self.arrivals[net].0, Some(*net));
                    let latest = inputs.iter().map(arrival);
                    latest.max_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((0.0, None))
                }
            };
            self.arrivals.insert(at, found);
            stack.pop();
        }
        self.arrivals[&net].0
    }

    /// The nets of the slowest path to a net, last first.
    fn path(&self, net: Net) -> impl Iterator<Item = Net> {
        std::iter::successors(Some(net), |net| self.arrivals.get(net).and_then(|found| found.1))
    }
}

/// The module that everything was flattened into: the largest one.
pub(super) fn main_module(flat: &Value) -> Option<&Value> {
    let modules = flat["modules"].as_object()?;
    let size = |module: &&Value| module["cells"].as_object().map_or(0, serde_json::Map::len);
    modules.values().max_by_key(size)
}

/// The block of the top module that a net's name begins with (`dut.send.fifo.count`, and
/// `dut.send$vi$valid` on its border).
pub(super) fn block_of(name: &str) -> Option<&str> {
    name.strip_prefix("dut.")?.split(['.', '$']).next()
}

/// Sorts out the paths of a netlist that Yosys wrote as JSON.
pub(crate) fn of_netlist(flat: &Value) -> Option<Paths> {
    let mut netlist = Netlist::new(flat)?;
    let mut groups: BTreeMap<Vec<String>, Crossing> = BTreeMap::new();
    let clocks = ["CLK", "CLKA", "CLKB", "CLKW", "CLKR", "WCK"];
    let mut ends = Vec::new();
    for cell in &netlist.cells {
        let ram = cell.kind == "TRELLIS_DPR16X4";
        if is_register(cell.kind) || ram {
            let aside = |port: &str| clocks.contains(&port) || (ram && port == "RAD");
            let into = |(port, _): &&(&str, Net)| !aside(port);
            ends.extend(cell.inputs.iter().filter(into).map(|(_, net)| *net));
        }
    }
    for end in ends {
        let ns = netlist.arrival(end);
        let (mut blocks, mut signals): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
        for net in netlist.path(end) {
            let Some(name) = netlist.names.get(&net) else { continue };
            let Some(block) = block_of(name) else { continue };
            if blocks.last().is_none_or(|last| last != block) {
                blocks.push(block.to_owned());
                signals.push((*name).to_owned());
            }
        }
        blocks.reverse();
        signals.reverse();
        let new = || Crossing { blocks: blocks.clone(), ns: 0.0, ends: 0, signals: Vec::new() };
        let group = groups.entry(blocks.clone()).or_insert_with(new);
        group.ends += 1;
        if ns > group.ns {
            (group.ns, group.signals) = (ns, signals);
        }
    }
    let mut paths: Vec<Crossing> = groups.into_values().filter(|g| !g.blocks.is_empty()).collect();
    paths.sort_by(|a, b| b.ns.total_cmp(&a.ns));
    Some(Paths(paths))
}

impl fmt::Display for Paths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\nLongest paths by the blocks that they cross (estimate, not placed):\n")?;
        writeln!(f, "| ns | registers | blocks | a signal in each |\n|---:|---:|:---|:---|")?;
        for Crossing { blocks, ns, ends, signals } in self.0.iter().take(SHOWN) {
            let signals: Vec<_> = signals.iter().map(|name| format!("`{name}`")).collect();
            writeln!(f, "| {ns:.1} | {ends} | {} | {} |", blocks.join(" > "), signals.join(" "))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_longest_path_of_each_crossing() {
        let cell = |kind: &str, inputs: &[(&str, u64)], output: (&str, u64)| {
            let mut connections = serde_json::Map::new();
            let mut directions = serde_json::Map::new();
            for (port, net) in inputs {
                connections.insert((*port).into(), json!([net]));
                directions.insert((*port).into(), json!("input"));
            }
            connections.insert(output.0.into(), json!([output.1]));
            directions.insert(output.0.into(), json!("output"));
            json!({"type": kind, "connections": connections, "port_directions": directions})
        };
        // Registers a.x and b.y; b.y takes a.x through two LUTs, a.x takes itself through one.
        let flat = json!({"modules": {"harness": {
            "cells": {
                "x": cell("TRELLIS_FF", &[("CLK", 1), ("DI", 5)], ("Q", 2)),
                "y": cell("TRELLIS_FF", &[("CLK", 1), ("DI", 4)], ("Q", 6)),
                "l1": cell("LUT4", &[("A", 2)], ("Z", 3)),
                "l2": cell("LUT4", &[("A", 3), ("B", 6)], ("Z", 4)),
                "l3": cell("LUT4", &[("A", 2)], ("Z", 5)),
            },
            "netnames": {
                "dut.a.x": {"bits": [2]},
                "dut.a$out": {"bits": [3]},
                "dut.b.y": {"bits": [6]},
                "dut.b.next": {"bits": [4]},
                "hidden": {"bits": [4], "hide_name": 1},
            },
        }}});
        let paths = of_netlist(&flat).unwrap();
        let found: Vec<_> = paths
            .0
            .iter()
            .map(|p| (p.blocks.join(" > "), p.ends, (p.ns * 100.0).round()))
            .collect();
        assert_eq!(found, [("a > b".to_owned(), 1, 258.0), ("a".to_owned(), 1, 154.0)]);
        assert!(
            paths.to_string().contains("| 2.6 | 1 | a > b | `dut.a$out` `dut.b.next` |"),
            "{paths}"
        );
    }
}
