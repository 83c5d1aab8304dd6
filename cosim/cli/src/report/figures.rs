//! The figures of the report, in order.

use super::bars::{Bar, bars, bars_by_goal, waterfall};
use super::hardware::{Anatomy, Hardware};
use super::lines::{BYTES, Lines, MEGABYTES, MICROSECONDS, clocks, label, styles, table};
use super::papers::{self, Breakdown};
use super::scale::Form;
use super::{Figure, Section, Table, layers};
use crate::bench::series::{Point, describe, digits};

/// Everything that there is data for.
pub(crate) fn sections(points: &[Point], hardware: &Hardware) -> Vec<Section> {
    let lines = |lines: &[Lines<'_>]| -> Vec<Figure> {
        lines.iter().filter_map(|lines| lines.draw(points)).collect()
    };
    let mut mvia = lines(&mvia_lines());
    mvia.insert(0, table_3());
    let mut hardware_figures: Vec<Figure> = hardware.anatomies.iter().map(anatomy).collect();
    hardware_figures.insert(0, rows(hardware));
    let mut devices = lines(&sockets());
    devices.extend(lines(&threads()));
    let mut more = lines(&[register()]);
    more.splice(0..0, connect(points));
    let sections = [
        ("clan", "VIA over the CLAN network", lines(&clan())),
        ("mvia", "Anatomy of UDP and M-VIA", mvia),
        ("sovia", "SOVIA", layers::sovia(points)),
        ("stream-sockets", "Stream Sockets and RPC", layers::stream_sockets(points)),
        ("sockets", "VIPL beside sockets", devices),
        ("more", "Connections and memory", more),
        ("hardware", "The NIC in cycles", hardware_figures),
    ];
    let sections = sections.map(|(id, title, figures)| Section { id, title, figures });
    sections.into_iter().filter(|section| !section.figures.is_empty()).collect()
}

/// Whether a transport sleeps until a message comes.
fn sleeps(point: &Point) -> bool {
    point.transport.contains(" blocking") || point.transport == "futex"
}

fn clan() -> [Lines<'static>; 5] {
    [
        Lines {
            id: "clan-table-1",
            title: "Latency of small messages",
            again: "CLAN paper, Table 1",
            about: "Half of a round trip with 0, 4 and 40 bytes. Model and RTL: from the doorbell at \
                    the pins to the status in host memory, without program, processor and PCIe.",
            figure: "latency",
            is_wanted: |point| point.x <= 40.0 && !sleeps(point),
            x: BYTES,
            y: MICROSECONDS,
            printed: vec![papers::CLAN_TABLE_1],
            has_diagonal: false,
        },
        Lines {
            id: "clan-figure-6",
            title: "Bandwidth by message size",
            again: "CLAN paper, Figure 6",
            about: "10 MB with four messages under way and credits in the other direction; fewer of \
                    very small messages. Model and RTL: all receives posted, what the link carries.",
            figure: "bandwidth",
            is_wanted: |point| !sleeps(point),
            x: BYTES,
            y: MEGABYTES,
            printed: vec![papers::CLAN_FIGURE_6],
            has_diagonal: false,
        },
        Lines {
            id: "clan-figure-7",
            title: "Throughput by offered load",
            again: "CLAN paper, Figure 7",
            about: "Requests of 40 bytes on VIs by chance, at most one under way on each; all \
                    receives on one completion queue. On the dotted line everything offered is done.",
            figure: "cq_load",
            is_wanted: |_| true,
            x: ("requests offered a second", Form::Linear),
            y: ("requests done a second", Form::Linear),
            printed: vec![papers::CLAN_REQUESTS],
            has_diagonal: true,
        },
        Lines {
            id: "clan-vis",
            title: "Throughput by number of VIs",
            again: "CLAN paper, section 4.3",
            about: "A request under way on each VI; of clan, which is directly over the network, on each \
                    connection.",
            figure: "cq_throughput",
            is_wanted: |_| true,
            x: ("VIs on the completion queue", Form::Size),
            y: ("requests a second", Form::Log),
            printed: vec![papers::CLAN_REQUESTS],
            has_diagonal: false,
        },
        Lines {
            id: "cq-latency",
            title: "Latency by number of VIs",
            again: "no figure of a paper: section 4.3 of the CLAN paper has throughput only",
            about: "One request under way, on a VI by chance.",
            figure: "cq_latency",
            is_wanted: |_| true,
            x: ("VIs on the completion queue", Form::Size),
            y: MICROSECONDS,
            printed: Vec::new(),
            has_diagonal: false,
        },
    ]
}

fn mvia_lines() -> [Lines<'static>; 3] {
    [
        Lines {
            id: "mvia-figure-9",
            title: "From the doorbell to the wire",
            again: "M-VIA paper, Figure 9 (DMA and transmit time) and section 4.1",
            about: "From the doorbell to the frame's first beat: descriptor and data are fetched in \
                    it, unless they came with the doorbell (up to 40 bytes). The host answers at once.",
            figure: "transmit",
            is_wanted: |_| true,
            x: BYTES,
            y: ("us", Form::Linear),
            printed: vec![papers::MVIA_SEND],
            has_diagonal: false,
        },
        Lines {
            id: "mvia-figure-10",
            title: "Receive processing",
            again: "M-VIA paper, Figure 10",
            about: "From the last beat of the message to the status in host memory. M-VIA copies here; \
                    the NIC has written the data while it came.",
            figure: "receive",
            is_wanted: |_| true,
            x: BYTES,
            y: ("us", Form::Linear),
            printed: vec![papers::MVIA_RECEIVE],
            has_diagonal: false,
        },
        Lines {
            id: "mvia-figure-11",
            title: "UDP and VIA, one way",
            again: "M-VIA paper, Figure 11",
            about: "UDP through the kernel's loopback and VIPL, both polling; model and RTL at the pins.",
            figure: "latency",
            is_wanted: |point| {
                let of = ["udp", "vipl polling", "sim:"];
                of.iter().any(|name| point.transport.starts_with(name))
            },
            x: BYTES,
            y: MICROSECONDS,
            printed: vec![papers::MVIA_LATENCY],
            has_diagonal: false,
        },
    ]
}

fn is_socket_or_vipl(point: &Point) -> bool {
    ["vipl", "tcp", "unix", "sockperf"].iter().any(|name| point.transport.starts_with(name))
}

fn sockets() -> [Lines<'static>; 4] {
    const NONE: &str =
        "no figure of a paper: devices without a layer above, beside the kernel's sockets";
    const LAYER: &str = "VIPL itself; streams over it are above.";
    [
        Lines {
            id: "vipl-latency",
            title: "Latency beside sockets",
            again: NONE,
            about: LAYER,
            figure: "latency",
            is_wanted: |point| point.x >= 4.0 && is_socket_or_vipl(point),
            x: BYTES,
            y: MICROSECONDS,
            printed: Vec::new(),
            has_diagonal: false,
        },
        Lines {
            id: "vipl-bandwidth",
            title: "Bandwidth beside sockets",
            again: NONE,
            about: LAYER,
            figure: "bandwidth",
            is_wanted: is_socket_or_vipl,
            x: BYTES,
            y: MEGABYTES,
            printed: Vec::new(),
            has_diagonal: false,
        },
        Lines {
            id: "vipl-both",
            title: "Bandwidth in both directions",
            again: NONE,
            about: "Both ends send and receive; the sum of both directions.",
            figure: "bandwidth_both",
            is_wanted: |_| true,
            x: BYTES,
            y: MEGABYTES,
            printed: Vec::new(),
            has_diagonal: false,
        },
        Lines {
            id: "vipl-cycles",
            title: "Processor cycles a byte",
            again: NONE,
            about: "Processor time of both ends. An end that polls is never idle.",
            figure: "cycles_per_byte",
            is_wanted: |_| true,
            x: BYTES,
            y: ("cycles a byte", Form::Log),
            printed: Vec::new(),
            has_diagonal: false,
        },
    ]
}

fn threads() -> [Lines<'static>; 2] {
    const THREADS: &str = "Each thread has a VI or socket of its own; all of them together. Threads that \
                           outnumber the processors share them, and those that poll then wait for each \
                           other.";
    [
        Lines {
            id: "vipl-threads",
            title: "Round trips of several threads by VIPL",
            again: "no figure of a paper: Figure 4 of Stream Sockets has streams",
            about: THREADS,
            figure: "round_trips_threads",
            is_wanted: |_| true,
            x: ("threads in each process", Form::Size),
            y: ("round trips a second", Form::Log),
            printed: Vec::new(),
            has_diagonal: false,
        },
        Lines {
            id: "bandwidth-threads",
            title: "Bandwidth of several threads",
            again: "no figure of a paper: Figure 4 of Stream Sockets has round trips",
            about: THREADS,
            figure: "bandwidth_threads",
            is_wanted: |_| true,
            x: ("threads in each process", Form::Size),
            y: MEGABYTES,
            printed: Vec::new(),
            has_diagonal: false,
        },
    ]
}

fn register() -> Lines<'static> {
    Lines {
        id: "register",
        title: "Registration of memory",
        again: "no figure of a paper",
        about: "A region is registered and deregistered; a copy of as many bytes is what a program does \
                instead. A page has 4 KiB.",
        figure: "register",
        is_wanted: |_| true,
        x: ("bytes of a region", Form::Size),
        y: ("us", Form::Log),
        printed: Vec::new(),
        has_diagonal: false,
    }
}

/// Connections as bars.
fn connect(points: &[Point]) -> Option<Figure> {
    let points: Vec<&Point> = points.iter().filter(|point| point.figure == "connect").collect();
    let first = points.first()?;
    let names: Vec<&str> = points.iter().map(|point| &*point.transport).collect();
    let all: Vec<Bar> = points
        .iter()
        .zip(styles(&names))
        .map(|(point, style)| Bar {
            name: label(&point.transport),
            parts: vec![(point.median, style)],
            note: format!("{} us", digits(point.median)),
            goal: None,
        })
        .collect();
    Some(Figure {
        id: "connect".to_owned(),
        title: "A connection".to_owned(),
        again: "no figure of a paper".to_owned(),
        about:
            "A VI or socket is created, connected, disconnected and destroyed: us of one, less is \
                better."
                .to_owned(),
        clock: clocks(&points),
        machine: describe(&first.machine),
        svgs: vec![bars("A connection", &all)],
        marks: Vec::new(),
        legend: Vec::new(),
        tables: vec![table(&points)],
    })
}

fn breakdown(title: &str, rows: Breakdown) -> Table {
    Table {
        title: title.to_owned(),
        head: ["interval", "what", "cycles of 400 MHz", "us"].map(str::to_owned).to_vec(),
        rows: rows.iter().map(|row| row.map(str::to_owned).to_vec()).collect(),
    }
}

/// Table 3 of the M-VIA paper as bars, and its other tables as they are.
fn table_3() -> Figure {
    let of = |name: &str, value: fn(&(&str, f64, f64)) -> f64| {
        let parts: Vec<(f64, usize)> =
            papers::MVIA_TABLE_3.iter().enumerate().map(|(at, row)| (value(row), at)).collect();
        let total: f64 = parts.iter().map(|part| part.0).sum();
        Bar { name: name.to_owned(), parts, note: format!("{total:.2} us"), goal: None }
    };
    let all = [of("UDP/IP", |row| row.1), of("M-VIA", |row| row.2)];
    let rows = papers::MVIA_TABLE_3
        .map(|(name, udp, mvia)| vec![name.to_owned(), format!("{udp:.2}"), format!("{mvia:.2}")]);
    let table = Table {
        title: "Table 3, in us".to_owned(),
        head: ["category", "UDP/IP", "M-VIA"].map(str::to_owned).to_vec(),
        rows: rows.to_vec(),
    };
    Figure {
        id: "mvia-table-3".to_owned(),
        title: "Where the time of a 1-byte message went".to_owned(),
        again: "M-VIA paper, Table 3; Tables 1 and 2 below as printed".to_owned(),
        about: "Printed values only. Ours in the same manner: the anatomies below, in cycles."
            .to_owned(),
        clock: "that of the paper: cycle counters of 400 MHz".to_owned(),
        machine: "two PCs with Fast Ethernet (M-VIA paper, section 2)".to_owned(),
        svgs: vec![bars("UDP/IP and M-VIA", &all)],
        marks: Vec::new(),
        legend: papers::MVIA_TABLE_3.iter().map(|row| row.0.to_owned()).collect(),
        tables: vec![
            table,
            breakdown("Table 1: UDP/IP", papers::MVIA_TABLE_1),
            breakdown("Table 2: M-VIA", papers::MVIA_TABLE_2),
        ],
    }
}

const RTL_CLOCK: &str = "simulated: cycles of the RTL, 4 ns each at 250 MHz";
const RTL_MACHINE: &str = "the Verilated RTL; hosts answer at once, the wire has no latency. The values \
                           are those of the repository's snapshot, which its tests compare with the RTL";

/// The rows of `viaduct bench hw`.
fn rows(hardware: &Hardware) -> Figure {
    let note = |row: &super::hardware::Row| {
        let sign = match row.bar {
            Some(crate::bench::Bar::AtMost(_)) => "at most",
            _ => "at least",
        };
        let bar = row.bar.map_or(0.0, crate::bench::Bar::value);
        let missed = if row.is_held() { "" } else { ", missed" };
        format!("{} {} ({sign} {bar}{missed})", row.value, row.unit)
    };
    let all: Vec<Bar> = hardware
        .rows
        .iter()
        .map(|row| Bar {
            name: row.name.clone(),
            parts: vec![(row.value, if row.is_held() { 0 } else { 3 })],
            note: note(row),
            goal: row.bar.map(crate::bench::Bar::value),
        })
        .collect();
    let table = hardware.rows.iter().map(|row| {
        let held = if row.is_held() { "yes" } else { "no" };
        vec![row.name.clone(), format!("{} {}", row.value, row.unit), note(row), held.to_owned()]
    });
    Figure {
        id: "bench-hw".to_owned(),
        title: "The rows of viaduct bench hw".to_owned(),
        again: "no figure of a paper; docs/hardware.md has what each row is".to_owned(),
        about: "Each row has its own scale; the line across is its bar. A bar that is missed has another \
                colour and says so."
            .to_owned(),
        clock: RTL_CLOCK.to_owned(),
        machine: RTL_MACHINE.to_owned(),
        svgs: vec![bars_by_goal("The rows of viaduct bench hw", &all)],
        marks: Vec::new(),
        legend: Vec::new(),
        tables: vec![Table {
            title: "Values".to_owned(),
            head: ["row", "value", "bar", "held"].map(str::to_owned).to_vec(),
            rows: table.collect(),
        }],
    }
}

/// An anatomy as steps.
fn anatomy(anatomy: &Anatomy) -> Figure {
    let title = anatomy.title.replacen("a ", "A ", 1).replacen("an ", "An ", 1);
    let rows = anatomy.moments.iter().map(|(cycle, what)| vec![format!("{cycle}"), what.clone()]);
    let id =
        format!("anatomy-{}", title.to_lowercase().replace(|c: char| !c.is_alphanumeric(), "-"));
    let steps = anatomy.steps();
    Figure {
        id,
        title: title.clone(),
        again: "M-VIA paper, Figure 8 (the timeline of a message)".to_owned(),
        about: "A bar ends when what it is named after happens. Moments at the same cycle are in the table."
            .to_owned(),
        clock: RTL_CLOCK.to_owned(),
        machine: RTL_MACHINE.to_owned(),
        svgs: vec![waterfall(&title, &steps, "cycles")],
        marks: Vec::new(),
        legend: ["before the frame leaves", "until it has arrived", "after that"].map(str::to_owned).to_vec(),
        tables: vec![Table {
            title: "Moments".to_owned(),
            head: ["cycle", "what (where it is seen)"].map(str::to_owned).to_vec(),
            rows: rows.collect(),
        }],
    }
}
