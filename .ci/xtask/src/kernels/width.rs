//! Which expressions can have bits above their width when Verilog evaluates them.
//!
//! Verilog computes an expression as wide as its widest operand or target, and RustHDL prints
//! every literal with 32 bits. So a carry, a borrow, a bit shifted out and the ones of `~a` live on
//! above the width that Rust's types promise, until an assignment cuts them off. Harmless under
//! another sum, fatal under a comparison, a right shift, a reduction or a widening cast.

use syn::{BinOp, Expr, UnOp};

/// Whether the value has nothing above its width, in whatever context it stands.
pub(super) fn is_clean(expr: &Expr) -> bool {
    match expr {
        Expr::Paren(inner) => is_clean(&inner.expr),
        Expr::Binary(binary) => match binary.op {
            BinOp::BitAnd(_) => is_clean(&binary.left) || is_clean(&binary.right),
            BinOp::BitOr(_) | BinOp::BitXor(_) => is_clean(&binary.left) && is_clean(&binary.right),
            BinOp::Shr(_) => is_clean(&binary.left),
            BinOp::Add(_) | BinOp::Sub(_) | BinOp::Mul(_) | BinOp::Shl(_) => is_constant(expr),
            _ => true,
        },
        Expr::Unary(unary) => !matches!(unary.op, UnOp::Not(_) | UnOp::Neg(_)),
        Expr::MethodCall(call) => match call.method.to_string().as_str() {
            // These print nothing of their own around a value.
            "into" | "index" | "to_bits" | "replace_bit" => is_clean(&call.receiver),
            _ => true,
        },
        // A cast masks its value, and what it is given is checked on its own.
        _ => true,
    }
}

/// Whether the operator gives one bit from two values.
pub(super) fn is_comparison(op: &BinOp) -> bool {
    matches!(
        op,
        BinOp::Eq(_) | BinOp::Ne(_) | BinOp::Lt(_) | BinOp::Le(_) | BinOp::Gt(_) | BinOp::Ge(_)
    )
}

/// Whether this negates what is certainly a `bool`: its other side is one bit, too.
pub(super) fn is_boolean_not(expr: &Expr) -> bool {
    match expr {
        Expr::Paren(inner) => is_boolean_not(&inner.expr),
        Expr::Unary(unary) => matches!(unary.op, UnOp::Not(_)) && is_boolean(&unary.expr),
        _ => false,
    }
}

fn is_boolean(expr: &Expr) -> bool {
    match expr {
        Expr::Paren(inner) => is_boolean(&inner.expr),
        Expr::Unary(unary) => is_boolean(&unary.expr),
        Expr::Binary(binary) => {
            is_comparison(&binary.op) || matches!(binary.op, BinOp::And(_) | BinOp::Or(_))
        }
        Expr::MethodCall(call) => {
            ["get_bit", "any", "all", "xor"].iter().any(|name| call.method == name)
        }
        _ => false,
    }
}

/// Whether the expression has only literals and loop variables in it.
fn is_constant(expr: &Expr) -> bool {
    match expr {
        Expr::Paren(inner) => is_constant(&inner.expr),
        Expr::Binary(binary) => is_constant(&binary.left) && is_constant(&binary.right),
        Expr::MethodCall(call) => call.method == "into" && is_constant(&call.receiver),
        Expr::Lit(_) | Expr::Path(_) => true,
        _ => false,
    }
}
