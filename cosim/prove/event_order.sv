// Sequence of the event block (hdl/src/event.rs), by its page: what the queues' table (proof
// `event-ring`) expects of it. The parts are taken out: they may do anything, within what is said.
reg [7:0] number;
always @(posedge clock) number <= number;
wire here = queues$queue == number;
wire changes = queues$produce | queues$put_off | queues$consume | queues$create
   | queues$start_drain | queues$want_drain | queues$config_write;
reg newest, loaded, settled;
initial begin newest = 0; loaded = 0; settled = 0; end
always @(posedge clock) begin
   newest <= here & queues$ready & ~changes & ~reset;
   loaded <= (queues$load ? newest : loaded) & here & ~changes & ~reset;
   settled <= loaded & ~queues$load & here & ~changes & ~reset;
end

// A part decides only when it is asked to (proofs `event-record` and `event-bell` for the first two).
wire given_parts = (~(records$produce | records$put_off) | records$at)
   & (~(doorbells$accepted | doorbells$want_drain) | doorbells$at)
   & (~(commands$create | commands$config_write | commands$want_drain) | commands$at);
reg ready_then;
initial ready_then = 0;
always @(posedge clock) ready_then <= queues$ready & ~reset;
// The tables stay clear until a reset.
wire given_ready = ~ready_then | queues$ready;
// The arbiter grants one request (proof `arbiter`).
wire given_grant = (arbiter$grant & (arbiter$grant - 1'b1)) == 0 & arbiter$valid == |arbiter$grant
   & (arbiter$grant & ~request) == 0;
// The doorbell stands until it is taken (cq's page).
reg rings;
reg [63:0] token_then;
initial rings = 0;
always @(posedge clock) begin
   rings <= doorbell$valid & ~doorbells$at & ~reset; token_then <= doorbell$token;
end
// The offered token does not change; its index is the token's (doorbells.rs).
wire given_token = (~rings | (doorbell$valid & doorbell$token == token_then))
   & doorbells$new_consumer == doorbell$token[47:32];

// The queue at the head is changed only when its newest entry was read and its sums are there.
wire rule_settled = ~(changes & here) | (settled & queues$ready);
reg [15:0] consumer_then;
always @(posedge clock) consumer_then <= queues$new_consumer;
// The doorbell's index has stood for a cycle when it is judged.
wire rule_consumer = ~doorbells$at | queues$new_consumer == consumer_then;
// Records, doorbells, commands and drains take turns.
wire rule_single = records$at + doorbells$at + commands$at + act_drain + act_msix <= 1;

// The states in which the queue is read, one after the other.
wire lemma_states = (state$q == EventState$Idle | state$q == EventState$Bind
   | state$q == EventState$Fetch | state$q == EventState$Settle | state$q == EventState$Check
   | state$q == EventState$Act | state$q == EventState$Copy);
// Settle: the RAMs were read in Fetch.
wire lemma_settle = ~(here & state$q == EventState$Settle) | newest;
// Check: the registers were loaded in Settle; the sums follow.
wire lemma_check = ~(here & state$q == EventState$Check) | loaded;
// Act: the sums are there.
wire lemma_act = ~(here & state$q == EventState$Act) | (loaded & settled);
// Whose turn it is stands, and is one.
wire lemma_who = (who$q & (who$q - 1'b1)) == 0;
// Beyond Idle the tables are clear, and a doorbell whose turn it is stands there.
wire lemma_turn = state$q == EventState$Idle
   | (ready_then & (~who$q[3] | rings | state$q == EventState$Copy));
