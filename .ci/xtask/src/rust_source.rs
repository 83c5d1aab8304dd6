//! Rust files of the repository, parsed once for the checks that need more than lines.

use std::fs;
use std::path::{Path, PathBuf};

use crate::workspace;

/// One parsed file.
pub(crate) struct Source {
    /// Relative to the repository.
    pub(crate) path: PathBuf,
    pub(crate) text: String,
    pub(crate) ast: syn::File,
}

/// What a check has to say about a place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    pub(crate) path: PathBuf,
    /// Counted from 1; 0 stands for the whole file.
    pub(crate) line: usize,
    pub(crate) rule: &'static str,
    pub(crate) message: String,
}

impl Finding {
    pub(crate) fn new(
        path: &Path,
        line: usize,
        rule: &'static str,
        message: impl Into<String>,
    ) -> Self {
        Self { path: path.to_path_buf(), line, rule, message: message.into() }
    }
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { path, line, rule, message } = self;
        match line {
            0 => write!(f, "{}: {rule}: {message}", path.display()),
            _ => write!(f, "{}:{line}: {rule}: {message}", path.display()),
        }
    }
}

/// Parses the Rust files among the given ones. A file that does not parse is a finding: the checks
/// would otherwise pass by not looking.
pub(crate) fn parse_all(files: &[PathBuf]) -> Result<(Vec<Source>, Vec<Finding>), String> {
    let mut sources = Vec::new();
    let mut findings = Vec::new();
    for path in files.iter().filter(|path| path.extension().is_some_and(|ext| ext == "rs")) {
        let text = fs::read_to_string(workspace::root().join(path))
            .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        match syn::parse_file(&text) {
            Ok(ast) => sources.push(Source { path: path.clone(), text, ast }),
            Err(error) => {
                let line = error.span().start().line;
                findings.push(Finding::new(path, line, "parse", error.to_string()));
            }
        }
    }
    Ok((sources, findings))
}

/// Prints the findings, sorted, and says how many there are.
pub(crate) fn report(what: &str, mut findings: Vec<Finding>, checked: &str) -> crate::Outcome {
    findings.sort();
    findings.dedup();
    for finding in &findings {
        println!("{finding}");
    }
    if findings.is_empty() {
        println!("{what}: nothing to report ({checked})");
        return Ok(std::process::ExitCode::SUCCESS);
    }
    println!("{what}: {} findings ({checked})", findings.len());
    Ok(std::process::ExitCode::FAILURE)
}
