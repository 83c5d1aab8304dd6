//! A reading for scripts.

use super::reading::Reading;
use serde_json::{Value, json};
use sovia::preload::status::{ConnectionStatus, ProcessStatus, Reason};

/// The reading as an object.
pub(super) fn object(reading: &Reading) -> Value {
    let processes: Vec<Value> = reading.processes.iter().map(|it| process(reading, it)).collect();
    json!({ "time": reading.time, "processes": processes })
}

fn process(reading: &Reading, it: &ProcessStatus) -> Value {
    let connections: Vec<Value> =
        it.connections.iter().map(|one| connection(reading, it, one)).collect();
    let reasons = it.totals.reasons.iter();
    let reasons: Vec<Value> = reasons
        .map(|Reason { text, stays, backs }| {
            json!({ "reason": text, "stayed": stays, "went_back": backs })
        })
        .collect();
    let some = |text: &String| (!text.is_empty()).then(|| text.clone());
    json!({
        "pid": it.process.id,
        "program": it.program,
        "started": it.process.start_time(),
        "device": some(&it.device),
        "nic": some(&it.nic),
        "connections": connections,
        "more_connections": it.more,
        "seen": it.totals.connections,
        "moved": it.totals.moved,
        "sent": it.totals.sent,
        "received": it.totals.received,
        "reasons": reasons,
    })
}

fn connection(reading: &Reading, of: &ProcessStatus, it: &ConnectionStatus) -> Value {
    let rates = reading.rates(of, it);
    json!({
        "local": it.local.to_string(),
        "peer": it.peer.to_string(),
        "since": it.since,
        "state": it.state(),
        "sent": it.sent,
        "received": it.received,
        "sent_per_second": rates.map(|[sent, _]| sent),
        "received_per_second": rates.map(|[_, received]| received),
        "credits": it.credits.left,
        "window": it.credits.window,
        "reason": it.reason,
    })
}
