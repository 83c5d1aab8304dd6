// Two-entry stream buffer (hdl/src/leaf/skid.rs), by its page.
wire enters = in_valid & in_ready;
wire leaves = out_valid & out_ready;

// Beats inside; and one, chosen freely, on its way, with the beats in front of it.
reg [1:0] count;
wire choose;
reg watching;
reg [`WIDTH-1:0] beat;
reg [1:0] ahead;
// The outputs of a cycle in which a beat waited.
reg waited;
reg [`WIDTH-1:0] waiting_beat;
initial begin count = 0; watching = 0; waited = 0; end
always @(posedge clock) begin
   waited <= out_valid & ~out_ready & ~reset;
   waiting_beat <= out_data;
   if (reset) begin
      count <= 0; watching <= 0;
   end else begin
      count <= count + enters - leaves;
      if (~watching & enters & choose) begin
         watching <= 1; beat <= in_data; ahead <= count - leaves;
      end else if (watching & leaves) begin
         watching <= ahead != 0; ahead <= ahead - 1;
      end
   end
end

// A beat that entered is offered from the next cycle on.
wire rule_offers = out_valid == (count != 0);
// Two entries: one more beat is taken when the output stalls, then none.
wire rule_room = in_ready == (count < 2);
// Every beat comes out unchanged and in its turn.
wire rule_order = ~(watching & ahead == 0) | out_data == beat;
// out_data is stable while out_valid waits for out_ready.
wire rule_stable = ~waited | (out_valid & out_data == waiting_beat);

// The count fits.
wire lemma_count = count < 3;
// The watched beat is one of those inside.
wire lemma_ahead = ~watching | ahead < count;
// The second entry.
wire lemma_spare = ~(watching & ahead == 1) | spare == beat;
