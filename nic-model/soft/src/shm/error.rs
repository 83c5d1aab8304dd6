//! Errors of `shm:`.

use std::io;
use std::path::PathBuf;

/// Result of what `shm:` does.
pub type Result<T> = core::result::Result<T, Error>;

/// Why a node cannot be.
#[expect(clippy::error_impl_error, reason = "the module's one error type, see its Result")]
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No name of a node.
    #[error(
        "'{name}' cannot be the name of a node: 1 to 16 letters, digits, '-', '_' and '.', the first one \
         a letter or digit"
    )]
    BadName {
        /// The name.
        name: String,
    },
    /// Another node has the name.
    #[error("there is a node '{name}' already: choose another name (shm:?node=NAME), or none")]
    NameTaken {
        /// The name.
        name: String,
    },
    /// All numbered names are taken.
    #[error("all of node0 to node{} are taken: choose a name (shm:?node=NAME)", limit - 1)]
    NoneFree {
        /// How many there are.
        limit: u16,
    },
    /// The folder in which nodes meet is of no use.
    #[error("nodes meet in the folder {}: {why}", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// What is wrong with it.
        why: io::Error,
    },
    /// The kernel lacks something.
    #[error("shm: needs {what}: {why}")]
    Kernel {
        /// What it lacks.
        what: &'static str,
        /// What it says.
        why: io::Error,
    },
    /// There is no such node.
    #[error("there is no node '{node}'")]
    NoNode {
        /// Its name.
        node: String,
    },
    /// A node refuses to talk to this one.
    #[error("node '{node}' refuses: {why}")]
    Refused {
        /// Its name.
        node: String,
        /// What it says.
        why: String,
    },
    /// A node does not answer in time.
    #[error("node '{node}' does not answer: its process may be stopped")]
    Silent {
        /// Its name.
        node: String,
    },
    /// A node has not taken the messages that were sent before: it is slow, or its process is stopped.
    #[error("node '{node}' has not taken its messages so far")]
    Busy {
        /// Its name.
        node: String,
    },
    /// A node still uses what it was to give back.
    #[error(
        "node '{node}' does not confirm that it no longer uses the region: its process may be stopped"
    )]
    NotConfirmed {
        /// Its name.
        node: String,
    },
    /// Anything else of the system's.
    #[error("{what}: {why}")]
    System {
        /// What failed.
        what: &'static str,
        /// What the system says.
        why: io::Error,
    },
    /// A port's.
    #[error(transparent)]
    Port(#[from] port::Error),
}

impl From<Error> for port::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Port(error) => error,
            other @ (Error::Refused { .. } | Error::Silent { .. } | Error::NoNode { .. }) => {
                Self::NotReachable(std::sync::Arc::new(other))
            }
            other => Self::device(other),
        }
    }
}
