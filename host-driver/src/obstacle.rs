//! What keeps a program from a card.

/// Why a card cannot be used, and the command that mends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// What is wrong.
    pub why: String,
    /// What to do.
    pub mend: String,
    /// Another program has it.
    pub is_busy: bool,
}

impl Obstacle {
    pub(crate) fn new(why: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { why: why.into(), mend: mend.into(), is_busy: false }
    }

    /// There is no card at all.
    #[must_use]
    pub fn no_card() -> Self {
        Self::new("this machine has no Viaduct NIC", "`lspci -nn` shows its PCI functions")
    }
}

impl core::fmt::Display for Obstacle {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}: {}", self.why, self.mend)
    }
}
