//! What keeps connections under `viaduct run` from VIA: run-time folders that are of no use.
//!
//! Full and read-only folders are file systems in a name space of the test's own (unshare(1)). Where those
//! cannot be had, only the others are tested.

mod place;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use place::{Place, TAKE};

/// A connection between two processes, which moves where it can; after [`TAKE`].
///
/// A line that another process may write beside is one write: `print` makes two of it where Python does not
/// buffer (`PYTHONUNBUFFERED`).
const PAIR: &str = "
import os, resource, signal, socket, sys, time
listener = socket.create_server(('127.0.0.1', 0))
if os.fork() == 0:
    connection = socket.create_connection(listener.getsockname())
    for turn in range(60):
        connection.sendall(b'hello')
        take(connection, 5)
        if turn == 30:
            time.sleep(0.2)
    connection.sendall(b'x' * 100000)
    try:
        ended = connection.recv(1) == b''
    except ConnectionResetError:
        ended = 'reset'
    os.write(1, f'client {ended}\\n'.encode())
    os._exit(0)
connection, _ = listener.accept()
for turn in range(60):
    connection.sendall(take(connection, 5))
";

/// Goes on after [`PAIR`].
const READ: &str = "
print(len(take(connection, 100000)), flush=True)
connection.close()
os.wait()
";

/// The same: another process takes it over, after it has done what stands in the place of `CHILD`. This one
/// may leave it no bytes.
const GIVE: &str = "
time.sleep(0.2)
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
if os.fork() == 0:
    CHILD
    try:
        os.write(1, b'child %d\\n' % len(take(connection, 100000)))
    except ConnectionResetError:
        os.write(1, b'child reset\\n')
    os._exit(0)
os.wait()
connection.close()
os.wait()
";

/// Runs a program with this run-time folder, behind some words.
fn run(before: &[&str], folder: &Path, text: &str) -> Output {
    let viaduct = env!("CARGO_BIN_EXE_viaduct");
    let words = [&["timeout", "60"], before, &[viaduct, "run", "python3", "-c", text]].concat();
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).env("XDG_RUNTIME_DIR", folder).env_remove("VIADUCT_DEVICE");
    command.output().expect("it starts")
}

fn texts(output: &Output) -> [String; 2] {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned())
}

/// All goes by TCP, and one line says why.
fn stays(output: &Output, why: &str) {
    let [out, error] = texts(output);
    assert_eq!(out, "100000\nclient True\n", "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
    assert!(error.contains(why) && error.trim_end().ends_with("all stays TCP"), "{error}");
}

#[test]
fn programs_go_by_tcp_with_one_warning_where_the_folder_is_of_no_use() {
    let place = Place::new("obstacles");
    let program = [TAKE, PAIR, READ].concat();
    fs::write(place.0.join("viaduct"), "in the way").expect("a file");
    stays(&run(&[], &place.0, &program), "it is no folder");
    stays(&run(&[], &place.0.join("none"), &program), "No such file");
    let inner = place.0.join("inner");
    fs::create_dir(&inner).expect("a folder");
    let name = inner.to_str().expect("text");
    for (options, why) in [
        ("ro", "Read-only file system"),
        // So many files: there is room for no folder, for no pipe, or for no claim.
        ("nr_inodes=2", "No space left"),
        ("nr_inodes=3", "No space left"),
        ("nr_inodes=4", "No space left"),
    ] {
        let script = "mount -t tmpfs -o \"$0\" none \"$1\" && shift && exec \"$@\"";
        let before = ["unshare", "-rm", "sh", "-c", script, options, name];
        let can = Command::new(before[0]).args(&before[1..]).arg("true").status();
        if can.is_ok_and(|status| status.success()) {
            stays(&run(&before, &inner, &program), why);
        }
    }
}

#[test]
fn a_connection_whose_bytes_cannot_be_left_for_the_next_process_is_reset() {
    let place = Place::new("unleft");
    for (child, why) in [
        // The child may, and asks.
        (
            "resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)",
            "bytes cannot be left in",
        ),
        // It cannot ask without a device.
        ("pass", "the other process does not give it"),
    ] {
        let program = [TAKE, PAIR, &GIVE.replace("CHILD", child)].concat();
        let [out, error] = texts(&run(&[], &place.0, &program));
        let mut lines: Vec<&str> = out.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["child reset", "client reset"], "{error}");
        assert!(error.contains(why), "{error}");
    }
    let left = fs::read_dir(place.0.join("viaduct/sovia")).expect("a folder").flatten();
    assert!(left.map(|entry| entry.file_name()).all(|name| name == "status"), "nothing stays");
}
