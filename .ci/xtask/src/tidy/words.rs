//! Words of the tree: the term of the field, and no other; lines of pages fit a terminal.

use std::path::Path;

use super::{Findings, Tree, read_text};

/// Retired words, each with the term that stands for it. A word also counts inside an identifier
/// (`announce_next`, `FrameGiver`).
const RETIRED: &[(&str, &str)] = &[
    ("announce", "report (a completion)"),
    ("announced", "reported"),
    ("announcer", "completion-event writer"),
    ("at hand", "cached, prefetched"),
    ("baton", "token of the deterministic scheduler"),
    ("bury", "tear down"),
    ("comes again", "duplicate, retransmitted"),
    ("courier", "message sender"),
    ("furnish", "install"),
    ("giver", "chunk reclaimer"),
    ("gives back", "releases, frees"),
    ("heard", "received"),
    ("hears", "receives"),
    ("in hand", "in flight"),
    ("is gone", "no longer exists"),
    ("names of old", "legacy device names"),
    ("owe", "must send"),
    ("owed", "pending"),
    ("owes", "must send"),
    ("rescue", "abort, poison"),
    ("rig", "testbench"),
    ("seat", "slot"),
    ("shelf", "receive-descriptor cache"),
    ("stranger", "misbehaving client"),
    ("tells", "reports, carries"),
    ("tenure", "ownership"),
    ("told", "notified, configured"),
    ("two colours", "two epochs"),
];

/// This list.
const OWN_FILE: &str = ".ci/xtask/src/tidy/words.rs";

/// What may still have retired words: comments and block pages of the RTL, which change with its
/// structure, and decisions, which are history.
const RENAMED_LATER: &[&str] = &["hdl/src", "hdl/doc", "docs/decisions"];

/// What is prose or code of ours, by its extension.
const EXTENSIONS: [&str; 8] = ["rs", "md", "c", "h", "sv", "txt", "toml", "cpp"];

/// Columns of a page. Tables and blocks of code may be wider.
const PAGE_COLUMNS: usize = 100;

/// Pages that are not wrapped yet.
const WRAPPED_LATER: &[&str] = &["hdl/doc"];

pub(super) fn check(tree: &Tree, findings: &mut Findings) -> Result<(), String> {
    for path in &tree.files {
        let extension = path.extension().unwrap_or_default().to_string_lossy();
        if !EXTENSIONS.contains(&&*extension) || path == Path::new(OWN_FILE) {
            continue;
        }
        let Some(text) = read_text(path)? else { continue };
        let later = |list: &[&str]| list.iter().any(|folder| path.starts_with(folder));
        if !later(RENAMED_LATER) {
            words(path, &text, findings);
        }
        if extension == "md" && !later(WRAPPED_LATER) {
            width(path, &text, findings);
        }
    }
    Ok(())
}

fn words(path: &Path, text: &str, findings: &mut Findings) {
    for (number, line) in text.lines().enumerate() {
        let line = format!(" {} ", plain(line));
        for (word, term) in RETIRED.iter().filter(|(word, _)| line.contains(&format!(" {word} "))) {
            findings.error(path, number + 1, "retired-word", format!("`{word}`: say {term}"));
        }
    }
}

/// The words of a line, in lower case, with one space between them; identifiers are taken apart.
fn plain(line: &str) -> String {
    let mut plain = String::new();
    let mut previous = ' ';
    for letter in line.chars() {
        if (!letter.is_alphabetic() || letter.is_uppercase() && previous.is_lowercase())
            && !plain.ends_with(' ')
        {
            plain.push(' ');
        }
        if letter.is_alphabetic() {
            plain.extend(letter.to_lowercase());
        }
        previous = letter;
    }
    plain
}

fn width(path: &Path, text: &str, findings: &mut Findings) {
    let mut is_code = false;
    for (number, line) in text.lines().enumerate() {
        is_code ^= line.trim_start().starts_with("```");
        let columns = line.chars().count();
        if columns > PAGE_COLUMNS && !is_code && !line.trim_start().starts_with('|') {
            let message = format!("{columns} columns, at most {PAGE_COLUMNS}: wrap it");
            findings.error(path, number + 1, "page-width", message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(check: fn(&Path, &str, &mut Findings), text: &str) -> Vec<(usize, &'static str)> {
        let mut findings = Findings::default();
        check(Path::new("a.md"), text, &mut findings);
        findings.errors.iter().map(|finding| (finding.line, finding.rule)).collect()
    }

    #[test]
    fn retired_words_are_found_in_prose_and_identifiers() {
        for text in ["It is owed.", "let frame_giver = 1;", "struct FrameGiver;", "Frames in hand"]
        {
            assert_eq!(found(words, text), [(1, "retired-word")], "{text}");
        }
        for text in ["a forgiver", "seated", "in a hand", "it allowed"] {
            assert!(found(words, text).is_empty(), "{text}");
        }
    }

    #[test]
    fn prose_is_wrapped_and_tables_are_not() {
        let long = "x ".repeat(60);
        let page = format!("{long}\n| {long} |\n```text\n{long}\n```\n{long}\n");
        assert_eq!(found(width, &page), [(1, "page-width"), (6, "page-width")]);
    }
}
