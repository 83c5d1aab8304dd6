//! `Rq`: whole TLPs, order in each direction, fairness, and a quiet end.
use crate::{Collector, Stable, chance, each_seed};
use cosim::verilated::blocks::rq::Model;
use rand::Rng;

#[test]
fn merges_whole_tlps() {
    each_seed(0..12, |seed, rng| {
        let mut nic = Model::new();
        let ready = [25, 70, 100][seed as usize % 3];
        // Beats are source << 63 | TLP << 16 | beat.
        let mut sent = [0u64; 2];
        let mut beat = [0u64; 2];
        let mut length = [2u64; 2];
        let mut offering = [false; 2];
        let mut seen = [0u64; 2];
        let (mut collector, mut stable) = (Collector::default(), Stable::default());
        let mut run = (0, 0u64);
        for cycle in 0..20_000 {
            let hold = cycle % 1000 >= 700;
            nic.inputs.hold = hold.into();
            for from in 0..2 {
                offering[from] |= chance(rng, if seed % 2 == 0 { 100 } else { 50 });
                let data = (from as u64) << 63 | sent[from] << 16 | beat[from];
                let last = u8::from(beat[from] + 1 == length[from]);
                let inputs = &mut nic.inputs;
                if from == 0 {
                    (inputs.read_valid, inputs.read_data, inputs.read_last) =
                        (offering[0].into(), data, last);
                } else {
                    (inputs.write_valid, inputs.write_data, inputs.write_last) =
                        (offering[1].into(), data, last);
                }
            }
            nic.inputs.rq_ready = chance(rng, ready).into();
            nic.cycle();
            let out = nic.outputs.clone();
            for (from, taken) in [out.read_ready, out.write_ready].into_iter().enumerate() {
                if taken == 1 && offering[from] {
                    offering[from] = false;
                    beat[from] += 1;
                    if beat[from] == length[from] {
                        beat[from] = 0;
                        sent[from] += 1;
                        length[from] = if from == 0 { 2 } else { rng.random_range(3..20) };
                    }
                }
            }
            stable.look(out.rq_valid == 1, out.rq_data, out.rq_last == 1, nic.inputs.rq_ready == 1);
            if out.rq_valid == 1 && nic.inputs.rq_ready == 1 {
                assert_eq!(out.idle, 0, "a beat while idle");
                if let Some(tlp) = collector.push(out.rq_data, out.rq_last == 1) {
                    let from = (tlp[0] >> 63) as usize;
                    for (at, &word) in tlp.iter().enumerate() {
                        let expected = (from as u64) << 63 | seen[from] << 16 | at as u64;
                        assert_eq!(word, expected, "mixed or out of order");
                    }
                    seen[from] += 1;
                    run = if run.0 == from { (from, run.1 + 1) } else { (from, 1) };
                    assert!(seed % 2 == 1 || run.1 <= 2, "one side starves");
                }
            }
            if cycle % 1000 == 999 {
                assert_eq!(out.idle, 1, "not idle after 300 cycles of hold");
                assert!(collector.beats.is_empty(), "idle in mid-TLP");
            }
            if !hold && cycle % 1000 > 0 {
                assert_eq!(out.idle, 0, "idle without hold");
            }
        }
        assert!(seen[0] > 200 && seen[1] > 200);
    });
}
