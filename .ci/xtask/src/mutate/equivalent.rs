//! Mutants that behave as the original does, so that nobody can find them, each with its reason. One that a suite
//! finds nevertheless is an error, and so is one that fits no more.

use super::mutant::{Mutant, Site, Subject};

/// An edit that changes nothing that can be observed.
#[derive(Debug)]
struct Equivalent {
    subject: Subject,
    /// As in the list of mutants.
    module: &'static str,
    before: &'static str,
    after: &'static str,
    reason: &'static str,
}

/// All that are known.
const EQUIVALENT: &[Equivalent] = &[Equivalent {
    subject: Subject::Rtl,
    module: "top$tpt",
    before: "attribute_ram$write_data = 32'h0;",
    after: "attribute_ram$write_data = 32'h1;",
    reason: "bit 0 is of the tag of an entry that is not valid (bit 38), which nobody looks at",
}];

/// Gives mutants that are listed their reason. `has` says whether a module has a line.
pub(super) fn mark(
    subject: Subject,
    mutants: &mut [Mutant],
    has: impl Fn(&str, &str) -> bool,
) -> Result<(), String> {
    mark_of(EQUIVALENT, subject, mutants, has)
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
                "{module} has no line `{before}` any more: remove or change its entry in mutate/equivalent.rs"
            ));
        }
        let same =
            |site: &Site| site.module == *module && site.before == *before && site.after == *after;
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
