//! Rust programs on SOVIA whose libraries were written for TCP. What the examples share: opening a device,
//! and their command lines.
//!
//! | program | shows |
//! |---|---|
//! | `http` | a server and a client of HTTP/1.1 by hyper; feature `http` |
//! | `grpc` | a server and a client of gRPC by tonic; feature `grpc` |
//!
//! ```sh
//! cargo run -p sovia-examples --features http --bin http -- serve 'shm:?node=web' 80
//! cargo run -p sovia-examples --features http --bin http -- get shm: web:80 /bytes/1000
//! ```
#![forbid(unsafe_code)]

use std::error::Error;
use std::future::Future;
use std::process::ExitCode;
use std::time::Duration;

use sovia::{Device, Policy};
use tokio::runtime::Builder;
use vipl::{Nic, Waiting};

/// Result of an example: it ends with whatever goes wrong.
pub type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// How long the end of a program waits until the other sides have what it has sent.
const END: Duration = Duration::from_secs(10);

/// Opens a device (`shm:`, `udp:IP`, `vfio:`, or an empty name for the default one) for streams.
///
/// # Errors
/// There is no such device.
pub fn open(device: &str) -> Outcome<Device> {
    let waiting = Waiting::from_environment()
        .map_err(|value| format!("{}: {value}", vipl::waiting::SPIN_VARIABLE))?;
    Ok(Device::new(Nic::open_with(device::open(device)?, waiting), Policy::DACKS)?)
}

/// Runs an example with the words of its command line; without any, or with `--help`, says how to use it.
#[expect(clippy::print_stdout, clippy::print_stderr, reason = "the command line")]
pub fn run<F: Future<Output = Outcome<()>>>(
    help: &str,
    main: impl Fn(Vec<String>) -> F,
) -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.is_empty() || words.iter().any(|word| word == "--help" || word == "-h") {
        println!("{help}");
        return if words.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS };
    }
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_time().build();
    let done = runtime.map_err(Into::into).and_then(|runtime| runtime.block_on(main(words)));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            let mut source = error.source();
            while let Some(error) = source {
                eprintln!("  because of: {error}");
                source = error.source();
            }
            ExitCode::FAILURE
        }
    }
}

/// What a command line gets that makes no sense.
///
/// # Errors
/// Always.
pub fn misuse<T>() -> Outcome<T> {
    Err("arguments that make no sense: --help says which there are".into())
}

/// Before a program ends: waits until what it has sent has arrived.
///
/// # Errors
/// It has not in time.
pub fn finish(device: &Device) -> Outcome<()> {
    if device.finish(END) {
        Ok(())
    } else {
        Err("the other side does not end its connections".into())
    }
}
