//! `viaduct run --stats`: sums over the connections of a program and its children.

use indicatif::DecimalBytes;
use sovia::preload::Process;
use sovia::preload::status::{self, ProcessStatus, Totals};

/// Prints what the processes of this run have shown.
pub(crate) fn print(own: Process) {
    match status::of_run(own) {
        Ok(all) => eprint!("{}", text(&all)),
        Err(error) => eprintln!("warning: {}: {error}: no statistics", status::folder().display()),
    }
}

fn amount(bytes: u64) -> String {
    if bytes < 1000 {
        return format!("{bytes} bytes");
    }
    format!("{} ({bytes} bytes)", DecimalBytes(bytes))
}

fn text(all: &[ProcessStatus]) -> String {
    let mut sums = Totals::default();
    all.iter().for_each(|status| sums.add(&status.final_totals()));
    summary(&sums, all.len(), all.iter().filter(|status| status.is_alive).count())
}

fn summary(sums: &Totals, processes: usize, running: usize) -> String {
    if sums.connections == 0 {
        return "viaduct: no TCP connection was seen (--verbose says if none could be shown)\n"
            .to_owned();
    }
    let [stayed, went_back] = [
        sums.reasons.iter().map(|reason| reason.stays).sum::<u64>(),
        sums.reasons.iter().map(|reason| reason.backs).sum(),
    ];
    let mut text = format!(
        "viaduct: {} of TCP connections in {processes} {}\n",
        match sums.connections {
            1 => "1 end".to_owned(),
            ends => format!("{ends} ends"),
        },
        if processes == 1 { "process" } else { "processes" },
    );
    let mut line = |name: &str, value: &dyn core::fmt::Display| {
        text.push_str(&format!("  {name:<17} {value}\n"));
    };
    line("moved to VIA", &sums.moved);
    line("sent by VIA", &amount(sums.sent));
    line("received by VIA", &amount(sums.received));
    line("stayed TCP", &stayed);
    for reason in sums.reasons.iter().filter(|reason| reason.stays > 0) {
        line("", &format_args!("{} {}", reason.stays, reason.text));
    }
    line("went back to TCP", &went_back);
    for reason in sums.reasons.iter().filter(|reason| reason.backs > 0) {
        line("", &format_args!("{} {}", reason.backs, reason.text));
    }
    if running > 0 {
        line("still running", &format_args!("{running}, counted so far"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use sovia::preload::status::Reason;

    #[test]
    fn a_summary_has_sums_and_counted_reasons() {
        let reason = |text: &str, stays, backs| Reason { text: text.to_owned(), stays, backs };
        let sums = Totals {
            connections: 9,
            moved: 6,
            sent: 1_234_567,
            received: 12,
            reasons: vec![reason("it leaves this machine", 3, 0), reason("it is spliced", 0, 1)],
        };
        let wanted = "viaduct: 9 ends of TCP connections in 2 processes
  moved to VIA      6
  sent by VIA       1.23 MB (1234567 bytes)
  received by VIA   12 bytes
  stayed TCP        3
                    3 it leaves this machine
  went back to TCP  1
                    1 it is spliced
  still running     1, counted so far
";
        assert_eq!(summary(&sums, 2, 1), wanted);
        let none = summary(&Totals::default(), 0, 0);
        assert_eq!(
            none,
            "viaduct: no TCP connection was seen (--verbose says if none could be shown)\n"
        );
    }
}
