//! The anatomy as tables and as JSON.

use std::fmt::Write as _;

use serde_json::json;

use super::path::{Category, Row};
use super::{Anatomy, Report};

/// What a cell has where the device does not stamp a stage.
const NOT_STAMPED: &str = "-";
/// What a row says of a stage that something of the machine keeps from being measured.
const NOT_MEASURABLE: &str = "not measurable here";

const fn yes(is_critical: bool) -> &'static str {
    if is_critical { "yes" } else { "no" }
}

/// One size: a table of its stages. Several: one of stages and sizes.
pub(crate) fn table(report: &Report) -> String {
    let mut text = match &report.anatomies[..] {
        [one] => stages(report, one),
        many => sizes(report, many),
    };
    let lacks = |anatomy: &Anatomy| report.rows.iter().any(|row| of(anatomy, row).is_none());
    if report.anatomies.iter().any(lacks) {
        let why = report.anatomies.iter().find_map(|anatomy| anatomy.lacks.clone());
        let why = why.map_or_else(
            || "nothing stamps the end of this stage".to_owned(),
            |why| format!("{NOT_MEASURABLE}: {why}"),
        );
        line(&mut text, &format!("-: {why}; the next stage includes it"));
    }
    line(&mut text, &format!("other programs kept {:.2} processors busy", report.busy));
    text
}

fn line(text: &mut String, what: &str) {
    writeln!(text, "{what}").expect("a string takes every write");
}

fn cell(value: Option<f64>) -> String {
    value.map_or_else(|| NOT_STAMPED.to_owned(), |value| format!("{value:.1}"))
}

fn of(anatomy: &Anatomy, row: &Row) -> Option<f64> {
    anatomy.stages[row.stage as usize]
}

fn stages(report: &Report, anatomy: &Anatomy) -> String {
    let mut text = String::new();
    let Anatomy { size, messages, .. } = anatomy;
    line(
        &mut text,
        &format!(
            "Anatomy of a message of {size} bytes on {}, means of {messages} messages:",
            report.device
        ),
    );
    line(
        &mut text,
        &format!(
            "{:<11} {:<27} {:<8} {:>8} {:>7} {:>6}  what",
            "stage", "category", "critical", "ns", "cycles", "share"
        ),
    );
    let sum = anatomy.sum();
    let share = |ns: f64| format!("{:.1} %", 100.0 * ns / sum);
    for row in report.rows {
        let ns = of(anatomy, row);
        let (cycles, part) = match ns {
            Some(ns) if row.is_critical => (format!("{:.0}", ns * anatomy.frequency), share(ns)),
            Some(ns) => (format!("{:.0}", ns * anatomy.frequency), String::new()),
            None => (String::new(), String::new()),
        };
        let (name, category, critical) = (row.name, row.category.name(), yes(row.is_critical));
        let what = if ns.is_none() && anatomy.lacks.is_some() { NOT_MEASURABLE } else { row.what };
        let ns = cell(ns);
        let row = format!(
            "{name:<11} {category:<27} {critical:<8} {ns:>8} {cycles:>7} {part:>6}  {what}"
        );
        line(&mut text, &row);
    }
    let cycles = sum * anatomy.frequency;
    line(&mut text, &format!("{:<48} {sum:>8.1} {cycles:>7.0}", "critical stages together"));
    line(&mut text, "");
    for category in Category::ALL {
        let ns = in_category(report, anatomy, category);
        let (cycles, part) = (ns * anatomy.frequency, share(ns));
        line(&mut text, &format!("{:<48} {ns:>8.1} {cycles:>7.0} {part:>6}", category.name()));
    }
    line(&mut text, "");
    line(
        &mut text,
        &format!(
            "one way, without stamps: {:.1} ns; the stages differ from it by {:+.1} %{}",
            anatomy.one_way,
            100.0 * anatomy.difference(),
            if anatomy.adds_up() { "" } else { ", which is too much" }
        ),
    );
    line(
        &mut text,
        &format!(
            "a stamp costs {:.1} ns, subtracted from each stage; counter: {:.3} cycles a ns, \
             {:+.1} ns apart",
            anatomy.probe, anatomy.frequency, anatomy.offset
        ),
    );
    text
}

/// Time of the critical stages of a category.
fn in_category(report: &Report, anatomy: &Anatomy, category: Category) -> f64 {
    let rows = report.rows.iter().filter(|row| row.is_critical && row.category == category);
    // A sum of nothing is -0.0.
    rows.filter_map(|row| anatomy.stages[row.stage as usize]).fold(0.0, |sum, ns| sum + ns)
}

fn sizes(report: &Report, anatomies: &[Anatomy]) -> String {
    let mut text = String::new();
    line(&mut text, &format!("Anatomy of messages on {}, in ns, by size in bytes:", report.device));
    let mut columns = |name: &str, critical: &str, cell: &dyn Fn(&Anatomy) -> String| {
        let cells: Vec<String> =
            anatomies.iter().map(|anatomy| format!("{:>9}", cell(anatomy))).collect();
        line(&mut text, &format!("{name:<11} {critical:<8}{}", cells.concat()));
    };
    columns("stage", "critical", &|anatomy| anatomy.size.to_string());
    for row in report.rows {
        columns(row.name, yes(row.is_critical), &|anatomy| cell(of(anatomy, row)));
    }
    columns("together", "", &|anatomy| cell(Some(anatomy.sum())));
    columns("one way", "", &|anatomy| cell(Some(anatomy.one_way)));
    columns("difference", "", &|anatomy| format!("{:+.1} %", 100.0 * anatomy.difference()));
    text
}

/// One object a line: the stages of each size, and its whole.
pub(crate) fn json(report: &Report) -> String {
    let mut text = String::new();
    for anatomy in &report.anatomies {
        let sum = anatomy.sum();
        for row in report.rows {
            let ns = of(anatomy, row);
            let share = ns.filter(|_| row.is_critical).map(|ns| ns / sum);
            let object = json!({
                "device": report.device, "bytes": anatomy.size, "stage": row.name,
                "category": row.category.name(), "critical": row.is_critical, "ns": ns,
                "cycles": ns.map(|ns| ns * anatomy.frequency), "share": share,
                "not_measurable": anatomy.lacks.as_ref().filter(|_| ns.is_none()),
            });
            line(&mut text, &object.to_string());
        }
        let object = json!({
            "device": report.device, "bytes": anatomy.size, "sum_ns": sum,
            "one_way_ns": anatomy.one_way, "difference": anatomy.difference(),
            "ok": anatomy.adds_up(), "stamp_ns": anatomy.probe, "offset_ns": anatomy.offset,
            "cycles_per_ns": anatomy.frequency, "messages": anatomy.messages,
            "others_busy": report.busy,
        });
        line(&mut text, &object.to_string());
    }
    text
}

#[cfg(test)]
mod tests {
    use port::stamp::Stage;

    use super::super::path::ROWS;
    use super::super::sockets;
    use super::*;

    fn report(sizes: &[usize]) -> Report {
        let anatomy = |size: &usize| {
            let mut stages = [Some(10.0); Stage::COUNT];
            stages[Stage::Doorbell as usize] = None;
            let (one_way, probe, offset, frequency) = (112.0, 4.0, -0.5, 2.5);
            let (messages, lacks) = (100, None);
            Anatomy { size: *size, stages, one_way, probe, offset, frequency, messages, lacks }
        };
        let anatomies = sizes.iter().map(anatomy).collect();
        Report { device: "shm:".to_owned(), rows: &ROWS, anatomies, busy: 0.0 }
    }

    #[test]
    fn every_stage_has_a_line_in_order() {
        for sizes in [&[4][..], &[4, 64]] {
            let text = table(&report(sizes));
            let names: Vec<&str> = text
                .lines()
                .filter(|line| line.contains(" yes ") || line.contains(" no "))
                .filter_map(|line| line.split_whitespace().next())
                .collect();
            assert_eq!(names, ROWS.map(|row| row.name), "{text}");
            assert!(text.contains("nothing stamps"), "{text}");
        }
    }

    #[test]
    fn a_table_has_all_categories_and_the_difference() {
        let text = table(&report(&[4]));
        for category in Category::ALL {
            assert!(text.contains(category.name()), "{text}");
        }
        assert!(text.contains("differ from it by -1.8 %"), "{text}");
        let report = report(&[4]);
        let of = |category: &Category| in_category(&report, &report.anatomies[0], *category);
        let categories: f64 = Category::ALL.iter().map(of).sum();
        assert_eq!(categories, report.anatomies[0].sum());
    }

    #[test]
    fn a_stage_that_cannot_be_measured_says_why() {
        let mut report = report(&[4]);
        report.rows = &sockets::ROWS;
        let one = &mut report.anatomies[0];
        one.lacks = Some("tracefs is not mounted".to_owned());
        one.stages[Stage::Data as usize] = None;
        let text = table(&report);
        let line = text.lines().find(|line| line.starts_with("device ")).expect("its line");
        assert!(line.contains(" - ") && line.contains("not measurable here"), "{text}");
        assert!(text.contains("not measurable here: tracefs is not mounted;"), "{text}");
        assert!(json(&report).contains("\"not_measurable\":\"tracefs"), "{}", json(&report));
    }

    #[test]
    fn json_has_an_object_for_each_stage_and_one_for_the_whole() {
        let text = json(&report(&[4, 64]));
        let objects: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
        assert_eq!(objects.len(), 2 * (Stage::COUNT + 1));
        assert_eq!(objects[0]["stage"], "program");
        assert_eq!(objects[0]["cycles"], 25.0);
        assert!(objects[Stage::Doorbell as usize]["ns"].is_null());
        assert_eq!(objects[Stage::COUNT]["one_way_ns"], 112.0);
        assert_eq!(objects[Stage::COUNT]["ok"], true);
    }
}
