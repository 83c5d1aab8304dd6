//! `viaduct waves`: what GTKWave and Surfer need to show the RTL's waveforms: groups of signals, and
//! the names of the states of its state machines. See `docs/waveforms.md`.

use crate::Failure;
use crate::synth::ports_of;
use crate::verilog::{TOP, nic};
use clap::Args;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Groups of ports of the top module, by the front of their names.
const PORT_GROUPS: [(&str, &str); 6] = [
    ("cq", "host port: requests of the host"),
    ("cc", "host port: completions to the host"),
    ("rq", "host port: requests of the NIC"),
    ("rc", "host port: completions to the NIC"),
    ("tx", "link: frames out"),
    ("rx", "link: frames in"),
];

/// Write the signal groups of the RTL for GTKWave and Surfer, with the names of its states.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: viaduct waves -o waves && gtkwave -a waves/viaduct.gtkw out-a.vcd"
)]
pub(crate) struct Arguments {
    /// Folder to write `viaduct.gtkw`, `viaduct.sucl` and `states/` into; made if missing.
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
}

/// A register that holds a state.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Machine {
    /// Where it is: `top.admin`.
    scope: String,
    /// Its name there: `state$q`.
    signal: String,
    bits: usize,
    /// Name of the type of its states.
    states: String,
}

/// State machines, and the states of their types by number.
#[derive(Debug, Default, PartialEq, Eq)]
struct Machines {
    machines: Vec<Machine>,
    states: BTreeMap<String, BTreeMap<u64, String>>,
}

/// Width of `wire  [3:0] NAME;`, which is 1 without a range.
fn declared(line: &str) -> Option<(&str, usize)> {
    let rest = line.strip_prefix("wire")?.trim_start().strip_suffix(';')?;
    let Some(range) = rest.strip_prefix('[') else { return Some((rest, 1)) };
    let (range, name) = range.split_once(']')?;
    let high: usize = range.split(':').next()?.trim().parse().ok()?;
    Some((name.trim(), high + 1))
}

/// The state machines of emitted Verilog: registers (`NAME$q`) that are compared with the constants of
/// an enumeration (`TYPE$STATE`), or get one. A module's name is its place.
fn machines(verilog: &str) -> Machines {
    let mut found = Machines::default();
    let (mut scope, mut widths, mut seen) = (String::new(), BTreeMap::new(), BTreeSet::new());
    for line in verilog.lines().map(str::trim) {
        if let Some(rest) = line.strip_prefix("module ") {
            scope = rest.split('(').next().unwrap_or("").replace('$', ".");
            widths.clear();
        } else if let Some((name, bits)) = declared(line) {
            widths.insert(name.to_owned(), bits);
        } else if let Some(rest) = line.strip_prefix("localparam ")
            && let Some((name, value)) = rest.trim_end_matches(';').split_once(" = ")
            && let (Some((states, state)), Ok(value)) = (name.trim().split_once('$'), value.parse())
        {
            found.states.entry(states.to_owned()).or_default().insert(value, state.to_owned());
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        for triple in words.windows(3).filter(|triple| ["=", "=="].contains(&triple[1])) {
            let register = triple[0].trim_start_matches('(');
            let Some(stem) = register.strip_suffix("$q").or_else(|| register.strip_suffix("$d"))
            else {
                continue;
            };
            let Some((states, _)) = triple[2].split_once('$') else { continue };
            let signal = format!("{stem}$q");
            if let Some(&bits) = widths.get(&signal)
                && found.states.contains_key(states)
                && seen.insert((scope.clone(), signal.clone()))
            {
                let (scope, states) = (scope.clone(), states.to_owned());
                found.machines.push(Machine { scope, signal, bits, states });
            }
        }
    }
    found
}

/// A signal as viewers name it.
fn reference(scope: &str, signal: &str, bits: usize) -> String {
    let range = if bits > 1 { format!("[{}:0]", bits - 1) } else { String::new() };
    format!("{TOP}.{scope}.{signal}{range}")
}

/// A title, and name and width of each port.
type Group = (&'static str, Vec<(String, usize)>);

/// The groups of ports.
fn ports(verilog: &str) -> Result<Vec<Group>, Failure> {
    let all = ports_of(verilog, TOP).map_err(|error| error.to_string())?;
    let of = |front: &str| {
        let mine = all.iter().filter(|port| port.name.split('_').next() == Some(front));
        mine.map(|port| (port.name.clone(), port.width)).collect()
    };
    Ok(PORT_GROUPS.iter().map(|&(front, title)| (title, of(front))).collect())
}

/// The save file of GTKWave; the files of the states lie in `states`.
fn gtkwave(verilog: &str, found: &Machines, states: &Path) -> Result<String, Failure> {
    let mut text = String::from("[*] Signal groups of the Viaduct NIC: `viaduct waves`\n");
    writeln!(text, "@28\n{}", reference(TOP, "clock", 1))?;
    for (title, ports) in ports(verilog)? {
        writeln!(text, "@800200\n-{title}")?;
        for (name, bits) in ports {
            writeln!(text, "@{}\n{}", if bits > 1 { 22 } else { 28 }, reference(TOP, &name, bits))?;
        }
        writeln!(text, "@1000200\n-{title}")?;
    }
    let numbers: BTreeMap<&String, usize> = found.states.keys().zip(1..).collect();
    writeln!(text, "@800200\n-state machines")?;
    for Machine { scope, signal, bits, states: kind } in &found.machines {
        let file = states.join(format!("{kind}.txt"));
        // Hexadecimal, translated by a file.
        writeln!(text, "@2022\n^{} {}", numbers[kind], file.display())?;
        writeln!(text, "{}", reference(scope, signal, *bits))?;
    }
    writeln!(text, "@1000200\n-state machines")?;
    Ok(text)
}

/// Commands for Surfer.
fn surfer(verilog: &str, found: &Machines) -> Result<String, Failure> {
    let mut text = format!("variable_add {}\n", reference(TOP, "clock", 1));
    for (title, ports) in ports(verilog)? {
        writeln!(text, "divider_add {title}")?;
        for (name, _) in ports {
            writeln!(text, "variable_add {}", reference(TOP, &name, 1))?;
        }
    }
    text.push_str("divider_add state machines\n");
    for machine in &found.machines {
        writeln!(text, "variable_add {}", reference(&machine.scope, &machine.signal, 1))?;
    }
    Ok(text)
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let folder = &arguments.output;
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let verilog = nic()?;
    let found = machines(&verilog);
    fs::create_dir_all(folder.join("states")).map_err(failed)?;
    // GTKWave looks for them from its own working folder.
    let states = folder.join("states").canonicalize().map_err(failed)?;
    for (name, values) in &found.states {
        let bits = found.machines.iter().filter(|machine| machine.states == *name);
        let digits = bits.map(|machine| machine.bits.div_ceil(4)).max().unwrap_or(1);
        let lines: String =
            values.iter().map(|(value, state)| format!("{value:0digits$x} {state}\n")).collect();
        fs::write(states.join(format!("{name}.txt")), lines).map_err(failed)?;
    }
    let text = gtkwave(&verilog, &found, &states)?;
    fs::write(folder.join("viaduct.gtkw"), text).map_err(failed)?;
    fs::write(folder.join("viaduct.sucl"), surfer(&verilog, &found)?).map_err(failed)?;
    println!(
        "{}: {} state machines; gtkwave -a {} WAVEFORM, or surfer -c {} WAVEFORM",
        folder.display(),
        found.machines.len(),
        folder.join("viaduct.gtkw").display(),
        folder.join("viaduct.sucl").display()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const VERILOG: &str = "module top(clock,tx_valid,tx_data);
    input wire  clock;
    output reg  tx_valid;
    output reg  [63:0] tx_data;
endmodule
module top$admin(clock);
    localparam AdminState$Idle = 0;
    localparam AdminState$Fetch = 1;
    localparam opcodes = 32'hf;
    reg  [3:0] state$d;
    wire  [3:0] state$q;
    wire  [3:0] other$q;
    busy = (state$q == AdminState$Fetch) & x;
    state$d = AdminState$Idle;
    other$d = state$q;
endmodule
";

    #[test]
    fn registers_that_hold_states_are_found() {
        let found = machines(VERILOG);
        let machine = Machine {
            scope: "top.admin".to_owned(),
            signal: "state$q".to_owned(),
            bits: 4,
            states: "AdminState".to_owned(),
        };
        assert_eq!(found.machines, [machine]);
        let states: Vec<_> = found.states["AdminState"].values().collect();
        assert_eq!(states, ["Idle", "Fetch"]);
    }

    #[test]
    fn groups_name_signals_as_the_dump_does() {
        let found = machines(VERILOG);
        let text = gtkwave(VERILOG, &found, Path::new("/s")).unwrap();
        assert!(
            text.contains("@2022\n^1 /s/AdminState.txt\ntop.top.admin.state$q[3:0]\n"),
            "{text}"
        );
        assert!(text.contains("@22\ntop.top.tx_data[63:0]\n"), "{text}");
        let text = surfer(VERILOG, &found).unwrap();
        assert!(text.contains("variable_add top.top.admin.state$q\n"), "{text}");
    }
}
