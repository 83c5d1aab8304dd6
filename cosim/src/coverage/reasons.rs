//! Why something is never run: a list of patterns, each with its reason.

use std::fmt::Write as _;

/// Why what a pattern names is never run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// Names as in [`super::Missed::name`]; `*` stands for any text, `[15:8,3]` for those bits.
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

/// The name and the bits of `name[bits]`, if that is what it is.
fn bits(text: &str) -> Option<(&str, &str)> {
    let (name, bits) = text.strip_suffix(']')?.rsplit_once('[')?;
    bits.bytes().all(|byte| byte.is_ascii_digit() || b":,".contains(&byte)).then_some((name, bits))
}

fn has_bit(bits: &str, bit: &str) -> bool {
    let Ok(bit) = bit.parse::<u32>() else { return false };
    bits.split(',').any(|range| {
        let (high, low) = range.split_once(':').unwrap_or((range, range));
        low.parse().is_ok_and(|low| bit >= low) && high.parse().is_ok_and(|high| bit <= high)
    })
}

fn fits(pattern: &str, name: &str) -> bool {
    match (bits(pattern), bits(name)) {
        (Some((pattern, bits)), Some((name, bit))) => {
            fits_text(pattern, name) && has_bit(bits, bit)
        }
        _ => fits_text(pattern, name),
    }
}

fn fits_text(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, rest)) => name.strip_prefix(start).is_some_and(|name| {
            let ends = name.char_indices().map(|(at, _)| at).chain([name.len()]);
            ends.into_iter().any(|at| fits_text(rest, &name[at..]))
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
    fn ranges_stand_for_bits() {
        for (bit, fit) in [(3, true), (4, false), (7, false), (8, true), (15, true), (16, false)] {
            assert_eq!(fits("*.b[15:8,3]", &format!("a.x.b[{bit}]")), fit, "{bit}");
        }
        assert!(!fits("a[3]", "a: if (b[3])"));
        assert!(fits("a: if (b[3])", "a: if (b[3])"));
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
