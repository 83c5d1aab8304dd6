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

    fn times(self, count: u64) -> Self {
        Self {
            luts: self.luts * count,
            flip_flops: self.flip_flops * count,
            block_rams: self.block_rams * count,
            lut_rams: self.lut_rams * count,
            multipliers: self.multipliers * count,
        }
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

/// A module with everything in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// The module's name; RustHDL names a module by its place (`top$send$fifo`).
    pub(crate) name: String,
    /// How far below the top module.
    pub(crate) depth: usize,
    /// What it and its parts cost.
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
    /// Every block in the order of the hierarchy; the first is the top module.
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
    pub(super) fn new(job: &Job, blocks: Vec<Block>) -> Self {
        Self {
            blocks,
            paths: Paths::default(),
            timing: None,
            target: job.target,
            top: job.top.clone(),
            clock_mhz: job.clock_mhz,
        }
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

    pub(super) fn add_paths(&mut self, path: &Path) -> Result<(), SynthError> {
        let flat = read_json(path)?;
        let what = || "not a netlist of Yosys".to_owned();
        let wrong = || SynthError::Format { path: path.to_path_buf(), what: what() };
        self.paths = paths::of_netlist(&flat).ok_or_else(wrong)?;
        Ok(())
    }

    pub(super) fn add_timing(&mut self, path: &Path) -> Result<(), SynthError> {
        let value = read_json(path)?;
        let names: Vec<&str> = self.blocks.iter().map(|block| block.name.as_str()).collect();
        self.timing = Some(parse_timing(&value, &self.top, &names));
        Ok(())
    }
}

/// Reads Yosys's statistics with the blocks kept apart.
pub(super) fn parse_blocks(path: &Path, job: &Job) -> Result<Vec<Block>, SynthError> {
    let value = read_json(path)?;
    blocks_of(&value, &job.top)
        .map_err(|what| SynthError::Format { path: path.to_path_buf(), what })
}

fn read_json(path: &Path) -> Result<Value, SynthError> {
    let text = fs::read_to_string(path)
        .map_err(|source| SynthError::File { path: path.to_path_buf(), source })?;
    serde_json::from_str(&text)
        .map_err(|error| SynthError::Format { path: path.to_path_buf(), what: error.to_string() })
}

/// Cells and modules in each module, by type.
type Modules<'a> = BTreeMap<&'a str, Vec<(&'a str, u64)>>;

pub(super) fn blocks_of(statistics: &Value, top: &str) -> Result<Vec<Block>, String> {
    let modules = statistics["modules"].as_object().ok_or("no modules in the statistics")?;
    let modules: Modules<'_> = modules
        .iter()
        .map(|(name, module)| {
            let cells = module["num_cells_by_type"].as_object();
            let cells = cells.into_iter().flatten();
            let cells = cells.map(|(kind, n)| (plain(kind), n.as_u64().unwrap_or(0))).collect();
            (plain(name), cells)
        })
        .collect();
    if !modules.contains_key(top) {
        return Err(format!("no module `{top}` in the statistics"));
    }
    let mut blocks = Vec::new();
    collect(&modules, top, 0, &mut blocks);
    Ok(blocks)
}

/// Adds the module and its parts, and returns what it costs.
fn collect(modules: &Modules<'_>, name: &str, depth: usize, blocks: &mut Vec<Block>) -> Cost {
    let index = blocks.len();
    blocks.push(Block { name: name.to_owned(), depth, cost: Cost::default() });
    let mut cost = Cost::default();
    for &(kind, count) in modules.get(name).into_iter().flatten() {
        if modules.contains_key(kind) {
            cost += collect(modules, kind, depth + 1, blocks).times(count);
        } else {
            cost += Cost::of_cells(kind, count);
        }
    }
    blocks[index].cost = cost;
    cost
}

/// The name without the mark that Yosys puts before names of the source.
fn plain(name: &str) -> &str {
    name.strip_prefix('\\').unwrap_or(name)
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
        let block = block_of(cell, top, blocks);
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

/// The innermost block that the flat cell's name begins with (`dut.send.fifo.count_LUT4_Z`).
fn block_of(cell: &str, top: &str, blocks: &[&str]) -> String {
    let mut parts = cell.split('.');
    if parts.next() != Some("dut") {
        return "harness".to_owned();
    }
    let mut block = top.to_owned();
    for part in parts {
        let inner = format!("{block}${part}");
        if !blocks.contains(&inner.as_str()) {
            break;
        }
        block = inner;
    }
    block
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
            let indent = "· ".repeat(block.depth);
            let name = block.name.rsplit('$').next().unwrap_or(&block.name);
            cost_row(f, &format!("{indent}{name}"), block.cost)?;
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
