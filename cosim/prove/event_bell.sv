// Event doorbells (hdl/src/event/doorbell.rs): contract 2.4.
wire arms = post$token[16];
wire own = queue < 256 & exists & {2'b0, domain} == post$domain;
reg was_refused, was_own, own_then;
initial begin was_refused = 0; own_then = 0; end
// The queue and the doorbell have stood for a cycle when it is judged (proof `event-order`).
wire given_stands = ~at | own == own_then;
always @(posedge clock) begin
   own_then <= own;
   was_refused <= at & ~(own & new_fill <= size) & ~reset; was_own <= own;
end

// Contract 2.4: taken if the queue exists, has the page's domain, and is not moved beyond its size.
wire rule_accepted = accepted == (at & own & new_fill <= size);
// Else refused.
wire rule_refused = refused == (at & ~accepted);
// Contract 2.4: refused for cause 2 (not the page's queue) or 3 (too far), with a log entry.
wire rule_cause = error_valid == was_refused
   & (~error_valid | error_record[63:60] == (was_own ? 3 : 2));
// Contract 2.4: with `arm`, an interrupt at once if there are records.
wire rule_fire = fire == (accepted & arms & new_fill != 0);
// Contract 2.4: with `arm` and without records, the next one interrupts; without `arm`, disarmed.
wire rule_arm = ~accepted | arm == (arms & new_fill == 0);
// Contract 10.1: room in a queue that has put something off: it is tried again, once.
wire rule_drain = want_drain == (accepted & deferring & ~queued & new_fill != size);
// The index is the doorbell's bits 47:32, and the doorbell is taken when it is judged.
wire rule_taken = new_consumer == post$token[47:32] & post$ready == at;

// Whose queue it is was looked at then.
wire lemma_owned = owned$q == own_then;
