//! The table against the RTL, without Yosys; and what the command says when it cannot go on.

use super::*;
use std::collections::BTreeSet;

#[test]
fn an_unknown_proof_is_refused_with_the_known_ones() {
    let error = chosen(Some("fifos")).expect_err("there is no such proof");
    assert!(error.to_string().contains("\"fifos\"") && error.to_string().contains("work-queue"));
    assert_eq!(chosen(None).map(|proofs| proofs.len()).ok(), Some(PROOFS.len()));
    assert_eq!(chosen(Some("fifo")).map(|proofs| proofs.len()).ok(), Some(1));
}

/// A change of the RTL that a proof was written against shows here, and not only where Yosys is.
#[test]
fn every_proof_and_mutation_fits_the_rtl() {
    let verilog = crate::verilog::nic().expect("the NIC emits");
    let mut names = BTreeSet::new();
    for proof in PROOFS {
        assert!(names.insert(proof.name), "two proofs {}", proof.name);
        assert!(!proof.mutations.is_empty(), "{} has no mutation", proof.name);
        let steps = Step::all(proof, true);
        let step_names: BTreeSet<&str> = steps.iter().map(|step| step.name()).collect();
        assert_eq!(step_names.len(), steps.len(), "{}: two steps of one name", proof.name);
        for step in steps {
            let design = design(&verilog, proof, step).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(
                design.contains("assert (lemma_"),
                design.contains("wire lemma_") && matches!(step, Step::Proof)
            );
        }
    }
}

#[test]
fn a_rule_says_where_it_comes_from() {
    let unexplained = "wire rule_a = 1;";
    assert!(Fragment::parse(unexplained).is_err_and(|why| why.contains("rule_a")));
    // A comment belongs to the line below it.
    assert!(Fragment::parse("// Contract 1.\nreg a;\nwire rule_a = a;").is_err());
    assert!(Fragment::parse("// Nothing is promised.\nwire lemma_a = 1;").is_err());
    let text = "// Contract 1:\n// always.\nwire rule_a = 1;\n// Inside.\nwire lemma_b=1;\n\
                // Outside.\nwire given_c = d;";
    let fragment = Fragment::parse(text).expect("three conditions");
    assert_eq!(fragment.rules[0].text, "Contract 1: always.");
    assert!(fragment.checks(true).contains("assert (lemma_b);"));
    let rules = fragment.checks(false);
    assert!(rules.contains("assert (rule_a);") && rules.contains("assume (given_c);"));
    assert!(!rules.contains("assert (lemma_b);"));
}

const VERILOG: &str = "
module top(a);
    top$part part(
        .a(a)
    );
    top$other other(
        .a(a)
    );
endmodule // top

module top$part(a);
    input wire a;
endmodule // top$part

module top$party(a);
endmodule // top$party
";

#[test]
fn a_module_comes_with_its_parts_and_without_others() {
    let part = module::with_parts(VERILOG, "top$part").expect("it is there");
    assert!(part.contains("input wire a;") && !part.contains("party"));
    assert!(module::with_parts(VERILOG, "top").is_ok_and(|text| text.contains("party")));
    assert!(module::with_parts(VERILOG, "top$par").is_err());
}

#[test]
fn an_edit_must_fit_exactly_once() {
    assert_eq!(module::replace_once("a < b", "<", "<="), Ok("a <= b".to_owned()));
    assert!(module::replace_once("a < b", ">", ">=").is_err());
    assert!(module::replace_once("a < b < c", "<", "<=").is_err());
}

#[test]
fn an_instance_is_taken_out_alone() {
    let text = module::without_instance(VERILOG, "top", "part").expect("it is there");
    assert!(!text.contains("top$part part(") && text.contains("top$other other("));
    assert!(module::without_instance(VERILOG, "top", "par").is_err());
    let text = module::with_fragment(VERILOG, "top$part", "// here\n").expect("it ends");
    assert!(text.contains("input wire a;\n// here\nendmodule // top$part"));
}

/// Yosys takes two declarations of one name for one: a rule would compare the RTL with itself.
#[test]
fn a_fragment_has_names_of_its_own() {
    let text = "module top$m(a);\n    input wire  [3:0] a;\n    reg  b;\nendmodule // top$m\n";
    for (fragment, good) in [
        ("wire c = a;", true),
        ("// wire b;\nwire c = a;", true),
        ("wire [7:0] b = a;", false),
        ("reg c, d,\n   a;", false),
    ] {
        let outcome = module::with_fragment(text, "top$m", fragment);
        assert_eq!(outcome.is_ok(), good, "{fragment}: {outcome:?}");
    }
}
