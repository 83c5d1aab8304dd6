//! The sweeps of `viaduct bench`, and the page of `viaduct report`: its structure, and how it looks in a
//! browser. Times are not looked at: the machine may be busy with other tests.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

use serde_json::Value;

fn viaduct(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_viaduct")).args(arguments).output().expect("it starts")
}

/// Standard output of a run that must succeed.
fn output(arguments: &[&str]) -> String {
    let output = viaduct(arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn sweep(arguments: &[&str]) -> String {
    output(&[&["bench"], arguments, &["--quick", "--anyway", "--json"]].concat())
}

fn points(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("a line is an object")).collect()
}

fn texts(points: &[Value], name: &str) -> BTreeSet<String> {
    points.iter().map(|point| point[name].as_str().expect(name).to_owned()).collect()
}

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}

#[test]
fn latency_has_a_point_for_each_size_that_a_transport_can_carry() {
    let all = points(&sweep(&["latency", "shm:", "--sizes", "0,64"]));
    let transports: Vec<(&str, f64)> = all
        .iter()
        .map(|point| (point["transport"].as_str().unwrap(), point["x"].as_f64().unwrap()))
        .collect();
    for wanted in [("vipl polling shm:", 0.0), ("vipl polling shm:", 64.0), ("ring", 0.0)] {
        assert!(transports.contains(&wanted), "{wanted:?} in {transports:?}");
    }
    assert!(transports.contains(&("tcp polling", 64.0)), "{transports:?}");
    assert!(!transports.contains(&("tcp polling", 0.0)), "a stream has no empty messages");
    for point in &all {
        assert!(point["median"].as_f64().unwrap() > 0.0, "{point}");
        assert!(point["p99"].as_f64().unwrap() > 0.0 && point["line_ns"].as_f64().unwrap() > 0.0);
        assert_eq!((point["unit"].as_str(), point["clock"].as_str()), (Some("us"), Some("wall")));
    }
}

#[test]
fn a_server_directly_on_clan_is_beside_the_completion_queue_in_each_figure() {
    let all = points(&sweep(&["cq", "--vis", "1,1024"]));
    for (figure, places) in [("cq_latency", 2), ("cq_throughput", 2), ("cq_load", 8)] {
        for wanted in ["cq shm:", "clan"] {
            let name = |point: &Value| point["transport"].as_str().unwrap().to_owned();
            let of = all.iter().filter(|point| point["figure"] == figure);
            let of = of.filter(|point| name(point).split(',').next() == Some(wanted));
            assert_eq!(of.count(), places, "{figure} of {wanted}");
        }
    }
    let alone = points(&sweep(&["cq", "--vis", "2", "--no-references"]));
    assert!(texts(&alone, "transport").iter().all(|name| name.starts_with("cq shm:")));
}

#[test]
fn threads_have_figures_of_their_own_with_a_transport_for_each_size() {
    for (name, figure) in [("bandwidth", "bandwidth_threads"), ("latency", "round_trips_threads")] {
        let arguments = [name, "--threads", "1,3", "--sizes", "64,4K", "--blocking"];
        let all = points(&sweep(&arguments));
        assert_eq!(texts(&all, "figure"), BTreeSet::from([figure.to_owned()]));
        assert_eq!(texts(&all, "x_unit"), BTreeSet::from(["threads".to_owned()]));
        for wanted in ["vipl blocking shm:", "tcp polling", "tcp blocking", "unix blocking"] {
            for wanted in ["64 B", "4 KiB"].map(|size| format!("{wanted}, {size}")) {
                let of = all.iter().filter(|point| point["transport"] == *wanted);
                let places: Vec<f64> = of.map(|point| point["x"].as_f64().unwrap()).collect();
                assert_eq!(places, [1.0, 3.0], "{wanted} of {figure}");
            }
        }
        assert!(all.iter().all(|point| point["median"].as_f64().unwrap() > 0.0));
    }
    let output = viaduct(&["bench", "bandwidth", "sim:model", "--threads", "2", "--anyway"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("sim:model"), "{output:?}");
}

/// A folder with a program of this name, which is a script.
fn program(folder: &Path, name: &str, script: &str) {
    use std::os::unix::fs::PermissionsExt;
    fs::create_dir_all(folder).expect("a writable folder");
    let file = folder.join(name);
    fs::write(&file, format!("#!/bin/sh\n{script}\n")).expect("a writable folder");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("it is ours");
}

/// The programs are scripts, so that nothing has to be installed.
#[test]
fn programs_that_are_installed_are_compared_with_and_others_are_named_once() {
    let folder = path("programs");
    let answer = "bytes #sent usec/xfer\n64 10k 2.48";
    let script = format!("[ $1 = -B ] && exec /bin/sleep 30\nprintf '{answer}\\n'");
    program(&folder, "fi_pingpong", &script);
    program(&folder, "sockperf", "echo 'sockperf: ERROR: no luck'");
    let output = Command::new(env!("CARGO_BIN_EXE_viaduct"))
        .args(["bench", "latency", "--sizes", "64,256", "--quick", "--anyway", "--json"])
        .env("PATH", &folder)
        .output()
        .expect("it starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    let all = points(&String::from_utf8_lossy(&output.stdout));
    let of = all.iter().filter(|point| point["transport"] == "libfabric shm");
    let values: Vec<_> = of.map(|p| (p["x"].as_f64(), p["median"].as_f64())).collect();
    assert_eq!(values, [64.0, 256.0].map(|x| (Some(x), Some(2.48))), "{errors}");
    // One that fails is no point and no failure.
    assert!(!texts(&all, "transport").iter().any(|name| name.starts_with("sockperf")));
    assert!(errors.contains("sockperf tcp, 64 B: no result: sockperf: ERROR: no luck"), "{errors}");
    assert_eq!(errors.matches("not installed").count(), 1, "{errors}");
    assert!(errors.contains("not compared with: ucx_perftest\n"), "{errors}");
}

#[test]
fn streams_have_a_line_for_each_policy_of_a_papers_figure() {
    let all = points(&sweep(&["streams", "--sizes", "4,64"]));
    let lines = |figure: &str, x: f64| -> BTreeSet<String> {
        let of = all.iter().filter(|point| point["figure"] == figure && point["x"] == x);
        of.map(|point| point["transport"].as_str().unwrap().to_owned()).collect()
    };
    let polling = |policy: &str| format!("sovia polling {policy} shm:");
    let latency = lines("stream_latency", 4.0);
    for policy in ["SINGLE", "FLOWCTRL", "DACKS", "COMBINE", "STREAM_SOCKETS"] {
        assert!(latency.contains(&polling(policy)), "{policy} in {latency:?}");
        assert!(lines("stream_bandwidth", 64.0).contains(&polling(policy)), "{policy}");
        assert!(lines("stream_cycles", 64.0).contains(&polling(policy)), "{policy}");
    }
    // A thread that handles packets sleeps, and is in no figure of bandwidth.
    assert!(latency.contains("sovia blocking HANDLER shm:"), "{latency:?}");
    for beside in ["vipl polling shm:", "tcp polling"] {
        assert!(lines("stream_latency", 64.0).contains(beside), "{beside}");
        assert!(lines("stream_both", 64.0).contains(beside), "{beside}");
    }
    let several = lines("stream_threads", 2.0);
    assert!(several.contains("sovia blocking STREAM_SOCKETS shm:, 64 B"), "{several:?}");
    // A file takes time; this run has not the size of its blocks.
    assert!(!texts(&all, "figure").contains("file_copy"));
}

#[test]
fn calls_are_measured_with_arguments_and_there_and_back() {
    let all = points(&sweep(&["calls", "--sizes", "0,64,8000"]));
    let places = |figure: &str, transport: &str| -> Vec<f64> {
        let of = all.iter().filter(|p| p["figure"] == figure && p["transport"] == transport);
        of.map(|point| point["x"].as_f64().unwrap()).collect()
    };
    for transport in ["rpc polling shm:", "sovia polling DACKS shm:", "tcp polling", "unix polling"]
    {
        // A call has a header also without an argument; those of SOVIA's figure end at 4 KiB.
        assert_eq!(places("call", transport), [0.0, 64.0], "{transport}");
        assert_eq!(places("call_echo", transport), [64.0, 8000.0], "{transport}");
        assert_eq!(places("call_cycles", transport), [64.0, 8000.0], "{transport}");
    }
    assert_eq!(places("call_threads", "rpc clients shm:, 64 B"), [1.0, 2.0, 4.0]);
    for what in ["streams", "calls"] {
        let output = viaduct(&["bench", what, "sim:model", "--anyway"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains("sim:model is not measured"), "{said}");
    }
}

#[test]
fn csv_has_the_names_of_json() {
    let arguments = ["bench", "register", "--sizes", "4K", "--quick", "--anyway"];
    let csv = output(&[&arguments[..], &["--csv"]].concat());
    let json = points(&output(&[&arguments[..], &["--json"]].concat()));
    let mut lines = csv.lines();
    let names: BTreeSet<&str> = lines.next().expect("names").split(',').collect();
    let expected: BTreeSet<&str> =
        json[0].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(names, expected);
    assert_eq!(lines.count(), json.len(), "{csv}");
    let table = output(&arguments);
    assert!(table.contains("4 KiB") && table.contains("memcpy"), "{table}");
}

#[test]
fn the_model_is_measured_by_its_own_clock() {
    let text = sweep(&["latency", "sim:model", "--sizes", "0,4,40", "--no-references"]);
    let all = points(&text);
    assert_eq!(texts(&all, "clock"), BTreeSet::from(["simulated".to_owned()]));
    assert_eq!(texts(&all, "figure").len(), 3, "latency, transmit, receive: {text}");
    assert_eq!(text, sweep(&["latency", "sim:model", "--sizes", "0,4,40", "--no-references"]));
}

/// After a change of the RTL that is meant to change them, both sweeps, one after the other:
/// `cargo viaduct bench latency sim:rtl --json > cosim/cli/tests/bench_rtl.jsonl` and
/// `cargo viaduct bench bandwidth sim:rtl --json >> cosim/cli/tests/bench_rtl.jsonl`.
#[cfg(feature = "rtl")]
#[test]
fn the_sweeps_of_the_rtl_are_as_before() {
    let sweep = |name| output(&["bench", name, "sim:rtl", "--json"]);
    assert_eq!(sweep("latency") + &sweep("bandwidth"), include_str!("bench_rtl.jsonl"));
}

#[test]
fn wrong_devices_and_sizes_are_named() {
    let output = viaduct(&["bench", "latency", "nowhere:", "--anyway"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("nowhere:"), "{output:?}");
    for wrong in [
        &["latency", "--sizes", "4X"][..],
        &["cq", "--vis", "0"],
        &["bandwidth", "--threads", "0"],
        &["bandwidth", "--threads", "65"],
        &["latency", "--threads", "many"],
        &["bandwidth", "--threads", "2", "--bidir"],
        &["connect", "--json", "--csv"],
        &["register", "--sizes", "9999M"],
    ] {
        let output = viaduct(&[&["bench"], wrong].concat());
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
    }
    let output = viaduct(&["report", "--input", "/nonexistent", "-o", "/dev/null"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("/nonexistent"), "{output:?}");
}

/// A page of one point or more for each kind of figure, for all tests: its sweeps take a minute.
static REPORT: LazyLock<String> = LazyLock::new(|| {
    let sweeps: [&[&str]; 10] = [
        &["latency", "shm:", "sim:model", "--sizes", "0,4,1K", "--blocking"],
        &["bandwidth", "shm:", "--sizes", "4K,32K"],
        &["bandwidth", "shm:", "--sizes", "4K,32K", "--bidir"],
        &["bandwidth", "shm:", "--threads", "1,2", "--blocking"],
        &["latency", "shm:", "--threads", "1,2", "--blocking"],
        &["cq", "--vis", "1,8"],
        &["connect"],
        &["register", "--sizes", "4K,1M"],
        &["streams", "--sizes", "4,64,1K,32K,50000"],
        &["calls", "--sizes", "0,4,64,8000"],
    ];
    let [input, page] = ["report.jsonl", "report.html"].map(path);
    fs::write(&input, sweeps.map(sweep).concat()).expect("a writable folder");
    let [from, to] = [&input, &page].map(|path| path.to_str().expect("UTF-8"));
    let said = output(&["report", "--input", from, "-o", to]);
    assert!(said.contains("36 figures"), "{said}");
    fs::read_to_string(&page).expect("the page")
});

/// Parts of a text from each `start` to the next `end`.
fn parts<'a>(text: &'a str, start: &str, end: &str) -> Vec<&'a str> {
    let rest = text.split(start).skip(1);
    rest.map(|part| part.split(end).next().unwrap_or(part)).collect()
}

/// Whether tags are closed in order, attributes are quoted, and no `&` or `<` is bare.
fn is_well_formed(text: &str) -> Result<(), String> {
    let mut open: Vec<&str> = Vec::new();
    for part in text.split('<').skip(1) {
        let (tag, content) = part.split_once('>').ok_or_else(|| format!("no end: {part}"))?;
        if let Some(name) = tag.strip_prefix('/') {
            let last = open.pop();
            if last != Some(name) {
                return Err(format!("{last:?} is ended by {name}"));
            }
        } else if !tag.ends_with('/') {
            open.push(tag.split_whitespace().next().unwrap_or_default());
        }
        if tag.matches('"').count() % 2 != 0 {
            return Err(format!("quotes of {tag}"));
        }
        let entities = ["&amp;", "&lt;", "&gt;", "&quot;", "&#39;"];
        let plain = entities.iter().fold(content.to_owned(), |text, of| text.replace(of, ""));
        if plain.contains('&') {
            return Err(format!("a bare & in {content}"));
        }
    }
    if open.is_empty() { Ok(()) } else { Err(format!("{open:?} are not ended")) }
}

#[test]
fn every_figure_has_a_drawing_a_clock_a_machine_and_a_table() {
    let text = REPORT.as_str();
    let figures = parts(text, "<figure id=", "</figure>");
    assert_eq!(figures.len(), 36);
    let mut names = BTreeSet::new();
    for figure in figures {
        assert!(names.insert(figure.split('>').next().unwrap()), "two figures have one id");
        for wanted in ["<h3>", "<svg ", "Draws again:", "Clock:", "Machine:", "<table>", "<td>"] {
            assert!(figure.contains(wanted), "no {wanted} in {figure}");
        }
        for svg in parts(figure, "<svg ", "</svg>") {
            is_well_formed(&format!("<svg {svg}</svg>"))
                .unwrap_or_else(|why| panic!("{why}: {svg}"));
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }
    // What papers print, with where.
    for printed in [
        "4.4 us",
        "400,000 requests",
        "36.02 us",
        "815 Mbps",
        "round trip 52.4 us",
        "about 200 us (SOVIA, section 5.4",
        "262 Mbps (0.59 s) (SOVIA, Table I)",
        "697.3 Mbps (Stream Sockets, Table 1)",
        "1039.7 us of 8000 (Stream Sockets, Table 2)",
    ] {
        assert!(text.contains(printed), "no {printed}");
    }
    // Nothing is loaded and nothing runs.
    assert!(!text.contains("<script") && !text.contains("<link") && !text.contains("@import"));
    let addresses = text.replace("http://www.w3.org/2000/svg", "");
    assert!(!addresses.contains("http"), "the page points elsewhere");
}

fn chromium() -> Option<&'static str> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let answers = |name: &&str| Command::new(name).arg("--version").output().is_ok();
    names.into_iter().find(answers)
}

fn browse(browser: &str, arguments: &[&str], page: &Path) -> Output {
    let profile = page.with_extension("profile");
    Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .args(arguments)
        .arg(format!("file://{}", page.display()))
        .output()
        .expect("the browser starts")
}

/// Looks at the page and leaves what is wrong with it in the title, with the colours.
const LOOK: &str = r#"<script>
  const wrong = [];
  const inside = (a, b) => a.left >= b.left - 1 && a.right <= b.right + 1
    && a.top >= b.top - 1 && a.bottom <= b.bottom + 1;
  document.querySelectorAll('svg').forEach(svg => {
    const frame = svg.getBoundingClientRect();
    if (frame.width < 200) wrong.push('a drawing of ' + frame.width);
    svg.querySelectorAll('text').forEach(text => {
      if (!inside(text.getBoundingClientRect(), frame))
        wrong.push(svg.getAttribute('aria-label') + ': ' + text.textContent);
      if (text.getBoundingClientRect().height < 9) wrong.push('small: ' + text.textContent);
    });
  });
  document.querySelectorAll('figure').forEach(figure => {
    if (figure.scrollWidth > figure.clientWidth + 1) wrong.push(figure.id + ' is too wide');
  });
  if (document.documentElement.scrollWidth > innerWidth) wrong.push('the page scrolls sideways');
  document.title = 'looked: ' + getComputedStyle(document.body).backgroundColor + ' '
    + innerWidth + ' wrong: ' + wrong.join('; ');
</script></body>"#;

#[test]
#[expect(clippy::print_stderr, reason = "a person should know that a test did nothing")]
fn the_page_looks_right_in_a_browser() {
    let Some(browser) = chromium() else {
        eprintln!("no chromium: nothing was looked at");
        return;
    };
    let page = path("looked-at.html");
    fs::write(&page, REPORT.replace("</body>", LOOK)).expect("a writable folder");
    let mut papers = BTreeSet::new();
    for width in ["1280", "500"] {
        for scheme in ["--blink-settings=preferredColorScheme=1", DARK] {
            let size = format!("--window-size={width},900");
            let output = browse(browser, &[&size, scheme, "--dump-dom"], &page);
            let text = String::from_utf8_lossy(&output.stdout);
            let title = parts(&text, "<title>looked: ", "</title>");
            assert_eq!(title.len(), 1, "{}", String::from_utf8_lossy(&output.stderr));
            assert!(title[0].ends_with("wrong: "), "{width}: {}", title[0]);
            papers.insert(title[0].split(')').next().unwrap().to_owned());
            let shot = path("looked-at.png");
            let _ = fs::remove_file(&shot);
            browse(browser, &[&size, scheme, &format!("--screenshot={}", shot.display())], &page);
            // An empty page takes some kilobytes.
            assert!(fs::metadata(&shot).expect("a screenshot").len() > 20_000);
        }
    }
    assert_eq!(papers.len(), 2, "light and dark have colours of their own: {papers:?}");
}

const DARK: &str = "--blink-settings=preferredColorScheme=0";
