//! The clock that place and route reached, from the report that `viaduct synth` left.

use super::{Job, Value};
use crate::Failure;
use crate::progress::Progress;
use serde_json::Value as Json;
use std::fs;

/// Logic cells of an LFE5U-85, by which the report's chip is known.
const LFE5U_85_CELLS: u64 = 83_640;

#[allow(clippy::unnecessary_wraps, reason = "the signature of a measurement")]
pub(super) fn read(job: &Job, _progress: &Progress) -> Result<Vec<Value>, Failure> {
    let path = job.synth.join("report.json");
    let value = match fs::read_to_string(&path) {
        Ok(text) => parse(&text).map_err(|why| format!("{}: {why}", path.display())),
        Err(_) => Err("make the report with `cargo viaduct synth --target ecp5-85`".into()),
    };
    Ok(vec![match value {
        Ok(mhz) => Value::new("fmax_ecp5", mhz, format!("from {}", path.display())),
        Err(why) => Value::none("fmax_ecp5", why),
    }])
}

fn parse(text: &str) -> Result<f64, String> {
    let report: Json = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let cells = report["utilization"]["TRELLIS_COMB"]["available"].as_u64();
    if cells != Some(LFE5U_85_CELLS) {
        return Err(format!("not of an LFE5U-85 (logic cells: {cells:?})"));
    }
    let clocks = report["fmax"].as_object().into_iter().flatten();
    let achieved = clocks.filter_map(|(_, clock)| clock["achieved"].as_f64());
    achieved.min_by(f64::total_cmp).ok_or_else(|| "no clock in it".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_clock_of_the_right_chip_counts() {
        let report = |cells: u64| {
            format!(
                r#"{{"fmax": {{"a": {{"achieved": 101.5, "constraint": 100}},
                     "b": {{"achieved": 99.5}}}},
                    "utilization": {{"TRELLIS_COMB": {{"available": {cells}, "used": 1}}}}}}"#
            )
        };
        assert_eq!(parse(&report(LFE5U_85_CELLS)), Ok(99.5));
        assert!(parse(&report(43_848)).unwrap_err().contains("43848"));
        assert!(parse("{}").is_err() && parse("no JSON").is_err());
    }
}
