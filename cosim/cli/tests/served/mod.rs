//! A simulator that a test has to itself.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// Two served models, until it is dropped.
pub(crate) struct Served {
    server: Child,
    folder: PathBuf,
}

impl Served {
    pub(crate) fn start(name: &str, more: &[&str]) -> Self {
        let folder = std::env::temp_dir().join(format!("viaduct-{name}-{}", std::process::id()));
        let mut server = Command::new(env!("CARGO_BIN_EXE_viaduct"))
            .args(["cosim", "serve", "--until-eof", "--dir"])
            .arg(folder.join("viaduct"))
            .args(more)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let output = BufReader::new(server.stdout.take().expect("its output"));
        let mut lines = output.lines().map_while(Result::ok);
        assert!(lines.any(|line| line == "ready"));
        std::thread::spawn(move || lines.for_each(drop));
        Self { server, folder }
    }

    pub(crate) fn folder(&self) -> &str {
        self.folder.to_str().expect("UTF-8")
    }

    pub(crate) fn socket(&self, node: u8) -> PathBuf {
        PathBuf::from(self.folder()).join(format!("viaduct/nic{node}.sock"))
    }

    pub(crate) fn url(&self, node: u8) -> String {
        format!("vfio-user:{}", self.socket(node).display())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.server.stdin.take());
        let _ = self.server.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}
