//! Rules about this project: dependencies, documents of blocks, the test plan.

use std::collections::BTreeSet;
use std::path::Path;

use syn::visit::{self, Visit};

use super::{Findings, Tree, read_text};

const TEST_PLAN: &str = "tests/testplan.md";

pub(super) fn check(tree: &Tree, findings: &mut Findings) -> Result<(), String> {
    let manifest = Path::new("Cargo.toml");
    if let Some(text) = read_text(manifest)? {
        for (line, name) in unexplained_dependencies(&text) {
            let message = format!("`{name}` needs a comment above it that says why it is here");
            findings.error(manifest, line, "dependency", message);
        }
    }
    block_documents(tree, findings);
    page_chapters(tree, findings)?;
    let plan = Path::new(TEST_PLAN);
    if tree.files.iter().any(|file| file == plan)
        && let Some(text) = read_text(plan)?
    {
        let functions = function_names(tree);
        for (line, name) in planned_tests(&text) {
            let last = name.rsplit("::").next().unwrap_or(&name);
            if !functions.contains(last) {
                findings.error(plan, line, "test-plan", format!("there is no test `{name}`"));
            }
        }
    }
    Ok(())
}

/// Dependencies of the workspace without a comment in the line above. The crates of the
/// workspace itself need none.
fn unexplained_dependencies(manifest: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut in_table = false;
    let mut previous = "";
    for (index, line) in manifest.lines().enumerate() {
        if line.starts_with('[') {
            in_table = line == "[workspace.dependencies]";
        } else if in_table
            && let Some((name, value)) = line.split_once('=')
            && !line.starts_with('#')
            && !value.contains("path =")
            && !previous.starts_with('#')
        {
            found.push((index + 1, name.trim().to_owned()));
        }
        previous = line;
    }
    found
}

/// Each file with a kernel or hand-written Verilog has its page in `hdl/doc`.
fn block_documents(tree: &Tree, findings: &mut Findings) {
    for source in tree.sources.iter().filter(|source| source.path.starts_with("hdl/src")) {
        let is_block = ["#[hdl_gen]", "Verilog::Custom"].iter().any(|sign| {
            source.text.lines().any(|line| !line.trim().starts_with("//") && line.contains(sign))
        });
        // The page of the folder also serves for the parts in it.
        let parts = source.path.with_extension("");
        let mut stems = parts.iter().skip(2);
        let documented = |stem: &std::ffi::OsStr| {
            tree.files.contains(&Path::new("hdl/doc").join(stem).with_extension("md"))
        };
        if is_block && !stems.clone().any(documented) {
            let stem = stems.next().unwrap_or_default().to_string_lossy();
            let message = format!("this block has no page, such as hdl/doc/{stem}.md");
            findings.error(&source.path, 0, "block-document", message);
        }
    }
}

/// The chapters of a block's page, in their order.
const CHAPTERS: [&str; 9] = [
    "Purpose",
    "Symbol",
    "Interface",
    "Theory of operation",
    "Limits and rejected inputs",
    "What is not obvious",
    "Verification",
    "When it hangs",
    "Cost",
];

/// The first chapter that a page lacks, or has at another place.
fn wrong_chapter(page: &str) -> Option<String> {
    let mut chapters = page.lines().filter_map(|line| line.strip_prefix("## "));
    CHAPTERS.iter().enumerate().find_map(|(at, name)| {
        let due = format!("{}. {name}", at + 1);
        (chapters.next() != Some(&due)).then_some(due)
    })
}

/// Each page of `hdl/doc` has the same chapters.
fn page_chapters(tree: &Tree, findings: &mut Findings) -> Result<(), String> {
    for path in tree.files.iter().filter(|path| path.starts_with("hdl/doc")) {
        if let Some(text) = read_text(path)?
            && let Some(due) = wrong_chapter(&text)
        {
            let message = format!("the chapter `## {due}` is missing or not in its place");
            findings.error(path, 0, "page-chapters", message);
        }
    }
    Ok(())
}

/// The section of the plan whose rows are in C; a test of the command compares it with them.
const CONFORMANCE: &str = "## Conformance";

/// The tests that the tables of the plan name: in backquotes, as paths or snake-case names.
fn planned_tests(plan: &str) -> Vec<(usize, String)> {
    let mut tests = Vec::new();
    let rust = plan.lines().enumerate().take_while(|(_, line)| *line != CONFORMANCE);
    for (index, line) in rust.filter(|(_, line)| line.starts_with('|')) {
        // Every second piece is between backquotes.
        for name in line.split('`').skip(1).step_by(2) {
            let is_name = name
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_:".contains(c));
            if is_name && (name.contains('_') || name.contains("::")) {
                tests.push((index + 1, name.to_owned()));
            }
        }
    }
    tests
}

fn function_names(tree: &Tree) -> BTreeSet<String> {
    #[derive(Default)]
    struct Names(BTreeSet<String>);
    impl<'ast> Visit<'ast> for Names {
        fn visit_signature(&mut self, signature: &'ast syn::Signature) {
            self.0.insert(signature.ident.to_string());
        }
        fn visit_macro(&mut self, mac: &'ast syn::Macro) {
            // Tests inside `proptest!` and the like are tokens only.
            let text = mac.tokens.to_string();
            let mut words = text.split_whitespace();
            while let Some(word) = words.next() {
                if word == "fn"
                    && let Some(name) = words.next()
                {
                    self.0.insert(
                        name.trim_end_matches(|c| c != '_' && !char::is_alphanumeric(c)).to_owned(),
                    );
                }
            }
            visit::visit_macro(self, mac);
        }
    }
    let mut names = Names::default();
    tree.sources.iter().for_each(|source| names.visit_file(&source.ast));
    names.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_need_reasons() {
        let manifest = "[package]\nname = \"a\"\n[workspace.dependencies]\n\
                        hdl = { path = \"hdl\" }\n# Why.\nclap = \"4\"\nrand = \"1\"\n\
                        [profile.dev]\nopt-level = 1\n";
        assert_eq!(unexplained_dependencies(manifest), [(7, "rand".to_owned())]);
    }

    #[test]
    fn chapters_are_all_there_in_their_order() {
        let page: String =
            (1..).zip(CHAPTERS).map(|(at, name)| format!("## {at}. {name}\ntext\n")).collect();
        assert_eq!(wrong_chapter(&format!("# block\n\n{page}## 10. More\n")), None);
        let swapped = page.replace("Symbol", "Interface");
        assert_eq!(wrong_chapter(&swapped), Some("2. Symbol".to_owned()));
        assert_eq!(wrong_chapter("## 1. Purpose\n"), Some("2. Symbol".to_owned()));
    }

    #[test]
    fn plan_names_are_found_in_tables_only() {
        let plan = "Run `no_test`.\n| point | `tests::sends_once`, `csr_walk` | `cosim` | `a.rs` |\n\
             ## Conformance\n| `row_in_c` |\n";
        let names: Vec<_> = planned_tests(plan).into_iter().map(|(_, name)| name).collect();
        assert_eq!(names, ["tests::sends_once", "csr_walk"]);
    }
}
