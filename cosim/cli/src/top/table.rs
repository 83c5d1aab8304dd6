//! A reading for people.

use super::reading::{Rates, Reading};
use indicatif::DecimalBytes;
use sovia::preload::status::{ConnectionStatus, ProcessStatus, Reason};

/// Spaces between columns.
const GAP: &str = "  ";

/// Columns, of which those of figures are aligned on the right.
struct Table<const COLUMNS: usize> {
    names: [&'static str; COLUMNS],
    figures: &'static [&'static str],
    rows: Vec<[String; COLUMNS]>,
}

impl<const COLUMNS: usize> Table<COLUMNS> {
    fn text(&self) -> String {
        let width = |column: usize| {
            let cells = self.rows.iter().map(|row| row[column].chars().count());
            cells.max().unwrap_or(0).max(self.names[column].len())
        };
        let widths: [usize; COLUMNS] = core::array::from_fn(width);
        let line = |cells: [&str; COLUMNS]| {
            let cells = cells.iter().zip(self.names).zip(widths);
            let cells = cells.map(|((cell, name), width)| {
                if self.figures.contains(&name) {
                    format!("{cell:>width$}")
                } else {
                    format!("{cell:<width$}")
                }
            });
            cells.collect::<Vec<_>>().join(GAP).trim_end().to_owned() + "\n"
        };
        let mut text = line(self.names);
        for row in &self.rows {
            text.push_str(&line(row.each_ref().map(String::as_str)));
        }
        text
    }
}

fn amount(bytes: u64) -> String {
    DecimalBytes(bytes).to_string()
}

/// Seconds in the largest unit of which there is one.
fn time(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..86_400 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// Why connections of a process do not go by VIA.
fn reasons(of: &ProcessStatus) -> String {
    let text = |Reason { text, stays, backs }: &Reason| {
        let stayed = (*stays > 0).then(|| format!("{stays} stayed TCP: {text}"));
        let went = (*backs > 0).then(|| format!("{backs} went back: {text}"));
        [stayed, went].into_iter().flatten()
    };
    of.totals.reasons.iter().flat_map(text).collect::<Vec<_>>().join("; ")
}

fn processes(reading: &Reading) -> String {
    let row = |it: &ProcessStatus| {
        [
            it.process.id.to_string(),
            it.program.clone(),
            if it.nic.is_empty() { it.device.clone() } else { it.nic.clone() },
            it.process
                .start_time()
                .map_or(String::new(), |at| time(reading.time.saturating_sub(at))),
            (it.connections.len() as u64 + it.more).to_string(),
            it.totals.moved.to_string(),
            amount(it.totals.sent),
            amount(it.totals.received),
            reasons(it),
        ]
    };
    let names =
        ["PID", "PROGRAM", "DEVICE", "FOR", "NOW", "MOVED", "SENT", "RECEIVED", "NOT BY VIA"];
    let figures = &["PID", "FOR", "NOW", "MOVED", "SENT", "RECEIVED"];
    Table { names, figures, rows: reading.processes.iter().map(row).collect() }.text()
}

fn row(reading: &Reading, of: &ProcessStatus, it: &ConnectionStatus) -> [String; 12] {
    let rates = reading.rates(of, it);
    let rate = |index: usize| rates.map_or("-".to_owned(), |rates| amount(rates[index]));
    let credits = match it.credits.window {
        0 => "-".to_owned(),
        window => format!("{}/{window}", it.credits.left),
    };
    [
        of.process.id.to_string(),
        of.program.clone(),
        it.local.to_string(),
        it.peer.to_string(),
        it.state().to_owned(),
        time(reading.time.saturating_sub(it.since)),
        amount(it.sent),
        rate(0),
        amount(it.received),
        rate(1),
        credits,
        it.reason.clone().unwrap_or_default(),
    ]
}

fn connections(reading: &Reading) -> String {
    let names = [
        "PID", "PROGRAM", "LOCAL", "PEER", "STATE", "FOR", "SENT", "A SECOND", "RECEIVED",
        "A SECOND", "CREDITS", "REASON",
    ];
    let figures = &["PID", "FOR", "SENT", "A SECOND", "RECEIVED", "CREDITS"];
    let rows = reading.sorted().into_iter().map(|(of, it)| row(reading, of, it)).collect();
    let mut text = Table { names, figures, rows }.text();
    for it in reading.processes.iter().filter(|it| it.more > 0) {
        let more = format!("{} ({}): and {} more\n", it.process.id, it.program, it.more);
        text.push_str(&more);
    }
    text
}

/// The reading as lines.
pub(super) fn text(reading: &Reading) -> String {
    if reading.processes.is_empty() {
        return "nothing is accelerated: no program of this user has connections under \
                `viaduct run`\n"
            .to_owned();
    }
    let all = reading.sorted();
    let moved = all.iter().filter(|(_, connection)| connection.is_accelerated()).count();
    let rates = reading.all_rates().map(|[sent, received]: Rates| {
        format!("; {}/s sent, {}/s received by VIA", amount(sent), amount(received))
    });
    let mut text = format!(
        "{}, {}, {moved} by VIA{}\n\n{}",
        counted(reading.processes.len(), "process", "processes"),
        counted(all.len(), "connection", "connections"),
        rates.unwrap_or_default(),
        processes(reading),
    );
    if !all.is_empty() {
        text.push('\n');
        text.push_str(&connections(reading));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_longest_cell_and_figures_stand_on_the_right() {
        let rows = vec![["a".to_owned(), "1".to_owned()], ["long".to_owned(), "1000".to_owned()]];
        let table = Table { names: ["NAME", "N"], figures: &["N"], rows };
        assert_eq!(table.text(), "NAME     N\na        1\nlong  1000\n");
    }

    #[test]
    fn times_have_one_unit() {
        assert_eq!([0, 59, 60, 7199, 90_000].map(time), ["0 s", "59 s", "1 min", "1 h", "1 d"]);
    }
}
