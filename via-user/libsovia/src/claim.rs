//! Who has a connection, for all processes of a user: links in a folder, `sovia` in the run-time folder.
//! The name of a link is an end of a connection; what it points to is the claim.
//!
//! A process that others may share a connection with claims it before it uses it; a process that
//! offers it to the other end says so in its claim. The kernel makes and reads links at once, and
//! nobody holds a lock when he is killed: a claim of a dead process is none.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use port::own::{self, OwnFd};
use port::{memory, trust};
use sovia::preload::Process;

use crate::key::Key;

/// Bytes that were on the way by VIA when its owner gave a connection away, beside its claim.
const SPILL: &str = ".unread";
/// The link that says that several processes use an end.
const SHARED: &str = ".shared";

/// What a link says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    process: Process,
    /// Its host address of VIA, if it offers the connection.
    pub(crate) host: Option<Vec<u8>>,
}

impl Claim {
    /// This process's.
    pub(crate) fn own(host: Option<&[u8]>) -> Self {
        Self { process: Process::own(), host: host.map(<[u8]>::to_vec) }
    }

    /// Whether it is this process's.
    pub(crate) fn is_own(&self) -> bool {
        self.process.id == std::process::id()
    }

    fn to_text(&self) -> String {
        let host: String = self.host.iter().flatten().map(|byte| format!("{byte:02x}")).collect();
        let kind = if self.host.is_some() { "offer" } else { "claim" };
        format!("{kind} {} {host}", self.process)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let kind = words.next()?;
        let process = words.next()?.parse().ok()?;
        let digits = words.next()?.as_bytes();
        let byte = |pair: &[u8]| u8::from_str_radix(core::str::from_utf8(pair).ok()?, 16).ok();
        let host = match kind {
            "offer" if digits.len() % 2 == 0 => {
                Some(digits.chunks_exact(2).map(byte).collect::<Option<Vec<u8>>>()?)
            }
            "claim" => None,
            _ => return None,
        };
        Some(Self { process, host })
    }
}

/// The folder of all claims.
///
/// # Errors
/// It cannot be made, or others can write to it.
fn folder() -> io::Result<&'static Path> {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    if let Some(folder) = FOLDER.get() {
        return Ok(folder);
    }
    let folder = sovia::preload::folder();
    trust::make_folder(&folder)?;
    Ok(FOLDER.get_or_init(|| folder))
}

/// Who claims this end, if he lives.
pub(crate) fn holder(key: &Key) -> Option<Claim> {
    read(&key.name())
}

/// The claim in a link, if its process lives.
fn read(name: &str) -> Option<Claim> {
    let target = fs::read_link(folder().ok()?.join(name)).ok()?;
    Claim::parse(target.to_str()?).filter(|claim| claim.process.is_alive())
}

/// Claims an end for this process, in the place of what it or a dead process has claimed. Gives the
/// claim of another process, if there is one.
///
/// # Errors
/// The folder cannot be written to.
pub(crate) fn claim(key: &Key, own: &Claim) -> io::Result<Option<Claim>> {
    let place = folder()?.join(key.name());
    let text = own.to_text();
    loop {
        match symlink(&text, &place) {
            Ok(()) => return Ok(None),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        match holder(key) {
            Some(other) if !other.is_own() => return Ok(Some(other)),
            Some(_) => {
                // A link is changed by another one in its place.
                let draft = folder()?.join(format!("{}.{}", key.name(), std::process::id()));
                let _ = fs::remove_file(&draft);
                symlink(&text, &draft)?;
                fs::rename(&draft, &place)?;
                return Ok(None);
            }
            None => drop(fs::remove_file(&place)),
        }
    }
}

/// Says that several processes use an end. Who offers one looks whether somebody says so after he has
/// offered it; who says so looks whether it is offered afterwards.
///
/// # Errors
/// The folder cannot be written to.
pub(crate) fn mark_shared(key: &Key) -> io::Result<()> {
    let place = folder()?.join(key.name() + SHARED);
    let _ = fs::remove_file(&place);
    match symlink(Claim::own(None).to_text(), &place) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Whether another process that lives says so.
pub(crate) fn is_shared(key: &Key) -> bool {
    read(&(key.name() + SHARED)).is_some_and(|mark| !mark.is_own())
}

/// Takes back what this process has claimed and marked, unless it has restricted itself: claims are none
/// once it is dead ([`sweep`]).
pub(crate) fn release(key: &Key) {
    if trust::is_confined() {
        return;
    }
    let Ok(folder) = folder() else { return };
    for name in [key.name(), key.name() + SHARED] {
        let place = folder.join(name);
        let target = fs::read_link(&place).ok();
        let claim = target.and_then(|target| Claim::parse(target.to_str()?));
        if claim.is_some_and(|claim| claim.is_own()) {
            let _ = fs::remove_file(place);
        }
    }
}

/// Removes what processes left that were killed.
pub(crate) fn sweep() {
    let list = || folder().and_then(fs::read_dir).map(|entries| entries.flatten().collect());
    let Ok::<Vec<_>, _>(entries) = own::undisturbed(list) else { return };
    sovia::preload::sweep(entries);
}

/// Leaves bytes for who goes on with a connection: all of them, or none.
///
/// # Errors
/// There is no room for them, or this process may not write so much.
pub(crate) fn leave_unread(key: &Key, bytes: &[u8]) -> io::Result<()> {
    let place = folder()?.join(key.name() + SPILL);
    let left = OwnFd::create(|| File::create(&place)).and_then(|file| {
        // Without the signal for who may not.
        memory::reserve(file.as_fd(), bytes.len())?;
        (&*file).write_all(bytes)
    });
    left.inspect_err(|_| drop(fs::remove_file(&place)))
}

/// Takes what [`leave_unread`] left.
pub(crate) fn take_unread(key: &Key) -> Vec<u8> {
    let Ok(folder) = folder() else { return Vec::new() };
    let place = folder.join(key.name() + SPILL);
    let bytes = fs::read(&place).unwrap_or_default();
    if !bytes.is_empty() {
        let _ = fs::remove_file(place);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_text() {
        for host in [None, Some(b"node".as_slice())] {
            let claim = Claim::own(host);
            assert_eq!(Claim::parse(&claim.to_text()), Some(claim.clone()));
            assert!(claim.is_own() && claim.process.is_alive());
        }
        for bad in ["", "offer", "offer 1-2 0", "offer 1-2 zz", "other 1-2 ", "claim x-2 "] {
            assert_eq!(Claim::parse(bad), None, "{bad}");
        }
    }
}
