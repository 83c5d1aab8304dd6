//! The rows and the anatomy of `viaduct bench hw`, from the text that its snapshot is.

use super::bars::Step;
use crate::bench::Bar;

/// A row.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) value: f64,
    pub(crate) unit: String,
    pub(crate) bar: Option<Bar>,
}

impl Row {
    /// Whether it keeps to its bar.
    pub(crate) fn is_held(&self) -> bool {
        self.bar.is_none_or(|bar| bar.holds(self.value))
    }
}

/// Where the cycles of a message go.
#[derive(Clone, Debug)]
pub(crate) struct Anatomy {
    /// What it is of.
    pub(crate) title: String,
    /// Cycle, what happened, and where that was seen.
    pub(crate) moments: Vec<(f64, String)>,
}

/// Rows, then anatomies.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hardware {
    pub(crate) rows: Vec<Row>,
    pub(crate) anatomies: Vec<Anatomy>,
}

impl Hardware {
    /// Reads what `viaduct bench hw --snapshot` writes.
    pub(crate) fn read(text: &str) -> Self {
        let mut hardware = Self::default();
        for line in text.lines() {
            if let Some(title) = line.strip_prefix("Anatomy of ") {
                let title = title.split(',').next().unwrap_or(title).to_owned();
                hardware.anatomies.push(Anatomy { title, moments: Vec::new() });
            } else if let Some(anatomy) = hardware.anatomies.last_mut() {
                anatomy.moments.extend(moment(line));
            } else {
                hardware.rows.extend(row(line));
            }
        }
        hardware
    }
}

/// `NAME VALUE UNIT (NOTE)`.
fn row(line: &str) -> Option<Row> {
    let mut words = line.split_whitespace();
    let (name, value) = (words.next()?, words.next()?.parse().ok()?);
    let unit = words.next()?.to_owned();
    Some(Row { name: name.to_owned(), value, unit, bar: crate::bench::bar_of(name) })
}

/// `CYCLE +STEP WHAT`.
fn moment(line: &str) -> Option<(f64, String)> {
    let (cycle, rest) = line.trim_start().split_once(' ')?;
    let (step, what) = rest.trim_start().split_once(' ')?;
    step.strip_prefix('+')?;
    Some((cycle.parse().ok()?, what.trim().to_owned()))
}

impl Anatomy {
    /// Steps from moment to moment, without those that take no time. A step belongs to the sender up to
    /// the first beat of its frame, to the wire up to the last one's arrival, and then to the receiver.
    pub(crate) fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        let (mut before, mut style) = (0.0, 0);
        for (cycle, what) in &self.moments {
            let name = what.trim_end_matches(" (pins)").trim_end_matches(" (stamp)").to_owned();
            if what.starts_with("frame: last beat in") {
                style = 1;
            }
            if *cycle > before {
                steps.push(Step { name, from: before, to: *cycle, style });
                before = *cycle;
            }
            if style == 1 {
                style = 2;
            }
        }
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_snapshot_of_the_rtl_has_all_its_rows_and_anatomies() {
        let hardware = Hardware::read(super::super::RTL);
        assert_eq!(hardware.rows.len(), 11);
        assert!(hardware.rows.iter().all(|row| row.bar.is_some()), "{:?}", hardware.rows);
        assert_eq!(hardware.anatomies.len(), 4);
        for anatomy in &hardware.anatomies {
            let steps = anatomy.steps();
            assert!(steps.len() > 5, "{steps:?}");
            assert!(steps.windows(2).all(|pair| pair[0].to == pair[1].from), "{steps:?}");
            assert_eq!(steps.last().unwrap().to, anatomy.moments.last().unwrap().0);
        }
    }
}
