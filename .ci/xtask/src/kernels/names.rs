//! Names that Verilog does not accept.

/// The words of Verilog 2005 and SystemVerilog 2017, sorted.
const KEYWORDS: &str = "\
accept_on alias always always_comb always_ff always_latch and assert assign assume automatic \
before begin bind bins binsof bit break buf bufif0 bufif1 byte case casex casez cell chandle \
checker class clocking cmos config const constraint context continue cover covergroup coverpoint \
cross deassign default defparam design disable dist do edge else end endcase endchecker endclass \
endclocking endconfig endfunction endgenerate endgroup endinterface endmodule endpackage \
endprimitive endprogram endproperty endsequence endspecify endtable endtask enum event eventually \
expect export extends extern final first_match for force foreach forever fork forkjoin function \
generate genvar global highz0 highz1 if iff ifnone ignore_bins illegal_bins implements implies \
import incdir include initial inout input inside instance int integer interconnect interface \
intersect join join_any join_none large let liblist library local localparam logic longint \
macromodule matches medium modport module nand negedge nettype new nexttime nmos nor \
noshowcancelled not notif0 notif1 null or output package packed parameter pmos posedge primitive \
priority program property protected pull0 pull1 pulldown pullup pulsestyle_ondetect \
pulsestyle_onevent pure rand randc randcase randsequence rcmos real realtime ref reg reject_on \
release repeat restrict return rnmos rpmos rtran rtranif0 rtranif1 s_always s_eventually \
s_nexttime s_until s_until_with scalared sequence shortint shortreal showcancelled signed small \
soft solve specify specparam static string strong strong0 strong1 struct super supply0 supply1 \
sync_accept_on sync_reject_on table tagged task this throughout time timeprecision timeunit tran \
tranif0 tranif1 tri tri0 tri1 triand trior trireg type typedef union unique unique0 unsigned until \
until_with untyped use uwire var vectored virtual void wait wait_order wand weak weak0 weak1 while \
wildcard wire with within wor xnor xor";

/// Derives that make a type part of the printed hardware.
const DERIVES: [&str; 4] = ["LogicBlock", "LogicInterface", "LogicStruct", "LogicState"];

/// Whether the type is printed.
pub(super) fn is_hardware(attrs: &[syn::Attribute]) -> bool {
    let mut found = false;
    for attr in attrs.iter().filter(|attr| attr.path().is_ident("derive")) {
        // A derive list that does not parse is an error of the compiler, not of this lint.
        let _ = attr.parse_nested_meta(|meta| {
            let last = meta.path.segments.last();
            found |= last.is_some_and(|last| DERIVES.iter().any(|name| last.ident == name));
            Ok(())
        });
    }
    found
}

/// Why the name cannot be printed, if so.
pub(super) fn fault(name: &str) -> Option<&'static str> {
    // RustHDL does not print fields that start with an underscore.
    if name.starts_with('_') {
        None
    } else if KEYWORDS.split(' ').any(|word| word == name) {
        Some("a keyword of Verilog or SystemVerilog")
    } else if matches!(name, "next" | "val") {
        Some("what RustHDL calls the two sides of a signal")
    } else if name.starts_with("r#") {
        Some("printed with its `r#`")
    } else {
        None
    }
}

/// Whether the name looks like a variant and not like a constant.
pub(super) fn is_camel_case(name: &str) -> bool {
    name.starts_with(char::is_uppercase) && (name.len() == 1 || name.contains(char::is_lowercase))
}
