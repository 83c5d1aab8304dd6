// The fence of the admin ring (hdl/src/admin.rs): contract 8.
//
// The engines' side, `paused`, is in `send.rs` and `recv.rs` and is not proved here.
// The reader of entries is taken out: an entry is anything, and stands from one load to the next.
reg [63:0] entry0, entry1, entry2, entry3, entry4, entry5, entry6, entry7;
wire [63:0] new0, new1, new2, new3, new4, new5, new6, new7;
assign fetch$quad0 = entry0;
assign fetch$quad1 = entry1;
assign fetch$quad2 = entry2;
assign fetch$quad3 = entry3;
assign fetch$quad4 = entry4;
assign fetch$quad5 = entry5;
assign fetch$quad6 = entry6;
assign fetch$quad7 = entry7;
always @(posedge clock) if (fetch$load) begin
   entry0 <= new0; entry1 <= new1; entry2 <= new2; entry3 <= new3;
   entry4 <= new4; entry5 <= new5; entry6 <= new6; entry7 <= new7;
end

reg send_then, recv_then, begun, was_reset;
initial begun = 0;
always @(posedge clock) begin
   begun <= 1; was_reset <= reset;
   send_then <= fence_send$pause & fence_send$paused & ~reset;
   recv_then <= fence_recv$pause & fence_recv$paused & ~reset;
end
// The first cycle is one of reset.
wire given_reset = begun | reset;
// FenceServer: `paused` stays while `pause` does, and is low a cycle after that.
wire given_paused = ~begun | ((~(send_then & fence_send$pause) | fence_send$paused)
   & (~(recv_then & fence_recv$pause) | fence_recv$paused));

// What a call asks for.
wire revokes = (tpt$valid & tpt$clear) | (vi$valid & (vi$op == `DESTROY | vi$op == `DISCONNECT));
// Contract 8: RegionClear, ViDestroy and ViDisconnect are executed only while both engines have
// paused. (In the cycle after a reset a call may still be up; its owner's table is not ready then.)
wire rule_fence = ~(begun & ~was_reset & revokes) | (fence_send$pause & fence_send$paused
   & fence_recv$pause & fence_recv$paused);
// Contract 1.3: commands are executed one at a time.
wire rule_single = ~begun
   | tpt$valid + vi$valid + event_queue$valid + peer$valid + message$valid <= 1;
// Both engines are paused together.
wire rule_both = fence_send$pause == fence_recv$pause;
// No pause outlives its command: it ends before the completion is written.
wire rule_ends = ~(begun & write$valid) | ~fence_send$pause;

wire called_state = state$q == AdminState$Call;
wire decoded = state$q == AdminState$Check | state$q == AdminState$Pause | called_state;
wire [31:0] opcode = entry0[31:0];
wire fenced = opcode == `REGION_CLEAR | opcode == `VI_DESTROY | opcode == `VI_DISCONNECT;
// What the decoder says is the opcode's.
wire lemma_decoded = ~(begun & decoded) | (decoder$fenced == fenced
   & (~decoder$owner[0] | opcode == `REGION_SET | opcode == `REGION_CLEAR)
   & (decoder$owner & (decoder$owner - 1'b1)) == 0);
// Pausing begins in Check, and ends with the call.
wire lemma_pausing = ~begun
   | pausing$q == (fenced & (state$q == AdminState$Pause | called_state));
// Only fenced commands wait.
wire lemma_waits = ~(begun & state$q == AdminState$Pause) | fenced;
// A fenced call finds both paused.
wire lemma_call = ~(begun & called_state & fenced) | (send_then & recv_then);
// Who is called is the decoder's owner, in the state Call.
wire lemma_owner = ~(begun & ~was_reset)
   | ({message$valid, peer$valid, event_queue$valid, vi$valid, tpt$valid} == 0
   | (called_state
   & {message$valid, peer$valid, event_queue$valid, vi$valid, tpt$valid} == decoder$owner));
