// LUT RAM (hdl/src/leaf/ram.rs, LutRam), by its page: what the proofs with memories taken out rely
// on.
//
// One address, chosen freely once and for all, and what was written there last.
reg [`ADDRESS-1:0] at;
reg [`WIDTH-1:0] word;
initial word = 0;
always @(posedge clock) begin
   at <= at;
   if (write_enable & write_address == at) word <= write_data;
end

// A read answers in the same cycle with the word written last, zero at power-up.
wire rule_read = read_address != at | read_data == word;

// The memory says the same.
wire lemma_word = words[at] == word;
