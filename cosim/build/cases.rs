//! Arms of cases that no state leads to: neither coverage nor mutants look at them.

use std::collections::BTreeMap;

/// The cases of a module, to know a `default` that no state leads to: RustHDL wants one also where every state has
/// an arm of its own.
#[derive(Debug, Default)]
pub(crate) struct Cases<'a> {
    /// How many states there are, by the name of their type.
    states: BTreeMap<&'a str, usize>,
    /// Those that have an arm of the innermost case, and their type.
    arms: usize,
    of: &'a str,
    unreachable: bool,
}

impl<'a> Cases<'a> {
    /// Takes a line of the module, without its indent.
    pub(crate) fn see(&mut self, line: &'a str) {
        if let Some((name, _)) =
            line.strip_prefix("localparam").and_then(|name| name.split_once('$'))
        {
            *self.states.entry(name.trim()).or_default() += 1;
        } else if line.starts_with("case (") {
            (self.arms, self.of) = (0, "");
        } else if line == "default:" {
            self.unreachable = self.states.get(self.of) == Some(&self.arms);
        } else if line == "endcase" {
            self.unreachable = false;
        } else if let Some((name, _)) = line.strip_suffix(':').and_then(|arm| arm.split_once('$')) {
            (self.arms, self.of) = (self.arms + 1, name);
        }
    }

    /// The line is in an arm that no state leads to.
    pub(crate) fn unreachable(&self) -> bool {
        self.unreachable
    }
}
