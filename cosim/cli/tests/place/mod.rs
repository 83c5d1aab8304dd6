//! A run-time folder of a test's own, for programs under `viaduct run`.

use std::fs;
use std::path::PathBuf;

/// A folder that goes with the test.
pub(crate) struct Place(pub(crate) PathBuf);

impl Place {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("viaduct-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What programs in Python begin with: a function that receives so many bytes.
pub(crate) const TAKE: &str = "
def take(connection, count):
    got = b''
    while len(got) < count:
        part = connection.recv(count - len(got))
        assert part, 'the end, too early'
        got += part
    return got
";
