// Credits of received frames over the two colours of a channel (hdl/src/channel/staging.rs):
// contract 7.4 and 7.1, for any one of the peers.
//
// The tables are taken out; this keeps their words of one peer, chosen freely once and for all. The
// header queues and the payload are taken out too: any header may come out of them.
reg [5:0] who;
always @(posedge clock) who <= who;
reg [8:0] word, word_tx;
wire [8:0] other, other_tx;
initial begin word = 0; word_tx = 0; end
assign credits$read_data = credits$read_address == who ? word : other;
assign credits_tx$read_data = credits_tx$read_address == who ? word_tx : other_tx;
always @(posedge clock) begin
   if (credits$write_enable & credits$write_address == who) word <= credits$write_data;
   if (credits_tx$write_enable & credits_tx$write_address == who) word_tx <= credits_tx$write_data;
end

// The oldest frame, which is given back by `release`: its colour, and its units as the contract
// counts them, if it is sequenced.
wire [12:0] length = head0$q[28:16];
wire sequenced = head0$q[15:8] != `TYPE_DATA | head1$q[51];
wire [7:0] units_of = (((length + 7) >> 3) + 34) >> 5;
wire head_here = head0$q[37:32] == who & sequenced;
wire leaves = staging$release & staging$valid;

// The peer's limit: what was granted when it was opened, and what was released since of frames of
// this channel. The colour flips with each opening.
reg [7:0] limit;
reg colour_now, live, begun;
reg [2:0] command_ago, quiet;
wire opens = opened & opened_peer == who;
wire counts = leaves & head_here & live & head0$q[7] == colour_now;
initial begun = 0;
always @(posedge clock) begin
   begun <= 1;
   command_ago <= opened ? 0 : command_ago == 7 ? 7 : command_ago + 1;
   quiet <= leaves | opened ? 0 : quiet == 7 ? 7 : quiet + 1;
   if (opens) begin
      limit <= opened_credit; colour_now <= opened_colour; live <= 1;
   end else if (counts) limit <= limit + units_of;
   if (reset) begin live <= 0; command_ago <= 7; quiet <= 7; end
end
// Released, and not yet in the table.
wire first = released$q & head_here & head0$q[7] == colour_now;
wire second = back$q & back_peer$q == who & back_colour$q == colour_now;
wire [7:0] on_the_way = (first ? units_of : 0) + (second ? back_units$q : 0);
wire [7:0] behind = limit - tx_credit;

// The first cycle is one of reset.
wire given_reset = begun | reset;
// Frames are of 4,112 bytes at most.
wire given_length = length <= 4112;
// PeerOpen comes once in some cycles.
wire given_command = ~(begun & opened) | command_ago > 3;
// The colour flips, and no frame of the channel before the last is still there.
wire given_colour = ~(begun & opens) | ((~live | opened_colour != colour_now)
   & ~(head_here & head0$q[7] == opened_colour & (staging$valid | released$q))
   & ~(back$q & back_peer$q == who & back_colour$q == opened_colour));

// Contract 7.4: the limit that a peer is told is never ahead of the units that were released of
// frames of its present channel, plus those granted.
wire rule_never_ahead = ~(begun & live & tx_peer == who) | behind == on_the_way;
// Contract 7.4: four cycles after the last release it is exactly that.
wire rule_exact = ~(begun & live & tx_peer == who & quiet > 3) | tx_credit == limit;
// A release that raises the limit is told of, so that an Ack is owed (contract 7.2).
wire rule_returned = ~(begun & live & returned & returned_peer == who) | second;
// And each is.
wire rule_told = ~(begun & live & second & ~opened) | (returned & returned_peer == who);

// The table's copies agree, and are behind by what is on the way.
wire lemma_word = ~(begun & live)
   | (word == word_tx & word[8] == colour_now & word[7:0] + on_the_way == limit);
// What was released is on its way for three cycles at most.
wire lemma_released = ~(begun & released$q) | (quiet == 0 & ~head_valid$q);
// A return waits for a PeerOpen for one cycle.
wire lemma_back = ~(begun & back$q) | (quiet < 2 | (quiet < 3 & command_ago < 3));
// The ages agree.
wire lemma_ages = ~begun | quiet <= command_ago;
