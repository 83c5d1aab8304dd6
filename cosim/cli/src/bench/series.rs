//! What the sweeps of `viaduct bench` measure: points, as a table, as JSON, as CSV.

use core::fmt::Write as _;

use serde_json::{Map, Value};

use crate::Failure;

/// The clock by which a point was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clock {
    /// Of the machine: what a program waits.
    Wall,
    /// Of a simulated NIC, at its nominal rate: what its hardware would take.
    Simulated,
}

impl Clock {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Wall => "wall",
            Self::Simulated => "simulated",
        }
    }

    fn parse(name: &str) -> Option<Self> {
        [Self::Wall, Self::Simulated].into_iter().find(|clock| clock.name() == name)
    }
}

/// What ran beside a sweep, and on what.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Machine {
    /// Model of the processor.
    pub(crate) cpu: String,
    /// Number of processors; 0 where the clock is simulated, which no machine changes.
    pub(crate) processors: usize,
    /// Time of a cache line from one process to the other, in nanoseconds; 0 where nothing was measured
    /// by the wall clock.
    pub(crate) line_ns: f64,
    /// Processors that other programs kept busy meanwhile.
    pub(crate) others_busy: f64,
}

/// One point of a figure.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Point {
    /// The figure, such as `latency`.
    pub(crate) figure: String,
    /// The device with how VIPL waits on it, or the reference.
    pub(crate) transport: String,
    /// Where it stands on the figure's axis, and the unit of that.
    pub(crate) x: f64,
    pub(crate) x_unit: String,
    /// Median of the turns.
    pub(crate) median: f64,
    /// What 99 of 100 values keep to: at most of a time, at least of a rate.
    pub(crate) p99: f64,
    /// Distance of the quartiles of the turns, as a part of the median.
    pub(crate) spread: f64,
    /// Unit of median and p99.
    pub(crate) unit: String,
    /// The clock.
    pub(crate) clock: Clock,
    /// Number of values behind the median.
    pub(crate) samples: usize,
    /// Of the sweep that measured it.
    pub(crate) machine: Machine,
}

impl Point {
    /// Names and values, as JSON and CSV have them.
    fn fields(&self) -> [(&'static str, Value); 14] {
        let (x, median) = (rounded(self.x), rounded(self.median));
        [
            ("figure", self.figure.clone().into()),
            ("transport", self.transport.clone().into()),
            ("x", x.into()),
            ("x_unit", self.x_unit.clone().into()),
            ("median", median.into()),
            ("p99", rounded(self.p99).into()),
            ("spread", rounded(self.spread).into()),
            ("unit", self.unit.clone().into()),
            ("clock", self.clock.name().into()),
            ("samples", self.samples.into()),
            ("cpu", self.machine.cpu.clone().into()),
            ("processors", self.machine.processors.into()),
            ("line_ns", rounded(self.machine.line_ns).into()),
            ("others_busy", rounded(self.machine.others_busy).into()),
        ]
    }

    /// As an object.
    pub(crate) fn to_json(&self) -> Value {
        let fields = self.fields().map(|(name, value)| (name.to_owned(), value));
        Value::Object(Map::from_iter(fields))
    }

    /// Reads an object; None if it is not a point.
    pub(crate) fn from_json(object: &Value) -> Option<Self> {
        let text = |name: &str| Some(object.get(name)?.as_str()?.to_owned());
        let number = |name: &str| object.get(name)?.as_f64().filter(|value| value.is_finite());
        let count = |name: &str| usize::try_from(object.get(name)?.as_u64()?).ok();
        Some(Self {
            figure: text("figure")?,
            transport: text("transport")?,
            x: number("x")?,
            x_unit: text("x_unit")?,
            median: number("median")?,
            p99: number("p99")?,
            spread: number("spread")?,
            unit: text("unit")?,
            clock: Clock::parse(&text("clock")?)?,
            samples: count("samples")?,
            machine: Machine {
                cpu: text("cpu")?,
                processors: count("processors")?,
                line_ns: number("line_ns")?,
                others_busy: number("others_busy")?,
            },
        })
    }
}

/// Six digits: more would be noise.
fn rounded(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}

/// A value for a person: three digits that count.
pub(crate) fn digits(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        1e6.. => format!("{:.2} M", value / 1e6),
        1e4.. => format!("{:.1} k", value / 1e3),
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        1.0.. => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// A number of bytes for a person.
pub(crate) fn size(bytes: f64) -> String {
    const UNITS: [(f64, &str); 3] =
        [(1_073_741_824.0, " GiB"), (1_048_576.0, " MiB"), (1024.0, " KiB")];
    match UNITS.iter().find(|(unit, _)| bytes >= *unit && bytes % unit == 0.0) {
        Some((unit, name)) => format!("{}{name}", bytes / unit),
        None => format!("{bytes} B"),
    }
}

/// Where a point stands on its axis, for a person.
pub(crate) fn place(x: f64, unit: &str) -> String {
    match unit {
        "B" => size(x),
        "" => String::new(),
        "threads" if x == 1.0 => "1 thread".to_owned(),
        "VIs" if x == 1.0 => "1 VI".to_owned(),
        _ => format!("{} {unit}", if x < 1e4 { x.to_string() } else { digits(x) }),
    }
}

/// Values in the order in which they come first.
pub(crate) fn distinct<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut all = Vec::new();
    for value in values {
        if !all.contains(&value) {
            all.push(value);
        }
    }
    all
}

/// A table for each figure: a column for each transport.
pub(crate) fn table(points: &[Point]) -> String {
    let mut text = String::new();
    for figure in distinct(points.iter().map(|point| &*point.figure)) {
        let of: Vec<&Point> = points.iter().filter(|point| point.figure == figure).collect();
        one_table(figure, &of, &mut text);
    }
    text
}

fn one_table(figure: &str, points: &[&Point], text: &mut String) {
    let line = |text: &mut String, line: String| {
        text.push_str(line.trim_end());
        text.push('\n');
    };
    let first = points[0];
    line(text, format!("{figure}: median/p99 in {}, ±spread", first.unit));
    let transports = distinct(points.iter().map(|point| (&*point.transport, point.clock)));
    let cell = |point: &Point| {
        let (median, p99) = (digits(point.median), digits(point.p99));
        format!("{median}/{p99} ±{:.0} %", 100.0 * point.spread)
    };
    let heading = |(name, clock): (&str, Clock)| match clock {
        Clock::Wall => name.to_owned(),
        Clock::Simulated => format!("{name} (simulated)"),
    };
    let widest = |transport: (&str, Clock)| {
        let of = points.iter().filter(|p| (&*p.transport, p.clock) == transport);
        of.map(|point| cell(point).chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = transports
        .iter()
        .map(|transport| heading(*transport).chars().count().max(widest(*transport)))
        .collect();
    let mut row = format!("{:>12}", "");
    for (transport, width) in transports.iter().zip(&widths) {
        write!(row, "  {:>width$}", heading(*transport)).expect("a string takes every write");
    }
    line(text, row);
    let mut places: Vec<f64> = distinct(points.iter().map(|point| point.x));
    places.sort_by(f64::total_cmp);
    for x in places {
        let mut row = format!("{:>12}", place(x, &first.x_unit));
        for (transport, width) in transports.iter().zip(&widths) {
            let point = points.iter().find(|p| p.x == x && (&*p.transport, p.clock) == *transport);
            let cell = point.map_or_else(|| "-".to_owned(), |point| cell(point));
            write!(row, "  {cell:>width$}").expect("a string takes every write");
        }
        line(text, row);
    }
    line(text, describe(&first.machine));
    text.push('\n');
}

/// The machine in a sentence.
pub(crate) fn describe(machine: &Machine) -> String {
    let Machine { cpu, processors, line_ns, others_busy } = machine;
    if *processors == 0 {
        return cpu.clone();
    }
    let line = match line_ns {
        0.0 => String::new(),
        line => format!("; a cache line takes {line:.0} ns one way"),
    };
    format!(
        "{cpu}, {processors} processors{line}; other programs kept {others_busy:.2} of them busy"
    )
}

/// One object a line.
pub(crate) fn json(points: &[Point]) -> String {
    points.iter().map(|point| point.to_json().to_string() + "\n").collect()
}

/// A line of names, and a line for each point. Texts are in quotes.
pub(crate) fn csv(points: &[Point]) -> String {
    let line = |cells: Vec<String>| cells.join(",") + "\n";
    let Some(first) = points.first() else { return String::new() };
    let mut text = line(first.fields().map(|(name, _)| name.to_owned()).into());
    for point in points {
        let cells = point.fields().map(|(_, value)| match value.as_str() {
            Some(text) => format!("\"{}\"", text.replace('"', "\"\"")),
            None => value.to_string(),
        });
        text.push_str(&line(cells.into()));
    }
    text
}

/// The points among lines of JSON, and what else is there: rows of `viaduct bench hw`, for example.
pub(crate) fn read(text: &str) -> Result<(Vec<Point>, Vec<Value>), Failure> {
    let (mut points, mut others) = (Vec::new(), Vec::new());
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let object: Value =
            serde_json::from_str(line).map_err(|error| format!("line {}: {error}", number + 1))?;
        match Point::from_json(&object) {
            Some(point) => points.push(point),
            None => others.push(object),
        }
    }
    Ok((points, others))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A point of a latency figure.
    pub(crate) fn point(transport: &str, x: f64, median: f64) -> Point {
        Point {
            figure: "latency".to_owned(),
            transport: transport.to_owned(),
            x,
            x_unit: "B".to_owned(),
            median,
            p99: 2.0 * median,
            spread: 0.05,
            unit: "us".to_owned(),
            clock: Clock::Wall,
            samples: 9,
            machine: Machine {
                cpu: "A \"fast\", <one>".to_owned(),
                processors: 2,
                line_ns: 60.0,
                others_busy: 0.25,
            },
        }
    }

    #[test]
    fn a_point_survives_json() {
        let points = [point("ring", 0.0, 0.1), point("vipl polling shm:", 4.0, 123_456.0)];
        let (read, others) = read(&format!("{}{{\"name\":\"x\"}}\n", json(&points))).unwrap();
        assert_eq!((&read[..], others.len()), (&points[..], 1));
    }

    #[test]
    fn a_line_that_is_not_json_is_named() {
        let error = read("\n{}\nlatency").unwrap_err().to_string();
        assert!(error.starts_with("line 3: "), "{error}");
    }

    #[test]
    fn csv_quotes_texts() {
        let text = csv(&[point("ring", 4.0, 0.1)]);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("figure,transport,x,x_unit,median,p99,"), "{text}");
        assert!(lines[1].starts_with("\"latency\",\"ring\",4.0,\"B\",0.1,"), "{text}");
        assert!(lines[1].contains("\"A \"\"fast\"\", <one>\""), "{text}");
    }

    #[test]
    fn csv_has_the_values_of_json() {
        let mut point = point("ring", 4.0, 0.123_456);
        point.machine.cpu = "plain".to_owned();
        let text = csv(&[point.clone()]);
        let mut lines = text.lines().map(|line| line.split(','));
        let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
        let object = point.to_json();
        for (name, value) in names.zip(values) {
            assert_eq!(object[name].to_string(), value, "{name}");
        }
    }

    #[test]
    fn a_table_has_a_dash_where_a_transport_has_no_point() {
        let text =
            table(&[point("ring", 0.0, 0.1), point("ring", 2048.0, 0.2), point("b", 0.0, 7.0)]);
        let rows: Vec<Vec<&str>> =
            text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[1], ["ring", "b"]);
        assert_eq!(rows[2], ["0", "B", "0.100/0.200", "±5", "%", "7.00/14.0", "±5", "%"]);
        assert_eq!(rows[3], ["2", "KiB", "0.200/0.400", "±5", "%", "-"]);
    }
}
