// Time-outs of reads (hdl/src/pcie/read/tags.rs): contract 9, of any one of the tags, for every READ_TIMEOUT,
// across the wrap of the clock.
//
// The table of starts is taken out; this keeps its word of one tag, chosen freely once and for all.
reg [4:0] who;
always @(posedge clock) who <= who;
reg [31:0] start;
wire [31:0] start_other;
assign starts$read_data = starts$read_address == who ? start : start_other;
always @(posedge clock)
   if (starts$write_enable & starts$write_address == who) start <= starts$write_data;

// Cycles since the tag's request left, as far as they can be counted.
reg [31:0] since;
reg known;
wire leaves = sent & sent_tag == who;
wire settles = settle & commit_tag == who;
wire uncounted = &since;
initial known = 0;
always @(posedge clock) begin
   since <= leaves ? 1 : uncounted ? since : since + 1;
   if (leaves) known <= 1;
end

// The tag has been taken, and its request has not left.
reg taken;
wire grabs = grab_mask[who];
initial taken = 0;
always @(posedge clock) taken <= ~reset & ~soft_reset & (grabs | taken & ~leaves);
// Only what was taken leaves (hdl/src/pcie/read/request.rs).
wire given_taken = ~leaves | taken;
// Only what is done is delivered (hdl/src/pcie/read/deliver.rs).
wire given_over = ~(over & over_tag == who) | held$q[who] & done$q[who];
// A completion that settles something ends (hdl/src/pcie/read/receive.rs).
wire given_settle = ~settle | commit;
reg [31:0] timeout_before;
reg begun;
initial begun = 0;
always @(posedge clock) begun <= 1;
always @(posedge clock) timeout_before <= read_timeout;
wire waits = live$q[who];
// READ_TIMEOUT stays while a completion may come: software sets it once.
wire given_timeout = ~busy$q[who] | read_timeout == timeout_before;

// When it is due: a limit of half of the clock's range or more is taken for half of it.
wire [31:0] limit = read_timeout[31] ? 32'h80000000 : read_timeout;
wire due = waits & since >= limit;
// Cycles since then in which no time-out waited for a completion to end.
reg [6:0] late;
always @(posedge clock) late <= ~due | leaves ? 0 : late + (~stays & ~&late);

// No read times out before its time, nor one that is not waited for (contract 9).
wire rule_early = ~(expired & expired_tag == who) | due;
// A time-out is noticed 35 cycles late at most, and one more for each completion that it waits for (as long as
// these are fewer than half of the clock's range).
wire rule_late = ~due | uncounted | late <= 35;
wire gives = gives_up & old_tag$q == who & busy$q[who];
// Nor is it given up before 2^20 cycles and 256 times READ_TIMEOUT have passed, and never if that is more than
// half of the clock's range.
wire rule_quarantine = ~gives
   | since >= 1048575 & ~|read_timeout[31:23] & since >= {read_timeout[23:0], 8'h0};
// What is waited for is not given up.
wire rule_kept = ~(gives & waits);

// It is held, and nothing is known of it yet.
wire lemma_taken = ~taken | held$q[who] & ~busy$q[who] & ~waits & ~done$q[who];
// What is waited for is busy, and not done.
wire lemma_waits = ~waits | held$q[who] & busy$q[who] & ~done$q[who];
// What is done belongs to a request.
wire lemma_done = ~done$q[who] | held$q[who];
// What is busy has left.
wire lemma_known = ~busy$q[who] | known;
// That was not in the first cycle.
wire lemma_begun = ~known | begun;
// The table has the time of that.
wire lemma_start = ~known | uncounted | now$q - start == since;
wire here = age_tag$q == who;
wire [4:0] ahead = who - scan$q;
// An age is that of the request that is waited for.
wire lemma_age = ~(here & age_live$q & waits) | uncounted | age$q < since;
wire missing = busy$q[who] & ~waits;
// So is that of a quarantine.
wire lemma_missing = ~(here & age_missing$q & missing) | uncounted | age$q < since;
// What is found spent is.
wire lemma_spent = ~(spent$q & old_tag$q == who & missing)
   | since > quarantine$q & ~endless$q;
// The least length of a quarantine.
wire lemma_quarantine = ~begun
   | quarantine$q == {timeout_before[23:0] | 24'h000fff, 8'hff} & endless$q == |timeout_before[31:23];
wire follow = scan$q == (age_tag$q + 5'h1 & 5'h1f) & age_tag$q == (old_tag$q + 5'h1 & 5'h1f);
wire starts_up = ~known & ~taken & ~age_live$q & ~old$q & age_tag$q == 0 & old_tag$q == 0;
// One tag is in each stage of the scanner: from its third cycle on, before any request.
wire lemma_follow = follow
   | starts_up & (scan$q == 0 & search$q == 0 & ~|live$q | scan$q == 1 & search$q <= 1);
// What is found old is due.
wire lemma_old = ~(old$q & old_tag$q == who) | due;
// How far the scanner still has to go.
wire lemma_late = ~due | uncounted | (old$q & old_tag$q == who ? late <= 34
   : here & age_live$q & age$q >= limit ? late <= 33 : late + ahead <= 32);
wire is_free = ~busy$q[who] & ~held$q[who];
// What the search has found stays free until it is taken.
wire lemma_found = ~(search$q == 1 & candidates$q[who]) | is_free;
// So does what it offers.
wire lemma_offered = ~(search$q == 2 & next_tag$q == who) | is_free;
