//! What coverage counts of the Verilog: the branches of every kernel, and every bit of every register.
//!
//! For each branch of a kernel there is one more register, which is set when its condition holds at
//! a clock edge. So all that the simulator has to count are bits of registers, the kernels stay as
//! they are, and what is seen between two edges, while the logic settles, does not count. `RustHDL`
//! names each value several times on its way through the hierarchy; all these wires are left out.

use crate::cases::Cases;
use std::fmt::Write as _;

const OFF: &str = "/*verilator coverage_off*/";
const ON: &str = "/*verilator coverage_on*/";
/// Begins a kernel, and ends it.
pub(crate) const KERNEL: [&str; 2] = ["    always @(*) begin", "    end"];

/// The Verilog with marks and with registers for its branches.
pub(crate) fn mark(verilog: &str) -> String {
    let mut text = String::with_capacity(verilog.len() * 2);
    let mut branches = Branches::default();
    for line in verilog.lines() {
        let trimmed = line.trim();
        if trimmed.starts_with("module ") {
            branches = Branches::default();
            branches.clocked = line.contains("clock");
            add(&mut text, &[line, " ", OFF]);
            continue;
        }
        branches.cases.see(trimmed);
        if trimmed.starts_with("endmodule") {
            text.push_str(&branches.registers());
        }
        if line == KERNEL[0] {
            branches.open.clear();
            branches.inside = true;
        } else if line == KERNEL[1] {
            branches.inside = false;
        } else if branches.inside {
            branches.line(trimmed);
        }
        if trimmed.starts_with("output reg") && trimmed.ends_with(" q;") {
            add(&mut text, &[ON, " ", line, " ", OFF]);
        } else {
            add(&mut text, &[line]);
        }
    }
    text
}

fn add(text: &mut String, parts: &[&str]) {
    text.extend(parts.iter().copied());
    text.push('\n');
}

/// A block of statements that is open.
#[derive(Debug)]
enum Open {
    /// Runs on this condition; and what an `else` after it negates.
    If(String, Vec<String>),
    /// The selector, and the labels so far.
    Case(String, Vec<String>),
    /// An arm of the case around it.
    Arm(String),
}

#[derive(Debug, Default)]
struct Branches<'a> {
    clocked: bool,
    inside: bool,
    cases: Cases<'a>,
    open: Vec<Open>,
    /// Conditions of the `if` that has just ended, and of those that it was the `else` of.
    before: Vec<String>,
    /// Condition and text.
    found: Vec<(String, String)>,
}

/// In a concatenation a condition keeps the width that it has in `if`: `!= 0` would widen it.
fn holds(condition: &str) -> String {
    format!("(|{{{condition}}})")
}

fn none_of(conditions: &[String]) -> String {
    format!("!({})", conditions.join(" || "))
}

impl Branches<'_> {
    /// Takes a line of a kernel.
    fn line(&mut self, line: &str) {
        let condition = |rest: &str| rest.strip_suffix(") begin").map(holds);
        if let Some(own) = line.strip_prefix("if (").and_then(condition) {
            self.begin_if(own.clone(), vec![own], line);
        } else if let Some(own) = line.strip_prefix("else if (").and_then(condition) {
            let all = format!("{own} && {}", none_of(&self.before));
            let chain = [self.before.as_slice(), &[own]].concat();
            self.begin_if(all, chain, line);
        } else if line == "else begin" {
            let text = format!("not {}", self.before.join(" || "));
            let chain = self.before.clone();
            self.begin_if(none_of(&chain), chain, &text);
        } else if let Some(selector) =
            line.strip_prefix("case (").and_then(|rest| rest.strip_suffix(')'))
        {
            self.open.push(Open::Case(selector.to_owned(), Vec::new()));
        } else if let Some(label) = line.strip_suffix(':') {
            self.begin_arm(label);
        } else if line == "end" {
            self.before = match self.open.pop() {
                Some(Open::If(_, chain)) => chain,
                _ => Vec::new(),
            };
        } else if line == "endcase" {
            self.open.pop();
        }
    }

    /// Opens an `if`; `chain` are the conditions that an `else` after it negates.
    fn begin_if(&mut self, condition: String, chain: Vec<String>, text: &str) {
        self.open.push(Open::If(condition, chain));
        self.note(text);
    }

    fn begin_arm(&mut self, label: &str) {
        let Some(Open::Case(selector, labels)) = self.open.last_mut() else {
            panic!("coverage: `{label}:` outside of a case")
        };
        let equal = |label: &String| format!("({selector} == {label})");
        let condition = if label == "default" {
            none_of(&labels.iter().map(equal).collect::<Vec<_>>())
        } else {
            labels.push(label.to_owned());
            equal(&label.to_owned())
        };
        let text = format!("{selector} is {label}");
        self.open.push(Open::Arm(condition));
        self.note(&text);
    }

    /// Notes the innermost block as a branch, if some state leads to it.
    fn note(&mut self, text: &str) {
        if self.cases.unreachable() {
            return;
        }
        let condition = |open: &Open| match open {
            Open::If(condition, _) | Open::Arm(condition) => Some(condition.clone()),
            Open::Case(..) => None,
        };
        let all: Vec<String> = self.open.iter().filter_map(condition).collect();
        self.found.push((all.join(" && "), text.trim_end_matches(" begin").to_owned()));
    }

    /// A register for each branch.
    fn registers(&self) -> String {
        let mut text = String::new();
        // A kernel without a clock is a leaf: its branches are those of who uses it.
        if !self.clocked || self.found.is_empty() {
            return text;
        }
        add(&mut text, &[ON]);
        for (at, (condition, what)) in self.found.iter().enumerate() {
            let _ = writeln!(text, "    reg branch_{at} = 1'b0; // {what}");
            let _ =
                writeln!(text, "    always @(posedge clock) if ({condition}) branch_{at} <= 1'b1;");
        }
        text
    }
}
