//! The table of planted bugs in docs/verification.md.

use std::fs;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use super::mutant::{Answer, Fate, Mutant, Subject};
use super::planted::{self, Planted};
use super::suites::{SUITES, Suite};
use crate::workspace;

const PAGE: &str = "docs/verification.md";
/// Around the table.
const MARKS: [&str; 2] = [
    "<!-- planted: made by `cargo xtask mutate --planted --write` -->\n",
    "<!-- end of planted -->\n",
];

/// In front of where a bug of the model is.
const MODEL: &str = "model, ";
/// Bug, what is wrong, where, and what each suite says.
type Row = Vec<String>;
/// Columns in front of those of the suites.
const HEAD: usize = 3;

/// The table: that of a page, with what a run has found. What was never run is left open.
fn table(page: &str, run: &[(Mutant, Fate)]) -> Option<String> {
    let mut rows: Vec<Row> = parts(page)?.1.lines().skip(3).filter_map(cells).collect();
    for (mutant, fate) in run {
        let new = row(mutant, fate);
        match rows.iter_mut().find(|row| number(row) == number(&new)) {
            Some(row) => {
                row.iter_mut()
                    .zip(new)
                    .filter(|(_, new)| !new.is_empty())
                    .for_each(|(cell, new)| *cell = new);
            }
            None => rows.push(new),
        }
    }
    rows.retain(|row| number(row).is_some());
    rows.sort_by_key(number);
    let names = SUITES.iter().map(|suite| suite.name);
    let head: Row =
        ["bug", "what is wrong", "where"].into_iter().chain(names).map(str::to_owned).collect();
    let line = |row: &Row| format!("| {} |\n", row.join(" | "));
    let rule = format!("|{}\n", "---|".repeat(head.len()));
    Some([line(&head), rule].into_iter().chain(rows.iter().map(line)).collect())
}

/// The cells of a line of the table.
fn cells(line: &str) -> Option<Row> {
    let line = line.strip_prefix('|')?.strip_suffix('|')?;
    let cells: Row = line.split('|').map(|cell| cell.trim().to_owned()).collect();
    (cells.len() == HEAD + SUITES.len()).then_some(cells)
}

/// Where a row stands: by the list of planted bugs. None: it is of none any more.
fn number(row: &Row) -> Option<usize> {
    let of = |bugs: &[Planted]| bugs.iter().position(|bug| bug.name == row[0]);
    match row[2].starts_with(MODEL) {
        true => of(planted::MODEL).map(|at| planted::RTL.len() + at),
        false => of(planted::RTL),
    }
}

fn row(mutant: &Mutant, fate: &Fate) -> Row {
    let place = mutant.sites.first().map_or("", |site| site.module.as_str());
    let place = match mutant.subject {
        Subject::Rtl => place.trim_start_matches("top$").replace('$', "."),
        Subject::Model => format!("{MODEL}{}", place.trim_start_matches("nic-model/src/")),
    };
    let answer = |suite: &Suite| {
        let run = fate.runs.iter().find(|run| run.suite == suite.name);
        match run.map(|run| &run.answer) {
            Some(Answer::Found(by)) => by.replace("rtl::", "").replace("model::", ""),
            Some(Answer::NotFound) => "**not found**".to_owned(),
            Some(Answer::NoCase) => "-".to_owned(),
            None => String::new(),
        }
    };
    let head = [mutant.name.clone(), mutant.what.clone(), place];
    head.into_iter().chain(SUITES.iter().map(answer)).collect()
}

/// Prints the table with what a run has found.
pub(super) fn show(run: &[(Mutant, Fate)]) -> Result<(), String> {
    println!("{}", table(&page()?, run).ok_or_else(no_marks)?);
    Ok(())
}

/// Puts what the suites say of one bug into the page, at once: a run takes hours, and may be stopped.
pub(super) fn write(mutant: &Mutant, fate: &Fate) -> Result<(), String> {
    static PAGE_IN_USE: Mutex<()> = Mutex::new(());
    let _one_at_a_time = PAGE_IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
    let page = page()?;
    let table = table(&page, &[(mutant.clone(), fate.clone())]).ok_or_else(no_marks)?;
    let (before, _, after) = parts(&page).ok_or_else(no_marks)?;
    fs::write(path(), [before, "\n", &table, "\n", after].concat()).map_err(failed)
}

fn path() -> PathBuf {
    workspace::root().join(PAGE)
}

fn page() -> Result<String, String> {
    fs::read_to_string(path()).map_err(failed)
}

fn failed(error: std::io::Error) -> String {
    format!("{PAGE}: {error}")
}

fn no_marks() -> String {
    format!("{PAGE} has no lines {MARKS:?}")
}

/// What is before the table in a page, and its mark; the table; its other mark, and what is behind it.
fn parts(page: &str) -> Option<(&str, &str, &str)> {
    let begin = page.find(MARKS[0])? + MARKS[0].len();
    let end = begin + page[begin..].find(MARKS[1])?;
    Some((&page[..begin], &page[begin..end], &page[end..]))
}

#[cfg(test)]
mod tests {
    use super::super::mutant::{Run, Site};
    use super::*;

    fn run(suite: &'static str, found: Option<&str>) -> Run {
        let answer = found.map(str::to_owned).into();
        Run { suite, answer, took: std::time::Duration::ZERO }
    }

    fn bug(name: &str, what: &str, module: &str) -> Mutant {
        let sites = vec![Site { module: module.into(), ..Site::default() }];
        Mutant { name: name.into(), what: what.into(), sites, ..Mutant::default() }
    }

    #[test]
    fn a_run_goes_into_the_table() {
        let page = format!("before\n{}{}after\n", MARKS[0], MARKS[1]);
        let staging = bug("staging-full", "refused", "top$channel$stage");
        let gone = bug("no-such-bug", "", "top");
        let region = bug("region-end", "allowed", "top$tpt");
        let fate = |runs| Fate { runs };
        let first = [
            (region, fate(vec![run("bench", Some("edges"))])),
            (staging.clone(), fate(vec![run("bench", Some("a")), run("lockstep", None)])),
            (gone, fate(vec![run("bench", None)])),
        ];
        let text = table(&page, &first).expect("marks");
        let rows = "| staging-full | refused | channel.stage | a |  | **not found** |  |  |\n\
            | region-end | allowed | tpt | edges |  |  |  |  |\n";
        assert!(text.ends_with(rows), "{text}");
        // The next run has another suite, of one of them.
        let page = format!("before\n{}\n{text}\n{}after\n", MARKS[0], MARKS[1]);
        let second = [(staging, fate(vec![run("lockstep", Some("lockstep 3"))]))];
        let text = table(&page, &second).expect("marks");
        assert!(
            text.contains("| channel.stage | a |  | lockstep 3 |  |  |\n| region-end"),
            "{text}"
        );
        assert!(table("no marks", &second).is_none());
    }

    #[test]
    fn the_page_has_the_marks() {
        let own = fs::read_to_string(workspace::root().join(PAGE)).expect("the page");
        assert!(parts(&own).is_some(), "{PAGE} lacks the marks");
    }
}
