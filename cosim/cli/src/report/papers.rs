//! What the papers print in their texts and tables. Their curves are in no extraction of theirs, so a
//! figure has only these values of them.
//!
//! | name here | paper |
//! |---|---|
//! | CLAN | Riddoch, Pope, Mansley: *VIA over the CLAN Network* |
//! | M-VIA | Zhang, Bhuyan, Feng: *Anatomy of UDP and M-VIA for cluster communication*, JPDC 65 (2005) |
//! | SOVIA | *SOVIA: a user-level Sockets layer over VIA*, Concurrency Computat. 15 (2003) |
//! | Stream Sockets | Shah, Pu, Madukkarumukumana: *High Performance Sockets and RPC over VI Architecture* |

/// A value that a paper prints.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Printed {
    pub(crate) what: &'static str,
    /// Where it stands on the figure's axis; None if the text does not say.
    pub(crate) x: Option<f64>,
    /// In the figure's unit.
    pub(crate) value: f64,
    /// As it is printed.
    pub(crate) text: &'static str,
    pub(crate) source: &'static str,
}

const fn at(
    what: &'static str,
    x: f64,
    value: f64,
    text: &'static str,
    source: &'static str,
) -> Printed {
    Printed { what, x: Some(x), value, text, source }
}

const fn across(
    what: &'static str,
    value: f64,
    text: &'static str,
    source: &'static str,
) -> Printed {
    Printed { what, x: None, value, text, source }
}

/// Bits of a megabyte.
const MBPS: f64 = 0.125;

const CLAN_1: &str = "CLAN, Table 1";
const CLAN_42: &str = "CLAN, section 4.2";
/// Half round trips, in us.
pub(crate) const CLAN_TABLE_1: &[Printed] = &[
    at("CLAN VIA (DMA)", 0.0, 4.4, "4.4 us", CLAN_1),
    at("CLAN VIA (DMA)", 4.0, 6.4, "6.4 us", CLAN_1),
    at("CLAN VIA (DMA)", 40.0, 6.8, "6.8 us", CLAN_1),
    at("CLAN VIA (PIO)", 0.0, 3.4, "3.4 us", CLAN_1),
    at("CLAN VIA (PIO)", 4.0, 4.6, "4.6 us", CLAN_1),
    at("CLAN VIA (PIO)", 40.0, 4.7, "4.7 us", CLAN_1),
    at("Emulex cLAN 1000", 0.0, 6.6, "6.6 us", CLAN_1),
    at("Emulex cLAN 1000", 4.0, 7.5, "7.5 us", CLAN_1),
    at("Emulex cLAN 1000", 40.0, 9.5, "9.5 us", CLAN_1),
];
/// In MB/s.
pub(crate) const CLAN_FIGURE_6: &[Printed] = &[
    across("CLAN VIA (PIO), limit", 370.0 * MBPS, "about 370 Mbit/s", CLAN_42),
    across("CLAN network, maximum", 960.0 * MBPS, "960 Mbps", "CLAN, section 3.1"),
];
/// In requests a second.
pub(crate) const CLAN_REQUESTS: &[Printed] = &[across(
    "a server directly over the CLAN network",
    400_000.0,
    "over 400,000 requests per second",
    "CLAN, section 4.3",
)];

const SOVIA_52: &str = "SOVIA, section 5.2 (Figure 9)";
/// One way, in us.
pub(crate) const SOVIA_LATENCY: &[Printed] = &[
    at("native VIA on cLAN", 4.0, 8.5, "8.5 us for 4-byte packets", SOVIA_52),
    at("TCP on cLAN", 4.0, 55.0, "55 us for 4-byte packets", SOVIA_52),
    across("SOVIA, least", 10.5, "as low as 10.5 us", SOVIA_52),
    at("SOVIA, blocking", 4.0, 19.4, "19.4 us for 4-byte packets", SOVIA_52),
];
/// In MB/s.
pub(crate) const SOVIA_BANDWIDTH: &[Printed] = &[
    at("native VIA on cLAN", 32_768.0, 815.0 * MBPS, "815 Mbps for 32 kB packets", SOVIA_52),
    at("TCP on cLAN", 32_768.0, 450.0 * MBPS, "about 450 Mbps for 32 kB packets", SOVIA_52),
    across("SOVIA, peak", 814.0 * MBPS, "814 Mbps", "SOVIA, summary"),
    across("SOVIA, blocking, peak", 780.0 * MBPS, "780 Mbps", SOVIA_52),
];

const SOVIA_54: &str = "SOVIA, section 5.4 (Figure 10)";
/// Elapsed time of a call with an argument of so many bytes, in us.
pub(crate) const SOVIA_CALL: &[Printed] = &[
    at("SunRPC by TCP on Fast Ethernet", 0.0, 200.0, "about 200 us", SOVIA_54),
    at("SunRPC by TCP on cLAN", 0.0, 149.0, "149 us", SOVIA_54),
    at("SunRPC by SOVIA on cLAN", 0.0, 35.0, "35 us", SOVIA_54),
];
const SOVIA_1: &str = "SOVIA, Table I";
const FILE_1: f64 = 19_090_223.0;
const FILE_2: f64 = 145_864_380.0;
/// Files by FTP, by their bytes, in MB/s.
pub(crate) const SOVIA_TABLE_1: &[Printed] = &[
    at("TCP/IP on Fast Ethernet", FILE_1, 90.0 * MBPS, "90 Mbps (1.63 s)", SOVIA_1),
    at("TCP/IP on cLAN", FILE_1, 262.0 * MBPS, "262 Mbps (0.59 s)", SOVIA_1),
    at("SOVIA on cLAN", FILE_1, 573.0 * MBPS, "573 Mbps (0.27 s)", SOVIA_1),
    at("local copy (on RAM disks)", FILE_1, 611.0 * MBPS, "611 Mbps (0.25 s)", SOVIA_1),
    at("TCP/IP on Fast Ethernet", FILE_2, 90.0 * MBPS, "90 Mbps (12.7 s)", SOVIA_1),
    at("TCP/IP on cLAN", FILE_2, 254.0 * MBPS, "254 Mbps (4.61 s)", SOVIA_1),
    at("SOVIA on cLAN", FILE_2, 532.0 * MBPS, "532 Mbps (2.20 s)", SOVIA_1),
    at("local copy (on RAM disks)", FILE_2, 538.0 * MBPS, "538 Mbps (2.17 s)", SOVIA_1),
];

const STREAM_1: &str = "Stream Sockets, Table 1";
/// One way, in us: half of the printed round trips.
pub(crate) const STREAM_LATENCY: &[Printed] = &[
    at("raw VI on GNN1000", 4.0, 26.2, "round trip 52.4 us", STREAM_1),
    at("stream sockets over VI", 4.0, 37.45, "round trip 74.9 us", STREAM_1),
    at("TCP/IP over GNN1000", 4.0, 109.55, "round trip 219.1 us", STREAM_1),
    at("TCP/IP over Gigabit Ethernet", 4.0, 85.25, "round trip 170.5 us", STREAM_1),
];
/// In MB/s.
pub(crate) const STREAM_BANDWIDTH: &[Printed] = &[
    at("raw VI on GNN1000", 50_000.0, 753.2 * MBPS, "753.2 Mbps", STREAM_1),
    at("stream sockets over VI", 50_000.0, 697.3 * MBPS, "697.3 Mbps", STREAM_1),
    at("TCP/IP over GNN1000", 50_000.0, 211.0 * MBPS, "211 Mbps", STREAM_1),
    at("TCP/IP over Gigabit Ethernet", 50_000.0, 175.0 * MBPS, "175 Mbps", STREAM_1),
];

const STREAM_2: &str = "Stream Sockets, Table 2";
/// Round trips of a call, in us.
pub(crate) const STREAM_CALL: &[Printed] = &[
    at("local RPC (LRPC)", 4.0, 62.7, "62.7 us of 4 bytes", STREAM_2),
    at("local RPC (LRPC)", 8000.0, 314.8, "314.8 us of 8000", STREAM_2),
    at("RPC over VI (GNN1000)", 4.0, 111.21, "111.21 us of 4 bytes", STREAM_2),
    at("RPC over VI (GNN1000)", 8000.0, 448.1, "448.1 us of 8000", STREAM_2),
    at("RPC over TCP/IP (GNN1000)", 4.0, 297.1, "297.1 us of 4 bytes", STREAM_2),
    at("RPC over TCP/IP (GNN1000)", 8000.0, 1039.7, "1039.7 us of 8000", STREAM_2),
    at("RPC over TCP/IP (Gigabit Ethernet)", 4.0, 243.5, "243.5 us of 4 bytes", STREAM_2),
    at("RPC over TCP/IP (Gigabit Ethernet)", 8000.0, 995.8, "995.8 us of 8000", STREAM_2),
];

const MVIA_3: &str = "M-VIA, Table 3";
/// One way, in us.
pub(crate) const MVIA_LATENCY: &[Printed] = &[
    at("UDP/IP on Fast Ethernet", 1.0, 36.02, "36.02 us for a 1-byte message", MVIA_3),
    at("M-VIA on Fast Ethernet", 1.0, 23.10, "23.10 us for a 1-byte message", MVIA_3),
];
/// Before DMA, in us.
pub(crate) const MVIA_SEND: &[Printed] = &[
    across("UDP, sending before DMA", 5.0, "5 us", "M-VIA, section 4.1"),
    across("M-VIA, sending before DMA", 2.0, "2 us", "M-VIA, section 4.1"),
];
/// In us.
pub(crate) const MVIA_RECEIVE: &[Printed] = &[at(
    "M-VIA, interrupt receive processing (t8)",
    1.0,
    3.51,
    "3.51 us for a 1-byte message",
    MVIA_3,
)];

/// Table 3 of the M-VIA paper: categories with the times of UDP/IP and M-VIA, in us.
pub(crate) const MVIA_TABLE_3: [(&str, f64, f64); 6] = [
    ("user application", 0.0, 0.10),
    ("protocol, sending", 4.22, 1.56),
    ("protocol, receiving", 11.54, 3.51),
    ("operating system, sending", 0.85, 0.33),
    ("operating system, receiving", 6.61, 4.30),
    ("DMA, transmitting, receiving", 12.80, 13.30),
];

/// Tables 1 and 2 of the M-VIA paper as printed: interval, what, cycles, us.
pub(crate) type Breakdown = &'static [[&'static str; 4]];
pub(crate) const MVIA_TABLE_1: Breakdown = &[
    ["t1", "System call", "342", "0.85"],
    ["t2", "Socket send processing", "307", "0.77"],
    ["t3", "UDP send processing", "200", "0.50"],
    ["t4", "IP send processing", "see Fig. 4", ""],
    ["t5", "Device send processing", "291", "0.73"],
    ["t6+t7", "NIC DMA/transmit", "see Fig. 5", ""],
    ["t8", "NIC DMA receive", "896", "2.24"],
    ["t9", "Interrupt start time", "1131", "2.82"],
    ["t10", "NIC interrupt service routine", "1780", "4.44"],
    ["t11", "do_IRQ/softirq/net_rx_action processing", "379+148+283", "0.95+0.37+0.71"],
    ["t12", "IP receive processing", "726", "1.81"],
    ["t13", "UDP receive processing (in bottom thread)", "470", "1.17"],
    ["t14", "net_rx_action/softirq/interrupt return", "238+100+150", "0.60+0.25+0.38"],
    ["t15", "Polling time before getting a message (average)", "432", "1.10"],
    ["t16", "UDP receive processing (in upper thread)", "see Fig. 6", ""],
    ["t17", "Socket receive post processing", "106", "0.26"],
    ["t18", "System call return", "239", "0.60"],
];
pub(crate) const MVIA_TABLE_2: Breakdown = &[
    ["t1", "VipPostSend() processing", "24", "0.06"],
    ["t2", "Fast trap", "131", "0.33"],
    ["t3", "Device send processing", "627", "1.56"],
    ["t4+t5", "DMA/transmit", "see Fig. 9", ""],
    ["t6", "DMA receive time", "896", "2.24"],
    ["t7", "Interrupt starting time", "1119", "2.80"],
    ["t8", "Interrupt receive processing", "see Fig. 10", ""],
    ["t9", "Interrupt return time", "600", "1.50"],
    ["t10", "VipRecvWait() processing (polling)", "16", "0.04"],
];

#[cfg(test)]
mod tests {
    use super::*;

    /// The paper's totals: what is not the sum is a misprint of ours.
    #[test]
    fn table_3_adds_up_to_the_printed_totals() {
        let sum = |of: fn(&(&str, f64, f64)) -> f64| MVIA_TABLE_3.iter().map(of).sum::<f64>();
        assert!((sum(|row| row.1) - MVIA_LATENCY[0].value).abs() < 1e-9);
        assert!((sum(|row| row.2) - MVIA_LATENCY[1].value).abs() < 1e-9);
    }

    /// SOVIA's Table I: rates and times are of the same bytes.
    #[test]
    fn files_take_as_long_as_is_printed() {
        for value in SOVIA_TABLE_1 {
            let (_, time) = value.text.split_once('(').unwrap();
            let seconds: f64 = time.trim_end_matches(" s)").parse().unwrap();
            let rate = value.x.unwrap() / 1e6 / seconds;
            // As exact as two digits of a time.
            assert!((rate / value.value - 1.0).abs() < 0.06, "{value:?}: {rate}");
        }
    }

    #[test]
    fn every_value_has_its_text_and_its_source() {
        let all = [
            CLAN_TABLE_1,
            CLAN_FIGURE_6,
            CLAN_REQUESTS,
            SOVIA_LATENCY,
            SOVIA_BANDWIDTH,
            STREAM_LATENCY,
            STREAM_BANDWIDTH,
            SOVIA_CALL,
            SOVIA_TABLE_1,
            STREAM_CALL,
            MVIA_LATENCY,
            MVIA_SEND,
            MVIA_RECEIVE,
        ];
        for value in all.into_iter().flatten() {
            let has_digits = value.text.contains(|letter: char| letter.is_ascii_digit());
            assert!(has_digits && value.source.contains(", "), "{value:?}");
        }
    }
}
