//! The limit of locked memory, against which registered memory counts.

use rustix::process::{Resource, getrlimit};
use rustix::thread::{CapabilitySet, capabilities};

use crate::obstacle::Obstacle;

/// The driver's rings, and buffers of a small program.
const LEAST: u64 = 1 << 20;
/// How the limit is raised.
pub(super) const RAISE: &str =
    "raise the limit (`ulimit -l`, or memlock in /etc/security/limits.conf)";

/// Bytes that this program may lock. None: as many as there are.
pub(super) fn limit() -> Option<u64> {
    let sets = capabilities(None);
    let may_all = sets.is_ok_and(|sets| sets.effective.contains(CapabilitySet::IPC_LOCK));
    if may_all { None } else { getrlimit(Resource::Memlock).current }
}

/// Whether a program with such a limit could use no card.
pub(super) fn obstacle(limit: Option<u64>) -> Option<Obstacle> {
    let limit = limit.filter(|limit| *limit < LEAST)?;
    Some(Obstacle::new(format!("a program may lock {limit} bytes of memory only"), RAISE))
}

/// The limit as text.
pub(super) fn text(limit: Option<u64>) -> String {
    limit.map_or_else(|| "no limit".to_owned(), |limit| format!("at most {limit} bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_is_too_low_is_said() {
        assert_eq!((obstacle(None), obstacle(Some(8 << 20))), (None, None));
        let low = obstacle(Some(65_536)).expect("too low").to_string();
        assert!(
            low.starts_with("a program may lock 65536 bytes") && low.contains("ulimit"),
            "{low}"
        );
        assert_eq!([text(None), text(Some(9))], ["no limit", "at most 9 bytes"]);
    }
}
