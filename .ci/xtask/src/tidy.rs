//! The repository's own style rules, as far as a program can check them.
//!
//! Compiler and clippy check the rest. An exception is a line in a list here with its reason, so
//! that a review sees it.

mod circles;
pub(crate) mod limits;
mod project;
mod text;
mod unsafety;
mod words;

use std::path::{Path, PathBuf};

use crate::rust_source::{self, Finding, Source};
use crate::workspace;

/// What the rules look at.
struct Tree {
    files: Vec<PathBuf>,
    sources: Vec<Source>,
}

/// What the rules found: errors fail the gate, warnings are only printed.
#[derive(Default)]
struct Findings {
    errors: Vec<Finding>,
    warnings: Vec<Finding>,
}

impl Findings {
    fn error(&mut self, path: &Path, line: usize, rule: &'static str, text: impl Into<String>) {
        self.errors.push(Finding::new(path, line, rule, text));
    }

    fn warn(&mut self, path: &Path, line: usize, rule: &'static str, text: impl Into<String>) {
        self.warnings.push(Finding::new(path, line, rule, text));
    }
}

/// Checks the tree and prints what is found.
pub(crate) fn run() -> crate::Outcome {
    let files = workspace::files()?;
    let (sources, unparsed) = rust_source::parse_all(&files)?;
    let tree = Tree { files, sources };
    let mut findings = Findings { errors: unparsed, warnings: Vec::new() };
    circles::check(&tree, &mut findings);
    limits::check(&tree, &mut findings);
    text::check(&tree, &mut findings)?;
    unsafety::check(&tree, &mut findings);
    words::check(&tree, &mut findings)?;
    project::check(&tree, &mut findings)?;
    findings.warnings.sort();
    for warning in &findings.warnings {
        println!("warning: {warning}");
    }
    let checked = format!("{} files, {} warnings", tree.files.len(), findings.warnings.len());
    rust_source::report("tidy", findings.errors, &checked)
}

/// The file's text, unless it is binary.
fn read_text(path: &Path) -> Result<Option<String>, String> {
    let bytes = std::fs::read(workspace::root().join(path))
        .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    Ok(String::from_utf8(bytes).ok().filter(|text| !text.contains('\0')))
}
