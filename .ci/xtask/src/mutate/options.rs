//! What is asked for.

use super::mutant::Subject;
use super::suites::{SUITES, Suite};

const USAGE: &str = "usage: cargo xtask mutate [--block B] [--count N] [--seed S] \
    [--suites bench,cycles,lockstep,scenarios,proofs] [--seeds N] [--only NAME,...] [--planted [--write]]";

/// Seeds of each lockstep suite that a planted bug has to be found within.
const SEEDS: u64 = 30;

/// The command line.
#[derive(Debug)]
pub(super) struct Options {
    /// A block of the RTL.
    pub(super) block: Option<String>,
    pub(super) subjects: Vec<Subject>,
    pub(super) count: usize,
    pub(super) seed: u64,
    pub(super) suites: Vec<&'static Suite>,
    /// The planted bugs instead of random mutants.
    pub(super) planted: bool,
    /// Only these: planted bugs by their names, others by their numbers.
    pub(super) only: Option<Vec<String>>,
    /// Lockstep is so many seeds of each of its suites, else its tests.
    pub(super) seeds: Option<u64>,
    /// What is found goes into the table of docs/verification.md.
    pub(super) write: bool,
}

impl Options {
    pub(super) fn parse(args: &[String]) -> Result<Self, String> {
        let mut options = Self {
            block: None,
            subjects: vec![Subject::Rtl],
            count: 40,
            seed: 1,
            suites: Vec::new(),
            planted: false,
            only: None,
            seeds: None,
            write: false,
        };
        let mut suites = None;
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or(USAGE);
            match arg.as_str() {
                "--block" => options.block = Some(value()?.clone()),
                "--count" => options.count = value()?.parse().map_err(|_| USAGE)?,
                "--seed" => options.seed = value()?.parse().map_err(|_| USAGE)?,
                "--suites" => {
                    let of = |name: &str| SUITES.iter().find(|suite| suite.name == name);
                    let chosen: Option<Vec<_>> = value()?.split(',').map(of).collect();
                    suites = Some(chosen.ok_or(USAGE)?);
                }
                "--planted" => options.planted = true,
                "--only" => {
                    options.only = Some(value()?.split(',').map(str::to_owned).collect());
                }
                "--seeds" => options.seeds = Some(value()?.parse().map_err(|_| USAGE)?),
                "--write" => options.write = true,
                _ => return Err(USAGE.to_owned()),
            }
        }
        match options.block.as_deref() {
            Some("model") => (options.block, options.subjects) = (None, vec![Subject::Model]),
            Some("rtl") => options.block = None,
            None if options.planted => options.subjects.push(Subject::Model),
            _ => {}
        }
        // Proofs are of rules; the Verilog of a random mutant is not kept.
        let usual = |suite: &&Suite| options.planted || suite.name != "proofs";
        options.suites = suites.unwrap_or_else(|| SUITES.iter().filter(usual).collect());
        if !options.planted && options.suites.iter().any(|suite| !usual(suite)) {
            return Err("proofs are run of planted bugs alone: --planted".to_owned());
        }
        if options.write && !options.planted {
            return Err("--write goes with --planted".to_owned());
        }
        if options.planted {
            options.seeds.get_or_insert(SEEDS);
        }
        Ok(options)
    }

    /// Whether a mutant is asked for.
    pub(super) fn wants(&self, number: usize, name: &str) -> bool {
        let (number, name) = (number.to_string(), name.to_owned());
        self.only.as_ref().is_none_or(|only| only.contains(&number) || only.contains(&name))
    }

    /// Whether a suite is run.
    pub(super) fn runs(&self, name: &str) -> bool {
        self.suites.iter().any(|suite| suite.name == name)
    }

    /// The packages whose tests are run, if `bench` has the benches.
    pub(super) fn tests(&self, bench: &'static str) -> Vec<&'static str> {
        // The command has the lockstep of seeds.
        let lockstep = self.runs("lockstep") && self.seeds.is_none();
        let wanted =
            [(bench, self.runs("bench")), ("cosim", lockstep), ("tests", self.runs("scenarios"))];
        let chosen = wanted.into_iter().filter_map(|(name, is_run)| is_run.then_some(name));
        let mut chosen: Vec<&str> = chosen.collect();
        chosen.dedup();
        chosen
    }

    /// Whether the command `viaduct` is run.
    pub(super) fn needs_command(&self) -> bool {
        let is_command = ["cycles", "proofs"].into_iter().any(|name| self.runs(name));
        is_command || (self.runs("lockstep") && self.seeds.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Options, String> {
        Options::parse(&text.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn options_are_read() {
        let options = parse("--block recv --count 7 --seed 3 --suites lockstep").expect("options");
        assert_eq!(options.suites, [&SUITES[2]]);
        assert_eq!((options.block.as_deref(), options.count, options.seed), (Some("recv"), 7, 3));
        assert_eq!(parse("--block model").expect("options").subjects, [Subject::Model]);
        let rtl = parse("--planted --block rtl").expect("options");
        assert_eq!((rtl.subjects, rtl.block), (vec![Subject::Rtl], None));
        assert_eq!(options.tests("cosim"), ["cosim"]);
        assert_eq!(parse("").expect("options").tests("cosim"), ["cosim", "tests"]);
        assert_eq!(parse("").expect("options").tests("nic-model"), ["nic-model", "cosim", "tests"]);
        let seeds = parse("--seeds 7 --only 3,14").expect("options");
        assert!(seeds.needs_command() && seeds.wants(14, "") && !seeds.wants(4, ""));
        assert_eq!((seeds.tests("cosim"), seeds.seeds), (vec!["cosim", "tests"], Some(7)));
        let planted = parse("--planted --write").expect("options");
        assert_eq!(planted.seeds, Some(SEEDS));
        assert_eq!(planted.tests("nic-model"), ["nic-model", "tests"]);
        assert!(planted.needs_command() && !options.needs_command());
        assert_eq!(planted.subjects, [Subject::Rtl, Subject::Model]);
        assert_eq!(planted.suites.len(), SUITES.len());
        for wrong in ["--count many", "--suites all", "--write", "--suites proofs"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
