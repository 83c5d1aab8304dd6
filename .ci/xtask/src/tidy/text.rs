//! Rules about the text of any file.

use std::path::Path;

use super::{Findings, Tree, read_text};
use crate::workspace;

/// Bytes of a file: what is larger does not belong into the history.
const FILE_BYTES: u64 = 1 << 20;

/// Folders of one machine. Written in pieces, so that this file passes its own rule.
const MACHINE_PATHS: [&str; 3] = [concat!("/", "work"), concat!("/", "tmp"), concat!("/", "root")];

/// Hosts of package registries: a build reaches them through the client's configuration only.
const REGISTRY_HOSTS: [&str; 7] = [
    concat!("pypi", ".org"),
    concat!("python", "hosted.org"),
    concat!("index.", "crates.io"),
    concat!("static.", "crates.io"),
    concat!("deb.", "debian.org"),
    concat!("arti", "factory"),
    concat!("proxy.", "golang.org"),
];

/// What a lock file may name as its source.
const LOCK_SOURCE: &str = "source = \"registry+https://github.com/rust-lang/crates.io-index\"";

/// What must not appear in the model, whose time and randomness are arguments.
const OUTSIDE_WORLD: [&str; 6] =
    ["std::time", "std::thread", "std::net", "std::fs", "std::env", "rand::"];

pub(super) fn check(tree: &Tree, findings: &mut Findings) -> Result<(), String> {
    for path in &tree.files {
        let size = workspace::root().join(path).metadata().map_or(0, |data| data.len());
        if size > FILE_BYTES {
            findings.error(path, 0, "file-size", format!("{size} bytes, at most {FILE_BYTES}"));
            continue;
        }
        if let Some(text) = read_text(path)? {
            for (index, line) in text.lines().enumerate() {
                check_line(path, index + 1, line, findings);
            }
        }
    }
    Ok(())
}

fn check_line(path: &Path, number: usize, line: &str, findings: &mut Findings) {
    for machine_path in MACHINE_PATHS {
        if names_path(line, machine_path) {
            let message = format!("`{machine_path}` is a folder of one machine: say it relatively");
            findings.error(path, number, "machine-path", message);
        }
    }
    for host in REGISTRY_HOSTS.iter().filter(|host| line.contains(**host)) {
        let message = format!("`{host}`: leave the registry to the client's configuration");
        findings.error(path, number, "registry", message);
    }
    if path.ends_with("Cargo.lock") && line.starts_with("source = ") && line != LOCK_SOURCE {
        findings.error(path, number, "registry", "a dependency from another place");
    }
    if path.extension().is_some_and(|ext| ext == "rs") {
        let code = line.trim_start();
        if code.starts_with(concat!("#[", "ignore")) {
            let message = "a test that does not run rots: delete it or make it pass";
            findings.error(path, number, "ignored-test", message);
        }
        if path.starts_with("nic-model/src") && !code.starts_with("//") {
            for name in OUTSIDE_WORLD.iter().filter(|name| code.contains(**name)) {
                let message = format!("`{name}` in the model: make it an argument");
                findings.error(path, number, "sans-io", message);
            }
        }
    }
}

/// Whether the line names this absolute folder, and not one that ends or goes on differently.
fn names_path(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + folder.len()..].chars().next();
        let starts = before.is_none_or(|c| !(c.is_alphanumeric() || "_.}-)*~/:".contains(c)));
        let ends = after.is_none_or(|c| !(c.is_alphanumeric() || "_-.".contains(c)));
        starts && ends
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(path: &str, line: &str) -> Vec<&'static str> {
        let mut findings = Findings::default();
        check_line(Path::new(path), 1, line, &mut findings);
        findings.errors.iter().map(|finding| finding.rule).collect()
    }

    #[test]
    fn machine_paths_are_absolute() {
        let folder = MACHINE_PATHS[1];
        assert_eq!(rules("a.md", &format!("see `{folder}/x`")), ["machine-path"]);
        assert_eq!(rules("a.md", &format!("OUT={folder}")), ["machine-path"]);
        assert!(rules("a.md", &format!("target{folder}/x")).is_empty());
        assert!(rules("a.md", &format!("{folder}late")).is_empty());
    }

    #[test]
    fn lock_file_names_the_usual_source() {
        assert!(rules("Cargo.lock", LOCK_SOURCE).is_empty());
        assert_eq!(rules("Cargo.lock", "source = \"git+https://a/b\""), ["registry"]);
        assert_eq!(rules("a.sh", concat!("curl https://", "pypi", ".org")), ["registry"]);
    }

    #[test]
    fn model_has_no_clock() {
        assert_eq!(rules("nic-model/src/vi.rs", "use std::time::Instant;"), ["sans-io"]);
        assert!(rules("nic-model/src/vi.rs", "// no std::time here").is_empty());
        assert!(rules("cosim/src/lib.rs", "use std::time::Instant;").is_empty());
    }

    #[test]
    fn ignored_tests_are_found() {
        assert_eq!(rules("a.rs", concat!("    #[", "ignore]")), ["ignored-test"]);
    }
}
