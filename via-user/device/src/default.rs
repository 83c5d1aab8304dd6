//! The default device: what a program gets that names none.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use host_driver::bus::vfio_user::is_served;
use port::trust::{self, run_time_folder};

use crate::error::{DEVICE_VARIABLE, Error, Result};
use crate::url::{Place, parse};

/// Where the default device is: what `VIADUCT_DEVICE` names (a URL, a socket, or a folder of
/// sockets), else the run-time folder if a simulator runs there, else shared memory.
///
/// # Errors
/// The variable names nothing that can be opened; the run-time folder is not this user's alone.
pub(crate) fn place() -> Result<Place> {
    if let Some(named) = named() {
        return named;
    }
    let folder = own_folder()?;
    let is_running = sockets(&folder).iter().any(|socket| is_served(socket));
    Ok(if is_running { Place::Folder(folder) } else { Place::Shm(None) })
}

/// The same for a program that needs hardware, or a simulation of it: shared memory is none.
///
/// # Errors
/// As [`place`].
pub(crate) fn hardware() -> Result<Place> {
    named().unwrap_or_else(|| own_folder().map(Place::Folder))
}

/// The same for a program that needs a CLAN network: shared memory, also if a simulator runs.
///
/// # Errors
/// As [`place`].
pub(crate) fn clan() -> Result<Place> {
    named().unwrap_or(Ok(Place::Shm(None)))
}

/// What the variable names, if it names anything.
fn named() -> Option<Result<Place>> {
    let named = std::env::var_os(DEVICE_VARIABLE)?;
    if named.to_string_lossy().trim().is_empty() {
        return None;
    }
    let path = Path::new(&named);
    Some(match named.to_str() {
        Some(text) => named_place(text.trim()),
        // No URL; a path may be any bytes.
        None if path.is_dir() => Ok(Place::Folder(path.to_owned())),
        None => Ok(Place::VfioUser(path.to_owned())),
    })
}

fn own_folder() -> Result<PathBuf> {
    let folder = run_time_folder();
    match trust::check_folder(&folder) {
        Err(why) if why.kind() != ErrorKind::NotFound => Err(Error::Folder { folder, why }),
        _ => Ok(folder),
    }
}

fn named_place(named: &str) -> Result<Place> {
    let path = Path::new(named);
    if path.is_dir() {
        return Ok(Place::Folder(path.to_owned()));
    }
    match parse(named) {
        Ok(Place::Default) => Err(Error::Malformed {
            url: named.to_owned(),
            why: format!(
                "{DEVICE_VARIABLE} says what this name stands for: give it a URL, or a folder of sockets"
            ),
        }),
        // A folder may come into being with its simulator.
        Err(Error::Unknown { .. }) if named.contains('/') => {
            let is_socket = path.extension().is_some_and(|extension| extension == "sock");
            let of = if is_socket { Place::VfioUser } else { Place::Folder };
            Ok(of(path.to_owned()))
        }
        other => other,
    }
}

/// The sockets in a folder, in the order in which they are tried: by the number in the name, so
/// that `nic2` is before `nic10`.
pub(crate) fn sockets(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut sockets: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    sockets.retain(|path| path.extension().is_some_and(|extension| extension == "sock"));
    sockets.sort_by_cached_key(|path| {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let digits = name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        let number = name[digits..].parse::<u64>().unwrap_or(u64::MAX);
        (name[..digits].to_owned(), number)
    });
    sockets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_takes_urls_sockets_and_folders() {
        let folder = std::env::temp_dir();
        let name = folder.to_str().unwrap();
        assert_eq!(named_place(name).unwrap(), Place::Folder(folder.clone()));
        let socket = PathBuf::from("nics/nic3.sock");
        assert_eq!(named_place("nics/nic3.sock").unwrap(), Place::VfioUser(socket.clone()));
        assert_eq!(named_place("vfio-user:nics/nic3.sock").unwrap(), Place::VfioUser(socket));
        assert_eq!(named_place("not/yet").unwrap(), Place::Folder("not/yet".into()));
        assert!(matches!(named_place("sim:model").unwrap(), Place::Sim(..)));
        assert!(matches!(named_place("eth0"), Err(Error::Unknown { .. })));
        let circle = named_place("VINIC0").unwrap_err().to_string();
        assert!(circle.contains("VINIC0") && circle.contains(DEVICE_VARIABLE), "{circle}");
    }

    #[test]
    fn sockets_are_in_the_order_of_their_numbers() {
        let folder = std::env::temp_dir().join(format!("viaduct-order-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for name in ["nic10.sock", "nic2.sock", "nic1.sock", "other.sock", "nic0.log"] {
            std::fs::write(folder.join(name), "").unwrap();
        }
        let found: Vec<_> = sockets(&folder)
            .iter()
            .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
            .collect();
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(found, ["nic1.sock", "nic2.sock", "nic10.sock", "other.sock"]);
        assert!(sockets(&folder).is_empty());
    }
}
