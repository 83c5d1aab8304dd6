//! Adds up what the models of this process run.

use std::ffi::{CStr, CString};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::{env, fs, io, process};

use super::{FOLDER, Points};

/// What this process has run so far.
static RAN: Mutex<Points> = Mutex::new(Points::new());

/// Adds what one model ran; `write` writes it to a file. Does nothing unless the environment names
/// a folder.
///
/// # Panics
/// If the folder cannot be written: somebody asked for it.
pub(crate) fn collect(write: impl FnOnce(&CStr)) {
    let Some(folder) = env::var_os(FOLDER).filter(|_| cfg!(feature = "coverage")) else { return };
    let folder = PathBuf::from(folder);
    // One model at a time, so one name is enough.
    let mut ran = RAN.lock().unwrap_or_else(PoisonError::into_inner);
    let file = folder.join(format!("{}.model", process::id()));
    let add = || -> io::Result<()> {
        fs::create_dir_all(&folder)?;
        let path = CString::new(file.as_os_str().as_encoded_bytes())?;
        write(&path);
        let grown = ran.add(Points::read(&file)?);
        fs::remove_file(&file)?;
        if grown {
            ran.write(&folder.join(format!("{}.cov", process::id())))?;
        }
        Ok(())
    };
    add().unwrap_or_else(|error| panic!("coverage of {FOLDER} in {}: {error}", folder.display()));
}
