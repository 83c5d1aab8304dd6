//! A figure of lines from points: which of them, with which names, colours and marks.

use super::chart::{Axis, Chart, Mark, Series};
use super::papers::Printed;
use super::scale::Form;
use super::svg::SHAPES;
use super::{Figure, Table};
use crate::bench::series::{Clock, Point, describe, digits, distinct, place};

/// Axes of many figures.
pub(crate) const BYTES: (&str, Form) = ("bytes of a message", Form::Size);
pub(crate) const MICROSECONDS: (&str, Form) = ("us, one way", Form::Log);
pub(crate) const MEGABYTES: (&str, Form) = ("MB/s", Form::Log);

/// What a figure of lines is made of.
pub(crate) struct Lines<'a> {
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    /// Which figure of which paper it draws again.
    pub(crate) again: &'static str,
    pub(crate) about: &'static str,
    /// Figures of the sweeps.
    pub(crate) figure: &'static str,
    pub(crate) is_wanted: fn(&Point) -> bool,
    pub(crate) x: (&'static str, Form),
    pub(crate) y: (&'static str, Form),
    pub(crate) printed: Vec<&'a [Printed]>,
    /// Where both axes are the same.
    pub(crate) has_diagonal: bool,
}

/// A transport without the size or number behind a comma, which says what it was measured with.
fn without_size(transport: &str) -> &str {
    transport.rsplit_once(", ").map_or(transport, |(name, _)| name)
}

/// A name that fits beside a line.
pub(crate) fn label(transport: &str) -> String {
    let transport = without_size(transport);
    let words: Vec<&str> = transport.splitn(3, ' ').collect();
    let short = |url: &str| match url {
        "sim:model" => "model".to_owned(),
        "sim:rtl" => "RTL".to_owned(),
        _ => url.split_once(':').map_or(url, |url| url.0).to_owned(),
    };
    match words[..] {
        ["vipl", "polling", url] => format!("VIPL {}", short(url)),
        ["vipl", "blocking", url] => format!("{} sleeping", short(url)),
        ["sovia", how, rest] => {
            let (policy, url) = rest.split_once(' ').unwrap_or((rest, ""));
            let policy = if policy == "STREAM_SOCKETS" { "streams" } else { policy };
            // A thread that handles packets always sleeps.
            let sleeps = how == "blocking" && policy != "HANDLER";
            format!("{policy} {}", if sleeps { "sleeps".to_owned() } else { short(url) })
        }
        ["rpc", _, url] => format!("via-rpc {}", short(url)),
        ["cq", url, ..] => format!("CQ {}", short(url)),
        [name @ ("tcp" | "unix"), how] => {
            let how = if how == "blocking" { " sleeping" } else { "" };
            format!("{}{how}", name.to_uppercase())
        }
        ["udp" | "tcp" | "unix"] => transport.to_uppercase(),
        ["clan"] => "bare CLAN".to_owned(),
        ["queue"] => "bare queue".to_owned(),
        ["line"] => "cache line".to_owned(),
        [url] if url.contains(':') => short(url),
        _ => transport.to_owned(),
    }
}

/// The colour that a transport has wherever it is free.
fn preferred(transport: &str) -> usize {
    let words: Vec<&str> = without_size(transport).split(' ').collect();
    match words[0] {
        "sovia" => match words.get(2) {
            Some(&"HANDLER") => 2,
            Some(&"SINGLE") => 4,
            Some(&"FLOWCTRL") => 5,
            Some(&"COMBINE") => 6,
            _ => 1,
        },
        "rpc" => 5,
        "local" => 6,
        "ring" => 1,
        "unix" => 2,
        "tcp" => 3,
        "udp" => 4,
        "queue" | "clan" => 5,
        "memcpy" | "sim:model" => 6,
        "line" | "futex" | "sim:rtl" => 7,
        _ => 0,
    }
}

/// Whether its line is dashed: it sleeps, or another clock measured it.
fn is_dashed(transport: &str, clock: Clock) -> bool {
    transport.contains(" blocking") || transport == "futex" || clock == Clock::Simulated
}

/// Colours of transports: those that differ only in how they wait have the same.
pub(crate) fn styles(transports: &[&str]) -> Vec<usize> {
    let family = |transport: &str| transport.replace(" blocking", "").replace(" polling", "");
    let mut taken: Vec<(String, usize)> = Vec::new();
    for transport in transports {
        let family = family(transport);
        if taken.iter().all(|(name, _)| *name != family) {
            let first = preferred(transport);
            let mut free = (first..first + SHAPES).map(|style| style % SHAPES);
            let free = free.find(|style| taken.iter().all(|(_, used)| used != style));
            taken.push((family, free.unwrap_or(first)));
        }
    }
    let style = |transport: &&str| {
        let family = family(transport);
        taken.iter().find(|(name, _)| *name == family).map_or(0, |(_, style)| *style)
    };
    transports.iter().map(style).collect()
}

/// Letters for marks: a, b, …
fn letter(at: usize) -> String {
    char::from(b'a' + u8::try_from(at % 26).unwrap_or(0)).to_string()
}

impl Lines<'_> {
    /// The figure, if there is any point for it.
    pub(crate) fn draw(&self, points: &[Point]) -> Option<Figure> {
        let wanted = |point: &&Point| point.figure == self.figure && (self.is_wanted)(point);
        let points: Vec<&Point> = points.iter().filter(wanted).collect();
        let first = points.first()?;
        let wall = points.iter().find(|point| point.clock == Clock::Wall);
        let keys = distinct(points.iter().map(|point| (&*point.transport, point.clock)));
        let names: Vec<&str> = keys.iter().map(|key| key.0).collect();
        let series = keys.iter().zip(styles(&names)).map(|((transport, clock), style)| {
            let of = points.iter().filter(|p| (&*p.transport, p.clock) == (*transport, *clock));
            let mut points: Vec<(f64, f64)> = of.map(|point| (point.x, point.median)).collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            let is_dashed = is_dashed(transport, *clock);
            Series { label: label(transport), points, style, is_dashed }
        });
        let printed: Vec<&Printed> = self.printed.iter().copied().flatten().collect();
        // Values of one thing have one letter.
        let things = distinct(printed.iter().map(|printed| (printed.what, printed.source)));
        let letter_of = |printed: &Printed| {
            let thing = (printed.what, printed.source);
            letter(things.iter().position(|of| *of == thing).unwrap_or(0))
        };
        let marks = printed.iter().map(|printed| Mark {
            letter: letter_of(printed),
            x: printed.x,
            y: printed.value,
        });
        let axis = |(title, form): (&str, Form)| Axis { title: title.to_owned(), form };
        let chart = Chart {
            name: self.title.to_owned(),
            x: axis(self.x),
            y: axis(self.y),
            series: series.collect(),
            marks: marks.collect(),
            has_diagonal: self.has_diagonal,
        };
        let texts = things.iter().enumerate().map(|(at, (what, source))| {
            let of = printed.iter().filter(|p| (p.what, p.source) == (*what, *source));
            let texts: Vec<&str> = of.map(|printed| printed.text).collect();
            (letter(at), format!("{what}: {} ({source})", texts.join(", ")))
        });
        Some(Figure {
            id: self.id.to_owned(),
            title: self.title.to_owned(),
            again: self.again.to_owned(),
            about: self.about.to_owned(),
            clock: clocks(&points),
            machine: describe(&wall.unwrap_or(first).machine),
            svgs: vec![chart.draw()],
            marks: texts.collect(),
            legend: Vec::new(),
            tables: vec![table(&points)],
        })
    }
}

/// The clocks of points in words.
pub(crate) fn clocks(points: &[&Point]) -> String {
    let has = |clock| points.iter().any(|point| point.clock == clock);
    let is_served = points.iter().any(|point| point.transport.contains("vfio-user:"));
    let served = if is_served { "; vfio-user: is a simulator, whose speed this is" } else { "" };
    match (has(Clock::Wall), has(Clock::Simulated)) {
        (true, true) => format!(
            "wall, and dashed for model and RTL the simulated one (250 MHz, at the pins){served}"
        ),
        (false, true) => "simulated (250 MHz, at the pins)".to_owned(),
        _ => format!("wall{served}"),
    }
}

/// The values behind a figure.
pub(crate) fn table(points: &[&Point]) -> Table {
    let unit = points.first().map_or("", |point| &*point.unit);
    let head = ["transport", "at", &format!("median, {unit}"), "p99", "spread", "clock", "values"];
    let rows = points.iter().map(|point| {
        vec![
            point.transport.clone(),
            place(point.x, &point.x_unit),
            digits(point.median),
            digits(point.p99),
            format!("{:.0} %", 100.0 * point.spread),
            point.clock.name().to_owned(),
            point.samples.to_string(),
        ]
    });
    Table {
        title: "Values".to_owned(),
        head: head.iter().map(|&name| name.to_owned()).collect(),
        rows: rows.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transports_have_short_names() {
        let names = [
            ("vipl polling shm:", "VIPL shm"),
            ("vipl blocking shm:", "shm sleeping"),
            ("vipl polling vfio-user:/tmp/a b/nics", "VIPL vfio-user"),
            ("tcp polling", "TCP"),
            ("unix blocking", "UNIX sleeping"),
            ("cq shm:, 64 VIs", "CQ shm"),
            ("sim:rtl", "RTL"),
            ("queue", "bare queue"),
            ("clan", "bare CLAN"),
            ("clan, 64 VIs", "bare CLAN"),
            ("vipl polling shm:, 32 KiB", "VIPL shm"),
            ("tcp blocking, 64 B", "TCP sleeping"),
            ("ring, 64 B", "ring"),
            ("tcp", "TCP"),
            ("memcpy", "memcpy"),
            ("sovia polling DACKS shm:", "DACKS shm"),
            ("sovia blocking HANDLER shm:?node=a", "HANDLER shm"),
            ("sovia blocking STREAM_SOCKETS shm:, 4 KiB", "streams sleeps"),
            ("rpc clients shm:, 64 B", "via-rpc shm"),
        ];
        for (transport, expected) in names {
            assert_eq!(label(transport), expected);
        }
    }

    #[test]
    fn only_ways_to_wait_share_a_colour() {
        let names =
            ["vipl polling shm:", "vipl blocking shm:", "cq shm:", "ring", "sim:rtl", "line"];
        let styles = styles(&names);
        assert_eq!(styles[0], styles[1]);
        let mut others = styles[1..].to_vec();
        others.sort_unstable();
        others.dedup();
        assert_eq!(others.len(), names.len() - 1, "{styles:?}");
    }
}
