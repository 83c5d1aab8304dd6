//! Mutants, and what became of them.

use std::time::Duration;

/// Whose mutants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Subject {
    #[default]
    Rtl,
    Model,
}

/// A mutant.
#[derive(Clone, Debug, Default)]
pub(super) struct Mutant {
    pub(super) number: usize,
    pub(super) subject: Subject,
    /// Of a planted bug.
    pub(super) name: String,
    /// Of a planted bug.
    pub(super) what: String,
    /// Of the RTL, or `model`.
    pub(super) block: String,
    /// Planted bugs may have several.
    pub(super) sites: Vec<Site>,
    /// Why nobody can find it.
    pub(super) reason: Option<String>,
}

/// One edit of a mutant.
#[derive(Clone, Debug, Default)]
pub(super) struct Site {
    /// Of the emitted NIC, or a file.
    pub(super) module: String,
    /// In it.
    pub(super) line: usize,
    pub(super) before: String,
    pub(super) after: String,
    /// Where the source has it, if that is known.
    pub(super) source: Option<String>,
}

impl Mutant {
    pub(super) fn shown(&self) -> String {
        let site = |site: &Site| {
            let Site { module, line, before, after, source } = site;
            let place = source.clone().unwrap_or_else(|| format!("{module} line {line}"));
            format!("{place}: `{before}` -> `{after}`")
        };
        let sites: Vec<String> = self.sites.iter().map(site).collect();
        let name = if self.name.is_empty() { &self.block } else { &self.name };
        format!("{} {name} {}", self.number, sites.join("; "))
    }
}

/// A suite that was run on a mutant.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) suite: &'static str,
    pub(super) answer: Answer,
    pub(super) took: Duration,
}

/// What became of a mutant: the suites that ran, in their order.
#[derive(Clone, Debug)]
pub(super) struct Fate {
    pub(super) runs: Vec<Run>,
}

impl Fate {
    /// The first suite that found it.
    pub(super) fn found(&self) -> Option<&Run> {
        self.runs.iter().find(|run| run.answer.found().is_some())
    }
}

/// What a suite says of a mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// This of it fails.
    Found(String),
    NotFound,
    /// It has nothing that could.
    NoCase,
}

impl Answer {
    pub(super) fn found(&self) -> Option<&str> {
        if let Self::Found(by) = self { Some(by) } else { None }
    }
}

impl From<Option<String>> for Answer {
    fn from(found: Option<String>) -> Self {
        found.map_or(Self::NotFound, Self::Found)
    }
}

/// Reads the list that a build has made: the rows of a mutant stand together.
pub(super) fn parse(text: &str) -> Vec<Mutant> {
    let mut mutants: Vec<Mutant> = Vec::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.splitn(7, '\t').collect();
        let [number, name, block, module, line, before, after] = fields[..] else { continue };
        let (Ok(number), Ok(line)) = (number.parse(), line.parse()) else { continue };
        let site = Site {
            module: module.to_owned(),
            line,
            before: before.to_owned(),
            after: after.to_owned(),
            source: None,
        };
        match mutants.last_mut().filter(|last| last.number == number) {
            Some(last) => last.sites.push(site),
            None => mutants.push(Mutant {
                number,
                name: name.to_owned(),
                block: block.to_owned(),
                sites: vec![site],
                ..Mutant::default()
            }),
        }
    }
    mutants
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read() {
        let list = "1\t\trecv\ttop$recv$check\t40\ta = b & c;\ta = b | c;\n\
            2\tnext\tsend\ttop$send\t1\ta\tb\n2\tnext\tsend\ttop$send$desc\t2\tc\td\n";
        let mutants = parse(list);
        assert_eq!((mutants.len(), mutants[1].sites.len()), (2, 2));
        assert_eq!(
            mutants[0].shown(),
            "1 recv top$recv$check line 40: `a = b & c;` -> `a = b | c;`"
        );
        assert!(mutants[1].shown().starts_with("2 next top$send line 1"));
    }
}
