//! Names of codes. Each is a string of the library, which stays.

use core::ffi::{CStr, c_char};

use port::desc::status;
use vipl::{ErrorCode, VipReturn};

use crate::abi::Code;

/// The error bits of a status, each with its name, and its name where part of the message was moved.
const BITS: [(u32, &CStr, &CStr); 7] = [
    (
        status::FORMAT_ERROR,
        c"VIP_STATUS_FORMAT_ERROR",
        c"VIP_STATUS_FORMAT_ERROR | VIP_STATUS_PARTIAL_ERROR",
    ),
    (
        status::PROTECTION_ERROR,
        c"VIP_STATUS_PROTECTION_ERROR",
        c"VIP_STATUS_PROTECTION_ERROR | VIP_STATUS_PARTIAL_ERROR",
    ),
    (
        status::LENGTH_ERROR,
        c"VIP_STATUS_LENGTH_ERROR",
        c"VIP_STATUS_LENGTH_ERROR | VIP_STATUS_PARTIAL_ERROR",
    ),
    (
        status::DESC_FLUSHED_ERROR,
        c"VIP_STATUS_DESC_FLUSHED_ERROR",
        c"VIP_STATUS_DESC_FLUSHED_ERROR | VIP_STATUS_PARTIAL_ERROR",
    ),
    (
        status::TRANSPORT_ERROR,
        c"VIP_STATUS_TRANSPORT_ERROR",
        c"VIP_STATUS_TRANSPORT_ERROR | VIP_STATUS_PARTIAL_ERROR",
    ),
    (
        status::RDMA_PROT_ERROR,
        c"VIP_STATUS_RDMA_PROT_ERROR",
        c"VIP_STATUS_RDMA_PROT_ERROR | VIP_STATUS_PARTIAL_ERROR",
    ),
    (
        status::REMOTE_DESC_ERROR,
        c"VIP_STATUS_REMOTE_DESC_ERROR",
        c"VIP_STATUS_REMOTE_DESC_ERROR | VIP_STATUS_PARTIAL_ERROR",
    ),
];

fn place(code: Code) -> usize {
    usize::try_from(code).unwrap_or(usize::MAX)
}

#[unsafe(export_name = "VipReturnName")]
extern "C" fn return_name(code: Code) -> *const c_char {
    let known = VipReturn::ALL.get(place(code));
    known.map_or(c"(no VIP_RETURN)", |code| code.c_name()).as_ptr()
}

#[unsafe(export_name = "VipErrorName")]
extern "C" fn error_name(code: Code) -> *const c_char {
    let known = ErrorCode::ALL.get(place(code));
    known.map_or(c"(no VIP_ERROR_CODE)", |code| code.c_name()).as_ptr()
}

#[unsafe(export_name = "VipStatusName")]
extern "C" fn status_name(status: u32) -> *const c_char {
    let partial = status & status::PARTIAL_ERROR != 0;
    let error = BITS.iter().find(|(bit, ..)| status & bit != 0);
    let name = match error {
        Some((_, _, with_partial)) if partial => with_partial,
        Some((_, name, _)) => name,
        None if partial => c"VIP_STATUS_PARTIAL_ERROR",
        None if status & status::DONE != 0 => c"VIP_STATUS_DONE",
        None => c"(not done)",
    };
    name.as_ptr()
}
