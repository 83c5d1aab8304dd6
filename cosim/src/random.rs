//! A small seeded generator (SplitMix64), so that a seed means the same run on every machine and
//! version.

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Random(u64);

impl Random {
    /// A generator for this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// 64 random bits.
    pub const fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit`, which is not 0. The bias is below limit / 2^64.
    #[allow(clippy::cast_possible_truncation, reason = "the product's high half is below limit")]
    pub const fn below(&mut self, limit: u64) -> u64 {
        ((self.bits() as u128 * limit as u128) >> 64) as u64
    }

    /// True with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        // 53 bits are what a double holds exactly.
        #[allow(clippy::cast_precision_loss, reason = "53 bits")]
        let unit = (self.bits() >> 11) as f64 / (1_u64 << 53) as f64;
        unit < probability
    }
}

/// A seed that no run before had, most likely: whoever uses it says which it was.
#[must_use]
pub fn fresh() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    // Small enough to be typed.
    Random::new(now.map_or(0, |now| now.subsec_nanos() as u64 ^ now.as_secs() << 30)).bits() >> 40
}

/// Runs `body` for each seed of a bench, and names the seed if it panics. The environment asks for
/// more: `SEEDS` seeds from `SEED` on, instead of those that the bench runs by itself.
///
/// # Panics
///
/// When either variable is not a number.
pub fn each_seed(seeds: std::ops::Range<u64>, mut body: impl FnMut(u64)) {
    struct Note(u64);
    impl Drop for Note {
        #[allow(clippy::print_stderr, reason = "a panic that names its seed can be run again")]
        fn drop(&mut self) {
            if std::thread::panicking() {
                eprintln!("failing seed: {}", self.0);
            }
        }
    }
    let asked = |name: &str, default| match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")),
        Err(_) => default,
    };
    let first = asked("SEED", seeds.start);
    for seed in first..first + asked("SEEDS", seeds.end - seeds.start) {
        let _note = Note(seed);
        body(seed);
    }
}
