//! Null calls of SunRPC, between two processes of a program in C, each on a processor of its own:
//! `via-user/libviarpc/bench/nullcall.c`.

use std::path::{Path, PathBuf};
use std::process::Command;

use vipl::waiting::SPIN_VARIABLE;

use super::affinity::Allowed;
use super::processes::Peer;
use crate::Failure;
use crate::c_program;

/// How the calls go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// The kernel's TCP. libtirpc blocks: each process sleeps until the other one has sent.
    Tcp,
    /// TCP of processes that `viaduct run` has started.
    Sovia,
    /// The transport of `via-rpc`, which polls.
    Via,
}

impl How {
    /// What a person calls it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "SunRPC by TCP, which blocks",
            Self::Sovia => "SunRPC by TCP, preloaded",
            Self::Via => "SunRPC directly by VIA",
        }
    }

    fn command(self, program: &Path, act: &str) -> Result<Command, Failure> {
        let mut command = if self == Self::Sovia {
            let mut command = Command::new(std::env::current_exe()?);
            command.args(["run", "--device", "shm:"]).arg(program);
            command
        } else {
            Command::new(program)
        };
        command.args([act, if self == Self::Via { "via" } else { "tcp" }]);
        command.env(device::DEVICE_VARIABLE, "shm:").env(SPIN_VARIABLE, "inf");
        Ok(command)
    }
}

/// A client, and its server. The client ends first.
pub(super) struct Calls {
    client: Peer,
    _server: Peer,
}

impl Calls {
    /// Starts both, on processors of all that this thread may use; it can use another one afterwards.
    pub(super) fn start(program: &Path, how: How) -> Result<Self, Failure> {
        let failed = |why: Failure| -> Failure { format!("{}: {why}", how.name()).into() };
        let allowed = Allowed::now()?;
        // Of this measurement alone: a number that users may give to programs.
        let number = (0x2000_0000 + (std::process::id() & 0xff_ffff)).to_string();
        // A process inherits the processor.
        allowed.pin(1)?;
        let mut command = how.command(program, "serve")?;
        command.arg(&number);
        let mut server = Peer::spawn(command)?;
        let place = server.answer().map_err(failed)?;
        allowed.pin(0)?;
        let mut command = how.command(program, "call")?;
        command.arg(&number).arg(place);
        let mut client = Peer::spawn(command)?;
        client.answer().map_err(failed)?;
        Ok(Self { client, _server: server })
    }

    /// The time of a call, in nanoseconds, of so many.
    pub(super) fn measure(&mut self, count: u32) -> Result<f64, Failure> {
        // The first ones find caches cold, and have a connection move.
        self.client.request(&(count / 8 + 8).to_string())?;
        self.client.answer()?;
        self.client.request(&count.to_string())?;
        Ok(self.client.answer()?.parse()?)
    }
}

/// Where libtirpc's headers are.
const TIRPC: &str = "/usr/include/tirpc";

/// What this machine lacks for programs of SunRPC, if it lacks something.
pub(super) fn lack() -> Option<String> {
    if !Path::new(TIRPC).join("rpc/rpc.h").exists() {
        return Some("not measured: no libtirpc here (apt-get install libtirpc-dev)".to_owned());
    }
    let found = Command::new(c_program::compiler()).arg("--version").output();
    let failed = |error| format!("not measured: no C compiler here ({error}): apt-get install gcc");
    found.err().map(failed)
}

/// Compiles the program, with `tirpc_via.c` in it.
pub(super) fn program() -> Result<PathBuf, Failure> {
    let library = c_program::library("libviarpc")?;
    c_program::build("nullcall", &[(&library, "libviarpc.so")], |command| {
        // What every program of SunRPC does with its functions for XDR.
        command.args(["-std=gnu11", "-O2", "-Wno-cast-function-type", "-I", TIRPC]);
        let sources = ["tirpc/tirpc_via.c", "bench/nullcall.c"];
        let folder = c_program::root().join("via-user/libviarpc");
        command.args(sources.map(|file| folder.join(file)));
        command.args(["-lviarpc", "-ltirpc", "-lpthread"]);
    })
}
