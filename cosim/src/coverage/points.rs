//! What can be run, and whether it was.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, BufWriter, Write as _};
use std::path::Path;

/// Points by Verilator's key (fields of the form `\x01name\x02value`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Points(BTreeMap<String, bool>);

/// What kind of thing a point is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A branch of a kernel.
    Branch,
    /// A bit of a register, in one direction.
    Toggle,
}

/// A point, taken apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Item {
    /// Its kind.
    pub kind: Kind,
    /// The block's path below the top, as `channel.store.question`; of a toggle, with the register.
    pub path: String,
    /// File and line of the Verilog.
    pub place: (String, u32),
    /// What moved: `q[3]:0->1`, or `branch_7:0->1`.
    pub remark: String,
    /// Whether it was seen in the block alone, by its bench.
    pub alone: bool,
}

/// Blocks that have a bench, by the class of their model, and where they are in the NIC.
const PARTS: [(&str, &str); 15] = [
    ("Vadmin", "admin"),
    ("Vanatomy", "csr.anatomy"),
    ("Vchannel", "channel"),
    ("Vcounters", "csr.counters"),
    ("Vcq", "cq"),
    ("Vcsr", "csr"),
    ("Vdma_read", "dma_read"),
    ("Vdma_write", "dma_write"),
    ("Verror_log", "csr.log"),
    ("Vevent", "events"),
    ("Vrecv", "recv"),
    ("Vrq", "rq"),
    ("Vsend", "send"),
    ("Vtpt", "tpt"),
    ("Vvi", "vis"),
];

impl Points {
    /// None.
    #[must_use]
    pub const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Reads what a model or [`Points::write`] wrote.
    ///
    /// # Errors
    /// A file that cannot be read, or that holds something else.
    pub fn read(path: &Path) -> io::Result<Self> {
        let mut points = Self::new();
        for line in BufReader::new(File::open(path)?).lines() {
            let line = line?;
            if line.starts_with('#') {
                continue;
            }
            let parts = line
                .strip_prefix("C '")
                .and_then(|rest| rest.rsplit_once("' "))
                .and_then(|(key, count)| Some((key, count.trim().parse::<u64>().ok()?)));
            let Some((key, count)) = parts else {
                let text = format!("{}: not coverage data: {line:?}", path.display());
                return Err(io::Error::new(io::ErrorKind::InvalidData, text));
            };
            *points.0.entry(key.to_owned()).or_default() |= count > 0;
        }
        Ok(points)
    }

    /// Writes all points; a count is 1 or 0.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut file = BufWriter::new(File::create(path)?);
        writeln!(file, "# SystemC::Coverage-3")?;
        for (key, ran) in &self.0 {
            writeln!(file, "C '{key}' {}", u8::from(*ran))?;
        }
        file.flush()
    }

    /// Adds what another run did. True if it ran anything new.
    pub fn add(&mut self, other: Self) -> bool {
        let mut grown = false;
        for (key, ran) in other.0 {
            let known = self.0.entry(key).or_default();
            grown |= ran && !*known;
            *known |= ran;
        }
        grown
    }

    /// All points, and whether they were run.
    pub fn items(&self) -> impl Iterator<Item = (Item, bool)> {
        self.0.iter().filter_map(|(key, ran)| Some((item(key)?, *ran)))
    }
}

/// Takes a key apart; None for what is no branch and no toggle.
fn item(key: &str) -> Option<Item> {
    let field = |name: &str| {
        key.split('\u{1}')
            .filter_map(|field| field.split_once('\u{2}'))
            .find_map(|(found, value)| (found == name).then_some(value))
    };
    let (page, module) = field("page")?.split_once('/')?;
    let remark = field("o").filter(|_| page == "v_toggle")?.to_owned();
    // A branch's register is set once, and never cleared (`build/coverage.rs`).
    let kind = match remark.strip_prefix("branch_") {
        Some(rest) if rest.ends_with("0->1") => Kind::Branch,
        Some(_) => return None,
        None => Kind::Toggle,
    };
    let inside = module.split_once('$').map_or("", |(_, path)| path).replace('$', ".");
    let file = field("f")?;
    let (path, alone) = match bench(file) {
        None => (inside, false),
        Some(block) => {
            let (_, part) = PARTS.iter().find(|(known, _)| *known == block)?;
            let parts = [*part, &inside].into_iter().filter(|part| !part.is_empty());
            (parts.collect::<Vec<_>>().join("."), true)
        }
    };
    let place = (file.to_owned(), field("l")?.parse().ok()?);
    Some(Item { kind, path, place, remark, alone })
}

/// The class of the model that was made of a Verilog file (`Vtop-0123456789abcdef.v`), if it is that of a block
/// alone.
fn bench(file: &str) -> Option<&str> {
    let (class, _) = Path::new(file).file_stem()?.to_str()?.split_once('-')?;
    (class != "Vtop").then_some(class)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(page: &str, remark: &str) -> String {
        format!("\u{1}f\u{2}top.v\u{1}l\u{2}12\u{1}page\u{2}{page}\u{1}o\u{2}{remark}")
    }

    fn points(of: &[(&str, &str, bool)]) -> Points {
        Points(of.iter().map(|(page, remark, ran)| (key(page, remark), *ran)).collect())
    }

    #[test]
    fn what_ran_once_ran() {
        let [a, b] = ["branch_0:0->1", "branch_1:0->1"];
        let mut all = points(&[("v_toggle/top$a", a, false), ("v_toggle/top$a", b, true)]);
        assert!(all.add(points(&[("v_toggle/top$a", a, true)])));
        assert!(!all.add(points(&[("v_toggle/top$a", a, true)])));
        assert!(all.items().all(|(_, ran)| ran));
    }

    #[test]
    fn keys_are_taken_apart() {
        let all = points(&[
            ("v_toggle/top$a$b$c", "q[3]:0->1", false),
            ("v_toggle/top$a", "branch_3:1->0", false),
            ("v_user/top", "", true),
        ]);
        let (item, ran) = all.items().next().unwrap();
        assert_eq!((item.kind, item.path.as_str(), ran), (Kind::Toggle, "a.b.c", false));
        assert_eq!((item.place.1, item.remark.as_str()), (12, "q[3]:0->1"));
        assert_eq!(all.items().count(), 1);
    }

    #[test]
    fn blocks_alone_are_parts_of_the_nic() {
        let of = |file: &str, module: &str| {
            let key = key(&format!("v_toggle/{module}"), "q[3]:0->1").replace("top.v", file);
            item(&key).map(|item| (item.path, item.alone))
        };
        assert_eq!(of("out/Vtop-17.v", "top$send$cut"), Some(("send.cut".into(), false)));
        assert_eq!(of("out/Vsend-5a.v", "top$cut"), Some(("send.cut".into(), true)));
        assert_eq!(of("out/Vcounters-0.v", "top"), Some(("csr.counters".into(), true)));
        assert_eq!(of("out/Vfifo_64x4-0.v", "top"), None);
    }

    #[test]
    fn files_are_read_back() {
        let path = std::env::temp_dir().join(format!("viaduct-points-{}", std::process::id()));
        let all = points(&[("v_toggle/top$a", "x", true), ("v_toggle/top$a", "y", false)]);
        all.write(&path).unwrap();
        assert_eq!(Points::read(&path).unwrap(), all);
        std::fs::write(&path, "something else\n").unwrap();
        assert!(Points::read(&path).unwrap_err().to_string().contains("not coverage data"));
        std::fs::remove_file(&path).unwrap();
    }
}
