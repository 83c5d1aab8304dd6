//! Each rule on a good and a bad kernel.

use std::path::PathBuf;

use super::*;

/// The rules that a kernel with this body breaks, in order of appearance.
fn rules(body: &str) -> Vec<&'static str> {
    let text = format!("impl Logic for B {{ #[hdl_gen] fn update(&mut self) {{ {body} }} }}");
    rules_of_file(&text)
}

fn rules_of_file(text: &str) -> Vec<&'static str> {
    let ast = syn::parse_file(text).expect("the test's kernel parses");
    let source = Source { path: PathBuf::from("hdl/src/b.rs"), text: text.to_owned(), ast };
    lint(&source).0.iter().map(|finding| finding.rule).collect()
}

fn value(expr: &str) -> Vec<&'static str> {
    rules(&format!("self.out.next = {expr};"))
}

#[test]
fn precedence_needs_parentheses_only_where_the_languages_differ() {
    assert_eq!(value("self.a.val() & self.b.val() == self.c.val()"), ["precedence"]);
    assert_eq!(value("self.c.val() != self.a.val() | self.b.val()"), ["precedence"]);
    assert!(value("(self.a.val() & self.b.val()) == self.c.val()").is_empty());
    assert!(value("self.a.val() == self.b.val() && !self.c.val()").is_empty());
    assert!(value("self.a.val() & !self.b.val() | self.c.val()").is_empty());
}

#[test]
fn casts_of_sums_leak() {
    assert_eq!(value("bit_cast::<16, 8>(self.a.val() + self.b.val())"), ["width"]);
    assert_eq!(value("bit_cast::<16, 8>(!self.a.val())"), ["width"]);
    assert_eq!(value("bit_cast::<16, 8>(self.a.val() << 4)"), ["width"]);
    assert_eq!(value("signed_cast(self.a.val() - self.b.val())"), ["width"]);
    assert!(value("bit_cast::<16, 8>(self.a.val() | self.b.val())").is_empty());
    assert!(value("bit_cast::<16, 8>(self.a.val() >> 4)").is_empty());
    assert!(value("bit_cast::<16, 8>(!self.a.val() & self.b.val())").is_empty());
    assert!(value("(bit_cast::<16, 8>(self.a.val()) << 8) | bits(3)").is_empty());
}

#[test]
fn comparisons_of_sums_leak() {
    assert_eq!(value("self.a.val() + 1 == self.b.val()"), ["width"]);
    assert_eq!(value("self.b.val() < (self.a.val() - 1)"), ["width"]);
    assert_eq!(value("!self.a.val() == bits(0xF0)"), ["width"]);
    assert!(value("self.a.val() == self.limit.val()").is_empty());
    assert!(value("self.a.val().get_bits::<4>(2) == bits(3)").is_empty());
    assert!(value("!self.a.val().any() == self.flag.val()").is_empty());
}

#[test]
fn sums_and_inversions_that_are_assigned_are_fine() {
    assert!(value("self.a.val() + self.b.val() - 1").is_empty());
    assert!(value("!self.a.val() & self.b.val()").is_empty());
    assert!(rules("if !self.a.val() && self.b.val() { self.c.next = !self.d.val(); }").is_empty());
}

#[test]
fn shifts_reductions_and_positions_need_clean_values() {
    assert_eq!(value("(self.a.val() + 1) >> 1"), ["width"]);
    assert_eq!(value("self.a.val() << (self.n.val() + 1)"), ["width"]);
    assert_eq!(value("(self.a.val() + 1).any()"), ["width"]);
    assert_eq!(value("(self.a.val() | bits(1)).all()"), ["width"]);
    assert_eq!(value("self.a.val().get_bit(self.n.val() - 1)"), ["width"]);
    assert!(value("(self.a.val() & self.b.val()).any()").is_empty());
    assert!(value("self.a.val().get_bits::<4>(0).all()").is_empty());
    assert!(rules("for i in 0..8 { self.o.next = self.a.val().get_bit(i * 4 + 1); }").is_empty());
}

#[test]
fn only_names_can_be_sliced() {
    assert_eq!(value("(self.a.val() & self.b.val()).get_bit(3)"), ["slice"]);
    assert_eq!(value("self.a.val().get_bits::<8>(0).get_bit(3)"), ["slice"]);
    assert_eq!(value("self.a.val().header.kind"), ["slice"]);
    assert!(value("self.a.val().header").is_empty());
    assert!(value("self.lanes[i].q.val().get_bit(3)").is_empty());
    assert!(value("self.bus.data.val().get_bits::<8>(self.at.val())").is_empty());
}

#[test]
fn rust_constants_do_not_exist_in_verilog() {
    assert_eq!(value("LIMIT.into()"), ["constant"]);
    assert_eq!(value("bits::<8>(Self::LIMIT)"), ["constant"]);
    assert_eq!(value("self.a.val() == regs::ID::OFFSET"), ["constant"]);
    assert_eq!(rules("match self.s.q.val() { IDLE => {} _ => {} }"), ["constant"]);
    assert!(rules("match self.s.q.val() { State::Idle => {} _ => {} }").is_empty());
    assert!(value("State::Idle").is_empty());
    assert!(rules("for i in 0..N { self.o[i].next = self.a.val().get_bit(i); }").is_empty());
    assert!(value("bit_cast::<N, 8>(self.a.val())").is_empty());
}

#[test]
fn assertions_are_comments() {
    assert_eq!(rules("assert!(self.a.val());"), ["assert"]);
    assert!(rules("dff_setup!(self, clock, state, count);").is_empty());
}

#[test]
fn keywords_are_no_names() {
    let bad =
        "#[derive(LogicBlock)] struct B { pub table: Signal<In, Bit>, next: Signal<In, Bit> }";
    assert_eq!(rules_of_file(bad), ["keyword", "keyword"]);
    let bad = "#[derive(Clone, rust_hdl::LogicInterface)] struct B { event: Signal<In, Bit> }";
    assert_eq!(rules_of_file(bad), ["keyword"]);
    let good = "#[derive(LogicBlock)] struct B { tpt_ram: Signal<In, Bit>, _event: u8 }";
    assert!(rules_of_file(good).is_empty());
    assert!(rules_of_file("#[derive(Clone)] struct Software { event: u8 }").is_empty());
    assert!(rules_of_file("#[derive(LogicState)] enum State { Idle, Wait }").is_empty());
}

#[test]
fn kernels_inside_macros_are_not_overlooked() {
    let text = "macro_rules! m { () => {\n#[hdl_gen]\nfn update(&mut self) {}\n} }";
    assert_eq!(rules_of_file(text), ["macro"]);
}

#[test]
fn findings_name_the_line() {
    let text = "impl Logic for B {\n #[hdl_gen]\n fn update(&mut self) {\n  assert!(true);\n }\n}";
    let ast = syn::parse_file(text).expect("the test's kernel parses");
    let source = Source { path: PathBuf::from("hdl/src/b.rs"), text: text.to_owned(), ast };
    let (findings, kernels) = lint(&source);
    assert_eq!((findings[0].line, kernels), (4, 1));
    assert!(findings[0].to_string().starts_with("hdl/src/b.rs:4: assert: "));
}
