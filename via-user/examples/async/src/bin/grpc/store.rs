//! The service and its client, as `tonic-build` would make them of
//!
//! ```proto
//! service Store {
//!     rpc Put(Item) returns (Empty);
//!     rpc Get(Key) returns (Item);
//!     rpc List(Key) returns (stream Item);
//! }
//! ```

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use tonic::body::Body;
use tonic::client;
use tonic::codec::Codec;
use tonic::codegen::http;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::codegen::{Service, tokio_stream};
use tonic::server;
use tonic::transport::Channel;
use tonic::{Request, Response, Status, Streaming};
use tonic_prost::ProstCodec;
use tower::service_fn;

use crate::messages::{Item, Key};

const PUT: &str = "/viaduct.Store/Put";
const GET: &str = "/viaduct.Store/Get";
const LIST: &str = "/viaduct.Store/List";
/// Most bytes of a message.
const MOST: usize = 64 << 20;

/// The server: values by their keys.
#[derive(Clone, Debug, Default)]
pub(crate) struct StoreServer {
    items: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
}

impl StoreServer {
    fn items(&self) -> MutexGuard<'_, BTreeMap<String, Vec<u8>>> {
        self.items.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, item: Item) {
        self.items().insert(item.key, item.value);
    }

    fn get(&self, Key { key }: Key) -> Result<Item, Status> {
        let value = self.items().get(&key).cloned();
        let value =
            value.ok_or_else(|| Status::not_found(format!("nothing is kept as `{key}`")))?;
        Ok(Item { key, value })
    }

    fn list(&self, Key { key: prefix }: &Key) -> Vec<Result<Item, Status>> {
        let items = self.items();
        let found = items.iter().filter(|(key, _)| key.starts_with(prefix));
        found.map(|(key, value)| Ok(Item { key: key.clone(), value: value.clone() })).collect()
    }

    async fn answer(self, request: http::Request<Body>) -> http::Response<Body> {
        match request.uri().path() {
            PUT => {
                let put = service_fn(move |request: Request<Item>| {
                    self.put(request.into_inner());
                    ready(Ok(Response::new(())))
                });
                grpc(ProstCodec::<(), Item>::default()).unary(put, request).await
            }
            GET => {
                let get = service_fn(move |request: Request<Key>| {
                    ready(self.get(request.into_inner()).map(Response::new))
                });
                grpc(ProstCodec::<Item, Key>::default()).unary(get, request).await
            }
            LIST => {
                let list = service_fn(move |request: Request<Key>| {
                    let items = self.list(request.get_ref());
                    ready(Ok(Response::new(tokio_stream::iter(items))))
                });
                grpc(ProstCodec::<Item, Key>::default()).server_streaming(list, request).await
            }
            other => Status::unimplemented(format!("there is no {other}")).into_http(),
        }
    }
}

fn grpc<T: Codec>(codec: T) -> server::Grpc<T> {
    server::Grpc::new(codec).max_decoding_message_size(MOST)
}

impl Service<http::Request<Body>> for StoreServer {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let own = self.clone();
        Box::pin(async { Ok(own.answer(request).await) })
    }
}

/// The client.
#[derive(Debug)]
pub(crate) struct StoreClient {
    grpc: client::Grpc<Channel>,
}

impl StoreClient {
    pub(crate) fn new(channel: Channel) -> Self {
        Self { grpc: client::Grpc::new(channel).max_decoding_message_size(MOST) }
    }

    /// Waits until the channel takes a request.
    async fn ready(&mut self) -> Result<(), Status> {
        self.grpc.ready().await.map_err(|error| Status::unavailable(error.to_string()))
    }

    pub(crate) async fn put(&mut self, item: Item) -> Result<(), Status> {
        self.ready().await?;
        let (path, codec) = (PathAndQuery::from_static(PUT), ProstCodec::<Item, ()>::default());
        self.grpc.unary(Request::new(item), path, codec).await?;
        Ok(())
    }

    pub(crate) async fn get(&mut self, key: Key) -> Result<Item, Status> {
        self.ready().await?;
        let (path, codec) = (PathAndQuery::from_static(GET), ProstCodec::<Key, Item>::default());
        Ok(self.grpc.unary(Request::new(key), path, codec).await?.into_inner())
    }

    pub(crate) async fn list(&mut self, prefix: Key) -> Result<Streaming<Item>, Status> {
        self.ready().await?;
        let (path, codec) = (PathAndQuery::from_static(LIST), ProstCodec::<Key, Item>::default());
        Ok(self.grpc.server_streaming(Request::new(prefix), path, codec).await?.into_inner())
    }
}
