//! Whom the two ends of a socket trust: processes of the same user, who meet in a folder that nobody
//! else can change ([`run_time_folder`]).
//!
//! A client hands its memory to the server, so it must not talk to whoever made the folder or the
//! socket first: the folder of temporary files is everybody's. The kernel says who is at the other end
//! of a connected socket (`SO_PEERCRED`, unix(7)); what a peer says of itself is not asked.

use core::sync::atomic::{AtomicBool, Ordering};
use std::fs::{self, Metadata};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;

/// The folder in which a server puts its sockets and programs look for them, unless they are given
/// another: `viaduct` in `$XDG_RUNTIME_DIR`, or a folder of this user in the folder of temporary
/// files. It is settled by the first who asks, since some programs clear their environment.
#[must_use]
pub fn run_time_folder() -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(from_environment).clone()
}

fn from_environment() -> PathBuf {
    match std::env::var_os("XDG_RUNTIME_DIR").filter(|folder| !folder.is_empty()) {
        Some(folder) => Path::new(&folder).join("viaduct"),
        None => {
            let user = geteuid().as_raw();
            std::env::temp_dir().join(format!("viaduct-{user}"))
        }
    }
}

static IS_CONFINED: AtomicBool = AtomicBool::new(false);

/// This process restricts itself, for good: another user, another root, or fewer system calls, of which
/// one that it may not make ends it. What it has in the run-time folder it leaves from now on; whoever
/// comes by removes what is of processes that have ended.
pub fn confine() {
    IS_CONFINED.store(true, Ordering::Release);
}

/// Whether [`confine`] was called.
#[must_use]
pub fn is_confined() -> bool {
    IS_CONFINED.load(Ordering::Acquire)
}

/// Mode bits by which others may change a folder.
const OTHERS_WRITE: u32 = 0o022;

fn refused(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}

/// Fails unless this user owns the file.
fn check_owner(what: &str, found: &Metadata) -> io::Result<()> {
    let (owner, own) = (found.uid(), geteuid().as_raw());
    if owner == own {
        return Ok(());
    }
    Err(refused(format!("the {what} belongs to user {owner}, not to user {own} of this program")))
}

/// Checks that a folder of sockets is this user's, that no other user may write to it, and that it is
/// no symbolic link.
///
/// # Errors
/// [`io::ErrorKind::PermissionDenied`], with the reason; the system's.
pub fn check_folder(folder: &Path) -> io::Result<()> {
    let found = fs::symlink_metadata(folder)?;
    if !found.is_dir() {
        let what = if found.is_symlink() { "a symbolic link" } else { "no folder" };
        return Err(refused(format!("it is {what}: remove it, or choose another folder")));
    }
    check_owner("folder", &found)?;
    let mode = found.mode() & 0o7777;
    if mode & OTHERS_WRITE == 0 {
        return Ok(());
    }
    Err(refused(format!("other users may write to this folder (mode {mode:03o}): chmod 700 it")))
}

/// Makes a folder if it is not there, and looks whose it is.
fn make(folder: &Path) -> io::Result<()> {
    match fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => check_folder(folder),
    }
}

/// Makes a folder for this user alone if it is not there, and checks it as [`check_folder`]. Whoever may
/// rename what is in the folder above can put another one in its place, so for a folder in the run-time
/// folder that one is made and checked as well.
///
/// # Errors
/// As [`check_folder`].
pub fn make_folder(folder: &Path) -> io::Result<()> {
    let above = run_time_folder();
    if folder.starts_with(&above) {
        make(&above)?;
    }
    make(folder)
}

/// Checks that a socket is one, this user's, and no symbolic link.
///
/// # Errors
/// As [`check_folder`].
pub fn check_socket(path: &Path) -> io::Result<()> {
    let found = fs::symlink_metadata(path)?;
    if !found.file_type().is_socket() {
        return Err(refused("it is no socket".to_owned()));
    }
    check_owner("socket", &found)
}

/// Checks that the process at the other end of a connected socket is of this user; returns its
/// number.
///
/// # Errors
/// As [`check_folder`].
pub fn check_peer(socket: impl AsFd) -> io::Result<u32> {
    let peer = socket_peercred(socket)?;
    let process = peer.pid.as_raw_nonzero().get().unsigned_abs();
    let (found, own) = (peer.uid.as_raw(), geteuid().as_raw());
    if found == own {
        return Ok(process);
    }
    let why = format!("process {process} at the other end is of user {found}, not of user {own}");
    Err(refused(why))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown, symlink};
    use std::os::unix::net::{UnixListener, UnixStream};

    use super::*;

    fn why(result: io::Result<()>) -> String {
        result.expect_err("it is refused").to_string()
    }

    #[test]
    fn folders_and_sockets_of_others_and_links_are_refused() {
        let base = std::env::temp_dir().join(format!("viaduct-trust-{}", std::process::id()));
        let (folder, link) = (base.join("own"), base.join("link"));
        fs::create_dir_all(&folder).unwrap();
        symlink(&folder, &link).unwrap();
        let set_mode = |mode| fs::set_permissions(&folder, fs::Permissions::from_mode(mode));
        set_mode(0o700).unwrap();
        check_folder(&folder).unwrap();
        assert!(why(check_folder(&link)).contains("symbolic link"));
        for mode in [0o770, 0o702, 0o777] {
            set_mode(mode).unwrap();
            let text = why(check_folder(&folder));
            assert!(text.contains(&format!("mode {mode:03o}")), "{text}");
        }
        set_mode(0o700).unwrap();
        let (path, to_socket) = (folder.join("a.sock"), folder.join("b.sock"));
        let _listener = UnixListener::bind(&path).unwrap();
        symlink(&path, &to_socket).unwrap();
        check_socket(&path).unwrap();
        assert!(why(check_socket(&to_socket)).contains("no socket"));
        // Only a superuser can give files away.
        if geteuid().is_root() {
            chown(&path, Some(65_534), None).unwrap();
            assert!(why(check_socket(&path)).contains("user 65534"));
            chown(&folder, Some(65_534), None).unwrap();
            assert!(why(check_folder(&folder)).contains("user 65534"));
        }
        fs::remove_dir_all(&base).unwrap();
    }

    #[test]
    fn the_peer_of_a_socket_is_known_by_the_kernel() {
        let (one, _other) = UnixStream::pair().unwrap();
        assert_eq!(check_peer(&one).unwrap(), std::process::id());
    }
}
