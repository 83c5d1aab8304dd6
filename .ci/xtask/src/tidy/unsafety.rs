//! Where `unsafe` may stand.

use std::path::Path;

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::{Findings, Tree};
use crate::rust_source::Source;

/// Files that may hold `unsafe`, each with its reason. It grows by a decision in
/// `docs/decisions`. A trailing `*` stands for the rest of a file name.
const ALLOWED: &[(&str, &str)] = &[
    ("host-driver/port/src/barrier.rs", "barriers are instructions"),
    ("host-driver/port/src/fork.rs", "descriptors by number"),
    ("host-driver/port/src/lock.rs", "the value behind a lock"),
    ("host-driver/port/src/memory*", "memory that a device writes"),
    (
        "host-driver/port/src/process.rs",
        "handlers at forks and at the end, functions of the C library",
    ),
    ("host-driver/port/src/stamp/counter.rs", "the cycle counter is read by an instruction"),
    ("host-driver/port/src/work_queue/ring.rs", "pointers to descriptors"),
    ("host-driver/src/bus/vfio*", "mapped BARs and ioctls"),
    ("cosim/src/verilated/*", "the C interface of the Verilated models"),
    ("nic-model/soft/src/shm/fence.rs", "a system call without a wrapper"),
    ("nic-model/soft/tests/shm_processes/fork.rs", "fork of the C library"),
    ("via-user/lane/src/tun/ioctl.rs", "numbers of ioctls and the structures that belong to them"),
    ("via-user/libsovia/src/buffers.rs", "memory of programs, as their calls name it"),
    ("via-user/libsovia/src/errno.rs", "a variable of the C library"),
    ("via-user/libsovia/src/kernel.rs", "options of sockets that no safe wrapper has"),
    ("via-user/libsovia/src/real.rs", "functions of the C library, found by name"),
    ("via-user/libsovia/src/ffi/*", "names of exported functions, and what programs point to"),
    ("via-user/libviarpc/src/ffi.rs", "names of exported functions, and texts of programs"),
    ("via-user/libvipl/src/pointer.rs", "what programs in C point to"),
    ("via-user/libvipl/src/ffi/*", "names of exported functions"),
];

pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    for source in &tree.sources {
        if !is_allowed(&source.path) {
            for line in unsafe_lines(source) {
                let message = "`unsafe` outside the files that may hold it (list in xtask's \
                               tidy/unsafety.rs)";
                findings.error(&source.path, line, "unsafe", message);
            }
        }
        check_crate_root(tree, source, findings);
    }
}

fn is_allowed(path: &Path) -> bool {
    let path = path.to_string_lossy();
    ALLOWED.iter().any(|(pattern, _)| match pattern.strip_suffix('*') {
        Some(prefix) => path.starts_with(prefix),
        None => path == *pattern,
    })
}

/// Every crate denies `unsafe`, by the lints of the workspace or by itself.
fn check_crate_root(tree: &Tree, source: &Source, findings: &mut Findings) {
    let path = &source.path;
    if !path.ends_with("src/lib.rs") && !path.ends_with("src/main.rs") {
        return;
    }
    let Some(manifest) = path.ancestors().nth(2).map(|folder| folder.join("Cargo.toml")) else {
        return;
    };
    let inherits = tree.files.contains(&manifest)
        && matches!(super::read_text(&manifest), Ok(Some(text))
            if text.contains("[lints]\nworkspace = true"));
    let says_so = source.ast.attrs.iter().any(|attr| {
        (attr.path().is_ident("forbid") || attr.path().is_ident("deny"))
            && attr.parse_args::<syn::Path>().is_ok_and(|lint| lint.is_ident("unsafe_code"))
    });
    if !inherits && !says_so {
        let message = "this crate does not inherit the workspace's lints: say \
                       `#![forbid(unsafe_code)]`";
        findings.error(path, 1, "unsafe", message);
    }
}

fn unsafe_lines(source: &Source) -> Vec<usize> {
    let mut visitor = UnsafeVisitor::default();
    visitor.visit_file(&source.ast);
    visitor.lines
}

#[derive(Default)]
struct UnsafeVisitor {
    lines: Vec<usize>,
}

impl UnsafeVisitor {
    fn found(&mut self, at: &impl Spanned) {
        self.lines.push(at.span().start().line);
    }
}

impl<'ast> Visit<'ast> for UnsafeVisitor {
    fn visit_expr_unsafe(&mut self, block: &'ast syn::ExprUnsafe) {
        self.found(&block.unsafe_token);
        visit::visit_expr_unsafe(self, block);
    }

    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        if let Some(token) = &signature.unsafety {
            self.found(token);
        }
        visit::visit_signature(self, signature);
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        if let Some(token) = &item.unsafety {
            self.found(token);
        }
        visit::visit_item_impl(self, item);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        if let Some(token) = &item.unsafety {
            self.found(token);
        }
        visit::visit_item_trait(self, item);
    }

    fn visit_item_foreign_mod(&mut self, item: &'ast syn::ItemForeignMod) {
        self.found(item);
        visit::visit_item_foreign_mod(self, item);
    }

    fn visit_attribute(&mut self, attr: &'ast syn::Attribute) {
        if attr.path().is_ident("unsafe") {
            self.found(attr);
        }
        visit::visit_attribute(self, attr);
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn every_form_of_unsafe_is_seen() {
        let text = "// unsafe\nfn a() { unsafe {} }\nunsafe fn b() {}\nunsafe impl S for T {}\n\
                    unsafe extern \"C\" {}\n#[unsafe(no_mangle)] fn c() {}\nfn d() { \"unsafe\"; }";
        let ast = syn::parse_file(text).expect("the test's file parses");
        let source = Source { path: PathBuf::from("a.rs"), text: text.to_owned(), ast };
        assert_eq!(unsafe_lines(&source), [2, 3, 4, 5, 6]);
    }

    #[test]
    fn list_matches_names_and_prefixes() {
        assert!(is_allowed(Path::new("host-driver/port/src/memory.rs")));
        assert!(is_allowed(Path::new("host-driver/src/bus/vfio_dma.rs")));
        assert!(is_allowed(Path::new("cosim/src/verilated/ffi.rs")));
        assert!(!is_allowed(Path::new("cosim/src/verilated.rs")));
        assert!(!is_allowed(Path::new("host-driver/port/src/doorbell.rs")));
    }
}
