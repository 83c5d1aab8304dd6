//! Mutants that behave as the original does, so that nobody can find them, each with its reason. One that a suite
//! finds nevertheless is an error, and so is one that fits no more.

mod known;

use super::mutant::{Mutant, Site, Subject};

/// Edits that change nothing that can be observed. `*` stands for any text.
#[derive(Debug)]
struct Equivalent {
    subject: Subject,
    /// As in the list of mutants.
    module: &'static str,
    before: &'static str,
    after: &'static str,
    reason: &'static str,
}

/// Whether a text is as a pattern says.
pub(super) fn fits(pattern: &str, text: &str) -> bool {
    let Some((head, tail)) = pattern.split_once('*') else { return pattern == text };
    let Some(rest) = text.strip_prefix(head) else { return false };
    tail.is_empty() || rest.char_indices().any(|(at, _)| fits(tail, &rest[at..]))
}

/// Gives mutants that are listed their reason. `has` says whether a module has a line, of patterns.
pub(super) fn mark(
    subject: Subject,
    mutants: &mut [Mutant],
    has: impl Fn(&str, &str) -> bool,
) -> Result<(), String> {
    mark_of(known::KNOWN, subject, mutants, has)
}

fn mark_of(
    known: &[Equivalent],
    subject: Subject,
    mutants: &mut [Mutant],
    has: impl Fn(&str, &str) -> bool,
) -> Result<(), String> {
    for Equivalent { module, before, after, reason, .. } in
        known.iter().filter(|e| e.subject == subject)
    {
        if !has(module, before) {
            return Err(format!(
                "{module} has no line `{before}` any more: remove or change its entry in mutate/equivalent/known.rs"
            ));
        }
        let same = |site: &Site| {
            fits(module, &site.module) && fits(before, &site.before) && fits(after, &site.after)
        };
        for mutant in mutants.iter_mut().filter(|mutant| mutant.sites.iter().all(same)) {
            mutant.reason = Some((*reason).to_owned());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_any_text() {
        assert!(fits("top$*picker$firsts$*", "top$channel$kill_picker$firsts$3"));
        assert!(fits("index[*] = a;", "index[3] = a;") && fits("*", "(nothing)"));
        assert!(!fits("index[*] = a;", "index[3] = b;") && !fits("a", "ab") && !fits("*b", "a"));
    }

    #[test]
    fn a_mutant_that_is_listed_has_a_reason() {
        let site = Site {
            module: "top$tpt".into(),
            before: "a".into(),
            after: "b".into(),
            ..Site::default()
        };
        let mut mutants = [Mutant { sites: vec![site], ..Mutant::default() }];
        let known = Equivalent {
            subject: Subject::Rtl,
            module: "top$tpt",
            before: "a",
            after: "b",
            reason: "both are 0",
        };
        mark_of(&[], Subject::Rtl, &mut mutants, |_, _| true).expect("nothing listed");
        assert_eq!(mutants[0].reason, None);
        let known = [known];
        mark_of(&known, Subject::Rtl, &mut mutants, |_, _| true).expect("it fits");
        assert_eq!(mutants[0].reason.as_deref(), Some("both are 0"));
        assert!(mark_of(&known, Subject::Rtl, &mut mutants, |_, _| false).is_err());
        assert!(mark_of(&known, Subject::Model, &mut mutants, |_, _| false).is_ok());
    }
}
