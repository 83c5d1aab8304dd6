//! The figures of the papers about layers over VIA, SOVIA and Stream Sockets, from the sweeps of
//! `viaduct bench streams` and `viaduct bench calls`.

use super::Figure;
use super::beside::{Part, Tabled};
use super::lines::{BYTES, Lines, MEGABYTES, MICROSECONDS};
use super::papers;
use super::scale::Form;
use crate::bench::series::Point;

/// Whether it is VIPL, TCP, or a stream with one of these policies.
fn is_one_of(point: &Point, policies: &[&str]) -> bool {
    let words: Vec<&str> = point.transport.split(' ').collect();
    match words[..] {
        ["vipl" | "tcp", ..] => true,
        ["sovia", _, policy, ..] => policies.contains(&policy),
        _ => false,
    }
}

fn is_stream_sockets(point: &Point) -> bool {
    is_one_of(point, &["STREAM_SOCKETS"])
}

const CYCLES: (&str, Form) = ("cycles a byte", Form::Log);
const THREADS: (&str, Form) = ("threads in each process", Form::Size);
const ROUND_TRIP: (&str, Form) = ("us, there and back", Form::Log);
const ARGUMENT: (&str, Form) = ("bytes of an argument", Form::Size);

/// The figures of SOVIA.
pub(crate) fn sovia(points: &[Point]) -> Vec<Figure> {
    let [latency, bandwidth, call] = sovia_lines().map(|lines| lines.draw(points));
    [latency, bandwidth, sovia_files().draw(points), call].into_iter().flatten().collect()
}

/// The figures of Stream Sockets, of streams and then of calls.
pub(crate) fn stream_sockets(points: &[Point]) -> Vec<Figure> {
    let streams: Vec<_> =
        streams().iter().chain(&bandwidths()).map(|lines| lines.draw(points)).collect();
    let calls = calls().map(|lines| lines.draw(points));
    let tables = [streams_table(), calls_table()].map(|table| table.draw(points));
    let [one, two] = tables;
    streams.into_iter().chain([one]).chain(calls).chain([two]).flatten().collect()
}

fn sovia_lines() -> [Lines<'static>; 3] {
    [
        Lines {
            id: "sovia-figure-9a",
            title: "Latency of SOVIA",
            again: "SOVIA, Figure 9(a)",
            about: "Half of a round trip. The paper: a thread that handles packets (HANDLER) adds about \
                    16 us of waking it to SINGLE, combining 1 to 2 us, and SINGLE 2 us to VIA. All ends \
                    here poll, but for that thread, which sleeps. Its machines had one processor each; \
                    these processes have one each.",
            figure: "stream_latency",
            is_wanted: |point| is_one_of(point, &["HANDLER", "SINGLE", "COMBINE"]),
            x: BYTES,
            y: MICROSECONDS,
            printed: vec![papers::SOVIA_LATENCY],
            has_diagonal: false,
        },
        Lines {
            id: "sovia-figure-9b",
            title: "Bandwidth of SOVIA",
            again: "SOVIA, Figure 9(b)",
            about: "Messages as fast as they go, and an answer to the last one; VIPL with 32 messages \
                    under way. The paper: FLOWCTRL and DACKS are each better than the one before, DACKS \
                    is as good as VIA from 16 KiB on, COMBINE is best below 2 KiB. Its TCP combines small \
                    messages (Nagle); this one does not.",
            figure: "stream_bandwidth",
            is_wanted: |point| is_one_of(point, &["SINGLE", "FLOWCTRL", "DACKS", "COMBINE"]),
            x: BYTES,
            y: MEGABYTES,
            printed: vec![papers::SOVIA_BANDWIDTH],
            has_diagonal: false,
        },
        Lines {
            id: "sovia-figure-10",
            title: "An empty remote call",
            again: "SOVIA, Figure 10",
            about: "Messages as SunRPC has them: 44 bytes and the argument, 28 bytes of answer. The \
                    paper's SunRPC of glibc 2.1 is not here, so neither is its marshalling: these are \
                    the same bytes by via-rpc, directly on VIPL, and on a stream of SOVIA, TCP and a UNIX \
                    socket. The paper: a call by SOVIA takes a quarter of one by TCP on the same network.",
            figure: "call",
            is_wanted: |_| true,
            x: ARGUMENT,
            y: ("us of a call", Form::Log),
            printed: vec![papers::SOVIA_CALL],
            has_diagonal: false,
        },
    ]
}

fn sovia_files() -> Tabled {
    let part = |name, x| Part {
        name,
        figure: "file_copy",
        x,
        is_wanted: |_| true,
        unit: "Mbit/s",
        scale: 8.0,
        printed: vec![papers::SOVIA_TABLE_1],
    };
    Tabled {
        id: "sovia-table-1",
        title: "Files",
        again: "SOVIA, Table I",
        about: "The paper's FTP server and client of NetKit 0.16 are not measured: the copy is done as their \
                inner loops do it, from a file in memory through 32 KiB of buffer to a connection, and from \
                there to another file in memory, whose pages are new. The paper: SOVIA is nearly as fast as \
                a copy on the machine, and twice as fast as TCP on its network.",
        parts: vec![
            part("19,090,223 bytes", 19_090_223.0),
            part("145,864,380 bytes", 145_864_380.0),
        ],
    }
}

fn streams() -> [Lines<'static>; 2] {
    [
        Lines {
            id: "stream-figure-3",
            title: "Latency of Stream Sockets",
            again: "Stream Sockets, Figure 3 (half of a round trip)",
            about: "The paper: a round trip of stream sockets takes at most half as long again as one of \
                    VIA, and TCP two to three times as long as they do. Windows NT 4.0 and Gigabit \
                    Ethernet are not measured: TCP here is Linux's, on this machine.",
            figure: "stream_latency",
            is_wanted: is_stream_sockets,
            x: BYTES,
            y: MICROSECONDS,
            printed: vec![papers::STREAM_LATENCY],
            has_diagonal: false,
        },
        Lines {
            id: "stream-figure-4",
            title: "Round trips of several threads",
            again: "Stream Sockets, Figure 4 (its text prints no values)",
            about: "Each thread has a connection of its own; all of them together. The paper had four \
                    processors on each side, and says that large messages gain less. All wait asleep here: \
                    threads that outnumber the processors share them.",
            figure: "stream_threads",
            is_wanted: |_| true,
            x: THREADS,
            y: ("round trips a second", Form::Log),
            printed: Vec::new(),
            has_diagonal: false,
        },
    ]
}

fn bandwidths() -> [Lines<'static>; 3] {
    [
        Lines {
            id: "stream-figure-5",
            title: "Bandwidth of Stream Sockets",
            again: "Stream Sockets, Figure 5",
            about: "Packets of 8 KiB, 32 credits. The paper: within 10 % of VIA, and three to four times \
                    that of TCP with large messages.",
            figure: "stream_bandwidth",
            is_wanted: is_stream_sockets,
            x: BYTES,
            y: MEGABYTES,
            printed: vec![papers::STREAM_BANDWIDTH],
            has_diagonal: false,
        },
        Lines {
            id: "stream-figure-6",
            title: "Bandwidth of Stream Sockets in both directions",
            again: "Stream Sockets, Figure 6 (its text prints no values)",
            about: "The sum of both directions, with two messages ahead in each. The paper has a connection \
                    and a thread for each direction, here one of both has both. The paper: three to four \
                    times that of TCP on the same network with large messages.",
            figure: "stream_both",
            is_wanted: is_stream_sockets,
            x: BYTES,
            y: MEGABYTES,
            printed: Vec::new(),
            has_diagonal: false,
        },
        Lines {
            id: "stream-figure-7",
            title: "Processor cycles a byte of Stream Sockets",
            again: "Stream Sockets, Figure 7 (its text prints no values)",
            about: "Processor time of both ends. An end that polls is never idle, so this is the reciprocal \
                    of the bandwidth. The paper: significantly fewer than TCP.",
            figure: "stream_cycles",
            is_wanted: is_stream_sockets,
            x: BYTES,
            y: CYCLES,
            printed: Vec::new(),
            has_diagonal: false,
        },
    ]
}

fn streams_table() -> Tabled {
    Tabled {
        id: "stream-table-1",
        title: "Stream Sockets in two numbers",
        again: "Stream Sockets, Table 1",
        about: "A round trip of 4 bytes, and messages of 50,000 bytes one way.",
        parts: vec![
            Part {
                name: "round trip of 4 bytes",
                figure: "stream_latency",
                x: 4.0,
                is_wanted: is_stream_sockets,
                unit: "us",
                scale: 2.0,
                printed: vec![papers::STREAM_LATENCY],
            },
            Part {
                name: "50,000 bytes one way",
                figure: "stream_bandwidth",
                x: 50_000.0,
                is_wanted: is_stream_sockets,
                unit: "Mbit/s",
                scale: 8.0,
                printed: vec![papers::STREAM_BANDWIDTH],
            },
        ],
    }
}

fn calls() -> [Lines<'static>; 3] {
    [
        Lines {
            id: "stream-figure-9",
            title: "Remote calls there and back",
            again: "Stream Sockets, Figure 9; of Figure 10 (DCOM) only what is below it",
            about: "The argument comes back. MSRPC is not measured: via-rpc has its transport over VIA, \
                    without a runtime above. Nor is DCOM, which is a layer over MSRPC and belongs to \
                    Windows; its times, which the text does not print, are those of MSRPC and some more. \
                    What is local there (LRPC) is a UNIX socket here. The paper: VIA is two to three times \
                    as fast as TCP, and comparable to a local call.",
            figure: "call_echo",
            is_wanted: |_| true,
            x: ARGUMENT,
            y: ROUND_TRIP,
            printed: vec![papers::STREAM_CALL],
            has_diagonal: false,
        },
        Lines {
            id: "stream-figure-11",
            title: "Remote calls of several threads",
            again: "Stream Sockets, Figure 11 (its text prints no values)",
            about: "Each thread of the clients has a VI; the server has one endpoint with one completion \
                    queue, and as many threads, of which any answers any client. With TCP each thread has \
                    a connection. All wait asleep: threads that outnumber the processors share them. The \
                    paper had four processors.",
            figure: "call_threads",
            is_wanted: |_| true,
            x: THREADS,
            y: ("calls a second", Form::Log),
            printed: Vec::new(),
            has_diagonal: false,
        },
        Lines {
            id: "stream-figure-12",
            title: "Processor cycles a byte of remote calls",
            again: "Stream Sockets, Figure 12 (its text prints no values)",
            about: "Processor time of both ends by the bytes of both directions. An end that polls is never \
                    idle. The paper: substantially fewer than TCP.",
            figure: "call_cycles",
            is_wanted: |_| true,
            x: ARGUMENT,
            y: CYCLES,
            printed: Vec::new(),
            has_diagonal: false,
        },
    ]
}

fn calls_table() -> Tabled {
    let part = |name, x| Part {
        name,
        figure: "call_echo",
        x,
        is_wanted: |_| true,
        unit: "us",
        scale: 1.0,
        printed: vec![papers::STREAM_CALL],
    };
    Tabled {
        id: "stream-table-2",
        title: "Remote calls in two numbers",
        again: "Stream Sockets, Table 2",
        about: "Calls there and back. What is compared is said above.",
        parts: vec![part("4 bytes", 4.0), part("8000 bytes", 8000.0)],
    }
}
