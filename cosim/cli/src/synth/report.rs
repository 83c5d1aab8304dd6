//! What the tools found out, and how it is shown.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::ops::AddAssign;
use std::path::Path;

use serde_json::Value;

use super::paths::{self, Paths};
use super::{Job, SynthError, Target};

/// What a block costs, in cells of the chip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cost {
    /// Lookup tables: LUT4 cells, two for a carry cell, four for a LUT RAM cell.
    pub(crate) luts: u64,
    /// Flip-flops.
    pub(crate) flip_flops: u64,
    /// Block RAMs of 18 Kbit.
    pub(crate) block_rams: u64,
    /// LUT RAMs of 16 x 4 bit.
    pub(crate) lut_rams: u64,
    /// Multipliers.
    pub(crate) multipliers: u64,
}

impl Cost {
    /// The cost of cells of one type; cells that are free or unknown cost nothing.
    fn of_cells(kind: &str, count: u64) -> Self {
        let mut cost = Self::default();
        match kind {
            "LUT4" => cost.luts = count,
            "CCU2C" => cost.luts = 2 * count,
            "TRELLIS_DPR16X4" => {
                cost.luts = 4 * count;
                cost.lut_rams = count;
            }
            "TRELLIS_FF" => cost.flip_flops = count,
            "DP16KD" | "PDPW16KD" => cost.block_rams = count,
            "MULT18X18D" => cost.multipliers = count,
            _ => {}
        }
        cost
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        self.luts += other.luts;
        self.flip_flops += other.flip_flops;
        self.block_rams += other.block_rams;
        self.lut_rams += other.lut_rams;
        self.multipliers += other.multipliers;
    }
}

/// The top module or one of its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// The module's name; RustHDL names a module by its place (`top$send`).
    pub(crate) name: String,
    /// What it costs.
    pub(crate) cost: Cost,
}

/// A stretch of the critical path inside one block.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stretch {
    /// The block.
    pub(crate) block: String,
    /// The first cell of the stretch.
    pub(crate) cell: String,
    /// Time in cells.
    pub(crate) logic_ns: f64,
    /// Time on wires that start here.
    pub(crate) routing_ns: f64,
}

/// What nextpnr found out.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Timing {
    /// The highest clock, if any path limits it.
    pub(crate) achieved_mhz: Option<f64>,
    /// The slowest path from register to register.
    pub(crate) path: Vec<Stretch>,
    /// Cells used and there, by type; only types that are used.
    pub(crate) used: BTreeMap<String, (u64, u64)>,
}

/// The result of a synthesis. Printed, it is Markdown.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    /// The top module with everything in it, then its parts.
    pub(crate) blocks: Vec<Block>,
    /// Paths through blocks, estimated.
    pub(crate) paths: Paths,
    /// After place and route.
    pub(crate) timing: Option<Timing>,
    target: Target,
    top: String,
    clock_mhz: f64,
}

impl Report {
    /// Reads the netlist that Yosys wrote.
    pub(super) fn of_netlist(job: &Job, path: &Path) -> Result<Self, SynthError> {
        let flat = read_json(path)?;
        let parts = super::parts(job);
        let found = blocks_of(&flat, &job.top, &parts).zip(paths::of_netlist(&flat));
        let Some((blocks, paths)) = found else {
            let what = "not a netlist of Yosys".to_owned();
            return Err(SynthError::Format { path: path.to_path_buf(), what });
        };
        Ok(Self {
            blocks,
            paths,
            timing: None,
            target: job.target,
            top: job.top.clone(),
            clock_mhz: job.clock_mhz,
        })
    }

    /// Whether the design fits, by the sum of its blocks or, if known, by the placed netlist.
    pub(crate) fn fits(&self) -> bool {
        let (luts, block_rams) = self.target.capacity();
        let total = self.total();
        // What nextpnr could place does fit.
        self.timing.is_some() || (total.luts <= luts && total.block_rams <= block_rams)
    }

    /// The cost of the top module.
    pub(crate) fn total(&self) -> Cost {
        self.blocks.first().map_or_else(Cost::default, |block| block.cost)
    }

    pub(super) fn add_timing(&mut self, path: &Path) -> Result<(), SynthError> {
        let value = read_json(path)?;
        let names: Vec<&str> = self.blocks.iter().map(|block| block.name.as_str()).collect();
        self.timing = Some(parse_timing(&value, &self.top, &names));
        Ok(())
    }
}

fn read_json(path: &Path) -> Result<Value, SynthError> {
    let text = fs::read_to_string(path)
        .map_err(|source| SynthError::File { path: path.to_path_buf(), source })?;
    serde_json::from_str(&text)
        .map_err(|error| SynthError::Format { path: path.to_path_buf(), what: error.to_string() })
}

/// What the top module and its parts cost: a cell belongs to the part that its name begins with
/// (`dut.send.fifo.count_LUT4_Z`, and `dut.send$vi$valid_LUT4_Z` on the border). Those of the harness count for
/// nobody.
pub(super) fn blocks_of(flat: &Value, top: &str, parts: &[&str]) -> Option<Vec<Block>> {
    let module = paths::main_module(flat)?;
    let mut total = Cost::default();
    let mut costs = vec![Cost::default(); parts.len()];
    for (name, cell) in module["cells"].as_object()? {
        let Some(part) = paths::block_of(name) else { continue };
        let cost = Cost::of_cells(cell["type"].as_str()?, 1);
        total += cost;
        if let Some(at) = parts.iter().position(|known| *known == part) {
            costs[at] += cost;
        }
    }
    let parts = parts.iter().zip(costs);
    let parts = parts.map(|(part, cost)| Block { name: format!("{top}${part}"), cost });
    Some([Block { name: top.to_owned(), cost: total }].into_iter().chain(parts).collect())
}

pub(super) fn parse_timing(report: &Value, top: &str, blocks: &[&str]) -> Timing {
    let clocks = report["fmax"].as_object().into_iter().flatten();
    let achieved = clocks.filter_map(|(_, clock)| clock["achieved"].as_f64());
    let paths = report["critical_paths"].as_array().into_iter().flatten();
    let slowest = paths
        .filter(|path| ["from", "to"].iter().all(|end| is_clocked(&path[end])))
        .filter_map(|path| path["path"].as_array())
        .max_by(|a, b| total_delay(a).total_cmp(&total_delay(b)));
    let used = report["utilization"].as_object().into_iter().flatten();
    let used = used.filter_map(|(kind, cells)| {
        let (count, available) = (cells["used"].as_u64()?, cells["available"].as_u64()?);
        (count > 0).then(|| (kind.clone(), (count, available)))
    });
    Timing {
        achieved_mhz: achieved.min_by(f64::total_cmp),
        path: slowest.map_or_else(Vec::new, |hops| stretches(hops, top, blocks)),
        used: used.collect(),
    }
}

fn is_clocked(end: &Value) -> bool {
    end.as_str().is_some_and(|text| text.starts_with("posedge") || text.starts_with("negedge"))
}

fn total_delay(hops: &[Value]) -> f64 {
    hops.iter().filter_map(|hop| hop["delay"].as_f64()).sum()
}

/// Joins the hops inside one block.
fn stretches(hops: &[Value], top: &str, blocks: &[&str]) -> Vec<Stretch> {
    let mut path: Vec<Stretch> = Vec::new();
    for hop in hops {
        let cell = hop["from"]["cell"].as_str().unwrap_or("?");
        let block = owner_of(cell, top, blocks);
        if path.last().is_none_or(|last| last.block != block) {
            let cell = cell.to_owned();
            path.push(Stretch { block, cell, logic_ns: 0.0, routing_ns: 0.0 });
        }
        if let Some(last) = path.last_mut() {
            let delay = hop["delay"].as_f64().unwrap_or(0.0);
            if hop["type"] == "routing" {
                last.routing_ns += delay;
            } else {
                last.logic_ns += delay;
            }
        }
    }
    path
}

/// The block whose cell it is: a part of the top module, else that or the harness.
fn owner_of(cell: &str, top: &str, blocks: &[&str]) -> String {
    let Some(part) = paths::block_of(cell) else { return "harness".to_owned() };
    let block = format!("{top}${part}");
    if blocks.contains(&block.as_str()) { block } else { top.to_owned() }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (luts, block_rams) = self.target.capacity();
        let total = self.total();
        row(f, &["block", "LUTs", "flip-flops", "block RAMs", "LUT RAMs", "multiplier"])?;
        let line = "-----------:|".repeat(5);
        writeln!(f, "|:{}|{line}", "-".repeat(41))?;
        // A lone register of the top module is no block of its own.
        let is_logic = |block: &&Block| block.cost.luts + block.cost.block_rams > 0;
        for block in self.blocks.iter().filter(is_logic) {
            let name = block.name.replace(&format!("{}$", self.top), "· ");
            cost_row(f, &name, block.cost)?;
        }
        writeln!(
            f,
            "\nAll blocks: {} of {luts} LUTs ({}), {} of {block_rams} block RAMs ({}).",
            total.luts,
            percent(total.luts, luts),
            total.block_rams,
            percent(total.block_rams, block_rams),
        )?;
        write!(f, "{}", self.paths)?;
        writeln!(f)?;
        match &self.timing {
            Some(timing) => self.write_timing(f, timing),
            None if self.fits() => writeln!(f, "It fits by this count; not placed."),
            None => writeln!(f, "It does NOT fit."),
        }
    }
}

impl Report {
    fn write_timing(&self, f: &mut fmt::Formatter<'_>, timing: &Timing) -> fmt::Result {
        writeln!(f, "\nPlaced and routed, with the harness:\n")?;
        for (kind, (used, available)) in &timing.used {
            writeln!(f, "- {kind}: {used} of {available} ({})", percent(*used, *available))?;
        }
        let Some(achieved) = timing.achieved_mhz else {
            return writeln!(f, "\nNo path from register to register.");
        };
        writeln!(f, "\n**{achieved:.1} MHz** ({:.0} MHz asked for).", self.clock_mhz)?;
        writeln!(f, "Critical path, by block:\n")?;
        for stretch in &timing.path {
            let Stretch { block, cell, logic_ns, routing_ns } = stretch;
            writeln!(
                f,
                "- `{block}`: {logic_ns:.2} ns logic, {routing_ns:.2} ns wires, at `{cell}`"
            )?;
        }
        Ok(())
    }
}

fn cost_row(f: &mut fmt::Formatter<'_>, name: &str, cost: Cost) -> fmt::Result {
    let Cost { luts, flip_flops, block_rams, lut_rams, multipliers } = cost;
    let counts = [luts, flip_flops, block_rams, lut_rams, multipliers].map(|n| n.to_string());
    row(f, &[name, &counts[0], &counts[1], &counts[2], &counts[3], &counts[4]])
}

fn row(f: &mut fmt::Formatter<'_>, cells: &[&str; 6]) -> fmt::Result {
    let [name, numbers @ ..] = cells;
    write!(f, "| {name:<40} |")?;
    for number in numbers {
        write!(f, " {number:>10} |")?;
    }
    writeln!(f)
}

fn percent(part: u64, whole: u64) -> String {
    // In tenths, in whole numbers, so that nothing is cast.
    let tenths = part * 1000 / whole.max(1);
    format!("{}.{} %", tenths / 10, tenths % 10)
}
