//! Where the RTL has a line of its emitted Verilog.
//!
//! A module of the Verilog is a field of the struct that its parent is, so the path of its name leads to a struct
//! and its kernel. RustHDL prints a kernel statement by statement and keeps all names: a statement and its line
//! have the same names in the same order. Where several have, their order decides, if there are as many on
//! both sides. Otherwise nothing is said.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::mutant::Mutant;
use crate::kernels::is_kernel;
use crate::{rust_source, workspace};

/// The struct that the NIC is.
const ROOT: &str = "Top";
/// Begins a kernel in emitted Verilog, and ends it (`cosim/build/coverage.rs`).
const KERNEL: [&str; 2] = ["    always @(*) begin", "    end"];
/// Names of Rust that are not printed.
const UNPRINTED: [&str; 4] = ["self", "next", "true", "false"];

/// A block of the RTL.
#[derive(Debug, Default)]
struct Block {
    path: PathBuf,
    /// Types of its fields.
    fields: BTreeMap<String, String>,
    /// Lines of its kernel's statements, with their names.
    statements: Vec<(usize, Vec<String>)>,
}

/// By name; several parts of the NIC have a `Port`.
type Blocks = BTreeMap<String, Vec<Block>>;

/// Gives mutants of the RTL their places in its source.
pub(super) fn find(verilog: &str, mutants: &mut [Mutant]) -> Result<(), String> {
    let blocks = blocks()?;
    for site in mutants.iter_mut().flat_map(|mutant| &mut mutant.sites) {
        site.source = block(&blocks, &site.module).and_then(|block| {
            let line = line(&kernel(verilog, &site.module), &site.before, site.line, block)?;
            Some(format!("{}:{line}", block.path.display()))
        });
    }
    Ok(())
}

/// All lines of a module of the Verilog, those outside of its kernel empty: so they keep their numbers.
fn kernel<'a>(verilog: &'a str, module: &str) -> Vec<&'a str> {
    lines(verilog).filter(|(own, _)| *own == module).map(|(_, line)| line).collect()
}

/// The lines of the Verilog, those outside of kernels empty, each with its module.
pub(super) fn lines(verilog: &str) -> impl Iterator<Item = (&str, &str)> {
    let (mut module, mut inside) = ("", false);
    verilog.lines().map(move |line| {
        if let Some(rest) = line.strip_prefix("module ") {
            module = rest.split('(').next().unwrap_or(rest);
        }
        inside = (inside || line == KERNEL[0]) && line != KERNEL[1];
        (module, if inside { line } else { "" })
    })
}

/// The block that a module is.
fn block<'a>(blocks: &'a Blocks, module: &str) -> Option<&'a Block> {
    let mut at = blocks.get(ROOT)?.first()?;
    for field in module.split('$').skip(1) {
        let named = blocks.get(at.fields.get(field)?)?;
        // Of several the one below its user, or beside it.
        let below = |block: &&Block| block.path.starts_with(at.path.with_extension(""));
        let beside = |block: &&Block| block.path.parent() == at.path.parent();
        at = match &named[..] {
            [only] => only,
            several => {
                let nearest = several.iter().find(below);
                nearest.or_else(|| several.iter().find(beside))?
            }
        };
    }
    Some(at)
}

/// The line of a block's source that is this line of its module.
fn line(kernel: &[&str], before: &str, at: usize, block: &Block) -> Option<usize> {
    let wanted = names(before);
    // Of a macro in the source.
    let holds = |line: &str| {
        line.split_once("$d = ")
            .is_some_and(|(name, value)| value.strip_suffix("$q;") == Some(name))
    };
    let same =
        |(at, line): (usize, &&str)| (names(line) == wanted && !holds(line.trim())).then_some(at);
    let printed: Vec<usize> = kernel.iter().enumerate().filter_map(same).collect();
    let written: Vec<usize> = block
        .statements
        .iter()
        .filter(|(_, names)| *names == wanted)
        .map(|(line, _)| *line)
        .collect();
    let rank = printed.iter().position(|other| *other == at)?;
    (printed.len() == written.len()).then(|| written[rank])
}

/// The names in a text of either language, in their order. In Rust those of functions are left out.
fn names(text: &str) -> Vec<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let (mut found, mut rest) = (Vec::new(), text);
    while let Some(start) = rest.find(is_part) {
        rest = &rest[start..];
        // A number of Verilog has its base in it.
        let is_number = rest.starts_with(|c: char| c.is_ascii_digit());
        let end = rest.find(|c: char| !(is_part(c) || (is_number && c == '\'')));
        let (word, behind) = rest.split_at(end.unwrap_or(rest.len()));
        let is_function = behind.starts_with('(') || behind.starts_with("::<");
        if !is_number && !is_function && !UNPRINTED.contains(&word) {
            found.push(word.to_owned());
        }
        rest = behind;
    }
    found.retain(|name| !["begin", "else"].contains(&name.as_str()));
    found
}

/// The blocks of the RTL, by name.
fn blocks() -> Result<Blocks, String> {
    let files: Vec<PathBuf> =
        workspace::files()?.into_iter().filter(|file| file.starts_with("hdl/src")).collect();
    let (sources, _) = rust_source::parse_all(&files)?;
    let mut blocks = Blocks::new();
    for source in &sources {
        let mut reader = Reader { path: &source.path, blocks: &mut blocks };
        reader.visit_file(&source.ast);
    }
    for source in &sources {
        let (text, path) = (&source.text, &source.path);
        let mut reader = Statements { text, path, block: None, blocks: &mut blocks };
        reader.visit_file(&source.ast);
    }
    Ok(blocks)
}

/// Notes structs.
struct Reader<'a> {
    path: &'a Path,
    blocks: &'a mut Blocks,
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        let fields = item.fields.iter().filter_map(|field| match &field.ty {
            syn::Type::Path(path) => Some((
                field.ident.as_ref()?.to_string(),
                path.path.segments.last()?.ident.to_string(),
            )),
            _ => None,
        });
        let block =
            Block { path: self.path.to_owned(), fields: fields.collect(), ..Block::default() };
        self.blocks.entry(item.ident.to_string()).or_default().push(block);
    }
}

/// Notes statements of kernels.
struct Statements<'a> {
    text: &'a str,
    path: &'a Path,
    /// Whose kernel it is.
    block: Option<String>,
    blocks: &'a mut Blocks,
}

impl Statements<'_> {
    fn add(&mut self, keyword: Option<&str>, statement: &impl Spanned) {
        let named = self.block.as_ref().and_then(|name| self.blocks.get_mut(name));
        let block = named.into_iter().flatten().find(|block| block.path == self.path);
        if let Some(block) = block {
            let span = statement.span();
            let text = &self.text[span.byte_range()];
            let names = keyword.map(str::to_owned).into_iter().chain(names(text)).collect();
            block.statements.push((span.start().line, names));
        }
    }
}

impl<'ast> Visit<'ast> for Statements<'_> {
    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        if let syn::Type::Path(path) = &*item.self_ty {
            self.block = path.path.segments.last().map(|last| last.ident.to_string());
            visit::visit_item_impl(self, item);
            self.block = None;
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if is_kernel(&function.attrs) {
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_expr_assign(&mut self, assign: &'ast syn::ExprAssign) {
        self.add(None, assign);
    }

    fn visit_expr_if(&mut self, branch: &'ast syn::ExprIf) {
        self.add(Some("if"), &branch.cond);
        visit::visit_expr_if(self, branch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_languages_have_the_same_names() {
        let rust = "self.limit.d.next = bit_cast::<34, 32>(self.length.q.val()) + self.low.val().get_bits::<6>(0)";
        let verilog = "limit$d = ((length$q) & 34'h3ffffffff) + low[(32'h0)+:(6)];";
        assert_eq!(names(rust), names(verilog));
        assert_eq!(names(verilog), ["limit", "d", "length", "q", "low"]);
        assert_eq!(
            names("else if (state$q == Kind$Idle) begin"),
            names("if (state$q == Kind$Idle) begin")
        );
    }

    #[test]
    fn a_line_is_found_in_the_source() {
        let blocks = blocks().expect("the RTL");
        let found = block(&blocks, "top$recv$prefetch$loader$resolver").expect("a block");
        assert!(found.path.ends_with("recv/resolver.rs"), "{found:?}");
        let tpt = block(&blocks, "top$tpt").expect("a block");
        let port = |module| block(&blocks, module).map(|block| block.path.clone());
        assert_eq!(port("top$recv$port"), Some(PathBuf::from("hdl/src/recv/port.rs")));
        assert_eq!(port("top$send$port"), Some(PathBuf::from("hdl/src/send/port.rs")));
        let kernel = [
            "module top$tpt(clock);",
            KERNEL[0],
            "        if (set$clear) begin",
            "            attribute_ram$write_data = 32'h0;",
            "        if (reset) begin",
        ];
        let at = |before: &str, at| line(&kernel, before, at, tpt);
        let source = std::fs::read_to_string(workspace::root().join(&tpt.path)).expect("a file");
        let number = at("if (reset) begin", 4).expect("one place");
        assert_eq!(source.lines().nth(number - 1).map(str::trim), Some("if self.reset.val() {"));
        // The source has it twice.
        assert_eq!(at("attribute_ram$write_data = 32'h0;", 3), None);
        assert!(block(&blocks, "top$tpt$nothing").is_none());
    }
}
