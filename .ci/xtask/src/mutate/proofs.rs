//! The proofs of the modules that a planted bug is in, on Verilog that has it.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::mutant::{Answer, Mutant, Site};
use super::{rtl_target, target};
use crate::tools;

/// Whether a proof fails on a mutant. `viaduct` is the command.
pub(super) fn answer(mutant: &Mutant, viaduct: &Path) -> Result<Answer, String> {
    let list = output(Command::new(viaduct).args(["prove", "--list"]))?.1;
    let proofs = of(mutant, &list);
    if proofs.is_empty() {
        return Ok(Answer::NoCase);
    }
    let folder = target().join("proofs").join(&mutant.name);
    let path = folder.join("top.v");
    let original = rtl_target().join("verilog/top.v");
    let failed = |path: &Path, error| format!("{}: {error}", path.display());
    let text = fs::read_to_string(&original).map_err(|error| failed(&original, error))?;
    let text = edited(&text, &mutant.sites)?;
    fs::create_dir_all(&folder).map_err(|error| failed(&folder, error))?;
    fs::write(&path, text).map_err(|error| failed(&path, error))?;
    for proof in proofs {
        let mut command = Command::new(viaduct);
        command.args(["prove", "--no-mutations", "--block", proof, "--vcd"]).arg(&folder);
        let (is_good, text) = output(command.arg("--verilog").arg(&path).envs(tools::env()))?;
        let unproved = [": BROKEN", ": NOT PROVED"].iter().any(|verdict| text.contains(verdict));
        if unproved {
            return Ok(Answer::Found(proof.to_owned()));
        }
        if !is_good {
            return Err(format!("proof {proof}: {}", text.trim()));
        }
    }
    Ok(Answer::NotFound)
}

/// Whether a command was good, and what it said.
fn output(command: &mut Command) -> Result<(bool, String), String> {
    let output = command.output().map_err(|error| format!("cannot run viaduct: {error}"))?;
    let text = [output.stdout, output.stderr].concat();
    Ok((output.status.success(), String::from_utf8_lossy(&text).into_owned()))
}

/// The proofs of a list whose modules have an edit of a mutant in them.
fn of<'a>(mutant: &Mutant, list: &'a str) -> Vec<&'a str> {
    let is_inside = |site: &Site, module: &str| {
        site.module
            .strip_prefix(module)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('$'))
    };
    let proof = |line: &'a str| {
        let (name, module) = line.split_once(' ')?;
        mutant.sites.iter().any(|site| is_inside(site, module.trim())).then_some(name)
    };
    list.lines().filter_map(proof).collect()
}

/// The Verilog with the edits of a mutant.
fn edited(verilog: &str, sites: &[Site]) -> Result<String, String> {
    let mut lines: Vec<String> = verilog.lines().map(str::to_owned).collect();
    for Site { module, line, before, after, .. } in sites {
        let head = |line: &String| {
            line.strip_prefix("module ").is_some_and(|rest| rest.split('(').next() == Some(module))
        };
        let at = lines.iter().position(head).map(|first| first + line);
        let place = at.and_then(|at| lines.get_mut(at)).filter(|line| line.trim() == before);
        *place.ok_or_else(|| format!("{module} has no line `{before}`"))? =
            format!("        {after}");
    }
    Ok(lines.join("\n") + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(module: &str) -> Site {
        let (before, after) = ("a = b;".to_owned(), "a = c;".to_owned());
        Site { module: module.to_owned(), line: 1, before, after, source: None }
    }

    #[test]
    fn proofs_are_those_of_the_module_and_of_what_it_is_in() {
        let list = "pool         top$channel$store$question\nepoch        top$channel$stage\n";
        let of = |module| of(&Mutant { sites: vec![site(module)], ..Mutant::default() }, list);
        assert_eq!(of("top$channel$stage"), ["epoch"]);
        assert_eq!(of("top$channel$stage$held"), ["epoch"]);
        assert!(of("top$channel$stages").is_empty() && of("top$channel").is_empty());
    }

    #[test]
    fn the_verilog_has_the_edit() {
        let verilog = "module top$a(x);\n    a = b;\nendmodule\nmodule top$b(x);\n    a = b;\n";
        let text = edited(verilog, &[site("top$b")]).expect("it fits");
        assert_eq!(text, verilog.replace("top$b(x);\n    a = b;", "top$b(x);\n        a = c;"));
        assert!(edited(verilog, &[site("top$c")]).is_err());
    }
}
