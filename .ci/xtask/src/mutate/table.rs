//! The table of planted bugs in docs/verification.md.

use std::fmt::Write as _;
use std::fs;

use super::mutant::{Answer, Fate, Mutant, Subject};
use super::suites::SUITES;
use crate::workspace;

const PAGE: &str = "docs/verification.md";
/// Around the table.
const MARKS: [&str; 2] = [
    "<!-- planted: made by `cargo xtask mutate --planted --write` -->\n",
    "<!-- end of planted -->\n",
];

/// The table. What was not run is left open.
pub(super) fn table(rows: &[(Mutant, Fate)]) -> String {
    let mut text = String::from("| bug | what is wrong | where |");
    let columns = SUITES.iter().map(|suite| suite.name);
    columns.clone().for_each(|name| text.push_str(&format!(" {name} |")));
    text.push_str("\n|---|---|---|");
    columns.clone().for_each(|_| text.push_str("---|"));
    text.push('\n');
    for (mutant, fate) in rows {
        let place = mutant.sites.first().map_or("", |site| site.module.as_str());
        let place = match mutant.subject {
            Subject::Rtl => place.trim_start_matches("top$").replace('$', "."),
            Subject::Model => format!("model, {}", place.trim_start_matches("nic-model/src/")),
        };
        let _ = write!(text, "| {} | {} | {place} |", mutant.name, mutant.what);
        for name in columns.clone() {
            let run = fate.runs.iter().find(|run| run.suite == name);
            let cell = match run.map(|run| &run.answer) {
                Some(Answer::Found(by)) => by.as_str(),
                Some(Answer::NotFound) => "**not found**",
                Some(Answer::NoCase) => "-",
                None => "",
            };
            let _ = write!(text, " {} |", cell.replace("rtl::", "").replace('|', "\\|"));
        }
        text.push('\n');
    }
    text
}

/// Puts a table into the page.
pub(super) fn write(table: &str) -> Result<(), String> {
    let path = workspace::root().join(PAGE);
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    let page = fs::read_to_string(&path).map_err(failed)?;
    let page = replace(&page, table).ok_or_else(|| format!("{PAGE} has no lines {MARKS:?}"))?;
    fs::write(&path, page).map_err(failed)
}

fn replace(page: &str, table: &str) -> Option<String> {
    let (before, rest) = page.split_once(MARKS[0])?;
    let (_, after) = rest.split_once(MARKS[1])?;
    Some([before, MARKS[0], "\n", table, "\n", MARKS[1], after].concat())
}

#[cfg(test)]
mod tests {
    use super::super::mutant::{Run, Site};
    use super::*;

    #[test]
    fn the_table_takes_its_place() {
        let site = Site { module: "top$channel$stage".into(), ..Site::default() };
        let mutant = Mutant {
            name: "staging-full".into(),
            what: "refused".into(),
            sites: vec![site],
            ..Mutant::default()
        };
        let run = |suite, found: Option<&str>| Run {
            suite,
            answer: found.map(str::to_owned).into(),
            took: std::time::Duration::ZERO,
        };
        let fate = Fate { runs: vec![run("bench", Some("a")), run("lockstep", None)] };
        let table = table(&[(mutant, fate)]);
        let row = "| staging-full | refused | channel.stage | a | **not found** |  |";
        assert!(table.contains(row), "{table}");
        let page = format!("before\n{}old\n{}after\n", MARKS[0], MARKS[1]);
        let page = replace(&page, &table).expect("marks");
        assert!(page.starts_with("before\n") && page.ends_with("after\n") && page.contains(row));
        assert!(!page.contains("old") && replace("no marks", &table).is_none());
        let own = fs::read_to_string(workspace::root().join(PAGE)).expect("the page");
        assert!(replace(&own, &table).is_some(), "{PAGE} lacks the marks");
    }
}
