//! What reads cost `DmaRead`: cycles on a host that answers at once, and the stream's rate.
use crate::Collector;
use crate::completion::completion;
use cosim::verilated::blocks::dma_read::Model;
use nic_regs::tlp::Request;
use std::collections::VecDeque;

/// A stream of 4 KiB reads with a fixed latency of the host, whose completions have `split` bytes:
/// cycles per 4 KiB.
fn stream(latency: u64, split: u64) -> f64 {
    let mut nic = Model::new();
    nic.inputs.max_read = 2;
    nic.inputs.read_timeout = u32::MAX;
    nic.inputs.out_ready = 1;
    nic.inputs.gather_req_valid = 1;
    nic.inputs.gather_req_length = 4096;
    let mut queue: VecDeque<(u64, u64, bool)> = VecDeque::new();
    let mut collector = Collector::default();
    let (mut answers, mut start) = (0, 0);
    for now in 0u64.. {
        nic.inputs.rc_valid = 0;
        if queue.front().is_some_and(|beat| beat.0 <= now) {
            let (_, data, last) = queue.pop_front().unwrap();
            (nic.inputs.rc_valid, nic.inputs.rc_data, nic.inputs.rc_last) = (1, data, last.into());
        }
        nic.cycle();
        if nic.outputs.out_valid == 1
            && let Some(tlp) = collector.push(nic.outputs.out_data, nic.outputs.out_last == 1)
        {
            let request = Request::from_beats([tlp[0], tlp[1]]);
            let end = request.address + 4 * u64::from(request.length_dw);
            let mut at = request.address;
            while at < end {
                let stop = end.min((at / split + 1) * split);
                let beats = completion(request.tag, at, end - at, (stop - at) / 4, false);
                let last = beats.len() - 1;
                queue.extend(
                    beats.into_iter().enumerate().map(|(n, b)| (now + latency, b, n == last)),
                );
                at = stop;
            }
        }
        if nic.outputs.gather_rsp_valid == 1 && nic.outputs.gather_rsp_last == 1 {
            answers += 1;
            if answers == 20 {
                start = now;
            }
            if answers == 60 {
                return (now - start) as f64 / 40.0;
            }
        }
    }
    unreachable!()
}

#[test]
fn keeps_the_link_full() {
    // Floor: 512 beats of data and two of header for each completion.
    for (latency, split, floor) in
        [(125, 512, 528.0), (125, 64, 640.0), (50, 256, 544.0), (1000, 512, 528.0)]
    {
        let cycles = stream(latency, split);
        println!("latency {latency}, completions of {split} bytes: {cycles} cycles per 4 KiB");
        assert!(cycles < 1.01 * floor, "{cycles} against {floor}");
    }
}

/// Cycles from the request of a client to the last beat of its TLP, and from the last beat of its
/// completion to the last one of the response; whether beats go on before the last one is here;
/// reads of 8 bytes in 1,000 cycles. The host answers at once, with a pause behind the third beat.
fn cost_of(bytes: u16, pause: u64) -> (u64, u64, bool, u64) {
    let mut nic = Model::new();
    nic.inputs.max_read = 2;
    nic.inputs.read_timeout = u32::MAX;
    nic.inputs.out_ready = 1;
    nic.inputs.desc_send_req_valid = 1;
    nic.inputs.desc_send_req_length = bytes;
    let mut queue = VecDeque::new();
    let mut collector = Collector::default();
    let (mut sent, mut given, mut answered) = (None, None, None);
    let (mut early, mut answers, mut hold) = (false, 0, 0);
    for now in 0..1000 {
        nic.inputs.rc_valid = 0;
        if now >= hold
            && let Some((n, data, last)) = queue.pop_front()
        {
            (nic.inputs.rc_valid, nic.inputs.rc_data, nic.inputs.rc_last) = (1, data, last);
            hold = if n == 3 { now + pause } else { now };
            given = given.or((last == 1).then_some(now));
        }
        nic.cycle();
        if nic.outputs.out_valid == 1
            && let Some(tlp) = collector.push(nic.outputs.out_data, nic.outputs.out_last == 1)
        {
            sent = sent.or(Some(now));
            let bytes = u64::from(bytes);
            let request = Request::from_beats([tlp[0], tlp[1]]);
            let beats = completion(request.tag, request.address, bytes, bytes / 4, false);
            let end = beats.len() - 1;
            queue.extend(beats.into_iter().enumerate().map(|(n, b)| (n, b, u8::from(n == end))));
        }
        if nic.outputs.desc_send_rsp_valid == 1 {
            early |= given.is_none();
            if nic.outputs.desc_send_rsp_last == 1 {
                answered = answered.or(Some(now));
                answers += 1;
            }
        }
    }
    (sent.unwrap(), answered.unwrap() - given.unwrap(), early, answers)
}

#[test]
fn cost() {
    let (sent, answered, early, answers) = cost_of(8, 0);
    println!("to rq {sent}, last to last {answered}, {answers} reads of 8 bytes in 1,000 cycles");
    assert!(sent == 3 && answered == 3 && !early && answers > 300);
    for (bytes, pause) in [(64, 0), (64, 9), (512, 0), (512, 9)] {
        let (_, answered, early, _) = cost_of(bytes, pause);
        assert!(answered == 3 && early, "{bytes} bytes, pause {pause}: {answered}, {early}");
    }
}
