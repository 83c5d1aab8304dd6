//! Programs of others that serve files, as they come from Debian: requests of nginx by ApacheBench, and files
//! of vsftpd by curl. By TCP and under `viaduct run`, in turn.
//!
//! A program that is absent gives a row without a value that names its package.

use std::ffi::OsString;
use std::fs;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::group::{Job, row};
use super::statistics::Sample;
use super::{Row, Spec};
use crate::Failure;
use crate::path;
use crate::progress::Progress;

/// The rows.
pub(super) const HTTP: &str = "http.rps";
pub(super) const FTP: &str = "ftp.copy";

/// How long a server may take to listen.
const LISTENS: Duration = Duration::from_secs(10);
/// Requests of one turn, and how many connections have one at a time.
const REQUESTS: u32 = 20_000;
const CONNECTIONS: u32 = 4;
/// Bytes of the files of Stream Sockets' Table 2.
const FILES: [usize; 2] = [19_000_000, 145_000_000];

/// Where a program is, servers of Debian included. None: it is not installed.
fn find(program: &str) -> Option<PathBuf> {
    let server = || Some(Path::new("/usr/sbin").join(program)).filter(|place| place.is_file());
    path::find(program).or_else(server)
}

/// The first of these programs that is absent, with its package.
fn absent(programs: &[(&str, &str)]) -> Option<String> {
    let missing = programs.iter().find(|(program, _)| find(program).is_none());
    missing.map(|(program, package)| format!("no {program}: apt-get install {package}"))
}

/// By what connections go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Tcp,
    Via,
}

impl Way {
    /// A command, under `viaduct run` or not.
    fn command(self, program: &str) -> Result<Command, Failure> {
        let program = find(program).ok_or_else(|| format!("no {program}"))?;
        let mut command = match self {
            Self::Tcp => Command::new(program),
            Self::Via => {
                let mut command = Command::new(std::env::current_exe()?);
                command.arg("run").arg(program);
                command
            }
        };
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(command)
    }
}

/// A server, which ends with this.
#[derive(Debug)]
struct Server {
    process: Child,
    port: u16,
}

impl Server {
    /// Starts it with a configuration for a port, and waits until it listens.
    fn start(
        way: Way,
        program: &str,
        folder: &Path,
        configure: impl Fn(u16) -> (String, Vec<OsString>),
    ) -> Result<Self, Failure> {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let (text, arguments) = configure(port);
        fs::write(folder.join("conf"), text)?;
        let process = way.command(program)?.args(arguments).spawn()?;
        let mut server = Self { process, port };
        let end = Instant::now() + LISTENS;
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            if Instant::now() > end || server.process.try_wait()?.is_some() {
                return Err(format!("{program} does not listen at port {port}").into());
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // `viaduct run` hands it on.
        if let Ok(pid) = i32::try_from(self.process.id())
            && let Some(pid) = rustix::process::Pid::from_raw(pid)
        {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let _ = self.process.wait();
    }
}

/// A folder that goes with this, in memory where there is such a place.
#[derive(Debug)]
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self, Failure> {
        let memory = Path::new("/dev/shm");
        let place = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let folder = place.join(format!("viaduct-bench-{}", std::process::id()));
        fs::create_dir_all(&folder)?;
        Ok(Self(folder))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn turns(job: &Job) -> usize {
    if job.quick { 3 } else { 9 }
}

/// A row that was not measured.
fn skipped(specs: &[Spec], name: &'static str, why: String) -> Row {
    Row { value: None, ok: None, ..row(specs, name, 0.0, why) }
}

fn nginx(way: Way, folder: &Path) -> Result<Server, Failure> {
    // Under another user its workers would leave VIA; a master that is not root ignores the line.
    let place = folder.display();
    Server::start(way, "nginx", folder, |port| {
        let text = format!(
            "user root; worker_processes 1; daemon off; pid {place}/pid; error_log {place}/errors;
             events {{ worker_connections 64; }}
             http {{ access_log off; keepalive_requests 1000000000;
                     client_body_temp_path {place}/a; proxy_temp_path {place}/b;
                     fastcgi_temp_path {place}/c; uwsgi_temp_path {place}/d;
                     scgi_temp_path {place}/e;
                     server {{ listen 127.0.0.1:{port}; root {place}; }} }}"
        );
        let arguments = ["-c".into(), folder.join("conf").into(), "-e".into()];
        (text, arguments.into_iter().chain([folder.join("errors").into()]).collect())
    })
}

/// Requests a second.
fn load(way: Way, port: u16) -> Result<f64, Failure> {
    let mut command = way.command("ab")?;
    command.args(["-q", "-k", "-n", &REQUESTS.to_string(), "-c", &CONNECTIONS.to_string()]);
    let output = command
        .arg(format!("http://127.0.0.1:{port}/file"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let number = |name: &str| -> Option<f64> {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse().ok()
    };
    match (number("Failed requests:"), number("Requests per second:")) {
        (Some(0.0), Some(rate)) => Ok(rate),
        _ => Err(format!("ab: {text}{}", String::from_utf8_lossy(&output.stderr)).into()),
    }
}

/// Measures the row `http.rps`: a file of 1,000 bytes, again and again on connections that stay.
pub(super) fn http(specs: &[Spec], job: &Job, progress: &Progress) -> Result<Vec<Row>, Failure> {
    if let Some(why) = absent(&[("nginx", "nginx-light"), ("ab", "apache2-utils")]) {
        return Ok(vec![skipped(specs, HTTP, why)]);
    }
    let temporary = Folder::new()?;
    let folder = &temporary.0;
    fs::write(folder.join("file"), vec![b'.'; 1000])?;
    let (mut ratios, mut rates) = (Vec::new(), [Vec::new(), Vec::new()]);
    let tcp = nginx(Way::Tcp, folder)?;
    let via = nginx(Way::Via, folder)?;
    for turn in 0..turns(job) {
        progress.tick(|| format!("turn {turn} of {}", turns(job)));
        let now = [load(Way::Tcp, tcp.port)?, load(Way::Via, via.port)?];
        ratios.push(now[1] / now[0]);
        rates.iter_mut().zip(now).for_each(|(all, now)| all.push(now));
    }
    let sample = Sample::new(ratios);
    let [tcp, via] = rates.map(|rates| Sample::new(rates).median());
    let note = format!(
        "nginx, {CONNECTIONS} connections of ab: {via:.0} requests a second by VIA, {tcp:.0} by TCP; \
         spread {:.0} %",
        100.0 * sample.spread()
    );
    Ok(vec![row(specs, HTTP, sample.median(), note)])
}

fn vsftpd(folder: &Path) -> Result<Server, Failure> {
    let place = folder.display();
    Server::start(Way::Via, "vsftpd", folder, |port| {
        let text = format!(
            "listen=YES\nlisten_address=127.0.0.1\nlisten_port={port}\nbackground=NO\n\
             anonymous_enable=YES\nanon_root={place}/top\nrun_as_launching_user=YES\n\
             seccomp_sandbox=NO\nsecure_chroot_dir={place}/empty\n"
        );
        (text, vec![folder.join("conf").into()])
    })
}

fn seconds(command: &mut Command) -> Result<f64, Failure> {
    let began = Instant::now();
    let status = command.status()?;
    let took = began.elapsed().as_secs_f64();
    if status.success() { Ok(took) } else { Err(format!("{command:?}: {status}").into()) }
}

/// What a transfer takes, as FTP clients print it and the paper has it: without the dialog before it.
fn transfer(copy: &Path, place: &str) -> Result<f64, Failure> {
    let mut command = Way::Via.command("curl")?;
    command.args(["-sS", "-w", "%{time_pretransfer} %{time_total}", "-o"]).arg(copy).arg(place);
    let output = command.stdout(Stdio::piped()).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let times: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    match times[..] {
        [begin, end] if output.status.success() => Ok(end - begin),
        _ => Err(format!("curl: {}, {text}", output.status).into()),
    }
}

/// Measures the row `ftp.copy`: the worse of both files.
pub(super) fn ftp(specs: &[Spec], job: &Job, progress: &Progress) -> Result<Vec<Row>, Failure> {
    if let Some(why) = absent(&[("vsftpd", "vsftpd"), ("curl", "curl")]) {
        return Ok(vec![skipped(specs, FTP, why)]);
    }
    let temporary = Folder::new()?;
    let folder = &temporary.0;
    fs::create_dir_all(folder.join("top"))?;
    fs::create_dir_all(folder.join("empty"))?;
    let server = vsftpd(folder)?;
    let (mut worst, mut notes) = (f64::INFINITY, Vec::new());
    for bytes in FILES {
        let (name, copy) = (format!("top/{bytes}"), folder.join("copy"));
        fs::write(folder.join(&name), vec![7; bytes])?;
        let mut pairs = Vec::new();
        for turn in 0..turns(job) {
            progress.tick(|| format!("{bytes} bytes, turn {turn} of {}", turns(job)));
            let _ = fs::remove_file(&copy);
            let local = seconds(Command::new("cp").arg(folder.join(&name)).arg(&copy))?;
            let _ = fs::remove_file(&copy);
            let place = format!("ftp://127.0.0.1:{}/{bytes}", server.port);
            let by_ftp = transfer(&copy, &place)?;
            if fs::metadata(&copy)?.len() != bytes as u64 {
                return Err(format!("{} is not whole", copy.display()).into());
            }
            pairs.push((local / by_ftp, local, by_ftp));
        }
        let median =
            |of: fn(&(f64, f64, f64)) -> f64| Sample::new(pairs.iter().map(of).collect()).median();
        let ratio = median(|pair| pair.0);
        worst = worst.min(ratio);
        notes.push(format!(
            "{} MB: cp {:.0} ms, by FTP {:.0} ms",
            bytes / 1_000_000,
            1e3 * median(|pair| pair.1),
            1e3 * median(|pair| pair.2)
        ));
    }
    Ok(vec![row(specs, FTP, worst, notes.join("; "))])
}
