//! The lint of RustHDL kernels.
//!
//! RustHDL runs a kernel as Rust and prints it as Verilog, and the two can mean different things
//! without any message. This lint reads every `#[hdl_gen]` function and every hardware struct, and
//! rejects what is known to differ or to print illegal Verilog:
//!
//! | rule | fault |
//! |---|---|
//! | `precedence` | `a & b == c`: no parentheses are printed, and Verilog compares first |
//! | `width` | a sum, a shift or `!a` keeps the bits above its width until it is assigned |
//! | `slice` | Verilog can slice a name, not an expression |
//! | `constant` | a Rust constant is printed as a name that nobody declares |
//! | `keyword` | a field is printed as it is called |
//! | `assert` | an assertion is printed as a comment |
//! | `macro` | a kernel that a macro makes cannot be read here |

mod names;
mod width;

#[cfg(test)]
mod tests;

use std::path::Path;

use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{BinOp, Expr, Pat, Stmt};

use crate::rust_source::{self, Finding, Source};
use crate::workspace;
use width::{is_boolean_not, is_clean, is_comparison};

/// Lints the RTL and prints what it finds.
pub(crate) fn run() -> crate::Outcome {
    let files: Vec<_> =
        workspace::files()?.into_iter().filter(|file| file.starts_with("hdl/src")).collect();
    let (sources, mut findings) = rust_source::parse_all(&files)?;
    let mut kernel_count = 0;
    for source in &sources {
        let (found, kernels) = lint(source);
        findings.extend(found);
        kernel_count += kernels;
    }
    let checked = format!("{kernel_count} kernels in {} files", sources.len());
    rust_source::report("kernels", findings, &checked)
}

/// The findings in one file, and how many kernels it has.
fn lint(source: &Source) -> (Vec<Finding>, usize) {
    let mut linter = Linter { path: &source.path, findings: Vec::new(), kernels: 0 };
    linter.visit_file(&source.ast);
    let Linter { mut findings, kernels, .. } = linter;
    let written = source.text.lines().filter(|line| line.trim() == "#[hdl_gen]").count();
    if written > kernels {
        let message = format!(
            "{} kernels stand inside macros, where this lint cannot read them: write them out",
            written - kernels
        );
        findings.push(Finding::new(&source.path, 0, "macro", message));
    }
    (findings, kernels)
}

/// Whether the function is printed as Verilog.
pub(crate) fn is_kernel(attrs: &[syn::Attribute]) -> bool {
    attrs.iter().any(|attr| attr.path().is_ident("hdl_gen"))
}

struct Linter<'a> {
    path: &'a Path,
    findings: Vec<Finding>,
    kernels: usize,
}

impl<'ast> Visit<'ast> for Linter<'_> {
    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if is_kernel(&function.attrs) {
            self.kernels += 1;
            self.block(&function.block);
        }
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        if names::is_hardware(&item.attrs) {
            for field in &item.fields {
                if let Some(name) = &field.ident {
                    self.name(name);
                }
            }
        }
        visit::visit_item_struct(self, item);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        if names::is_hardware(&item.attrs) {
            item.variants.iter().for_each(|variant| self.name(&variant.ident));
        }
        visit::visit_item_enum(self, item);
    }
}

impl Linter<'_> {
    fn report(&mut self, at: &impl Spanned, rule: &'static str, message: String) {
        self.findings.push(Finding::new(self.path, at.span().start().line, rule, message));
    }

    fn name(&mut self, ident: &syn::Ident) {
        if let Some(reason) = names::fault(&ident.to_string()) {
            self.report(ident, "keyword", format!("`{ident}` is {reason}: call it something else"));
        }
    }

    fn block(&mut self, block: &syn::Block) {
        for statement in &block.stmts {
            match statement {
                Stmt::Expr(expr, _) => self.statement(expr),
                Stmt::Macro(item) => self.macro_call(&item.mac),
                // RustHDL itself refuses `let` and items.
                Stmt::Local(_) | Stmt::Item(_) => {}
            }
        }
    }

    fn macro_call(&mut self, mac: &syn::Macro) {
        if mac.path.segments.last().is_some_and(|last| last.ident.to_string().contains("assert")) {
            let message = "an assertion becomes a comment in the Verilog: put it into the test, or \
                           set a sticky error flag";
            self.report(mac, "assert", message.to_owned());
        }
    }

    fn statement(&mut self, expr: &Expr) {
        match expr {
            Expr::Assign(assign) => self.value(&assign.right),
            Expr::Block(block) => self.block(&block.block),
            Expr::ForLoop(body) => self.block(&body.body),
            Expr::If(branch) => {
                self.value(&branch.cond);
                self.block(&branch.then_branch);
                if let Some((_, otherwise)) = &branch.else_branch {
                    self.statement(otherwise);
                }
            }
            Expr::Match(choice) => {
                self.value(&choice.expr);
                for arm in &choice.arms {
                    self.pattern(&arm.pat);
                    self.statement(&arm.body);
                }
            }
            Expr::Macro(item) => self.macro_call(&item.mac),
            Expr::MethodCall(call) => call.args.iter().for_each(|arg| self.value(arg)),
            // What is left is `join` and `link`, whose arguments are places, and what RustHDL
            // itself refuses.
            _ => {}
        }
    }

    fn pattern(&mut self, pattern: &Pat) {
        match pattern {
            Pat::Ident(ident) => self.constant(pattern, &[ident.ident.to_string()]),
            Pat::Path(path) => self.path(pattern, &path.path),
            _ => {}
        }
    }

    /// Checks an expression whose value is used, and everything in it.
    fn value(&mut self, expr: &Expr) {
        match expr {
            Expr::Paren(inner) => self.value(&inner.expr),
            Expr::Unary(unary) => self.value(&unary.expr),
            Expr::Binary(binary) => self.binary(binary),
            Expr::Call(call) => {
                for arg in &call.args {
                    self.clean(arg, "the argument of a cast");
                    self.value(arg);
                }
            }
            Expr::MethodCall(call) => self.method(call),
            Expr::Field(field) => self.field(field),
            Expr::Index(index) if has_call(&index.expr) => {
                self.slice(expr, "an index into a value");
            }
            Expr::Path(path) => self.path(expr, &path.path),
            _ => {}
        }
    }

    fn binary(&mut self, binary: &syn::ExprBinary) {
        let (left, right) = (&*binary.left, &*binary.right);
        if is_comparison(&binary.op) {
            for side in [left, right] {
                if matches!(side, Expr::Binary(inner) if is_bitwise(&inner.op)) {
                    let message = "Verilog compares before it does `&`, `^` and `|`: put the \
                                   bitwise part into parentheses";
                    self.report(side, "precedence", message.to_owned());
                } else if !is_boolean_not(side) {
                    self.clean(side, "an operand of a comparison");
                }
            }
        }
        if matches!(binary.op, BinOp::Shr(_)) {
            self.clean(left, "what is shifted right");
        }
        if matches!(binary.op, BinOp::Shl(_) | BinOp::Shr(_)) {
            self.clean(right, "the distance of a shift");
        }
        self.value(left);
        self.value(right);
    }

    fn method(&mut self, call: &syn::ExprMethodCall) {
        let name = call.method.to_string();
        let receiver = &*call.receiver;
        match name.as_str() {
            "get_bits" | "get_bit" => {
                if !is_read(receiver) {
                    self.slice(receiver, &format!("`{name}` of an expression"));
                }
                call.args.iter().for_each(|arg| self.clean(arg, "the position of a slice"));
            }
            "replace_bit" | "any" | "xor" | "to_signed_bits" => {
                self.clean(receiver, &format!("what `{name}` is called on"));
            }
            // A cast or a literal is printed wider than its type, with zeros above.
            "all" if !is_slice(receiver) => {
                let message = "`all` of an expression sees bits above the width: assign it to a \
                               Signal<Local, _> of the right width and call `all` on that";
                self.report(receiver, "width", message.to_owned());
            }
            _ => {}
        }
        self.value(receiver);
        call.args.iter().for_each(|arg| self.value(arg));
    }

    fn field(&mut self, field: &syn::ExprField) {
        match &*field.base {
            Expr::MethodCall(call) => self.method(call),
            base if has_call(base) => self.slice(base, "a field of a field of a value"),
            _ => {}
        }
    }

    fn slice(&mut self, at: &Expr, what: &str) {
        let message = format!(
            "{what} is no legal Verilog: assign to a Signal<Local, _> first, then take the part of \
             its `.val()`"
        );
        self.report(at, "slice", message);
    }

    fn clean(&mut self, expr: &Expr, role: &str) {
        if !is_clean(expr) {
            let message = format!(
                "{role} keeps bits above its width in Verilog: assign it to a Signal<Local, _> of \
                 the right width and use that"
            );
            self.report(expr, "width", message);
        }
    }

    fn path(&mut self, at: &impl Spanned, path: &syn::Path) {
        let segments: Vec<String> =
            path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.constant(at, &segments);
    }

    /// A path is a loop variable, or a state (`Type::Variant`), or a fault.
    fn constant(&mut self, at: &impl Spanned, segments: &[String]) {
        let fine = match segments {
            [name] => !name.starts_with(char::is_uppercase),
            [kind, variant] => kind != "Self" && names::is_camel_case(variant),
            _ => false,
        };
        if !fine {
            let message = format!(
                "`{}` is printed as an undeclared name: give the block a field \
                 `leaf::Number<BITS, VALUE>` (a state is written `Type::Variant`)",
                segments.join("::")
            );
            self.report(at, "constant", message);
        }
    }
}

fn is_bitwise(op: &BinOp) -> bool {
    matches!(op, BinOp::BitAnd(_) | BinOp::BitOr(_) | BinOp::BitXor(_))
}

/// Whether the expression is `.val()` of a place, which is printed as a name.
fn is_read(expr: &Expr) -> bool {
    matches!(expr, Expr::MethodCall(call) if call.method == "val" && !has_call(&call.receiver))
}

/// Whether the expression is printed as a name or as a part of one.
fn is_slice(expr: &Expr) -> bool {
    match expr {
        Expr::Paren(inner) => is_slice(&inner.expr),
        Expr::Field(field) => is_read(&field.base),
        Expr::MethodCall(call) if call.method == "get_bits" => is_read(&call.receiver),
        _ => is_read(expr),
    }
}

/// Whether there is a call anywhere in the base of a place.
fn has_call(expr: &Expr) -> bool {
    match expr {
        Expr::Field(field) => has_call(&field.base),
        Expr::Index(index) => has_call(&index.expr),
        Expr::Path(_) => false,
        _ => true,
    }
}
