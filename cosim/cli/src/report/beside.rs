//! A paper's table again: at places of sweeps, bars of what was measured, and under them of what is printed.

use super::bars::{Bar, bars};
use super::lines::{clocks, label};
use super::papers::Printed;
use super::{Figure, Table};
use crate::bench::series::{Clock, Point, describe, digits};

/// Colours of what was measured, and of what is printed.
const OURS: usize = 0;
const THEIRS: usize = 1;

/// A column of a paper's table.
pub(crate) struct Part {
    pub(crate) name: &'static str,
    /// The figure of the sweep, and a place on its axis.
    pub(crate) figure: &'static str,
    pub(crate) x: f64,
    pub(crate) is_wanted: fn(&Point) -> bool,
    /// The paper's unit, and how many of them one of the figure is.
    pub(crate) unit: &'static str,
    pub(crate) scale: f64,
    /// Values of which those at this place are drawn.
    pub(crate) printed: Vec<&'static [Printed]>,
}

/// A table of a paper.
pub(crate) struct Tabled {
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    pub(crate) again: &'static str,
    pub(crate) about: &'static str,
    pub(crate) parts: Vec<Part>,
}

impl Part {
    fn ours<'a>(&self, points: &'a [Point]) -> Vec<&'a Point> {
        let is_here = |point: &&Point| point.figure == self.figure && is_at(point.x, self.x);
        points.iter().filter(is_here).filter(|point| (self.is_wanted)(point)).collect()
    }

    fn theirs(&self) -> impl Iterator<Item = &'static Printed> + use<> {
        let (all, here) = (self.printed.clone(), self.x);
        all.into_iter().flatten().filter(move |printed| printed.x.is_some_and(|x| is_at(x, here)))
    }

    fn draw(&self, ours: &[&Point]) -> (String, Table) {
        let (mut all, mut rows) = (Vec::new(), Vec::new());
        let mut add = |what: &str, value: f64, style, source: &str| {
            let note = format!("{} {}", digits(value), self.unit);
            let name = format!("{what}, {}", self.name);
            rows.push(vec![what.to_owned(), note.clone(), source.to_owned()]);
            all.push(Bar { name, parts: vec![(value, style)], note, goal: None });
        };
        for point in ours {
            let spread = format!("measured, spread {:.0} %", 100.0 * point.spread);
            add(&label(&point.transport), point.median * self.scale, OURS, &spread);
        }
        for printed in self.theirs() {
            let source = format!("printed: {} ({})", printed.text, printed.source);
            add(printed.what, printed.value * self.scale, THEIRS, &source);
        }
        let head = ["what", "value", "where from"].map(str::to_owned).to_vec();
        (bars(self.name, &all), Table { title: self.name.to_owned(), head, rows })
    }
}

/// Points have six digits of their places.
fn is_at(x: f64, here: f64) -> bool {
    (x - here).abs() <= 1e-4 * here
}

impl Tabled {
    /// The figure, of the parts that there are points for; if there is any.
    pub(crate) fn draw(&self, points: &[Point]) -> Option<Figure> {
        let ours: Vec<Vec<&Point>> = self.parts.iter().map(|part| part.ours(points)).collect();
        let drawn = self.parts.iter().zip(&ours).filter(|(_, ours)| !ours.is_empty());
        let (svgs, tables) = drawn.map(|(part, ours)| part.draw(ours)).unzip();
        let ours: Vec<&Point> = ours.concat();
        let first = ours.iter().find(|point| point.clock == Clock::Wall).or(ours.first())?;
        Some(Figure {
            id: self.id.to_owned(),
            title: self.title.to_owned(),
            again: self.again.to_owned(),
            about: self.about.to_owned(),
            clock: clocks(&ours),
            machine: describe(&first.machine),
            svgs,
            marks: Vec::new(),
            legend: ["measured here", "printed in the paper"].map(str::to_owned).to_vec(),
            tables,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::series::tests::point;

    const PRINTED: &[Printed] = &[
        Printed { what: "a & b", x: Some(4.0), value: 3.0, text: "6 us", source: "P, Table 1" },
        Printed { what: "elsewhere", x: Some(8.0), value: 3.0, text: "6 us", source: "P, Table 1" },
    ];

    #[test]
    fn what_is_printed_stands_beside_what_was_measured_at_its_place() {
        let part = Part {
            name: "round trip",
            figure: "latency",
            x: 4.0,
            is_wanted: |point| point.transport != "ring",
            unit: "us",
            scale: 2.0,
            printed: vec![PRINTED],
        };
        let table = Tabled { id: "t", title: "T", again: "P", about: "", parts: vec![part] };
        let measured = [point("tcp polling", 4.0, 5.0), point("ring", 4.0, 1.0)];
        let figure = table.draw(&measured).unwrap();
        let rows = &figure.tables[0].rows;
        assert_eq!(rows.len(), 2, "{rows:?}");
        assert_eq!(rows[0][..2], ["TCP", "10.0 us"], "twice as long");
        assert_eq!(rows[1][..2], ["a & b", "6.00 us"]);
        assert!(rows[1][2].contains("P, Table 1") && figure.svgs[0].contains("a &amp; b"));
        assert!(table.draw(&[point("tcp polling", 8.0, 5.0)]).is_none(), "nothing at its place");
    }
}
