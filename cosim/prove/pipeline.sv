// Arbitration of VI operations (hdl/src/vi/pipeline.rs), by its page.
// One VI, chosen freely once and for all.
reg [9:0] number;
always @(posedge clock) number <= number;
// Whether the RAMs' outputs, and the registers behind them, hold the newest state of this VI.
reg newest, current;
initial begin newest = 0; current = 0; end
wire works = |at & vi == number;
wire looked = read_address == number;
always @(posedge clock) begin
   newest <= looked & ~works;
   current <= newest & ~works;
end

// A client's VI number is stable while its request is up (it stays until its stage 2).
reg [4:0] asked;
reg early_was, posted_was;
reg [9:0] post_was, send_was, recv_was, complete_was, look_was;
initial asked = 0;
initial posted_was = 0;
always @(posedge clock) begin
   asked <= request & ~(at[4:0] & ~{3'b0, at_early, 1'b0}) & ~{3'b0, early, 1'b0} & {5{~reset}};
   early_was <= send_early; posted_was <= asked[0];
   post_was <= post_vi; send_was <= send_vi; recv_was <= recv_vi;
   complete_was <= complete_vi; look_was <= look_vi;
end
// Each request stays until its stage 2, with its VI; one of the send engine that needs no answer until
// `early`. The VI of a doorbell comes a cycle behind its request.
wire given_stays = (~asked[0] | (request[0] & (~posted_was | post_vi == post_was)))
   & (~asked[1] | (request[1] & send_vi == send_was & send_early == early_was))
   & (~asked[2] | (request[2] & recv_vi == recv_was))
   & (~asked[3] | (request[3] & complete_vi == complete_was))
   & (~asked[4] | (request[4] & look_vi == look_was));

// One operation at a time.
wire rule_single = (at & (at - 1'b1)) == 0;
// An operation sees what the one before it on the same VI has left: its RAMs were read after that
// one had written.
wire rule_current = ~works | current;
// An operation of a doorbell or an engine is the one that is asked for: request up, same VI.
wire rule_asked = (~at[0] | (request[0] & vi == post_vi))
   & (~at[1] | at_early | (request[1] & vi == send_vi & ~send_early))
   & (~early | (request[1] & stage1$q[1] & stage1_vi$q == send_vi & send_early))
   & (~at[2] | (request[2] & vi == recv_vi)) & (~at[3] | (request[3] & vi == complete_vi))
   & (~at[4] | (request[4] & vi == look_vi));
// A request is worked on once: none is in the stages twice.
wire rule_once = ((at | stage1$q | stage0$q) & 31) == ((at & 31) + (stage1$q & 31) + (stage0$q & 31));
// The RAMs' outputs are those of stage 1.
wire lemma_newest = ~(|stage1$q & stage1_vi$q == number & ~stall$q) | newest;
// It waits while an older operation on its VI is in stage 2, or was there a cycle ago.
reg third;
reg [9:0] third_vi;
initial third = 0;
always @(posedge clock) begin
   third <= |at & ~reset;
   third_vi <= vi;
end
// So says the register that holds it up.
wire lemma_stall = stall$q == (|stage1$q & ((|stage2$q & stage2_vi$q == stage1_vi$q)
   | (third & third_vi == stage1_vi$q)));
// The valid bits are those of the stages.
wire lemma_valid = stage0_valid$q == |stage0$q & stage1_valid$q == |stage1$q
   & stage2_valid$q == |stage2$q;
// Busy is whoever is in a stage.
wire lemma_busy = busy$q == ((stage0$q | stage1$q | stage2$q) & 31);
// One operation a stage.
wire lemma_stages = (stage0$q & (stage0$q - 1'b1)) == 0 & (stage1$q & (stage1$q - 1'b1)) == 0 & (stage2$q & (stage2$q - 1'b1)) == 0;
// The slow register holds one.
wire lemma_slow = (slow$q & (slow$q - 1'b1)) == 0;
// What is in a stage is asked for.
wire lemma_asked0 = ((stage0$q & 31) & ~asked) == 0 & (~stage0$q[1] | stage0_early$q == early_was);
// With its VI, from the next stage on.
wire lemma_asked1 = (~stage1$q[0] | (asked[0] & stage1_vi$q == post_was))
   & (~stage1$q[1] | reported$q
      | (asked[1] & stage1_vi$q == send_was & stage1_early$q == early_was))
   & (~stage1$q[2] | (asked[2] & stage1_vi$q == recv_was))
   & (~stage1$q[3] | (asked[3] & stage1_vi$q == complete_was))
   & (~stage1$q[4] | (asked[4] & stage1_vi$q == look_was));
// And still in the next.
wire lemma_asked2 = (~stage2$q[0] | (asked[0] & stage2_vi$q == post_was))
   & (~stage2$q[1] | stage2_early$q | (asked[1] & stage2_vi$q == send_was & ~early_was))
   & (~stage2$q[2] | (asked[2] & stage2_vi$q == recv_was))
   & (~stage2$q[3] | (asked[3] & stage2_vi$q == complete_was))
   & (~stage2$q[4] | (asked[4] & stage2_vi$q == look_was));
// What needs no answer is the send engine's; it is reported once.
wire lemma_early = (~stage0_early$q | stage0$q[1]) & (~stage1_early$q | stage1$q[1]) & (~stage2_early$q | stage2$q[1])
   & (~reported$q | stage1_early$q);
