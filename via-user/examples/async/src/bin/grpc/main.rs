//! grpc: a server and a client of gRPC by tonic, on streams of SOVIA.
#![expect(clippy::print_stdout, reason = "what the program is for")]

mod incoming;
mod messages;
mod store;

use std::io::{Read, Write};
use std::process::ExitCode;

use hyper_util::rt::TokioIo;
use sovia::Device;
use sovia::tokio::{TcpListener, TcpStream};
use sovia_examples::{Outcome, finish, misuse, open, run};
use tonic::transport::{Channel, Endpoint, Server};
use tower::service_fn;

use incoming::Incoming;
use messages::{Item, Key};
use store::{StoreClient, StoreServer};

const HELP: &str = "\
grpc: a server and a client of gRPC by tonic, on streams of SOVIA: a store of values by keys

  grpc serve DEVICE PORT                       serves; port 0 is any that is free
  grpc put DEVICE HOST:PORT KEY                keeps standard input
  grpc get DEVICE HOST:PORT KEY                writes what was kept
  grpc list DEVICE HOST:PORT PREFIX            keys that begin so, and how many bytes each has

DEVICE is shm:, shm:?node=NAME, udp:IP, ... or '' for the default one; HOST a name (web, node0) or [02:56:01].";

async fn serve(device: &Device, port: &str) -> Outcome<()> {
    let listener = TcpListener::bind(device, port.parse::<u16>()?).await?;
    println!("listening at {}", listener.local_addr()?);
    let incoming = Incoming::new(listener);
    Ok(Server::builder().serve_with_incoming(StoreServer::default(), incoming).await?)
}

/// A channel, whose connector makes streams of SOVIA.
async fn connect(device: &Device, server: &str) -> Outcome<StoreClient> {
    let (device, server) = (device.clone(), server.to_owned());
    let connector = service_fn(move |_uri| {
        let (device, server) = (device.clone(), server.clone());
        async move { TcpStream::connect(&device, server).await.map(TokioIo::new) }
    });
    // The name of the server is only what requests say.
    let endpoint: Endpoint = Channel::from_static("http://sovia");
    Ok(StoreClient::new(endpoint.connect_with_connector(connector).await?))
}

async fn program(words: Vec<String>) -> Outcome<()> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let device = open(words.get(1).copied().unwrap_or_default())?;
    match words[..] {
        ["serve", _, port] => serve(&device, port).await?,
        ["put", _, server, key] => {
            let mut item = Item { key: key.to_owned(), value: Vec::new() };
            std::io::stdin().read_to_end(&mut item.value)?;
            connect(&device, server).await?.put(item).await?;
        }
        ["get", _, server, key] => {
            let item = connect(&device, server).await?.get(Key { key: key.to_owned() }).await?;
            std::io::stdout().write_all(&item.value)?;
        }
        ["list", _, server, prefix] => {
            let prefix = Key { key: prefix.to_owned() };
            let mut items = connect(&device, server).await?.list(prefix).await?;
            while let Some(item) = items.message().await? {
                println!("{} {}", item.key, item.value.len());
            }
        }
        _ => misuse()?,
    }
    finish(&device)
}

fn main() -> ExitCode {
    run(HELP, program)
}
