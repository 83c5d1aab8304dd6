//! The order of SOVIA's policies, as its Figure 9 shows it.
//!
//! A comparison is the median of the ratios of the turns, in which all policies are measured one after
//! the other: what the machine does meanwhile hits each of them. Ratios are of the times of a message.

use super::group::{Group, Job, Slower};
use super::transport::Kind;
use super::{Row, Spec};
use crate::Failure;
use crate::progress::Progress;

/// The row.
pub(super) const NAME: &str = "sovia.policies";

/// What is compared at a size in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Latency(usize),
    Bandwidth(usize),
}

use What::{Bandwidth, Latency};

/// Comparisons of Figure 9: the policy that takes longer, and the ones that are better. Between `FLOWCTRL`
/// and `DACKS` packets of 4 KiB and more are not compared: on `shm:` copies are nearly all of their time,
/// where the paper's acknowledgements were packets on a wire.
const ORDER: [(What, &str, &[&str]); 10] = [
    // (a): a thread that handles packets is woken for each of them.
    (Latency(4), "HANDLER", &["SINGLE", "FLOWCTRL", "DACKS", "COMBINE"]),
    // (b): a window lets packets follow each other; delayed acknowledgements are fewer. Below 2 KiB a
    // packet has many messages.
    (Bandwidth(64), "SINGLE", &["FLOWCTRL", "COMBINE"]),
    (Bandwidth(64), "FLOWCTRL", &["DACKS", "COMBINE"]),
    (Bandwidth(64), "DACKS", &["COMBINE"]),
    (Bandwidth(1 << 10), "SINGLE", &["FLOWCTRL", "COMBINE"]),
    (Bandwidth(1 << 10), "FLOWCTRL", &["DACKS", "COMBINE"]),
    (Bandwidth(1 << 10), "DACKS", &["COMBINE"]),
    (Bandwidth(2 << 10), "SINGLE", &["FLOWCTRL"]),
    (Bandwidth(2 << 10), "FLOWCTRL", &["DACKS"]),
    (Bandwidth(32 << 10), "SINGLE", &["DACKS"]),
];

/// How many comparisons there are: the bar.
#[expect(clippy::cast_precision_loss, reason = "a few")]
pub(super) const fn count() -> f64 {
    let (mut count, mut at) = (0, 0);
    while at < ORDER.len() {
        count += ORDER[at].2.len();
        at += 1;
    }
    count as f64
}

/// A stream with a policy. It sleeps after a while, also without a thread that handles packets: one that
/// polled would keep a processor from the others all the time.
fn stream(policy: &str) -> Kind {
    Kind::Sovia { device: "shm:".to_owned(), policy: policy.to_owned(), blocking: true }
}

pub(super) fn measure(
    specs: &'static [Spec],
    job: &Job,
    progress: &Progress,
) -> Result<Vec<Row>, Failure> {
    let mut group = Group::new(specs, job, progress)?;
    let mut measured: Vec<(What, &str, usize)> = Vec::new();
    let mut comparisons = Vec::new();
    for (what, slower, others) in ORDER {
        let mut number = |policy: &'static str| -> Result<usize, Failure> {
            if let Some(known) = measured.iter().find(|of| (of.0, of.1) == (what, policy)) {
                return Ok(known.2);
            }
            let kind = stream(policy);
            let number = match what {
                Latency(size) => group.latency(&kind, size, 4_000)?,
                // All of them one after the other, as fast as they go, and one answer: no other credits.
                Bandwidth(size) => {
                    let count = u32::try_from((8 << 20) / size)?.clamp(256, 32_768);
                    group.stream(&kind, size, (count, count))?
                }
            };
            measured.push((what, policy, number));
            Ok(number)
        };
        let slow = number(slower)?;
        for other in others {
            let name = match what {
                Latency(size) => format!("{size} B latency {slower}/{other}"),
                Bandwidth(size) => format!("{size} B stream {slower}/{other}"),
            };
            comparisons.push(Slower { name, slower: slow, faster: number(other)? });
        }
    }
    group.order(NAME, comparisons);
    group.rows()
}

#[cfg(test)]
mod tests {
    use sovia::Policy;

    use super::*;

    #[test]
    fn each_comparison_is_of_two_policies_and_is_there_once() {
        let mut all = Vec::new();
        for (what, slower, others) in ORDER {
            for other in others {
                assert_ne!(slower, *other);
                for policy in [slower, *other] {
                    assert!(Policy::ALL.iter().any(|(name, _)| *name == policy), "{policy}");
                }
                let one = (what, slower, *other);
                assert!(!all.contains(&one), "{one:?} twice");
                all.push(one);
            }
        }
        assert!((count() - all.len() as f64).abs() < 0.1);
    }
}
