// Block RAM (hdl/src/leaf/ram.rs, SdpRam), by its page: what the proofs with memories taken out
// rely on.
//
// One address, chosen freely once and for all, and what was written there last.
reg [`ADDRESS-1:0] at;
reg [`WIDTH-1:0] word, word_then;
reg read_then;
initial begin word = 0; read_then = 0; end
always @(posedge clock) begin
   at <= at;
   read_then <= read_address == at & ~(write_enable & write_address == at); word_then <= word;
   if (write_enable & write_address == at) word <= write_data;
end

// A read answers in the next cycle with the word written last, zero at power-up; one that meets the
// write of its word answers with nothing of use.
wire rule_read = ~read_then | read_data == word_then;

// The memory says the same.
wire lemma_word = words[at] == word;
