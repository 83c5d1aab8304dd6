//! http: a server and a client of HTTP/1.1 by hyper, on streams of SOVIA.
#![expect(clippy::print_stdout, reason = "what the program is for")]

use std::io::{Read, Write};
use std::process::ExitCode;
use std::time::Instant;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::HOST;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use sovia::Device;
use sovia::tokio::{TcpListener, TcpStream};
use sovia_examples::{Outcome, finish, misuse, open, run};
use tokio::task::{JoinSet, spawn};

const HELP: &str = "\
http: a server and a client of HTTP/1.1 by hyper, on streams of SOVIA

  http serve DEVICE PORT                       serves; port 0 is any that is free
      GET /bytes/N                             N bytes
      POST /echo                               what was sent
  http get DEVICE HOST:PORT PATH               writes what the server has there
  http post DEVICE HOST:PORT PATH              sends standard input, writes the answer
  http load DEVICE HOST:PORT PATH CONNECTIONS REQUESTS
                                               so many GET requests on so many connections

DEVICE is shm:, shm:?node=NAME, udp:IP, ... or '' for the default one; HOST a name (web, node0) or [02:56:01].";

/// Most bytes that a client may ask for.
const MOST: usize = 1 << 30;

/// What the server says.
async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let count = path.strip_prefix("/bytes/").and_then(|count| count.parse().ok());
    let (status, body) = match (method, count) {
        (Method::GET, Some(count)) if count <= MOST => {
            let byte = |at: usize| at.to_le_bytes()[0];
            (StatusCode::OK, Bytes::from_iter((0..count).map(byte)))
        }
        (Method::POST, _) if path == "/echo" => {
            (StatusCode::OK, request.into_body().collect().await?.to_bytes())
        }
        _ => (StatusCode::NOT_FOUND, Bytes::from_static(b"GET /bytes/N or POST /echo\n")),
    };
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    Ok(response)
}

async fn serve(device: &Device, port: &str) -> Outcome<()> {
    let listener = TcpListener::bind(device, port.parse::<u16>()?).await?;
    println!("listening at {}", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        let served =
            http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(answer));
        // A client that breaks its connection is its own affair.
        spawn(async { _ = served.await });
    }
}

/// A connection of a client, and the task that keeps it going.
async fn connect(device: &Device, server: &str) -> Outcome<SendRequest<Full<Bytes>>> {
    let stream = TcpStream::connect(device, server).await?;
    let (sender, connection) = handshake(TokioIo::new(stream)).await?;
    spawn(async { _ = connection.await });
    Ok(sender)
}

async fn ask(
    sender: &mut SendRequest<Full<Bytes>>,
    server: &str,
    (method, path, body): (Method, &str, Bytes),
) -> Outcome<Bytes> {
    let request = Request::builder().method(method).uri(path).header(HOST, server);
    let response = sender.send_request(request.body(Full::new(body))?).await?;
    let status = response.status();
    let body = response.into_body().collect().await?.to_bytes();
    if status != StatusCode::OK {
        return Err(format!("{path}: {status}: {}", String::from_utf8_lossy(&body)).into());
    }
    Ok(body)
}

async fn once(device: &Device, server: &str, what: (Method, &str, Bytes)) -> Outcome<()> {
    let body = ask(&mut connect(device, server).await?, server, what).await?;
    Ok(std::io::stdout().write_all(&body)?)
}

async fn load(device: &Device, server: &str, path: &str, counts: [&str; 2]) -> Outcome<()> {
    let (connections, requests): (u32, u32) = (counts[0].parse()?, counts[1].parse()?);
    let (start, mut tasks) = (Instant::now(), JoinSet::new());
    for connection in 0..connections {
        let (device, server, path) = (device.clone(), server.to_owned(), path.to_owned());
        let own = requests / connections + u32::from(connection < requests % connections);
        tasks.spawn(async move {
            let mut sender = connect(&device, &server).await?;
            let mut bytes = 0;
            for _ in 0..own {
                bytes += ask(&mut sender, &server, (Method::GET, &path, Bytes::new())).await?.len();
            }
            Outcome::Ok(bytes)
        });
    }
    let mut bytes = 0;
    while let Some(done) = tasks.join_next().await {
        bytes += done??;
    }
    let rate = f64::from(requests) / start.elapsed().as_secs_f64();
    println!("{requests} requests on {connections} connections, {bytes} bytes, {rate:.0} a second");
    Ok(())
}

async fn program(words: Vec<String>) -> Outcome<()> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let device = open(words.get(1).copied().unwrap_or_default())?;
    match words[..] {
        ["serve", _, port] => serve(&device, port).await?,
        ["get", _, server, path] => {
            once(&device, server, (Method::GET, path, Bytes::new())).await?;
        }
        ["post", _, server, path] => {
            let mut body = Vec::new();
            std::io::stdin().read_to_end(&mut body)?;
            once(&device, server, (Method::POST, path, body.into())).await?;
        }
        ["load", _, server, path, connections, requests] => {
            load(&device, server, path, [connections, requests]).await?;
        }
        _ => misuse()?,
    }
    finish(&device)
}

fn main() -> ExitCode {
    run(HELP, program)
}
