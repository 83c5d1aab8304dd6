//! Messages, as `protoc` would make them of
//!
//! ```proto
//! message Key { string key = 1; }
//! message Item { string key = 1; bytes value = 2; }
//! ```

/// A key, or what keys begin with.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct Key {
    #[prost(string, tag = "1")]
    pub(crate) key: String,
}

/// What is kept.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct Item {
    #[prost(string, tag = "1")]
    pub(crate) key: String,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) value: Vec<u8>,
}
