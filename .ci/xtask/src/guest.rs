//! `cargo xtask guest`: a program in a guest kernel whose PCI devices are served NICs.
//!
//! QEMU attaches to the sockets of `viaduct cosim serve` as any vfio-user client does; the guest has
//! an IOMMU, and VFIO for programs. The program is alone there: its arguments are given, its output
//! becomes this command's, and so does its exit code. Neither root nor KVM is needed.

mod image;
mod machine;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use crate::tools::{self, Toolset};
use crate::workspace;

use machine::{End, Machine};

const USAGE: &str = "\
usage: cargo xtask guest [--nic SOCKET]... [--bind] [--seconds N] [--memory MIB] PROGRAM [ARGS]
PROGRAM is a file, with a slash in its name, or a package of the workspace; its libraries come with it.
--bind: the NICs have the driver for VFIO; they are 0000:00:10.0, 0000:00:11.0 and so on";

/// The target that a program for the guest is built for; naming it keeps its flags from build
/// scripts.
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// What the command line asks for.
#[derive(Debug, PartialEq, Eq)]
struct Options {
    nics: Vec<PathBuf>,
    bind: bool,
    bound: Duration,
    memory_mib: u32,
    program: String,
    args: Vec<String>,
}

fn parse(args: &[String]) -> Result<Options, String> {
    let mut options = Options {
        nics: Vec::new(),
        bind: false,
        bound: Duration::from_secs(120),
        memory_mib: 256,
        program: String::new(),
        args: Vec::new(),
    };
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        let mut value = || rest.next().ok_or_else(|| format!("{arg} needs a value\n{USAGE}"));
        let number = |text: &String| {
            let found = text.parse().ok().filter(|number: &u32| *number > 0);
            found.ok_or_else(|| format!("`{text}` is no number above 0\n{USAGE}"))
        };
        match arg.as_str() {
            "--nic" => options.nics.push(value()?.into()),
            "--bind" => options.bind = true,
            "--seconds" => options.bound = Duration::from_secs(number(value()?)?.into()),
            "--memory" => options.memory_mib = number(value()?)?,
            option if option.starts_with('-') => {
                return Err(format!("unknown option `{option}`\n{USAGE}"));
            }
            program => {
                options.program = program.to_owned();
                options.args = rest.cloned().collect();
                return Ok(options);
            }
        }
    }
    Err(USAGE.to_owned())
}

/// Runs the command.
pub(crate) fn run(args: &[String]) -> crate::Outcome {
    let options = parse(args)?;
    // By absolute names: QEMU runs in a folder of its own.
    let nics: Result<Vec<PathBuf>, String> = options.nics.iter().map(|nic| socket(nic)).collect();
    let nics = nics?;
    tools::ensure(Toolset::Guest)?;
    let program = if options.program.contains('/') {
        PathBuf::from(&options.program)
    } else {
        build(&options.program)?
    };
    let folder = workspace::target_dir().join("guest").join(std::process::id().to_string());
    fs::create_dir_all(&folder)
        .map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    let machine = Machine { nics, memory_mib: options.memory_mib, folder: folder.clone() };
    let outcome = image::write(&folder, &program, &options.args, options.bind)
        .and_then(|()| machine.run(options.bound))
        .and_then(|end| conclude(&machine, &end, &options));
    let _ = fs::remove_dir_all(&folder);
    outcome
}

/// What the end of the guest means.
fn conclude(machine: &Machine, end: &End, options: &Options) -> crate::Outcome {
    match end {
        End::Exit(code @ (126 | 127)) => {
            eprintln!("the guest cannot run {}", options.program);
            Ok(ExitCode::from(*code))
        }
        End::Exit(code) => Ok(ExitCode::from(*code)),
        End::TimedOut => Err(format!(
            "the guest did not end within {} s (--seconds); {}",
            options.bound.as_secs(),
            machine.last_words()
        )),
        End::Lost(why) => {
            Err(format!("QEMU ended before the program did ({why}); {}", machine.last_words()))
        }
    }
}

fn socket(path: &Path) -> Result<PathBuf, String> {
    fs::canonicalize(path).map_err(|error| {
        format!("no socket at {} ({error}): `cargo viaduct cosim serve` makes some", path.display())
    })
}

/// Builds a package of the workspace for the guest, which has no libraries.
fn build(package: &str) -> Result<PathBuf, String> {
    let status = workspace::cargo()
        .current_dir(workspace::root())
        .args(["build", "--quiet", "--package", package, "--target", TARGET])
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env("RUSTFLAGS", "-C target-feature=+crt-static -C strip=symbols")
        .status()
        .map_err(|error| format!("cannot run cargo: {error}"))?;
    if !status.success() {
        return Err(format!("cannot build the package {package} for the guest"));
    }
    Ok(workspace::target_dir().join(TARGET).join("debug").join(package))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(args: &[&str]) -> Result<Options, String> {
        parse(&args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn what_follows_the_program_is_the_programs() {
        let found = options(&["--nic", "a", "--seconds", "5", "--nic", "b", "p", "--nic", "c"]);
        let found = found.expect("well-formed");
        assert_eq!(found.nics, [PathBuf::from("a"), PathBuf::from("b")]);
        assert_eq!((found.bound, found.program.as_str()), (Duration::from_secs(5), "p"));
        assert_eq!(found.args, ["--nic", "c"]);
    }

    #[test]
    fn malformed_command_lines_are_refused() {
        for args in [
            &[][..],
            &["--nic"],
            &["--nic", "a"],
            &["--seconds", "0", "p"],
            &["--memory", "much", "p"],
            &["--what", "p"],
        ] {
            assert!(options(args).is_err_and(|text| text.contains("usage")), "{args:?}");
        }
    }

    #[test]
    fn a_socket_that_is_not_there_is_named() {
        let error = socket(Path::new("no/such.sock")).expect_err("nothing there");
        assert!(error.contains("no/such.sock") && error.contains("cosim serve"), "{error}");
    }
}
