//! What was run, block by block, and what never was.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use super::{Item, Kind, Points, Reasons};

/// Branches and register bits of one block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Branches that ran, and all.
    pub branches: [usize; 2],
    /// Bits of registers that went up and down, and all.
    pub bits: [usize; 2],
}

/// Something that was never run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missed {
    /// A bit, as `channel.store.question.charged[7]`, or a branch, as
    /// `channel.store.question: if (gave$q)`.
    pub name: String,
    /// Its place in the list of reasons.
    pub reason: Option<usize>,
}

/// See the module's text.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// By block of the top.
    pub rows: BTreeMap<String, Row>,
    /// In the order of their names.
    pub missed: Vec<Missed>,
}

/// The bit of `q[3]:0->1`, or of `q:0->1`.
fn bit(remark: &str) -> &str {
    let name = remark.split(':').next().unwrap_or_default();
    name.split_once('[').map_or("0", |(_, rest)| rest.trim_end_matches(']'))
}

/// Lines of the Verilog files that were read so far.
#[derive(Default)]
struct Sources(BTreeMap<String, Vec<String>>);

impl Sources {
    /// A line, or its number if the file no longer exists.
    fn line(&mut self, (file, line): &(String, u32)) -> String {
        let read = || fs::read_to_string(file).unwrap_or_default();
        let lines = self
            .0
            .entry(file.clone())
            .or_insert_with(|| read().lines().map(|line| line.trim().to_owned()).collect());
        let at = usize::try_from(*line).unwrap_or(0).wrapping_sub(1);
        lines.get(at).cloned().unwrap_or_else(|| format!("line {line}"))
    }
}

/// A branch by its text, which moves less than its number.
fn branch_name(item: &Item, sources: &mut Sources) -> String {
    let line = sources.line(&item.place);
    let text = line.split_once("// ").map_or(line.as_str(), |(_, text)| text);
    format!("{}: {text}", item.path)
}

impl Report {
    /// Sorts points out.
    #[must_use]
    pub fn new(points: &Points, reasons: &Reasons) -> Self {
        // The same Verilog lies in several places when several programs were built from it.
        let (alone, whole): (Vec<_>, Vec<_>) = points.items().partition(|(item, _)| item.alone);
        let mut merged: BTreeMap<Item, (String, bool)> = BTreeMap::new();
        for (mut item, ran) in whole {
            let file = std::mem::take(&mut item.place.0);
            merged.entry(item).or_insert((file, false)).1 |= ran;
        }
        // The bench of a block runs the same branch at another place of another file.
        let name = |item: &Item| (item.kind, item.path.clone(), item.remark.clone());
        let benched: BTreeSet<_> =
            alone.into_iter().filter(|(_, ran)| *ran).map(|(item, _)| name(&item)).collect();
        for (item, (_, ran)) in &mut merged {
            *ran |= benched.contains(&name(item));
        }
        // Both directions of a bit make one.
        let mut bits: BTreeMap<(String, String), bool> = BTreeMap::new();
        let mut branches: BTreeMap<Item, bool> = BTreeMap::new();
        for (mut item, (file, ran)) in merged {
            if item.kind == Kind::Toggle {
                let bit = bit(&item.remark).to_owned();
                *bits.entry((item.path, bit)).or_insert(true) &= ran;
            } else {
                item.place.0 = file;
                branches.insert(item, ran);
            }
        }
        let mut report = Self::default();
        let mut sources = Sources::default();
        let mut names = Vec::new();
        for ((path, bit), ran) in bits {
            let [done, all] = &mut report.row(&path).bits;
            (*done, *all) = (*done + usize::from(ran), *all + 1);
            if !ran {
                names.push(format!("{path}[{bit}]"));
            }
        }
        for (item, ran) in branches {
            let [done, all] = &mut report.row(&item.path).branches;
            (*done, *all) = (*done + usize::from(ran), *all + 1);
            if !ran {
                names.push(branch_name(&item, &mut sources));
            }
        }
        names.sort_unstable();
        report.missed =
            names.into_iter().map(|name| Missed { reason: reasons.find(&name), name }).collect();
        report
    }

    fn row(&mut self, path: &str) -> &mut Row {
        let block = path.split('.').next().filter(|block| !block.is_empty()).unwrap_or("top");
        self.rows.entry(block.to_owned()).or_default()
    }

    /// All blocks together.
    #[must_use]
    pub fn total(&self) -> Row {
        let mut total = Row::default();
        for row in self.rows.values() {
            for at in 0..2 {
                total.branches[at] += row.branches[at];
                total.bits[at] += row.bits[at];
            }
        }
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_make_a_bit() {
        let file = std::env::temp_dir().join(format!("viaduct-report-{}", std::process::id()));
        let key = |page: &str, remark: &str, ran: u8| {
            format!("C '\u{1}f\u{2}x.v\u{1}l\u{2}7\u{1}page\u{2}{page}\u{1}o\u{2}{remark}' {ran}\n")
        };
        let text = [
            key("v_toggle/top$a$r", "q[1]:0->1", 1),
            key("v_toggle/top$a$r", "q[1]:1->0", 0),
            key("v_toggle/top$a$r", "q[0]:0->1", 1),
            key("v_toggle/top$a$r", "q[0]:1->0", 3),
            key("v_toggle/top$b", "branch_0:0->1", 0),
        ]
        .concat();
        fs::write(&file, text).unwrap();
        let points = Points::read(&file).unwrap();
        fs::remove_file(&file).unwrap();
        let report = Report::new(&points, &Reasons::parse("a.r[*] | because").unwrap());
        assert_eq!(report.rows["a"], Row { bits: [1, 2], ..Row::default() });
        assert_eq!(report.rows["b"], Row { branches: [0, 1], ..Row::default() });
        let missed: Vec<_> = report.missed.iter().map(|m| (m.name.as_str(), m.reason)).collect();
        assert_eq!(missed, [("a.r[1]", Some(0)), ("b: line 7", None)]);
        assert_eq!(report.total(), Row { branches: [0, 1], bits: [1, 2] });
    }

    #[test]
    fn what_a_bench_ran_counts_for_the_nic() {
        let file = std::env::temp_dir().join(format!("viaduct-benched-{}", std::process::id()));
        let key = |place: &str, line: u32, module: &str, remark: &str, ran: u8| {
            format!(
                "C '\u{1}f\u{2}{place}\u{1}l\u{2}{line}\u{1}page\u{2}v_toggle/{module}\u{1}o\u{2}{remark}' {ran}\n"
            )
        };
        let text = [
            key("Vtop-1.v", 7, "top$vis$a", "branch_0:0->1", 0),
            key("Vtop-1.v", 8, "top$vis$a", "branch_1:0->1", 0),
            key("Vvi-2.v", 2, "top$a", "branch_0:0->1", 1),
            key("Vvi-2.v", 3, "top$a", "branch_9:0->1", 1),
        ]
        .concat();
        fs::write(&file, text).unwrap();
        let points = Points::read(&file).unwrap();
        fs::remove_file(&file).unwrap();
        let report = Report::new(&points, &Reasons::parse("").unwrap());
        assert_eq!(report.total(), Row { branches: [1, 2], ..Row::default() });
    }
}
