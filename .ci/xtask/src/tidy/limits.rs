//! Sizes of files, functions and lines.

use std::path::Path;

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::{Findings, Tree};
use crate::kernels::is_kernel;
use crate::rust_source::Source;

/// Lines of a software file that are not blank: worth a thought, and too many.
const SOFTWARE_LINES: (usize, usize) = (400, 600);
/// The same for a file of the RTL.
const RTL_LINES: (usize, usize) = (250, 400);
/// Lines of code in a function, without blank lines and comments.
const FUNCTION_LINES: usize = 70;
/// The same for a kernel, which cannot call functions; its list of registers does not count.
const KERNEL_LINES: usize = 200;
/// The same for a bench of a block, which plays all its neighbours.
const BENCH_LINES: usize = 120;
/// Columns of a line: rustfmt keeps code at 100; tables and drawings in comments may use more.
pub(crate) const COLUMNS: usize = 120;

/// Files that may be longer, each with its reason.
const LONG_FILES: &[(&str, &str)] = &[
    ("hdl/src/send.rs", "wiring between the engine's stages, no logic of its own"),
    ("hdl/src/recv.rs", "wiring between the engine's parts, no logic of its own"),
    ("hdl/src/ifs.rs", "one page of every interface is easier to check than five"),
    ("cosim/tests/engine/send.rs", "one neighbourhood of the send engine"),
    ("cosim/tests/engine/recv.rs", "one neighbourhood of the receive engine"),
    ("cosim/tests/event.rs", "one neighbourhood of the event block"),
];

/// Functions that may be longer (`file::function`), each with its reason.
const LONG_FUNCTIONS: &[(&str, &str)] = &[
    ("hdl/src/send.rs::update", "wiring between the engine's stages, no logic of its own"),
    ("hdl/src/vi.rs::update", "who may do what to a VI: one table, and its wiring"),
    ("hdl/src/recv.rs::update", "wiring between the engine's parts, no logic of its own"),
    ("hdl/src/recv/jobs.rs::update", "one state machine, and the wiring of the three that it asks"),
    ("hdl/src/recv/loader.rs::update", "one state machine, and the wiring of reader and resolver"),
];

/// Files whose lines rustfmt or a person keeps short. Documents have tables, which cannot wrap.
const CODE_EXTENSIONS: [&str; 8] = ["rs", "toml", "yml", "sh", "v", "cpp", "h", "py"];

pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    for source in &tree.sources {
        file_length(source, findings);
        let mut functions = Functions { source, findings };
        functions.visit_file(&source.ast);
    }
    for path in &tree.files {
        columns(path, findings);
    }
}

fn file_length(source: &Source, findings: &mut Findings) {
    let path = source.path.as_path();
    if LONG_FILES.iter().any(|(name, _)| Path::new(name) == path) {
        return;
    }
    let (soft, hard) = if path.starts_with("hdl/src") { RTL_LINES } else { SOFTWARE_LINES };
    let lines = source.text.lines().filter(|line| !line.trim().is_empty()).count();
    let advice = "split it by concept";
    if lines > hard {
        findings.error(path, 0, "file-length", format!("{lines} lines, at most {hard}: {advice}"));
    } else if lines > soft {
        findings.warn(path, 0, "file-length", format!("{lines} lines, better {soft}: {advice}"));
    }
}

struct Functions<'a> {
    source: &'a Source,
    findings: &'a mut Findings,
}

impl Functions<'_> {
    fn check(&mut self, signature: &syn::Signature, block: &syn::Block, limit: usize) {
        let name = signature.ident.to_string();
        let key = format!("{}::{name}", self.source.path.display());
        if LONG_FUNCTIONS.iter().any(|(exempt, _)| *exempt == key) {
            return;
        }
        let bench = self.source.path.starts_with("cosim/tests");
        let limit = if bench { limit.max(BENCH_LINES) } else { limit };
        let (first, last) = (signature.span().start().line, block.span().end().line);
        let lines = self.source.text.lines().skip(first - 1).take(last + 1 - first);
        let count = lines.map(str::trim).filter(|line| is_code(line)).count();
        let count =
            count.saturating_sub(if limit == KERNEL_LINES { setup_lines(block) } else { 0 });
        if count > limit {
            let message = format!("`{name}` has {count} lines of code, at most {limit}");
            self.findings.error(&self.source.path, first, "function-length", message);
        }
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.check(&function.sig, &function.block, FUNCTION_LINES);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        let limit = if is_kernel(&function.attrs) { KERNEL_LINES } else { FUNCTION_LINES };
        self.check(&function.sig, &function.block, limit);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(block) = &function.default {
            self.check(&function.sig, block, FUNCTION_LINES);
        }
        visit::visit_trait_item_fn(self, function);
    }
}

/// Lines of the macros that only list registers (`dff_setup!`, `clock!`).
fn setup_lines(block: &syn::Block) -> usize {
    let lists = block.stmts.iter().filter(|statement| matches!(statement, syn::Stmt::Macro(_)));
    lists.map(|list| list.span().end().line - list.span().start().line).sum()
}

fn is_code(line: &str) -> bool {
    !line.is_empty() && !line.starts_with("//")
}

fn columns(path: &Path, findings: &mut Findings) {
    let is_code =
        path.extension().is_some_and(|ext| CODE_EXTENSIONS.iter().any(|known| ext == *known));
    let Ok(Some(text)) = super::read_text(path) else { return };
    if !is_code {
        return;
    }
    let too_long: Vec<usize> = (1..)
        .zip(text.lines())
        .filter(|(_, line)| is_too_long(line))
        .map(|(number, _)| number)
        .collect();
    if let Some(first) = too_long.first() {
        let message = format!(
            "more than {COLUMNS} columns in lines {}: wrap them by hand",
            too_long.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
        );
        findings.error(path, *first, "columns", message);
    }
}

fn is_too_long(line: &str) -> bool {
    // A link cannot be broken, nor a table in a comment.
    let table = line.trim_start().trim_start_matches(['/', '!']).starts_with(" |");
    line.chars().count() > COLUMNS && !line.contains("://") && !table
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::path::PathBuf;

    use super::*;

    fn source(path: &str, text: String) -> Source {
        let ast = syn::parse_file(&text).expect("the test's file parses");
        Source { path: PathBuf::from(path), text, ast }
    }

    fn function_of(lines: usize, attribute: &str) -> Source {
        let mut text = format!("impl B {{\n{attribute}\nfn long(&self) {{\n// a comment\n\n");
        for line in 0..lines {
            let _ = writeln!(text, "f({line});");
        }
        text.push_str("}\n}\n");
        source("a/src/b.rs", text)
    }

    fn long_functions(source: &Source) -> usize {
        let mut findings = Findings::default();
        Functions { source, findings: &mut findings }.visit_file(&source.ast);
        findings.errors.len()
    }

    #[test]
    fn function_length_counts_code_only() {
        assert_eq!(long_functions(&function_of(FUNCTION_LINES - 2, "")), 0);
        assert_eq!(long_functions(&function_of(FUNCTION_LINES - 1, "")), 1);
        assert_eq!(long_functions(&function_of(FUNCTION_LINES - 1, "#[hdl_gen]")), 0);
    }

    #[test]
    fn links_and_tables_may_be_wide() {
        let wide = "x".repeat(COLUMNS);
        assert!(is_too_long(&format!("// {wide}")));
        assert!(!is_too_long(&format!("// https://{wide}")));
        assert!(!is_too_long(&format!("//! | {wide} |")));
        assert!(!is_too_long(&wide));
    }

    #[test]
    fn file_length_has_a_soft_and_a_hard_limit() {
        for (lines, path, errors, warnings) in [
            (400, "a/src/b.rs", 0, 0),
            (401, "a/src/b.rs", 0, 1),
            (601, "a/src/b.rs", 1, 0),
            (401, "hdl/src/b.rs", 1, 0),
        ] {
            let mut findings = Findings::default();
            file_length(&source(path, "use a;\n\n".repeat(lines)), &mut findings);
            assert_eq!((findings.errors.len(), findings.warnings.len()), (errors, warnings));
        }
    }
}
