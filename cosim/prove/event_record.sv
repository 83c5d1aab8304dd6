// What becomes of an event (hdl/src/event/record.rs): contract 10.1 and 7.8. The writer is taken
// out; it learns of a record by `writer$record`.
wire takes = found & (~message | wide);
// Events that are under way to their answer.
reg [2:0] pending;
reg [1:0] pending_outcome;
reg copies;
initial begin pending = 0; copies = 0; end
wire now = at & ~(takes & ~full & message);
always @(posedge clock) begin
   pending <= reset ? 0 : now | copied ? who : 0;
   pending_outcome <= copied ? 0 : ~takes ? 2 : full ? 1 : 0;
   copies <= ~reset & ~copied & (copies | (at & takes & ~full & message));
end

// One client's event at a time; while a message is copied nothing else is decided.
wire given_who = (who & (who - 1'b1)) == 0 & ~(at & (copying | copies)) & (~copying | copies)
   & (~at | who != 0);

// Contract 10.1: a record is written if the queue exists and has room (7.8: a message, if it is
// wide).
wire rule_produce = produce == (at & takes & ~full);
// Contract 10.1: a full queue puts an event off; a message is refused instead (7.8).
wire rule_put_off = put_off == (at & takes & full & ~message);
// The writer gets each record that is produced, once: at once, or a message's after its last beat.
wire rule_record = writer$record == ((produce & ~message) | copied);
// Each event is answered once, to whom it is: written 0, put off or refused 1, lost 2.
wire rule_answer = {channel$done, recv$done, vi$done} == pending
   & (pending == 0 | (vi$outcome == pending_outcome & recv$outcome == pending_outcome
   & channel$outcome == pending_outcome));
// The record carries the queue's place and phase as they are.
wire rule_place = ~writer$record | (writer$address == address & writer$phase == phase);
// Contract 10.3: an armed queue's record interrupts, at the queue's vector.
wire rule_interrupt = ~writer$record | (writer$interrupt == armed & writer$vector == vector);
reg tried;
initial tried = 0;
always @(posedge clock)
   if (reset) tried <= 0;
   else if (at & who[2]) tried <= takes & full;
// EventsDeferred counts the channel's first tries only.
wire rule_deferred = counted[`DEFERRED] == (at & takes & full & who[2] & ~tried);

// The channel's event that was counted.
wire lemma_tried = channel_put_off$q == tried;
// A message's beats.
wire lemma_copies = copies | ~copied;
