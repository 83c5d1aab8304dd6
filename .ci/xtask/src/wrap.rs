//! `cargo xtask wrap`: breaks comment lines that are too long, since rustfmt leaves comments alone.
//!
//! Only paragraphs with a line that `tidy` finds too long are touched. Code fences, tables and headings stay
//! as they are, and so does text with several blanks in a row, which is a drawing.

use std::fs;
use std::process::ExitCode;

use crate::tidy::limits;
use crate::workspace;

/// Columns to which text is wrapped, as rustfmt wraps code.
const COLUMNS: usize = 100;

/// Wraps the comments of all Rust files and says which files changed.
pub(crate) fn run() -> crate::Outcome {
    let files = workspace::files()?;
    let rust = files.iter().filter(|path| path.extension().is_some_and(|ext| ext == "rs"));
    for path in rust {
        let full = workspace::root().join(path);
        let failed = |error| format!("{}: {error}", path.display());
        let text = fs::read_to_string(&full).map_err(failed)?;
        let wrapped = wrap(&text);
        if wrapped != text {
            fs::write(&full, wrapped).map_err(failed)?;
            println!("wrapped {}", path.display());
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A comment line in its parts: `    /// - text`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Comment<'a> {
    /// White space and slashes.
    head: &'a str,
    /// What continues the text in the next line: blanks as wide as bullet and indentation.
    indent: usize,
    /// Whether the line begins an item of a list.
    item: bool,
    text: &'a str,
}

impl<'a> Comment<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let code = line.trim_start();
        let slashes = ["//!", "///", "//"].into_iter().find(|slashes| code.starts_with(slashes))?;
        let (head, rest) = line.split_at(line.len() - code.len() + slashes.len());
        let text = rest.trim();
        let indent = rest.len() - rest.trim_start().len();
        let bullet = ["- ", "* "].iter().find(|bullet| text.starts_with(**bullet)).map(|b| b.len());
        let number = text.find(". ").filter(|&at| text[..at].parse::<u32>().is_ok());
        let mark = bullet.or(number.map(|at| at + 2));
        Some(Self { head, indent: indent + mark.unwrap_or(0), item: mark.is_some(), text })
    }

    /// Whether this is prose that goes on from the line before.
    fn continues(&self, before: &Comment<'_>) -> bool {
        let same = self.head == before.head && self.indent == before.indent && !self.item;
        same && self.is_prose()
    }

    fn is_prose(&self) -> bool {
        !self.text.is_empty() && !self.text.starts_with(['#', '|']) && !self.text.starts_with("```")
    }
}

fn wrap(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut out = String::with_capacity(text.len());
    let mut in_fence = false;
    let mut index = 0;
    while index < lines.len() {
        let line = lines[index];
        let comment = Comment::parse(line);
        in_fence ^= comment.as_ref().is_some_and(|comment| comment.text.starts_with("```"));
        match comment {
            Some(first) if !in_fence && first.is_prose() && first.text.contains(' ') => {
                let mut end = index + 1;
                let follows =
                    |line: &str| Comment::parse(line).is_some_and(|c| c.continues(&first));
                while lines.get(end).is_some_and(|line| follows(line)) {
                    end += 1;
                }
                paragraph(&lines[index..end], &first, &mut out);
                index = end;
            }
            _ => {
                out.push_str(line);
                out.push('\n');
                index += 1;
            }
        }
    }
    out
}

/// Writes the paragraph, wrapped if it has to be.
fn paragraph(lines: &[&str], first: &Comment<'_>, out: &mut String) {
    let texts = || lines.iter().filter_map(|line| Comment::parse(line)).map(|comment| comment.text);
    // Several blanks in a row mean columns or a drawing.
    let drawn = texts().any(|text| text.contains("  "));
    if drawn || lines.iter().all(|line| line.chars().count() <= limits::COLUMNS) {
        lines.iter().for_each(|line| {
            out.push_str(line);
            out.push('\n');
        });
        return;
    }
    let words = texts().flat_map(str::split_whitespace);
    // The first line keeps its bullet, which is part of the text.
    let bullet = if first.item { first.text.find(' ').map_or(0, |at| at + 1) } else { 0 };
    let mut line = format!("{}{}", first.head, " ".repeat(first.indent - bullet));
    let mut is_empty = true;
    for word in words {
        if !is_empty && line.chars().count() + 1 + word.chars().count() > COLUMNS {
            out.push_str(&line);
            out.push('\n');
            line = format!("{}{}", first.head, " ".repeat(first.indent));
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    out.push_str(&line);
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_lines_stay() {
        let text = "//! One.\n//! Two.\nfn a() {} // three\n    /// - four\n    ///   five\n";
        assert_eq!(wrap(text), text);
    }

    #[test]
    fn long_paragraph_and_long_item_are_wrapped() {
        let text = format!(
            "/// {0}\n/// end\n///\n    // 1. {0}\n    //    end\n",
            "word ".repeat(26).trim()
        );
        let wrapped = wrap(&text);
        assert!(wrapped.lines().all(|line| line.chars().count() <= COLUMNS), "{wrapped}");
        assert!(
            wrapped.contains(&format!("\n/// {}end\n///\n    // 1. word", "word ".repeat(7))),
            "{wrapped}"
        );
        assert!(wrapped.contains(&format!("\n    //    {}end\n", "word ".repeat(8))), "{wrapped}");
        assert_eq!(wrap(&wrapped), wrapped);
    }

    #[test]
    fn fences_and_tables_stay() {
        let long = "x ".repeat(60);
        let drawing = format!("a    b {long}");
        let text = format!("//! ```text\n//! {long}\n//! ```\n//! | {long}|\n//!\n//! {drawing}\n");
        assert_eq!(wrap(&text), text);
    }
}
