//! The parts of [`DmaRead`](super::dma_read::DmaRead): tags, requests, completions, delivery.

pub mod deliver;
pub mod issue;
pub mod lane;
pub mod receive;
pub mod report;
pub mod tags;

pub use deliver::Deliver;
pub use issue::Issue;
pub use lane::Lane;
pub use receive::Receive;
pub use report::Report;
pub use tags::Tags;
