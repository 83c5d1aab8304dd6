//! The ports of a module, read from its Verilog.

use super::{Port, SynthError};

/// The ports of the module, in the order in which RustHDL declares them: one a line, behind the
/// module's head.
///
/// It reads nothing but that form, and refuses what it does not understand: a port that it missed
/// would be an unconnected input, and half of the design would be trimmed away without a word.
pub(crate) fn ports_of(verilog: &str, top: &str) -> Result<Vec<Port>, SynthError> {
    let head = format!("module {top}(");
    let body = verilog
        .lines()
        .skip_while(|line| !line.starts_with(&head))
        .take_while(|line| !line.trim_start().starts_with("endmodule"));
    let mut expected = Vec::new();
    let mut ports = Vec::new();
    for line in body {
        if let Some(names) = line.strip_prefix(&head) {
            let names = names.trim_end_matches([')', ';']).split(',');
            expected = names.map(str::trim).filter(|name| !name.is_empty()).collect();
        } else if let Some(port) = parse(line.trim()) {
            ports.push(port);
        }
    }
    if expected.is_empty() {
        return Err(SynthError::Job(format!("there is no module `{top}` with ports")));
    }
    if ports.len() != expected.len()
        || ports.iter().any(|port| !expected.contains(&port.name.as_str()))
    {
        return Err(SynthError::Job(format!(
            "module `{top}` has {} ports, but {} plain inputs and outputs are declared",
            expected.len(),
            ports.len()
        )));
    }
    Ok(ports)
}

/// Reads `input wire signed [63:0] name;`.
fn parse(line: &str) -> Option<Port> {
    let mut words = line.strip_suffix(';')?.split_whitespace();
    let input = match words.next()? {
        "input" => true,
        "output" => false,
        _ => return None,
    };
    let mut width = 1;
    let mut name = None;
    for word in words {
        match word {
            "wire" | "reg" | "signed" => {}
            range if range.starts_with('[') => {
                let high = range.strip_prefix('[')?.strip_suffix(":0]")?;
                width = high.parse::<usize>().ok()? + 1;
            }
            word => name = Some(word.to_owned()),
        }
    }
    Some(Port { name: name?, width, input })
}
