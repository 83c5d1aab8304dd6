//! Sizes: how many of each object the device holds, and the largest units it moves.

/// VIs.
pub const VI_COUNT: usize = 1024;
/// Descriptors of one work queue that are posted and not done.
pub const POSTED_MAX: u16 = u16::MAX;
/// Memory regions.
pub const REGION_COUNT: usize = 1024;
/// Event queues.
pub const EVENT_QUEUE_COUNT: usize = 256;
/// Peers, and so the range of node numbers: 0 to 63.
pub const PEER_COUNT: usize = 64;
/// Domains: doorbell pages, one for each process.
pub const DOMAIN_COUNT: usize = 64;
/// MSI-X vectors.
pub const MSIX_VECTOR_COUNT: usize = 32;
/// Data segments of one descriptor, without the address segment of an RDMA.
pub const DATA_SEGMENTS_MAX: usize = 16;
/// Bytes of a message that one link frame carries at most (RDMA writes have a header in front of
/// them, see [`crate::frame::RDMA_HEADER_BYTES`]).
pub const LINK_PAYLOAD_BYTES: usize = 4096;
/// Largest message, in bytes (`MaxTransferSize`).
pub const MAX_TRANSFER_BYTES: u32 = 256 * 1024;
/// The sender's pool: chunks of payload shared by all peers (`docs/contract.md` 7).
pub const POOL_CHUNK_COUNT: usize = 128;
/// Payload of one pool chunk, in bytes.
pub const POOL_CHUNK_BYTES: usize = 256;
/// Chunks that one peer may hold at most.
pub const POOL_PEER_CHUNKS: usize = 64;
/// Chunks that data frames leave to control frames (acknowledgements of VIs, refusals, messages).
pub const POOL_RESERVED_CHUNKS: usize = 4;
/// The receiver's staging memory, in 8-byte beats: one half for sequenced frames, one for the others.
pub const STAGING_BEATS: usize = 4096;
/// Payload beats of staging that one credit stands for: as many as a pool chunk holds.
pub const CREDIT_BEATS: usize = 32;
/// Credits that the room for sequenced frames is worth.
pub const CREDITS_MAX: usize = STAGING_BEATS / 2 / CREDIT_BEATS;
/// Units of staging, as large as credits, for unsequenced frames.
pub const UNSEQUENCED_UNITS: usize = STAGING_BEATS / CREDIT_BEATS - CREDITS_MAX;
/// Credits of the largest frame, an RDMA write of 4,096 bytes behind its header.
pub const FRAME_CREDITS: usize = (LINK_PAYLOAD_BYTES + 16).div_ceil(8 * CREDIT_BEATS);
/// Credits by which frames that wait in the pool may exceed their peer's limit.
pub const CREDITS_AHEAD: usize = 32;
/// Chunks that a frame beyond its peer's limit leaves to frames within theirs.
pub const POOL_AHEAD_CHUNKS: usize = POOL_CHUNK_COUNT / 2;
/// Cycles after which a node that sent a peer nothing sends an Ack, if KEEPALIVE is 0.
pub const QUIET_CYCLES: u32 = 1 << 20;
/// The longest time-out of a channel, in cycles, however often it doubles. A clock of 36 bits that is looked at
/// now and then can tell that it has passed.
pub const RETRY_CYCLES_MAX: u64 = (1 << 36) - (1 << 20);
/// Outstanding PCIe read tags.
pub const READ_TAG_COUNT: usize = 32;
/// Completion buffer of one read tag, in bytes, and so the largest read request.
pub const READ_TAG_BYTES: usize = 512;
/// Entries of the error log.
pub const ERROR_LOG_ENTRIES: usize = 16;
/// Clock of the core that the default time-outs assume, in kHz.
pub const CLOCK_KHZ: u32 = 250_000;
/// Revision of every layout in this crate. An incompatible edit raises it.
/// 2: feature bits in CAPS3, which was all MAX_TRANSFER; push lines at 0x100 of a doorbell page;
/// RDMA fields in ViCreate and ViConnect.
pub const ABI: u16 = 2;
/// Identity of the device, in `ID.MAGIC`.
pub const MAGIC: u16 = 0x51A7;
