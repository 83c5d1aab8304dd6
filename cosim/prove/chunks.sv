// Chunks of the pool (hdl/src/channel/chunks.rs): contract 7.5, by the block's page.
//
// The chain memories are taken out: any chunk may come next. That each chunk is in one list at a
// time is not proved here, but tested.
reg [6:0] at;
always @(posedge clock) at <= at;
reg [6:0] word;
wire [6:0] other;
assign chain_tx$read_data = chain_tx$read_address == at ? word : other;
always @(posedge clock)
   if (chain_tx$write_enable & chain_tx$write_address == at) word <= chain_tx$write_data;

// Free chunks; cycles since the reset; and the chunk that was put behind the watched one.
reg begun;
reg [7:0] count, age;
reg linked;
reg [6:0] behind;
initial begun = 0;
always @(posedge clock) begin
   begun <= 1;
   age <= age == 128 ? 128 : age + 1;
   count <= count - take + (given ? give_count : 0);
   if (link & link_from == at) begin linked <= 1; behind <= spare; end
   else if (given & give_last == at) linked <= 0;
   if (reset) begin age <= 0; count <= 128; linked <= 0; end
end
reg linking_then;
always @(posedge clock) linking_then <= ~reset & link & link_from == at;

// The first cycle is one of reset.
wire given_reset = begun | reset;
// The pool takes the spare when there is one, and puts it behind one that it holds.
wire given_take = ~begun | ((~take | spare_valid) & (~link | take));
// What is given back was held.
wire given_give = ~(begun & give) | give_count <= 128 - count;
// A frame that is being linked is not given back in that cycle or the next.
wire given_whole = ~(begun & give & give_last == at) | (~link & ~linking_then);

// Contract 7.5: the chunks are those free and those held: none is lost, none comes to be.
wire rule_level = ~begun | level == (~ready ? 128 : count);
// A chunk that can be taken is one of those free.
wire rule_spare = ~(begun & spare_valid) | (ready & count != 0);
reg hungry;
always @(posedge clock) hungry <= ~reset & begun & ready & count != 0 & ~spare_valid & ~take;
// Whenever chunks are free, one can be taken after a cycle at most.
wire rule_hungry = ~(begun & hungry) | spare_valid;
// Ready 128 cycles after the reset.
wire rule_ready = ~begun | ready == (age == 128);
// A chain is given back only when nothing else writes the list, and at once then.
wire rule_given = ~(begun & given) | (give & ready);
// The transmitter finds behind a chunk the one that was linked to it, two cycles later.
wire rule_link = ~(begun & linked & ~linking_then & chunk == at) | chunk_after == behind;

// In the list, and the spare.
wire lemma_listed = ~begun | (listed$q + one_valid$q == count & count <= 128);
// While the list is built nothing is held.
wire lemma_built = ~begun | (step$q == age & age <= 128
   & (age == 128 | (count == 128 & ~one_valid$q & ~linking$q & ~linked)));
// On its way into the memory, or there.
wire lemma_link = ~(begun & linked)
   | (linking$q & linked_from$q == at ? linked_to$q == behind & linking_then
   : word == behind & ~linking_then);
// What was linked last.
wire lemma_linking = ~begun | linking_then == (linking$q & linked_from$q == at);
