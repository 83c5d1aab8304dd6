//! Files of a crate that import each other in a circle.
//!
//! A file imports the file that defines what it names, also where another file re-exports it. What a
//! file only re-exports (`pub use`) is its face, and no import. A submodule is a part of the modules
//! above it and may import them; tests may import anything.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};
use syn::{Attribute, ItemMod, ItemUse, UseTree, Visibility};

use super::{Findings, Tree};

/// A module: the folder of its crate's sources, and the names from the crate's root on.
type Module = (PathBuf, Vec<String>);

/// Longest chain of re-exports that is followed.
const CHAIN: usize = 4;

#[derive(Default)]
struct Imports {
    /// Paths that the file names, as written.
    named: Vec<Vec<String>>,
    /// Name that a `use` gives to a path.
    aliases: BTreeMap<String, Vec<String>>,
}

struct File<'a> {
    path: &'a Path,
    imports: Imports,
}

pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    let mut files: BTreeMap<Module, File<'_>> = BTreeMap::new();
    for source in &tree.sources {
        if let Some(module) = module_of(&source.path) {
            let mut imports = Imports::default();
            imports.visit_file(&source.ast);
            files.insert(module, File { path: &source.path, imports });
        }
    }
    let edges: BTreeMap<&Path, BTreeSet<&Path>> = files
        .iter()
        .map(|(module, file)| {
            let named = file.imports.named.iter();
            let targets = named.filter_map(|path| target(&files, module, path, CHAIN));
            let others = targets.filter(|target| {
                module_of(target).is_some_and(|(_, names)| !module.1.starts_with(&names))
            });
            (file.path, others.collect())
        })
        .collect();
    let mut seen = BTreeSet::new();
    for file in edges.keys() {
        let circle: BTreeSet<&Path> = reached(&edges, file)
            .into_iter()
            .filter(|other| reached(&edges, other).contains(file))
            .collect();
        if !circle.is_empty() && seen.insert(circle.clone()) {
            let names: Vec<String> = circle.iter().map(|f| f.display().to_string()).collect();
            let message = format!("these files import each other: {}", names.join(", "));
            findings.error(file, 0, "import-circle", message);
        }
    }
}

/// The files that a file imports, directly or through others.
fn reached<'a>(edges: &BTreeMap<&'a Path, BTreeSet<&'a Path>>, from: &Path) -> BTreeSet<&'a Path> {
    let mut reached = BTreeSet::new();
    let mut todo: Vec<&Path> = edges.get(from).into_iter().flatten().copied().collect();
    while let Some(file) = todo.pop() {
        if reached.insert(file) {
            todo.extend(edges.get(file).into_iter().flatten().copied());
        }
    }
    reached
}

/// The module of a source file; none of a test, or of a program beside a library.
fn module_of(path: &Path) -> Option<Module> {
    let source = path.ancestors().find(|folder| folder.ends_with("src"))?;
    let names = path.strip_prefix(source).ok()?.with_extension("");
    let mut names: Vec<String> =
        names.iter().map(|name| name.to_string_lossy().into_owned()).collect();
    if names.iter().any(|name| name == "tests") || names[0] == "bin" {
        return None;
    }
    if matches!(names.last()?.as_str(), "lib" | "mod" | "main") {
        names.pop();
    }
    Some((source.to_path_buf(), names))
}

/// The file that defines what a path of `module` names.
fn target<'a>(
    files: &BTreeMap<Module, File<'a>>,
    module: &Module,
    path: &[String],
    chain: usize,
) -> Option<&'a Path> {
    let (source, own) = module;
    let supers = path.iter().take_while(|name| *name == "super").count();
    let (mut absolute, rest) = match path.first()?.as_str() {
        "crate" => (Vec::new(), &path[1..]),
        "self" => (own.clone(), &path[1..]),
        "super" => (own[..own.len().checked_sub(supers)?].to_vec(), &path[supers..]),
        name => {
            let child = [own.as_slice(), &[name.to_owned()]].concat();
            files.get(&(source.clone(), child))?;
            (own.clone(), path)
        }
    };
    let mut rest = rest.iter();
    let mut item = None;
    for name in rest.by_ref() {
        absolute.push(name.clone());
        if !files.contains_key(&(source.clone(), absolute.clone())) {
            item = absolute.pop();
            break;
        }
    }
    let found = (source.clone(), absolute);
    let file = files.get(&found)?;
    let alias = item.and_then(|item| file.imports.aliases.get(&item));
    let followed = alias.filter(|_| chain > 0).and_then(|path| {
        let path: Vec<String> = path.iter().chain(rest).cloned().collect();
        target(files, &found, &path, chain - 1)
    });
    Some(followed.unwrap_or(file.path))
}

impl Imports {
    fn tree(&mut self, tree: &UseTree, prefix: &[String], is_face: bool) {
        let mut path = prefix.to_vec();
        let (name, alias) = match tree {
            UseTree::Path(at) => {
                path.push(at.ident.to_string());
                return self.tree(&at.tree, &path, is_face);
            }
            UseTree::Group(group) => {
                return group.items.iter().for_each(|item| self.tree(item, prefix, is_face));
            }
            UseTree::Name(name) => (name.ident.to_string(), name.ident.to_string()),
            UseTree::Rename(name) => (name.ident.to_string(), name.rename.to_string()),
            UseTree::Glob(_) => ("*".to_owned(), "*".to_owned()),
        };
        if name != "self" {
            path.push(name);
        }
        if !is_face {
            self.named.push(path.clone());
        }
        self.aliases.insert(alias, path);
    }
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Ident>().is_ok_and(|name| name == "test")
    })
}

impl<'ast> Visit<'ast> for Imports {
    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        if !is_test(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        if !is_test(&item.attrs) {
            self.tree(&item.tree, &[], matches!(item.vis, Visibility::Public(_)));
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|part| part.ident.to_string()).collect();
        if names.len() > 1 {
            self.named.push(names);
        }
        visit::visit_path(self, path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rust_source::Source;

    fn circles(files: &[(&str, &str)]) -> Vec<String> {
        let source = |(path, text): &(&str, &str)| {
            let ast = syn::parse_file(text).expect("Rust");
            Source { path: PathBuf::from(path), text: (*text).to_owned(), ast }
        };
        let tree = Tree { files: Vec::new(), sources: files.iter().map(source).collect() };
        let mut findings = Findings::default();
        check(&tree, &mut findings);
        findings.errors.into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn a_circle_through_a_face_is_found() {
        let files = [
            ("a/src/lib.rs", "mod x; mod y; pub use y::Y;"),
            ("a/src/x.rs", "use crate::Y; pub struct X;"),
            ("a/src/y.rs", "use super::x::X; pub struct Y;"),
        ];
        assert_eq!(circles(&files), ["these files import each other: a/src/x.rs, a/src/y.rs"]);
    }

    #[test]
    fn tests_and_layers_are_none() {
        let files = [
            ("a/src/lib.rs", "pub mod x; pub mod y;"),
            ("a/src/x.rs", "pub struct X; #[cfg(test)] mod tests { use crate::y::Y; }"),
            ("a/src/y.rs", "use crate::x::{self, X}; pub struct Y(X);"),
            ("b/src/x.rs", "use a::x::X;"),
        ];
        assert!(circles(&files).is_empty(), "{:?}", circles(&files));
    }
}
