//! `viaduct run`: a program whose TCP connections go over VIA.

use crate::Failure;
use crate::c_program;
use crate::run_stats;
use clap::Args;
use port::trust;
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::low_level::pipe;
use sovia::preload::{
    self, ALL_STAYS, LOG_VARIABLE, Process, STATS_VARIABLE, VERBOSE_VARIABLE, status,
};
use std::collections::HashSet;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread::{self, JoinHandle};

/// Run a program with its TCP connections over VIA.
///
/// Each connection whose other end runs so, too, on this machine, moves to VIA after its first calls;
/// all others stay TCP. The program and its children are unchanged, and need not know.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  viaduct run nginx -g 'daemon off;'          a server
  viaduct run curl http://localhost/file      a client of it: both ends must run so
  viaduct run --verbose iperf3 -c localhost   also says which connections move, and why others do not
  viaduct run --stats make-requests           at its end: what moved, bytes by VIA, what stayed TCP and why
  viaduct run --device udp: iperf3 -s         by another device than shared memory

Exit code: the program's; 128 and the signal's number if a signal ended it; 127: no such program;
126: it cannot be started.

`viaduct top` shows the connections of programs that run.")]
pub(crate) struct Arguments {
    /// Device of the streams; without it, the default device.
    #[arg(long, value_name = "URL")]
    device: Option<String>,
    /// Say on standard error which connections go by VIA, and why others do not.
    #[arg(long)]
    verbose: bool,
    /// Print sums over all its connections, and those of its children, on standard error when it ends.
    #[arg(long)]
    stats: bool,
    /// The program, and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    program: Vec<OsString>,
}

/// A pipe in the file system that the library's lines come by, from the program and its children.
#[derive(Debug)]
struct Log {
    path: PathBuf,
    printed: Option<JoinHandle<()>>,
}

/// The last line, which is this process's own; whoever was killed may have left a part of one before it.
const END: &str = "end";

/// Whether a line has something new. Why nothing can move each process finds by itself, and says.
fn is_news(line: &str, said: &mut HashSet<String>) -> bool {
    let text = line.split_once(": ").map_or(line, |(_process, text)| text);
    !text.ends_with(ALL_STAYS) || said.insert(text.to_owned())
}

impl Log {
    fn new() -> Result<Self, Failure> {
        let folder = preload::folder();
        let failed = |error| format!("{}: {error}", folder.display());
        trust::make_folder(&folder).map_err(failed)?;
        let path = folder.join(format!("run-{}.log", std::process::id()));
        let _ = std::fs::remove_file(&path);
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, Mode::RUSR | Mode::WUSR)
            .map_err(|error| failed(error.into()))?;
        Ok(Self { path, printed: None })
    }

    /// Prints lines as they come.
    fn print(mut self) -> Result<Self, Failure> {
        // Also for writing, so that it has no end while nobody writes.
        let lines = rustix::fs::open(&self.path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        let lines = BufReader::new(File::from(lines)).lines().map_while(Result::ok);
        let lines = lines.take_while(|line| line != END).filter(|line| !line.is_empty());
        let mut said = HashSet::new();
        let lines = lines.filter(move |line| is_news(line, &mut said));
        self.printed = Some(thread::spawn(move || lines.for_each(|line| eprintln!("{line}"))));
        Ok(self)
    }

    /// Prints what is on its way.
    fn end(mut self) {
        if let (Ok(mut file), Some(printed)) =
            (File::options().write(true).open(&self.path), self.printed.take())
            && write!(file, "\n{END}\n").is_ok()
        {
            let _ = printed.join();
        }
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// What the linker loads first: the library, and what was to be loaded anyway.
fn loaded_first(library: &Path) -> OsString {
    let mut list = library.as_os_str().to_owned();
    if let Some(others) = env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
        list.push(":");
        list.push(others);
    }
    list
}

/// Signals for the program that reach this process alone go on to it. Those of a terminal reach both.
fn forward(child: &Child) -> Result<(), Failure> {
    let process = Pid::from_child(child);
    let signals = [
        (SIGTERM, Some(Signal::TERM)),
        (SIGHUP, Some(Signal::HUP)),
        (SIGUSR1, Some(Signal::USR1)),
        (SIGUSR2, Some(Signal::USR2)),
        (SIGINT, None),
        (SIGQUIT, None),
    ];
    for (number, signal) in signals {
        let (mut reader, writer) = UnixStream::pair()?;
        pipe::register(number, writer)?;
        thread::spawn(move || {
            while reader.read_exact(&mut [0]).is_ok() {
                if let Some(signal) = signal {
                    let _ = rustix::process::kill_process(process, signal);
                }
            }
        });
    }
    Ok(())
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let library = c_program::library("libsovia")?;
    let log = match Log::new().and_then(Log::print) {
        Ok(log) => Some(log),
        Err(failure) => {
            // What keeps the pipe from being made keeps connections from being claimed.
            eprintln!("warning: {failure}: {ALL_STAYS}");
            None
        }
    };
    let (program, its) = arguments.program.split_first().ok_or("no program is named")?;
    let mut command = Command::new(program);
    command.args(its).env("LD_PRELOAD", loaded_first(&library));
    if let Some(device) = &arguments.device {
        device::parse(device)?;
        command.env(device::DEVICE_VARIABLE, device);
    }
    if let Some(log) = &log {
        command.env(LOG_VARIABLE, &log.path);
    }
    if arguments.verbose {
        command.env(VERBOSE_VARIABLE, OsStr::new("1"));
    }
    // Files and claims of programs that were killed go with this.
    let _ = status::living();
    preload::sweep(std::fs::read_dir(preload::folder()).into_iter().flatten().flatten());
    let own = Process::own();
    if arguments.stats {
        command.env(STATS_VARIABLE, own.to_string());
    }
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            drop(log);
            eprintln!("error: {}: {error}", program.display());
            let is_absent = error.kind() == std::io::ErrorKind::NotFound;
            std::process::exit(if is_absent { 127 } else { 126 });
        }
    };
    forward(&child)?;
    let status = child.wait()?;
    log.into_iter().for_each(Log::end);
    if arguments.stats {
        run_stats::print(own);
    }
    std::process::exit(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)));
}
