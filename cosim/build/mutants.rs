//! Mutants of the NIC: edits of the emitted Verilog, of which one is chosen when a program starts.
//!
//! `VIADUCT_MUTANTS=COUNT:SEED[:BLOCK]` at build time has so many edits put into the kernels of the NIC, of one
//! block or of all, `VIADUCT_MUTANTS=planted` those of the planted bugs (`planted.rs`); `VIADUCT_MUTANT=N` at run
//! time switches one of them on. So one Verilation serves all, and every suite runs on mutants as it is. The same
//! edits are in the blocks that are Verilated by themselves. What each edit is stands in `mutants.tsv` in the
//! target directory: number, name of a planted bug, block, module, line of the module, before, after.

use crate::cases::Cases;
use crate::coverage::KERNEL;
use crate::emit::{Design, NIC};
use crate::planted;
use crate::random::Random;
use crate::verilate::target_dir;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// What the C++ of a model needs.
pub(crate) const HEADER: &str = "#include <cstdint>\nextern \"C\" const uint32_t viaduct_mutant;\n";
/// The choice of a program.
pub(crate) const SOURCE: &str = "#include <cstdint>\n#include <cstdlib>\n\
    static uint32_t chosen() {\n    const char* text = getenv(\"VIADUCT_MUTANT\");\n    \
    return text ? (uint32_t)strtoul(text, nullptr, 10) : 0;\n}\n\
    extern \"C\" const uint32_t viaduct_mutant;\nconst uint32_t viaduct_mutant = chosen();\n";

/// Parts of the NIC that have another name as blocks.
const RENAMED: [(&str, &str); 2] = [("events", "event"), ("vis", "vi")];
/// Blocks that are a part of another one, and are Verilated by themselves as well: the block, and the part there.
const PARTS: [(&str, &str, &str); 3] =
    [("counters", "csr", "counters"), ("error_log", "csr", "log"), ("anatomy", "csr", "anatomy")];
/// Operators, and what they become.
const OPERATORS: [(&str, &str); 10] = [
    (" == ", " != "),
    (" != ", " == "),
    (" >= ", " > "),
    (" > ", " >= "),
    (" < ", " <= "),
    (" <= ", " < "),
    (" & ", " | "),
    (" | ", " & "),
    (" + ", " - "),
    (" - ", " + "),
];

/// A line of a module: the block that the module is in, the module's name there, and its line.
type Place = (String, String, usize);

/// The edits of a build.
#[derive(Debug, Default)]
pub(crate) struct Mutants {
    /// Before, and with its edits.
    lines: BTreeMap<Place, [String; 2]>,
    /// What stands in `mutants.tsv`.
    list: String,
}

impl Mutants {
    /// Those that the environment asks for. None: it does not.
    pub(crate) fn from_env(designs: &[Design]) -> Option<Self> {
        println!("cargo:rerun-if-env-changed=VIADUCT_MUTANTS");
        let text = std::env::var("VIADUCT_MUTANTS").ok()?;
        let nic = designs.iter().find(|design| design.name == NIC).expect("mutants are of the NIC");
        let mutants = if text == "planted" {
            Self::planted(nic)
        } else {
            let mut parts = text.split(':');
            let mut number = || parts.next()?.parse::<u64>().ok();
            let (count, seed) =
                number().zip(number()).unwrap_or_else(|| panic!("VIADUCT_MUTANTS={text}"));
            Self::choose(nic, count, seed, parts.next())
        };
        crate::write(&target_dir().join("mutants.tsv"), &mutants.list);
        Some(mutants)
    }

    fn choose(nic: &Design, count: u64, seed: u64, block: Option<&str>) -> Self {
        let mut sites = Vec::new();
        for line in lines(NIC, &nic.verilog) {
            if block.is_none_or(|block| line.place.0 == block) {
                let found = edits(line.text.trim(), line.depth);
                let site = |edit| (line.place.clone(), line.text, edit);
                sites.extend(found.into_iter().map(site));
            }
        }
        let mut mutants = Self::default();
        let (mut number, mut random) = (0, Random::new(seed));
        while number < count && !sites.is_empty() {
            let index = random.bits() % sites.len() as u64;
            let index = usize::try_from(index).expect("an index");
            let (place, line, edit) = sites.swap_remove(index);
            if mutants.lines.contains_key(&place) {
                continue;
            }
            number += 1;
            mutants.add((number, ""), place, line, &edit);
        }
        mutants
    }

    /// The planted bugs.
    ///
    /// # Panics
    /// If one does not fit.
    fn planted(nic: &Design) -> Self {
        let lines = lines(NIC, &nic.verilog);
        let mut mutants = Self::default();
        for (number, bug) in (1..).zip(planted::RTL) {
            for &planted::Edit { place: module, from, to } in bug.edits {
                let unfit = |why: &str| -> ! {
                    panic!(
                        "the planted bug {} (cosim/build/planted.rs) does not fit the RTL: in the kernel of \
                         {module}, {why} `{from}`: change the entry with the RTL",
                        bug.name
                    )
                };
                let own = place(NIC, module);
                let fits = |line: &&Line<'_>| {
                    let (block, name, _) = &line.place;
                    own.as_ref().is_some_and(|own| (block, name) == (&own.0, &own.1))
                        && line.text.contains(from)
                };
                let mut found = lines.iter().filter(fits);
                let line = found.next().unwrap_or_else(|| unfit("no line has"));
                if found.next().is_some() {
                    unfit("several lines have");
                }
                let after = line.text.replacen(from, to, 1);
                let edit = Edit::between(line.text.trim(), after.trim())
                    .unwrap_or_else(|| unfit("a condition or an assigned value has to have"));
                mutants.add((number, bug.name), line.place.clone(), line.text, &edit);
            }
        }
        mutants
    }

    /// Adds an edit to its line, which may have others.
    fn add(&mut self, (number, name): (u64, &str), place: Place, line: &str, edit: &Edit) {
        let (before, after) = (line.trim(), edit.shown());
        let (block, module, at) = (&place.0, module(&place), place.2);
        let _ = writeln!(self.list, "{number}\t{name}\t{block}\t{module}\t{at}\t{before}\t{after}");
        let entry = self.lines.entry(place);
        let [_, with] = entry.or_insert_with(|| [line.to_owned(), before.to_owned()]);
        *with = edit.text(with, number);
    }

    /// A design with the edits that are in it.
    pub(crate) fn apply(&self, design: &Design) -> String {
        let mut text: Vec<&str> = design.verilog.lines().collect();
        for line in lines(design.name, &design.verilog) {
            if let Some([before, with]) = self.lines.get(&line.place) {
                assert_eq!(
                    line.text, before,
                    "{:?} of {} is another line",
                    line.place, design.name
                );
                text[line.at] = with;
            }
        }
        text.join("\n") + "\n"
    }
}

/// An edit of a statement.
#[derive(Debug)]
enum Edit {
    /// Of a condition: what is before it, and what it becomes.
    Condition(&'static str, String),
    /// Of what is assigned to this.
    Value(String, String),
    /// The assignment is left out.
    Gone,
}

impl Edit {
    /// The edit that makes one statement of another. None: more than a condition or a value differs.
    fn between(before: &str, after: &str) -> Option<Self> {
        if let Some((head, _)) = condition(before) {
            let (same, after) = condition(after)?;
            return (same == head).then(|| Self::Condition(head, after.to_owned()));
        }
        let (to, _) = assignment(before)?;
        let (same, after) = assignment(after)?;
        (same == to).then(|| Self::Value(to.to_owned(), after.to_owned()))
    }

    fn shown(&self) -> String {
        match self {
            Self::Condition(head, after) => format!("{head}({after}) begin"),
            Self::Value(to, after) => format!("{to} = {after};"),
            Self::Gone => "(nothing)".to_owned(),
        }
    }

    /// A statement with a choice between it and its edit.
    fn text(&self, statement: &str, number: u64) -> String {
        let chosen = format!("($c32(\"viaduct_mutant\") == 32'd{number})");
        match self {
            Self::Condition(head, after) => {
                let before = condition(statement).expect("the same kind of statement").1;
                format!("{head}({chosen} ? ({after}) : ({before})) begin")
            }
            Self::Value(to, after) => {
                let before = assignment(statement).expect("the same kind of statement").1;
                format!("{to} = {chosen} ? ({after}) : ({before});")
            }
            Self::Gone => format!("if (!{chosen}) {statement}"),
        }
    }
}

/// What is before a condition, and the condition.
fn condition(line: &str) -> Option<(&'static str, &str)> {
    ["if ", "else if "].into_iter().find_map(|head| {
        let inside = line.strip_prefix(head)?.strip_prefix('(')?.strip_suffix(") begin")?;
        Some((head, inside))
    })
}

/// What is assigned to, and the value.
fn assignment(line: &str) -> Option<(&str, &str)> {
    line.strip_suffix(';')?.split_once(" = ")
}

/// The edits of a line of a kernel, which is nested so deep.
fn edits(line: &str, depth: usize) -> Vec<Edit> {
    if let Some((head, inside)) = condition(line) {
        let mut all = variants(inside);
        all.push(format!("!({inside})"));
        return all.into_iter().map(|after| Edit::Condition(head, after)).collect();
    }
    let Some((to, value)) = assignment(line).filter(|(to, _)| !to.ends_with("$clock")) else {
        return Vec::new();
    };
    let edit = |after| Edit::Value(to.to_owned(), after);
    let mut all: Vec<Edit> = variants(value).into_iter().map(edit).collect();
    if depth > 0 {
        all.push(Edit::Gone);
    }
    all
}

/// An expression with one operator changed, or one bit of one number.
fn variants(expression: &str) -> Vec<String> {
    let mut all = Vec::new();
    for (from, to) in OPERATORS {
        for (at, _) in expression.match_indices(from) {
            all.push([&expression[..at], to, &expression[at + from.len()..]].concat());
        }
    }
    for (at, _) in expression.match_indices("'h") {
        let digits = at + 2;
        let end = expression[digits..].find(|c: char| !c.is_ascii_hexdigit());
        let end = end.map_or(expression.len(), |length| digits + length);
        if let Ok(number) = u64::from_str_radix(&expression[digits..end], 16) {
            let flipped = format!("{:x}", number ^ 1);
            all.push([&expression[..digits], &flipped, &expression[end..]].concat());
        }
    }
    all
}

/// A line of a kernel.
#[derive(Debug)]
struct Line<'a> {
    place: Place,
    text: &'a str,
    /// Statements that it is nested in.
    depth: usize,
    /// Its number in the whole text.
    at: usize,
}

/// Lines of the kernels of a design that a state leads to.
fn lines<'a>(design: &str, verilog: &'a str) -> Vec<Line<'a>> {
    let (mut module, mut first, mut depth) = (String::new(), 0, None);
    let (mut found, mut cases) = (Vec::new(), Cases::default());
    for (at, line) in verilog.lines().enumerate() {
        let trimmed = line.trim();
        if let Some(rest) = trimmed.strip_prefix("module ") {
            module = rest.split('(').next().unwrap_or(rest).to_owned();
            (first, cases) = (at, Cases::default());
        }
        cases.see(trimmed);
        if line == KERNEL[0] {
            depth = Some(0_usize);
        } else if line == KERNEL[1] {
            depth = None;
        } else if let Some(depth) = &mut depth {
            *depth -= usize::from(["end", "endcase"].contains(&trimmed));
            if let Some((block, own)) = place(design, &module).filter(|_| !cases.unreachable()) {
                found.push(Line { place: (block, own, at - first), text: line, depth: *depth, at });
            }
            let opens = trimmed.ends_with("begin") || trimmed.starts_with("case (");
            *depth += usize::from(opens);
        }
    }
    found
}

/// The block of a module of a design, and its name there. None: of the NIC itself.
fn place(design: &str, module: &str) -> Option<(String, String)> {
    let own = module.strip_prefix("top")?.trim_start_matches('$');
    if let Some((_, block, part)) = PARTS.iter().find(|(name, ..)| *name == design) {
        return Some(((*block).to_owned(), join(part, own)));
    }
    if design != NIC {
        return Some((design.to_owned(), own.to_owned()));
    }
    let (part, own) = own.split_once('$').unwrap_or((own, ""));
    let renamed = RENAMED.iter().find(|(name, _)| *name == part);
    let block = renamed.map_or(part, |(_, block)| block);
    (!block.is_empty()).then(|| (block.to_owned(), own.to_owned()))
}

/// The name of a module in the NIC.
fn module((block, own, _): &Place) -> String {
    let renamed = RENAMED.iter().find(|(_, name)| name == block);
    let part = renamed.map_or(block.as_str(), |(part, _)| part);
    join("top", &join(part, own))
}

/// The name of a module that is in another.
fn join(outer: &str, own: &str) -> String {
    [outer, own].join("$").trim_end_matches('$').to_owned()
}
