//! Fragments: Verilog that is put into the module that it is about.
//!
//! A fragment is plain Verilog; wires with three kinds of names mean something. Each is a condition
//! on every cycle, with a comment above it that says where it comes from:
//!
//! | name | meaning |
//! |---|---|
//! | `rule_*` | promised by the contract or by the block's page: proved |
//! | `lemma_*` | about the registers inside, which makes the rules inductive: proved too |
//! | `given_*` | what the block may expect of its neighbours: assumed |
//!
//! A wire without a driver is free in every cycle: any input, or any choice.

use std::fmt::Write as _;

/// A condition of a fragment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Condition {
    /// The wire's name.
    pub(super) name: String,
    /// The comment above it.
    pub(super) text: String,
}

/// A fragment and its conditions.
#[derive(Clone, Debug)]
pub(super) struct Fragment<'a> {
    text: &'a str,
    pub(super) rules: Vec<Condition>,
    pub(super) lemmas: Vec<Condition>,
    pub(super) givens: Vec<Condition>,
}

impl<'a> Fragment<'a> {
    /// Finds the conditions; without a rule, or with one that is not explained, it is no fragment.
    pub(super) fn parse(text: &'a str) -> Result<Self, String> {
        let mut fragment = Self { text, rules: vec![], lemmas: vec![], givens: vec![] };
        let mut comment = String::new();
        for line in text.lines().map(str::trim) {
            if let Some(words) = line.strip_prefix("//") {
                if !comment.is_empty() {
                    comment.push(' ');
                }
                comment.push_str(words.trim());
                continue;
            }
            let name = line.strip_prefix("wire ").unwrap_or_default();
            let name = name.split(|c: char| !(c.is_alphanumeric() || c == '_')).next();
            let name = name.unwrap_or_default();
            let list = match name.split_once('_').map(|(kind, _)| kind) {
                Some("rule") => Some(&mut fragment.rules),
                Some("lemma") => Some(&mut fragment.lemmas),
                Some("given") => Some(&mut fragment.givens),
                _ => None,
            };
            if let Some(list) = list {
                if comment.is_empty() {
                    return Err(format!("`{name}` has no comment that says where it comes from"));
                }
                list.push(Condition { name: name.to_owned(), text: comment.clone() });
            }
            comment.clear();
        }
        if fragment.rules.is_empty() { Err("no rules".to_owned()) } else { Ok(fragment) }
    }

    /// The text with its checks: of the rules, and of the lemmas if asked.
    pub(super) fn checks(&self, lemmas: bool) -> String {
        let mut text = format!("{}\nalways @(*) begin\n", self.text);
        let lemmas = if lemmas { self.lemmas.as_slice() } else { &[] };
        for condition in self.rules.iter().chain(lemmas) {
            // Writing into a string does not fail.
            let _ = writeln!(text, "   assert ({});", condition.name);
        }
        for condition in &self.givens {
            let _ = writeln!(text, "   assume ({});", condition.name);
        }
        text + "end\n"
    }
}
