//! A service of tarpc over VIA: both ends as tasks of one thread.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::time::Duration;

use futures_core::Stream;
use tarpc::client::{Config, RpcError};
use tarpc::context::{self, Context};
use tarpc::server::{BaseChannel, Channel};
use tokio::runtime::Builder;
use via_rpc::tarpc::{Incoming, connect, listen};
use via_rpc::{Device, Settings};
use vipl::Nic;

const SOON: Duration = Duration::from_secs(20);
/// Few credits and small packets: messages take many, and wait for credits.
const SETTINGS: Settings = Settings {
    credits: 4,
    mtu: 256,
    max_message: 4 << 20,
    clients: 64,
    cached_buffers: 16,
    cached_bytes: 16 << 20,
};

#[tarpc::service]
trait Text {
    /// The text, backwards.
    async fn reverse(text: String) -> String;
    /// The text, so many times.
    async fn repeat(text: String, times: usize) -> String;
}

#[derive(Clone)]
struct Served;

impl Text for Served {
    async fn reverse(self, _: Context, text: String) -> String {
        text.chars().rev().collect()
    }

    async fn repeat(self, _: Context, text: String, times: usize) -> String {
        text.repeat(times)
    }
}

async fn next<S: Stream>(stream: &mut Pin<&mut S>) -> Option<S::Item> {
    poll_fn(|context| stream.as_mut().poll_next(context)).await
}

/// Serves every client, each in a task, and each of its requests.
async fn serve(incoming: Incoming<TextRequest, TextResponse>) {
    let mut incoming = pin!(incoming);
    while let Some(transport) = next(&mut incoming).await {
        let channel = BaseChannel::with_defaults(transport.unwrap());
        tokio::spawn(async move {
            let mut responses = pin!(channel.execute(Served.serve()));
            while let Some(response) = next(&mut responses).await {
                tokio::spawn(response);
            }
        });
    }
}

fn devices(test: &str) -> [Device; 2] {
    [0, 1].map(|node| {
        let url = format!("shm:?node={test}-{}-{node}", std::process::id());
        Device::new(Nic::open(device::open(&url).unwrap())).unwrap()
    })
}

/// A client; the thread waits for the negotiation, which the server's own thread does.
fn client(device: &Device, server: &Device) -> TextClient {
    let transport = connect(device, &server.host(), "text", &SETTINGS, SOON).unwrap();
    let made = TextClient::new(Config::default(), transport);
    tokio::spawn(made.dispatch);
    made.client
}

fn soon() -> Context {
    let mut context = context::current();
    context.deadline = std::time::Instant::now() + SOON;
    context
}

#[test]
fn a_service_of_tarpc_is_called_over_via() {
    let [a, b] = devices("calls");
    Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
        let serving = tokio::spawn(serve(listen(&b, "text", &SETTINGS).unwrap()));
        let clients = [client(&a, &b), client(&a, &b)];
        let calls: Vec<_> = (0..40)
            .map(|number: usize| {
                let client = clients[number % 2].clone();
                tokio::spawn(async move {
                    let text = format!("text {number} ").repeat(1 + number * 20);
                    let reversed = client.reverse(soon(), text.clone()).await.unwrap();
                    assert!(reversed.chars().rev().eq(text.chars()), "call {number}");
                })
            })
            .collect();
        for call in calls {
            call.await.unwrap();
        }
        let [first, second] = clients;
        // Answers far larger than the credits of one side, of several calls at once.
        let long = [(); 3].map(|()| {
            let client = first.clone();
            tokio::spawn(async move { client.repeat(soon(), "abc".to_owned(), 300_000).await })
        });
        for answer in long {
            assert_eq!(answer.await.unwrap().unwrap(), "abc".repeat(300_000));
        }
        drop(first);
        assert_eq!(second.reverse(soon(), "still".to_owned()).await.unwrap(), "llits");
        // Its connection does not outlive the server.
        serving.abort();
        assert!(serving.await.unwrap_err().is_cancelled());
        let end = std::time::Instant::now() + SOON;
        let error = loop {
            // Its thread looks from time to time.
            match second.reverse(soon(), "there?".to_owned()).await {
                Ok(_) => assert!(std::time::Instant::now() < end),
                Err(error) => break error,
            }
        };
        let wanted = matches!(error, RpcError::Channel(_) | RpcError::Send(_) | RpcError::Shutdown);
        assert!(wanted, "{error}");
    });
}

/// A client that floods a server with requests it has no credits for waits, and all are answered.
#[test]
fn a_side_that_does_not_read_has_the_other_one_wait() {
    let [a, b] = devices("flood");
    Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
        let incoming = listen(&b, "text", &SETTINGS).unwrap();
        let client = client(&a, &b);
        let calls: Vec<_> = (0..500)
            .map(|number| {
                let client = client.clone();
                tokio::spawn(async move { client.reverse(soon(), format!("{number}")).await })
            })
            .collect();
        // The server does not read yet: its inbox fills, and then its receives are held back.
        for _ in 0..30 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        tokio::spawn(serve(incoming));
        for (number, call) in calls.into_iter().enumerate() {
            let answer: String = format!("{number}").chars().rev().collect();
            assert_eq!(call.await.unwrap().unwrap(), answer);
        }
    });
}
