//! The header and the library say the same: each function that one declares the other exports, and
//! the header compiles in every language that it is for.

use std::path::PathBuf;
use std::process::Command;

fn header() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../include"))
}

/// The functions that a header declares.
fn declared(file: &str, returns: [&str; 2]) -> Vec<String> {
    let text = std::fs::read_to_string(header().join(file)).unwrap();
    let functions = text
        .lines()
        .filter_map(|line| line.strip_prefix(returns[0]).or_else(|| line.strip_prefix(returns[1])));
    let names = functions.filter_map(|line| line.split_once('(').map(|(name, _)| name.to_owned()));
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

#[test]
fn every_function_is_exported() {
    let sources = concat!(env!("CARGO_MANIFEST_DIR"), "/src/ffi");
    let mut exported = Vec::new();
    for entry in std::fs::read_dir(sources).unwrap().flatten() {
        let text = std::fs::read_to_string(entry.path()).unwrap();
        let names = text.lines().filter_map(|line| line.strip_prefix("#[unsafe(export_name = \""));
        exported.extend(names.filter_map(|name| name.split('"').next()).map(str::to_owned));
    }
    exported.sort();
    let vipl = declared("vipl.h", ["VIP_RETURN ", "const VIP_CHAR *"]);
    assert_eq!(vipl.len(), 46, "41 of VIPL, and those for names and extensions");
    let clan = declared("clan.h", ["int ", "const char *"]);
    assert_eq!(clan.len(), 30);
    assert_eq!([vipl, clan].concat(), exported);
}

#[test]
fn every_function_of_clan_has_its_row_in_the_page() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/clan.md");
    let page = std::fs::read_to_string(page).unwrap();
    for function in declared("clan.h", ["int ", "const char *"]) {
        assert!(page.contains(&format!("`{function}`")), "{function} is not in docs/clan.md");
    }
}

#[test]
fn codes_have_the_names_and_numbers_of_the_header() {
    let text = std::fs::read_to_string(header().join("vipl.h")).unwrap();
    let names = |of: &str| -> Vec<String> {
        let end = text.find(&format!("}} {of};")).expect(of);
        let start = text[..end].rfind("typedef enum {").expect(of);
        let rows = text[start..end].lines().filter_map(|line| line.trim().split_once(" = "));
        let rows = rows.enumerate().map(|(number, (name, value))| {
            assert_eq!(value.trim_end_matches(','), number.to_string(), "{name}");
            name.to_owned()
        });
        rows.collect()
    };
    let codes = vipl::VipReturn::ALL.iter().map(|code| code.name());
    assert_eq!(names("VIP_RETURN"), codes.collect::<Vec<_>>());
    let codes = vipl::ErrorCode::ALL.iter().map(|code| code.c_name().to_str().unwrap());
    assert_eq!(names("VIP_ERROR_CODE"), codes.collect::<Vec<_>>());
}

#[test]
fn results_of_clan_have_the_names_and_numbers_of_the_header() {
    let text = std::fs::read_to_string(header().join("clan.h")).unwrap();
    let list = text.split("typedef enum {").nth(1).and_then(|rest| rest.split("}").next()).unwrap();
    let rows = list.lines().filter_map(|line| line.trim().split_once(" = "));
    let rows: Vec<(&str, i32)> = rows
        .map(|(name, rest)| (name, rest.split([',', ' ']).next().unwrap().parse().unwrap()))
        .collect();
    assert_eq!(rows.len(), 10);
    for (name, number) in rows {
        assert_eq!(vipl_c::clan::fault::name(number).to_str(), Ok(name));
    }
}

#[test]
fn the_header_compiles_in_every_language() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let source = folder.join("header.c");
    let text = "#include <clan.h>\n#include <vipl.h>\nint main(void) { VIP_DESCRIPTOR d; d.CS.SegCount = 1; \
                d.Data[0].Length = d.Control.SegCount; return (int)d.DS[0].Local.Length - 1; }\n";
    std::fs::write(&source, text).unwrap();
    for (language, standard) in
        [("c", "gnu89"), ("c", "c99"), ("c", "c11"), ("c++", "c++98"), ("c++", "c++17")]
    {
        let mut command = Command::new("cc");
        command.args(["-x", language, &format!("-std={standard}"), "-Wall", "-Wextra", "-Werror"]);
        command.arg("-I").arg(header()).args(["-fsyntax-only"]).arg(&source);
        let output = command.output().unwrap();
        // A machine may have a C compiler only.
        if language == "c++" && String::from_utf8_lossy(&output.stderr).contains("cc1plus") {
            continue;
        }
        assert!(output.status.success(), "{standard}: {output:?}");
    }
}
