//! What the environment says, and what the library says: lines in a pipe that `viaduct run` reads. The
//! program's own descriptors are the program's.

use core::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::OnceLock;

use port::own::OwnFd;
use sovia::preload::{LOG_VARIABLE, Process, STATS_VARIABLE, VERBOSE_VARIABLE};

/// What the environment said when the program began: some programs clear it.
#[derive(Debug)]
pub(crate) struct Settings {
    log: Option<PathBuf>,
    is_verbose: bool,
    /// The `viaduct run` that adds up what processes show.
    pub(crate) run: Option<Process>,
    /// The device; empty for the default one.
    pub(crate) device: String,
}

/// See [`Settings`].
pub(crate) fn settings() -> &'static Settings {
    static SETTINGS: OnceLock<Settings> = OnceLock::new();
    SETTINGS.get_or_init(|| {
        let _ = port::trust::run_time_folder();
        Settings {
            log: std::env::var_os(LOG_VARIABLE).map(PathBuf::from),
            is_verbose: std::env::var_os(VERBOSE_VARIABLE).is_some(),
            run: std::env::var(STATS_VARIABLE).ok().and_then(|text| text.parse().ok()),
            device: std::env::var(device::DEVICE_VARIABLE).unwrap_or_default(),
        }
    })
}

fn say(text: &dyn Display) {
    let Some(path) = &settings().log else { return };
    // It may open no files.
    if port::trust::is_confined() {
        return;
    }
    // It fails if nobody reads any more.
    let mut options = OpenOptions::new();
    options.write(true).custom_flags(libc::O_NONBLOCK);
    let Ok(file) = OwnFd::create(|| options.open(path)) else { return };
    // One write, so that lines of several processes do not mix.
    let line = format!("viaduct[{}]: {text}\n", std::process::id());
    let _ = (&*file).write_all(line.as_bytes());
}

/// Something that the user should know.
pub(crate) fn warn(text: impl Display) {
    say(&text);
}

/// What the library does, for those who ask.
pub(crate) fn verbose(text: impl Display) {
    if settings().is_verbose {
        say(&text);
    }
}
