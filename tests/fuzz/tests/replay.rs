//! Every input in the tree, and mutations of them from a fresh seed.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use cosim::random::Random;
use fuzz::{TARGETS, Target};

/// Mutations of each target.
const MUTATIONS: u64 = 400;
/// Bytes of an input at most.
const LONGEST: usize = 4_096;

/// Keeps the input that runs, in case it fails.
struct Running<'a> {
    target: &'a Target,
    what: String,
    input: &'a [u8],
}

impl Drop for Running<'_> {
    #[expect(clippy::print_stderr, reason = "the harness shows it with the failure")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            let name = self.target.name;
            let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-failed"));
            let kept = fs::write(&file, self.input);
            eprintln!("{name} fails on {}: {} ({kept:?})", self.what, file.display());
            eprintln!("once it is mended, keep it in tests/fuzz/regressions/{name}/");
        }
    }
}

fn run(target: &Target, what: String, input: &[u8]) {
    let running = Running { target, what, input };
    (target.run)(input);
    drop(running);
}

/// The inputs of a folder with their names, in order.
fn inputs(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort();
    let input = |path: PathBuf| (path.display().to_string(), fs::read(&path).unwrap());
    files.into_iter().map(input).collect()
}

/// A few bytes of an input changed, inserted, left out, or those of another one in their place.
fn mutated(random: &mut Random, corpus: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut below = |limit: usize| usize::try_from(random.below(limit.max(1) as u64)).unwrap();
    let mut input = corpus.get(below(corpus.len())).map_or(Vec::new(), |(_, input)| input.clone());
    for _ in 0..1 + below(4) {
        let (at, count) = (below(input.len() + 1), below(9));
        let end = input.len().min(at + count);
        match below(4) {
            0 => input[at..end].iter_mut().for_each(|byte| *byte ^= 1 << below(8)),
            1 => drop(input.drain(at..end)),
            2 => {
                let bytes: Vec<u8> =
                    (0..count).map(|_| u8::try_from(below(256)).unwrap()).collect();
                input.splice(at..at, bytes);
            }
            _ => {
                let Some((_, other)) = corpus.get(below(corpus.len())) else { continue };
                let from = below(other.len() + 1);
                input.splice(at..end, other[from..].iter().copied().take(4 * count));
            }
        }
    }
    input.truncate(LONGEST);
    input
}

/// Fresh in each run, or `SEED`.
fn seed() -> u64 {
    let fresh = || {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        u64::from(now.subsec_nanos()) ^ now.as_secs() << 20
    };
    std::env::var("SEED").map_or_else(|_| fresh(), |text| text.parse().expect("SEED is a number"))
}

fn replay(name: &str) {
    let target = Target::named(name).expect("a target");
    let corpus: Vec<(String, Vec<u8>)> =
        target.folders().iter().flat_map(|folder| inputs(folder)).collect();
    run(&target, "no bytes".to_owned(), &[]);
    for (path, input) in &corpus {
        run(&target, path.clone(), input);
    }
    let seed = seed();
    let mut random = Random::new(seed);
    for number in 0..MUTATIONS {
        let input = mutated(&mut random, &corpus);
        run(&target, format!("mutation {number} of SEED={seed}"), &input);
    }
}

/// A test for each target, so that they run side by side, and one that none was forgotten.
macro_rules! replay {
    ($($name:ident),* $(,)?) => {
        $(#[test]
        fn $name() {
            replay(stringify!($name));
        })*

        #[test]
        fn every_target_is_replayed() {
            assert_eq!(TARGETS.map(|target| target.name), [$(stringify!($name)),*]);
        }
    };
}

replay! { frames, descriptors, admin, tlp, vfio_user, connection, datagrams, streams }
