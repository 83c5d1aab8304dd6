//! Where `localhost` finds a server: links in a folder, `rpc` in the run-time folder. The name of a link is an
//! endpoint, what it points to the host address of the server that was bound last.
//!
//! On `shm:` each process is a host of its own, so a client must know which one it wants; a port mapper's
//! question has its answer here without a port mapper. A link of a killed server leads to a host that no
//! longer exists, which is refused as if there were no link.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use port::trust;

/// A link of this process. It goes with its handle, unless another server has taken its name.
#[derive(Debug)]
pub struct Place {
    link: PathBuf,
    target: String,
}

fn link(endpoint: &str) -> Option<PathBuf> {
    // Others are not found by this name.
    let is_name = !endpoint.contains('/') && !endpoint.starts_with('.');
    is_name.then(|| trust::run_time_folder().join("rpc").join(endpoint))
}

impl Place {
    /// Says where a server is. None if that cannot be said: then it is found by its host's name alone.
    #[must_use]
    pub fn new(endpoint: &str, host: &[u8]) -> Option<Self> {
        let link = link(endpoint)?;
        trust::make_folder(link.parent()?).ok()?;
        let target: String = host.iter().map(|byte| format!("{byte:02x}")).collect();
        let new = link.with_file_name(format!(".{}-{endpoint}", std::process::id()));
        let _ = fs::remove_file(&new);
        symlink(&target, &new).ok()?;
        fs::rename(&new, &link).ok()?;
        Some(Self { link, target })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if fs::read_link(&self.link)
            .is_ok_and(|found| found.as_os_str() == OsStr::new(&self.target))
        {
            let _ = fs::remove_file(&self.link);
        }
    }
}

/// The host of a server.
#[must_use]
pub fn find(endpoint: &str) -> Option<Vec<u8>> {
    let link = link(endpoint)?;
    trust::check_folder(link.parent()?).ok()?;
    let target = fs::read_link(link).ok()?;
    let digits = target.to_str()?.as_bytes();
    let byte = |pair: &[u8]| u8::from_str_radix(core::str::from_utf8(pair).ok()?, 16).ok();
    let host: Option<Vec<u8>> = digits.chunks(2).map(byte).collect();
    host.filter(|host| !host.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_server_is_found_until_it_ends() {
        let endpoint = format!("test:{}", std::process::id());
        assert_eq!(find(&endpoint), None);
        let first = Place::new(&endpoint, &[2, 0, 255]).unwrap();
        assert_eq!(find(&endpoint), Some(vec![2, 0, 255]));
        let second = Place::new(&endpoint, &[7]).unwrap();
        drop(first);
        assert_eq!(find(&endpoint), Some(vec![7]));
        drop(second);
        assert_eq!(find(&endpoint), None);
        assert!(Place::new("a/b", &[7]).is_none());
    }
}
