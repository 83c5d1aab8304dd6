//! What the command gives to shells and to `man`.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

fn viaduct(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_viaduct")).args(arguments).output().expect("it starts")
}

fn printed(arguments: &[&str]) -> String {
    let output = viaduct(arguments);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn shells_complete_commands_and_options() {
    for shell in ["bash", "zsh", "fish"] {
        let text = printed(&["completions", shell]);
        for word in ["devinfo", "reliability", "reception"] {
            assert!(text.contains(word), "{shell}: no {word}");
        }
    }
    assert_eq!(viaduct(&["completions", "tcsh"]).status.code(), Some(2));
    assert_eq!(viaduct(&["completions"]).status.code(), Some(2));
    // As bash itself has it: `viaduct dev<TAB>`.
    let script = format!(
        "{}\nCOMP_WORDS=(viaduct dev); COMP_CWORD=1; _viaduct viaduct dev viaduct; echo \"${{COMPREPLY[@]}}\"",
        printed(&["completions", "bash"])
    );
    match Command::new("bash").arg("-c").arg(script).output() {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            assert_eq!(text.trim(), "device devinfo", "{output:?}");
        }
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::NotFound),
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let page = printed(&["man"]);
    assert!(page.contains(".TH viaduct 1") && page.contains("viaduct\\-stats(1)"), "{page}");
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("man");
    printed(&["man", "--dir", folder.to_str().expect("UTF-8")]);
    for name in ["viaduct", "viaduct-devinfo", "viaduct-cosim-serve", "viaduct-device-list"] {
        let page = fs::read_to_string(folder.join(format!("{name}.1"))).expect(name);
        assert!(page.contains(".SH NAME"), "{page}");
    }
    let page = fs::read_to_string(folder.join("viaduct-stats.1")).expect("it was written");
    assert!(page.contains("what was added, each second"), "examples too: {page}");
    let output = viaduct(&["man", "--dir", "/proc/nowhere"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("/proc/nowhere: "));
}
