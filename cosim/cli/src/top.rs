//! `viaduct top`: the connections of this user's programs that run under `viaduct run`.

mod json;
mod reading;
mod table;

use crate::{Failure, stats};
use clap::Args;
use reading::Reading;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::low_level::pipe;
use std::io::{ErrorKind, IsTerminal, Read};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Show which connections of programs under `viaduct run` go by VIA, and why others do not.
///
/// Each program shows its connections in a file of the run-time folder, which this command reads; the
/// program notices nothing of it. Only programs of the same user are shown. Bytes are those by VIA, as
/// the program sent and received them; credits are packets that can still be sent, of the window, as of
/// the last send. Connections with the most bytes come first. Ctrl-C ends it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  viaduct top                         a table, each second
  viaduct top --interval 0.2          more often
  viaduct top --once                  what there is now, without rates
  viaduct top --once --json | jq '.processes[].connections[] | select(.reason) | .reason'

States: TCP; moving; VIA, VIA sending, VIA receiving (one direction moves by itself); back on TCP.
With --json each reading is one line, an object: `processes`, each with `connections`, sums over those
that it has closed as well, and `reasons`, counted. Rates are null in the first reading.")]
pub(crate) struct Arguments {
    /// Print what there is now, and end.
    #[arg(long)]
    once: bool,
    /// Print one JSON object for each reading instead of the table.
    #[arg(long)]
    json: bool,
    /// Time between two readings.
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = stats::period)]
    interval: Duration,
}

/// Rows and columns of the terminal, if it has a size.
fn size() -> Option<[usize; 2]> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    let size = [size.ws_row, size.ws_col].map(usize::from);
    size.iter().all(|side| *side > 0).then_some(size)
}

/// In the place of what the terminal shows, as much as it has room for.
fn print_over(text: &str) {
    let [rows, columns] = size().unwrap_or([usize::MAX, usize::MAX]);
    let lines: Vec<&str> = text.lines().collect();
    let room = rows.saturating_sub(1);
    let shown = if lines.len() > room { room.saturating_sub(1) } else { lines.len() };
    let mut screen = "\x1b[H".to_owned();
    for line in &lines[..shown] {
        screen.extend(line.chars().take(columns));
        screen.push_str("\x1b[K\n");
    }
    if shown < lines.len() {
        screen.push_str(&format!("and {} more lines\x1b[K\n", lines.len() - shown));
    }
    print!("{screen}\x1b[J");
}

/// Waits for the next reading. False: the command is to end.
fn waits(stop: &mut UnixStream) -> Result<bool, Failure> {
    loop {
        match stop.read(&mut [0]) {
            Ok(_) => return Ok(false),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return Ok(true);
            }
            Err(error) => return Err(error.into()),
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let (mut stop, signalled) = UnixStream::pair()?;
    pipe::register(SIGINT, signalled.try_clone()?)?;
    pipe::register(SIGTERM, signalled)?;
    stop.set_read_timeout(Some(arguments.interval))?;
    let is_screen = std::io::stdout().is_terminal() && !arguments.json && !arguments.once;
    if is_screen {
        print!("\x1b[2J");
    }
    let mut before: Option<Reading> = None;
    loop {
        let reading = Reading::take(before.as_ref())?;
        if arguments.json {
            println!("{}", json::object(&reading));
        } else if is_screen {
            print_over(&table::text(&reading));
        } else {
            // A line without anything ends each reading of several.
            print!("{}{}", table::text(&reading), if arguments.once { "" } else { "\n" });
        }
        std::io::Write::flush(&mut std::io::stdout())?;
        if arguments.once || !waits(&mut stop)? {
            return Ok(());
        }
        before = Some(reading);
    }
}
