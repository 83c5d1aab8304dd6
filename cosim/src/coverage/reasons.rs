//! Why something is never run: a list of patterns, each with its reason.

use std::fmt::Write as _;

/// Why what a pattern names is never run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// Names as in [`super::Missed::name`]; `*` stands for any text.
    pub pattern: String,
    /// Why.
    pub why: String,
}

/// A list of reasons; the first that fits counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reasons(Vec<Reason>);

impl Reasons {
    /// Reads lines of the form `pattern | why`; empty lines and lines that begin with `#` are
    /// remarks.
    ///
    /// # Errors
    /// All lines that are neither, with their numbers.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (mut reasons, mut wrong) = (Vec::new(), String::new());
        for (number, line) in text.lines().enumerate() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            match line.split_once(" | ").map(|(pattern, why)| (pattern.trim(), why.trim())) {
                Some((pattern, why)) if !pattern.is_empty() && !why.is_empty() => {
                    let (pattern, why) = (pattern.to_owned(), why.to_owned());
                    reasons.push(Reason { pattern, why });
                }
                _ => {
                    let _ = writeln!(wrong, "line {}: not `pattern | why`: {line}", number + 1);
                }
            }
        }
        if wrong.is_empty() { Ok(Self(reasons)) } else { Err(wrong) }
    }

    /// The reason for `name`, by its place in the list.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|reason| fits(&reason.pattern, name))
    }

    /// The list.
    #[must_use]
    pub fn all(&self) -> &[Reason] {
        &self.0
    }
}

fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, rest)) => name.strip_prefix(start).is_some_and(|name| {
            let ends = name.char_indices().map(|(at, _)| at).chain([name.len()]);
            ends.into_iter().any(|at| fits(rest, &name[at..]))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_any_text() {
        assert!(fits("a.*.b[*]", "a.x.y.b[3]"));
        assert!(fits("*", ""));
        assert!(!fits("a.*.b", "a.b"));
        assert!(!fits("a", "ab"));
    }

    #[test]
    fn lists_are_read_and_faults_named() {
        let reasons = Reasons::parse("# remark\n\na.* | because\nb | of that\n").unwrap();
        assert_eq!(
            (reasons.find("a.x"), reasons.find("b"), reasons.find("c")),
            (Some(0), Some(1), None)
        );
        let wrong = Reasons::parse("a.*\nb | \n").unwrap_err();
        assert!(wrong.contains("line 1") && wrong.contains("line 2"), "{wrong}");
    }
}
