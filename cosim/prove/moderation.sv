// Rests of interrupt vectors (hdl/src/event/msix.rs): contract 10.4, of any one of the vectors, across the wrap of
// the clock.
//
// The table of times is taken out; this keeps its word of one vector, chosen freely once and for all.
reg [4:0] who;
always @(posedge clock) who <= who;
reg [24:0] start;
wire [24:0] start_other;
assign sent_ram$read_data = sent_ram$read_address == who ? start : start_other;
always @(posedge clock)
   if (sent_ram$write_enable & sent_ram$write_address == who) start <= sent_ram$write_data;

// Cycles since the vector's last write, as far as they can be counted.
reg [24:0] since;
reg known;
wire sends = sending & chosen_vector$q == who;
wire rests = resting$q[who];
initial known = 0;
always @(posedge clock) begin
   since <= sends ? 1 : &since ? since : since + 1;
   known <= ~reset & (known | sends);
end

reg [23:0] moderation_before;
reg begun;
initial begun = 0;
always @(posedge clock) begin moderation_before <= moderation; begun <= 1; end
// Only a vector that is chosen is sent (hdl/src/event/writer.rs).
wire given_chosen = ~sending | chosen;
// MODERATION stays: software sets it once.
wire given_moderation = ~begun | moderation == moderation_before;

// Cycles since the rest should have ended.
wire due = rests & since >= moderation;
reg [5:0] late;
always @(posedge clock) late <= ~due | sends ? 0 : late + ~&late;

// Two writes of a vector are MODERATION cycles apart (contract 10.4).
wire rule_apart = ~sends | ~known | since >= moderation;
// A rest ends 34 cycles late at most.
wire rule_late = ~due | late <= 34;

// Nothing was sent in the first cycle.
wire lemma_begun = ~known | begun;
// The table has the time of the last write.
wire lemma_start = ~known | &since | now$q - start == since;
// What rests was sent, and is not due for long.
wire lemma_rests = ~rests | begun & known & since <= moderation + 35 & moderation != 0;
// What is sent and does not rest, has rested.
wire lemma_rested = ~known | rests | since >= moderation;
// What is chosen does not rest.
wire lemma_chosen = ~(chosen_now$q & chosen_vector$q == who) | ~rests;
wire here = age_vector$q == who;
wire [4:0] ahead = who - scan$q;
// The age is that of this rest.
wire lemma_age = ~(here & age_rests$q) | rests & age$q == since - 1;
// One vector is in each stage of the scanner, but in its first cycle.
wire lemma_follow = ~age_rests$q | scan$q == (age_vector$q + 5'h1 & 5'h1f);
// How far the scanner still has to go.
wire lemma_late = ~due | late == since - moderation
   & (here & age_rests$q & age$q >= moderation ? late <= 33 : late + ahead <= 32);
