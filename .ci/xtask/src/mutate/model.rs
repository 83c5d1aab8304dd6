//! Mutants of the model: a copy of the repository, whose `nic-model` has all edits of a run, of which
//! `VIADUCT_MUTANT` chooses one when a program starts. The RTL beside it is as it is.

mod edits;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::mutant::{Mutant, Site, Subject};
use super::options::Options;
use super::random::Random;
use super::suites::Programs;
use super::{build, equivalent, planted, target};
use crate::{tools, workspace};
use edits::Edit;

/// The model.
pub(super) const SOURCES: &str = "nic-model/src";
/// The seams of tests, which are no part of the device.
const SEAMS: [&str; 2] = ["link", "trace.rs"];
/// Chooses the mutant of a program.
const CHOICE: &str = "//! The mutant that this program is.
use std::sync::LazyLock;

static CHOSEN: LazyLock<usize> = LazyLock::new(|| {
    let number = std::env::var(\"VIADUCT_MUTANT\").ok();
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
});

/// Whether it is this one.
pub(crate) fn on(number: usize) -> bool {
    *CHOSEN == number
}
";
/// How often edits that do not compile are left out before that is an error.
const TRIES: usize = 8;

/// An edit of a file of the model, and the mutant that it is of.
type Numbered = (usize, Edit);

/// Builds mutants of the model, and gives them with the programs that have them.
pub(super) fn build(options: &Options) -> Result<(Vec<Mutant>, Programs), String> {
    let sources = sources()?;
    let (mut mutants, edits) =
        if options.planted { plant(&sources)? } else { choose(options, &sources)? };
    let tree = target().join("tree");
    copy(&tree)?;
    compile(&tree, &sources, edits, &mut mutants)?;
    mutants.retain(|mutant| options.wants(mutant.number, &mutant.name));
    eprintln!("building the model with {} mutants", mutants.len());
    let tests = options.tests("nic-model");
    let job = build::Job {
        root: &tree,
        target: &target().join("model"),
        tests: &tests,
        // Lockstep is with the RTL, which takes minutes.
        features: if tests.contains(&"cosim") { "cosim/rtl" } else { "" },
        mutants: None,
        command: options.needs_command().then_some("viaduct/rtl"),
    };
    let programs =
        build::build(&job).map_err(|said| format!("the mutants do not build:\n{said}"))?;
    equivalent::mark(Subject::Model, &mut mutants, |file, before| {
        let file = Path::new(file).strip_prefix(SOURCES).unwrap_or(Path::new(file));
        let has = |text: &String| text.lines().any(|line| equivalent::fits(before, line.trim()));
        sources.get(file).is_some_and(has)
    })?;
    Ok((mutants, programs))
}

/// The files of the model without its tests, and what they say.
fn sources() -> Result<BTreeMap<PathBuf, String>, String> {
    let mut sources = BTreeMap::new();
    for path in workspace::files()? {
        let Ok(own) = path.strip_prefix(SOURCES) else { continue };
        if !own.starts_with("tests") && own != Path::new("tests.rs") && own != Path::new("lib.rs") {
            let whole = workspace::root().join(&path);
            let text = fs::read_to_string(&whole).map_err(|error| said(&whole, &error))?;
            sources.insert(own.to_owned(), text);
        }
    }
    Ok(sources)
}

fn said(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What a mutant's list says of an edit.
fn site(file: &Path, text: &str, edit: &Edit) -> Site {
    let module = Path::new(SOURCES).join(file).display().to_string();
    let Range { start, end } = edit.range;
    // The whole lines.
    let from = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let to = text[end..].find('\n').map_or(text.len(), |at| end + at);
    let with = |after| one_line(&[&text[from..start], after, &text[end..to]].concat());
    Site {
        source: Some(format!("{module}:{}", edit.line)),
        module,
        line: edit.line,
        before: one_line(&text[from..to]),
        after: edit.after.as_deref().map_or_else(|| "(nothing)".to_owned(), with),
    }
}

/// A mutant of the model.
fn blank() -> Mutant {
    Mutant { subject: Subject::Model, block: "model".to_owned(), ..Mutant::default() }
}

type Edits = BTreeMap<PathBuf, Vec<Numbered>>;

/// The planted bugs.
fn plant(sources: &BTreeMap<PathBuf, String>) -> Result<(Vec<Mutant>, Edits), String> {
    let (mut mutants, mut edits) = (Vec::new(), Edits::new());
    for (number, bug) in (1..).zip(planted::MODEL) {
        let mut sites = Vec::new();
        for &planted::Edit { place, from, to } in bug.edits {
            let file = PathBuf::from(place);
            let text = sources.get(&file).map_or("", String::as_str);
            let found: Vec<usize> = text.match_indices(from).map(|(at, _)| at).collect();
            let &[at] = &found[..] else {
                return Err(format!(
                    "the planted bug {} (cosim/build/planted.rs) does not fit the model: {place} has `{from}` \
                     {} times, not once",
                    bug.name,
                    found.len()
                ));
            };
            let line = 1 + text[..at].matches('\n').count();
            let edit = Edit { range: at..at + from.len(), line, after: Some(to.to_owned()) };
            sites.push(site(&file, text, &edit));
            edits.entry(file).or_default().push((number, edit));
        }
        let (name, what) = (bug.name.to_owned(), bug.what.to_owned());
        mutants.push(Mutant { number, name, what, sites, ..blank() });
    }
    Ok((mutants, edits))
}

/// As many random edits as are asked for.
fn choose(
    options: &Options,
    sources: &BTreeMap<PathBuf, String>,
) -> Result<(Vec<Mutant>, Edits), String> {
    let mut all = Vec::new();
    let is_device = |file: &Path| !SEAMS.iter().any(|seam| file.starts_with(seam));
    for (file, text) in sources.iter().filter(|(file, _)| is_device(file)) {
        let found = edits::all(text).map_err(|error| format!("{}: {error}", file.display()))?;
        all.extend(found.into_iter().map(|edit| (file, text, edit)));
    }
    let (mut mutants, mut edits) = (Vec::new(), Edits::new());
    let mut random = Random::new(options.seed);
    while mutants.len() < options.count && !all.is_empty() {
        let at = usize::try_from(random.bits() % all.len() as u64).unwrap_or(0);
        let (file, text, edit) = all.swap_remove(at);
        let others = edits.entry(file.clone()).or_default();
        let Range { start, end } = edit.range;
        if others.iter().any(|(_, other)| start < other.range.end && other.range.start < end) {
            continue;
        }
        let number = mutants.len() + 1;
        let sites = vec![site(file, text, &edit)];
        mutants.push(Mutant { number, sites, ..blank() });
        others.push((number, edit));
    }
    Ok((mutants, edits))
}

/// Copies the repository, but for what is there. Files keep their times, so that cargo builds what has changed.
fn copy(tree: &Path) -> Result<(), String> {
    let files: BTreeSet<PathBuf> = workspace::files()?.into_iter().collect();
    remove_others(tree, tree, &files)?;
    for path in &files {
        // `compile` writes these.
        if path.starts_with(SOURCES) {
            continue;
        }
        let (from, to) = (workspace::root().join(path), tree.join(path));
        let time = |path: &Path| fs::metadata(path).and_then(|data| data.modified());
        let since = time(&from).map_err(|error| said(&from, &error))?;
        if time(&to).is_ok_and(|other| other == since) {
            continue;
        }
        let folder = to.parent().unwrap_or(tree);
        fs::create_dir_all(folder).map_err(|error| said(folder, &error))?;
        let set = |file: fs::File| file.set_modified(since);
        fs::copy(&from, &to)
            .and_then(|_| fs::OpenOptions::new().write(true).open(&to))
            .and_then(set)
            .map_err(|error| said(&to, &error))?;
    }
    Ok(())
}

/// Removes files that are in the repository no more.
fn remove_others(tree: &Path, folder: &Path, files: &BTreeSet<PathBuf>) -> Result<(), String> {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let own = path.strip_prefix(tree).unwrap_or(&path);
        if path.is_dir() {
            remove_others(tree, &path, files)?;
        } else if !files.contains(own) {
            fs::remove_file(&path).map_err(|error| said(&path, &error))?;
        }
    }
    Ok(())
}

/// Writes the model with its edits. Those that the compiler refuses are left out, and their mutants.
fn compile(
    tree: &Path,
    sources: &BTreeMap<PathBuf, String>,
    mut edits: Edits,
    mutants: &mut Vec<Mutant>,
) -> Result<(), String> {
    for _ in 0..TRIES {
        let lines = write(tree, sources, &edits)?;
        let mut cargo = workspace::cargo();
        cargo.current_dir(tree).args(["check", "--quiet", "--package", "nic-model"]);
        cargo.envs(tools::env()).env("CARGO_TARGET_DIR", target().join("model"));
        let Some(text) = errors(&mut cargo)? else { return Ok(()) };
        let bad = refused(&text, &lines);
        if bad.is_empty() || mutants.first().is_some_and(|mutant| !mutant.name.is_empty()) {
            return Err(format!("the model with mutants does not compile:\n{text}"));
        }
        edits.values_mut().for_each(|edits| edits.retain(|(number, _)| !bad.contains(number)));
        mutants.retain(|mutant| !bad.contains(&mutant.number));
    }
    Err("the model with mutants does not compile".to_owned())
}

/// What cargo says if it fails.
fn errors(cargo: &mut Command) -> Result<Option<String>, String> {
    let output = cargo.output().map_err(|error| format!("cannot run cargo: {error}"))?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    Ok((!output.status.success()).then_some(text))
}

/// Lines of each file that a mutant's choice is on.
type Lines = BTreeMap<PathBuf, Vec<(usize, Range<usize>)>>;

fn write(tree: &Path, sources: &BTreeMap<PathBuf, String>, edits: &Edits) -> Result<Lines, String> {
    let (root, mut lines) = (workspace::root(), Lines::new());
    for path in workspace::files()?.iter().filter(|path| path.starts_with(SOURCES)) {
        let own = path.strip_prefix(SOURCES).unwrap_or(path);
        let whole = root.join(path);
        let mut text = match sources.get(own) {
            Some(text) => text.clone(),
            None => fs::read_to_string(&whole).map_err(|error| said(&whole, &error))?,
        };
        if let Some(edits) = edits.get(own) {
            let refs: Vec<(usize, &Edit)> =
                edits.iter().map(|(number, edit)| (*number, edit)).collect();
            let (with, where_) = edits::apply(&text, &refs);
            text = with;
            lines.insert(own.to_owned(), where_);
        }
        if own == Path::new("lib.rs") {
            text.push_str("\nmod mutant;\n");
        }
        put(&tree.join(path), &text)?;
    }
    put(&tree.join(SOURCES).join("mutant.rs"), CHOICE)?;
    Ok(lines)
}

/// Writes a file unless it says so already.
fn put(path: &Path, text: &str) -> Result<(), String> {
    if fs::read_to_string(path).is_ok_and(|old| old == text) {
        return Ok(());
    }
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(path, text))
        .map_err(|error| said(path, &error))
}

/// The mutants whose lines the compiler names.
fn refused(text: &str, lines: &Lines) -> BTreeSet<usize> {
    let mut bad = BTreeSet::new();
    for place in text.lines().filter_map(|line| line.trim().strip_prefix("--> ")) {
        let mut parts = place.split(':');
        let (Some(file), Some(line)) = (parts.next(), parts.next()) else { continue };
        let own = Path::new(file).strip_prefix(SOURCES).unwrap_or(Path::new(file));
        let Ok(line) = line.parse::<usize>() else { continue };
        let numbered = lines.get(own).into_iter().flatten();
        bad.extend(numbered.filter(|(_, on)| on.contains(&line)).map(|(number, _)| *number));
    }
    bad
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_that_are_refused_are_known_by_their_lines() {
        let lines = Lines::from([(PathBuf::from("vi/state.rs"), vec![(3, 4..5), (4, 7..9)])]);
        let text = "error[E0308]: mismatched types\n  --> nic-model/src/vi/state.rs:8:12\n   |\n";
        assert_eq!(refused(text, &lines), BTreeSet::from([4]));
        assert!(refused("  --> nic-model/src/vi.rs:8:12", &lines).is_empty());
    }

    #[test]
    fn a_run_has_as_many_edits_as_are_asked_for_and_none_in_another() {
        let sources = sources().expect("the model");
        assert!(sources.contains_key(Path::new("vi/state.rs")), "{:?}", sources.keys());
        assert!(!sources.keys().any(|path| path.starts_with("tests")));
        let args = ["--block", "model", "--count", "60"].map(str::to_owned);
        let options = Options::parse(&args).expect("options");
        let (mutants, edits) = choose(&options, &sources).expect("edits");
        assert_eq!(mutants.len(), 60);
        for (file, edits) in &edits {
            let refs: Vec<(usize, &Edit)> =
                edits.iter().map(|(number, edit)| (*number, edit)).collect();
            let (text, lines) = edits::apply(&sources[file], &refs);
            assert!(syn::parse_file(&text).is_ok(), "{text}");
            assert_eq!(lines.len(), edits.len());
        }
    }
}
