//! The Verilog of one block, cut out of that of the NIC and edited.

/// The module and what is in it: RustHDL names the parts of `a` `a$part`.
pub(super) fn with_parts(verilog: &str, module: &str) -> Result<String, String> {
    let mut found = String::new();
    let mut inside = false;
    for line in verilog.lines() {
        if let Some(head) = line.strip_prefix("module ") {
            let name = head.split('(').next().unwrap_or(head);
            let rest = name.strip_prefix(module);
            inside = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('$'));
        }
        if inside {
            found.push_str(line);
            found.push('\n');
        }
    }
    if found.contains(&format!("module {module}(")) {
        Ok(found)
    } else {
        Err(format!("the NIC has no module `{module}`"))
    }
}

/// The text with an edit that fits at one place exactly.
pub(super) fn replace_once(text: &str, from: &str, to: &str) -> Result<String, String> {
    match text.matches(from).count() {
        1 => Ok(text.replacen(from, to, 1)),
        count => Err(format!("`{from}` occurs {count} times in the Verilog, and not once")),
    }
}

/// The text without an instance of the module; what it drove is then free.
pub(super) fn without_instance(text: &str, module: &str, name: &str) -> Result<String, String> {
    let head = format!("    {module}${name} {name}(\n");
    let missing = || format!("`{module}` has no instance `{name}`");
    let (before, rest) = text.split_once(&head).ok_or_else(missing)?;
    let (_, after) = rest.split_once(");\n").ok_or_else(missing)?;
    Ok(format!("{before}{after}"))
}

/// The names that a declaration makes.
fn declared(statement: &str) -> Vec<&str> {
    let mut words = statement.trim_start();
    let mut declares = false;
    for keyword in ["input ", "output ", "wire ", "reg ", "localparam "] {
        if let Some(rest) = words.strip_prefix(keyword) {
            (words, declares) = (rest.trim_start(), true);
        }
    }
    if !declares {
        return Vec::new();
    }
    if words.starts_with('[') {
        words = words.split_once(']').map_or("", |(_, rest)| rest);
    }
    let names = words.split('=').next().unwrap_or_default();
    names.split(',').map(str::trim).collect()
}

/// Fails if a fragment declares a name of the module: for Yosys the two would be one, and the rule
/// would compare the RTL with itself.
fn no_name_twice(own: &str, module: &str, fragment: &str) -> Result<(), String> {
    let lines: Vec<&str> =
        fragment.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let fragment = lines.join("\n");
    let theirs: Vec<&str> = own.split([';', '\n']).flat_map(declared).collect();
    match fragment.split(';').flat_map(declared).find(|name| theirs.contains(name)) {
        Some(name) => Err(format!("the fragment declares `{name}`, a name of `{module}`")),
        None => Ok(()),
    }
}

/// The text with a fragment at the end of the module.
pub(super) fn with_fragment(text: &str, module: &str, fragment: &str) -> Result<String, String> {
    let end = format!("endmodule // {module}\n");
    let (before, after) = text.split_once(&end).ok_or_else(|| format!("`{module}` has no end"))?;
    let own = before.split_once(&format!("module {module}(")).map_or(before, |(_, own)| own);
    no_name_twice(own.split("\nendmodule").next().unwrap_or(own), module, fragment)?;
    Ok(format!("{before}{fragment}{end}{after}"))
}
