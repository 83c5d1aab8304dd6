//! Edits of Rust: what a file could be with one operator, number or condition changed, or one statement left
//! out.

use std::ops::Range;

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{BinOp, Expr, Lit, Stmt};

/// A part of a file, and what it becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Edit {
    /// Bytes of the file.
    pub(super) range: Range<usize>,
    /// Of its first byte, from 1.
    pub(super) line: usize,
    /// What becomes of it. None: a statement is left out.
    pub(super) after: Option<String>,
}

/// Edits of a file, in the order in which they stand there. Outer ones go before those inside.
pub(super) fn all(text: &str) -> syn::Result<Vec<Edit>> {
    let file = syn::parse_file(text)?;
    let mut finder = Finder { text, found: Vec::new() };
    finder.visit_file(&file);
    Ok(finder.found)
}

/// The file with a choice at each of these edits, which do not overlap; each with its number. With it, the lines
/// that each choice is on.
pub(super) fn apply(text: &str, edits: &[(usize, &Edit)]) -> (String, Vec<(usize, Range<usize>)>) {
    let mut sorted: Vec<&(usize, &Edit)> = edits.iter().collect();
    sorted.sort_by_key(|(_, edit)| edit.range.start);
    let (mut done, mut at, mut lines) = (String::with_capacity(text.len() * 2), 0, Vec::new());
    for (number, edit) in sorted {
        done.push_str(&text[at..edit.range.start]);
        let first = 1 + done.matches('\n').count();
        done.push_str(&choice(*number, &text[edit.range.clone()], edit.after.as_deref()));
        lines.push((*number, first..2 + done.matches('\n').count()));
        at = edit.range.end;
    }
    done.push_str(&text[at..]);
    (done, lines)
}

/// A choice between an expression and what it becomes.
pub(super) fn choice(number: usize, before: &str, after: Option<&str>) -> String {
    match after {
        Some(after) => {
            format!("(if crate::mutant::on({number}) {{ {after} }} else {{ {before} }})")
        }
        None => format!("if !crate::mutant::on({number}) {{ {before} }}"),
    }
}

struct Finder<'a> {
    text: &'a str,
    found: Vec<Edit>,
}

impl Finder<'_> {
    fn slice(&self, span: Span) -> &str {
        &self.text[span.byte_range()]
    }

    fn add(&mut self, span: Span, after: Option<String>) {
        self.found.push(Edit { range: span.byte_range(), line: span.start().line, after });
    }

    fn negate(&mut self, condition: &Expr) {
        if !has_let(condition) {
            let after = format!("!({})", self.slice(condition.span()));
            self.add(condition.span(), Some(after));
        }
    }
}

/// What the model reports of itself is no part of the device.
fn is_trace(statement: &Stmt) -> bool {
    matches!(statement, Stmt::Expr(Expr::MethodCall(call), _) if call.method == "trace")
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_expr_binary(&mut self, binary: &'ast syn::ExprBinary) {
        if let Some(operator) = other(&binary.op)
            && !has_let(&binary.left)
            && !has_let(&binary.right)
        {
            let (left, right) = (self.slice(binary.left.span()), self.slice(binary.right.span()));
            let after = format!("{left} {operator} {right}");
            self.add(binary.span(), Some(after));
        }
        visit::visit_expr_binary(self, binary);
    }

    fn visit_expr_lit(&mut self, literal: &'ast syn::ExprLit) {
        match &literal.lit {
            Lit::Int(number) => {
                if let Ok(value) = number.base10_parse::<u128>() {
                    let after = format!("{}{}", value ^ 1, number.suffix());
                    self.add(literal.span(), Some(after));
                }
            }
            Lit::Bool(value) => self.add(literal.span(), Some((!value.value).to_string())),
            _ => {}
        }
    }

    fn visit_expr_if(&mut self, branch: &'ast syn::ExprIf) {
        self.negate(&branch.cond);
        visit::visit_expr_if(self, branch);
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        if let Some((_, guard)) = &arm.guard {
            self.negate(guard);
        }
        visit::visit_arm(self, arm);
    }

    fn visit_stmt(&mut self, statement: &'ast Stmt) {
        if is_trace(statement) {
            return;
        }
        let expression = match statement {
            Stmt::Expr(expression, Some(_)) => Some(expression),
            _ => None,
        };
        let is_compound = |op: &BinOp| {
            matches!(
                op,
                BinOp::AddAssign(_)
                    | BinOp::SubAssign(_)
                    | BinOp::BitOrAssign(_)
                    | BinOp::BitAndAssign(_)
            )
        };
        let is_plain = match expression {
            Some(Expr::MethodCall(_) | Expr::Assign(_)) => true,
            Some(Expr::Binary(binary)) => is_compound(&binary.op),
            _ => false,
        };
        if is_plain {
            self.add(statement.span(), None);
        }
        visit::visit_stmt(self, statement);
    }

    // What has to be known when the program is compiled.
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_trait_item_const(&mut self, _: &'ast syn::TraitItemConst) {}
    fn visit_item_enum(&mut self, _: &'ast syn::ItemEnum) {}
    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}
    fn visit_type(&mut self, _: &'ast syn::Type) {}
    fn visit_generic_argument(&mut self, _: &'ast syn::GenericArgument) {}
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}
    fn visit_pat(&mut self, _: &'ast syn::Pat) {}

    fn visit_expr_repeat(&mut self, repeat: &'ast syn::ExprRepeat) {
        self.visit_expr(&repeat.expr);
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        if function.sig.constness.is_none() && !is_test(&function.attrs) {
            visit::visit_item_fn(self, function);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if function.sig.constness.is_none() {
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if !is_test(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }
}

/// Whether a condition binds names, so that it cannot stand in parentheses.
fn has_let(expression: &Expr) -> bool {
    match expression {
        Expr::Let(_) => true,
        Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
    }
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("test")
            || matches!(&attribute.meta, syn::Meta::List(list)
                if list.path.is_ident("cfg") && list.tokens.to_string() == "test")
    })
}

/// What an operator becomes.
fn other(op: &BinOp) -> Option<&'static str> {
    Some(match op {
        BinOp::Eq(_) => "!=",
        BinOp::Ne(_) => "==",
        BinOp::Lt(_) => "<=",
        BinOp::Le(_) => "<",
        BinOp::Gt(_) => ">=",
        BinOp::Ge(_) => ">",
        BinOp::And(_) => "||",
        BinOp::Or(_) => "&&",
        BinOp::BitAnd(_) => "|",
        BinOp::BitOr(_) => "&",
        BinOp::Add(_) => "-",
        BinOp::Sub(_) => "+",
        BinOp::Shl(_) => ">>",
        BinOp::Shr(_) => "<<",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "\
const LIMIT: u32 = 4;
enum Kind { A = 1 }
const fn fixed(a: u32) -> bool { a == 1 }
fn step(a: u32, b: &mut [u8; 8]) -> bool {
    if let Some(3) = Some(a) && a < LIMIT {
        b.fill(0);
    }
    let c: [u8; 2] = [7; 2];
    assert!(a == 9);
    match a {
        5 if a > 2 => true,
        _ => a == 1 || b[0] == c[1],
    }
}
#[cfg(test)]
mod tests { fn no(a: u32) -> bool { a == 2 } }
";

    fn shown() -> Vec<(usize, String, Option<String>)> {
        let edits = all(SOURCE).expect("Rust").into_iter();
        edits.map(|edit| (edit.line, SOURCE[edit.range].to_owned(), edit.after)).collect()
    }

    #[test]
    fn edits_are_found_where_they_compile() {
        let some = |text: &str| Some(text.to_owned());
        let found = shown();
        for (line, before, after) in [
            (5, "a < LIMIT", some("a <= LIMIT")),
            (6, "b.fill(0);", None),
            (6, "0", some("1")),
            (8, "7", some("6")),
            (11, "a > 2", some("!(a > 2)")),
            (11, "a > 2", some("a >= 2")),
            (11, "true", some("false")),
            (12, "a == 1 || b[0] == c[1]", some("a == 1 && b[0] == c[1]")),
            (12, "a == 1", some("a != 1")),
        ] {
            assert!(found.contains(&(line, before.to_owned(), after)), "{before} in {found:#?}");
        }
        let lines: Vec<usize> = found.iter().map(|(line, ..)| *line).collect();
        assert!([1, 2, 3, 4, 9, 16].iter().all(|line| !lines.contains(line)), "{found:#?}");
        assert!(found.iter().all(|(_, before, _)| !before.contains("let Some")), "{found:#?}");
    }

    #[test]
    fn choices_take_the_place_of_what_they_change() {
        let edits = all(SOURCE).expect("Rust");
        let of = |before: &str| {
            edits.iter().find(|edit| SOURCE[edit.range.clone()] == *before).expect("an edit")
        };
        let (text, lines) = apply(SOURCE, &[(2, of("a == 1")), (1, of("b.fill(0);"))]);
        assert!(text.contains("if !crate::mutant::on(1) { b.fill(0); }"), "{text}");
        let choice = "_ => (if crate::mutant::on(2) { a != 1 } else { a == 1 }) || b[0] == c[1]";
        assert!(text.contains(choice), "{text}");
        assert_eq!(lines, [(1, 6..7), (2, 12..13)]);
        assert!(syn::parse_file(&text).is_ok(), "{text}");
        // Every edit by itself is Rust.
        for edit in &edits {
            let (text, _) = apply(SOURCE, &[(1, edit)]);
            assert!(syn::parse_file(&text).is_ok(), "{text}");
        }
    }
}
