// Credits of received frames over the two epochs of a channel (hdl/src/channel/staging.rs):
// contract 7.4 and 7.1, for any one of the peers.
//
// The tables are taken out; this keeps their words of one peer, chosen freely once and for all. The
// header queues, the payload and the frames in flight (`held`) are taken out too: frames of any peer,
// epoch bit and size are released.
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

// A frame that is released: whose, and the units that the contract counts, if it is sequenced.
wire frees = held$freed;
wire of_who = held$freed_peer == who & held$freed_sequenced;

// The peer's limit: what was granted when it was opened, and what was released since of frames of
// this channel. The epoch bit flips with each opening.
reg [7:0] limit;
reg epoch_bit_now, live, begun;
reg [2:0] command_ago, quiet;
wire opens = opened & opened_peer == who;
wire counts = frees & of_who & live & held$freed_epoch_bit == epoch_bit_now;
reg freed_before;
initial begun = 0;
always @(posedge clock) begin
   begun <= 1;
   command_ago <= opened ? 0 : command_ago == 7 ? 7 : command_ago + 1;
   freed_before <= frees & ~reset;
   quiet <= frees | opened ? 0 : quiet == 7 ? 7 : quiet + 1;
   if (opens) begin
      limit <= opened_credit; epoch_bit_now <= opens_bit; live <= 1;
   end else if (counts) limit <= limit + held$freed_units;
   if (reset) begin live <= 0; command_ago <= 7; quiet <= 7; end
end
// A frame that comes from this peer, chosen freely, is watched until it is released: its position
// among those that are here, and the openings of its peer since.
wire choose;
reg watch;
reg [7:0] position;
reg [1:0] openings;
wire comes = kept$q & header0[37:32] == who;
wire [7:0] behind_all = frames$q + kept$q - held$freed;
initial watch = 0;
always @(posedge clock)
   if (reset) watch <= 0;
   else if (~watch & comes & choose) begin
      watch <= 1; position <= behind_all; openings <= opens;
   end else if (watch) begin
      if (held$freed) begin position <= position - 1; watch <= position != 1; end
      if (opens) openings <= openings + (openings != 3);
   end
// Released, and not yet in the table.
wire second = back$q & back_peer$q == who & back_epoch_bit$q == epoch_bit_now;
wire [7:0] on_the_way = second ? back_units$q : 0;
wire [7:0] behind = limit - tx_credit;

// The first cycle is one of reset.
wire given_reset = begun | reset;
// Page of the block: two frames are not released in a row, and none while a peer opens.
wire given_pause = ~(begun & frees) | (~freed_before & ~opened);
// PeerOpen comes once in some cycles, and waits while there are old frames (hdl/src/channel.rs).
wire given_command = ~(begun & opened) | (command_ago > 3 & ~old);
// A frame that is released was here; frames take a unit at least, so that there are 64 of each kind at most.
wire given_frames = ~begun | ((~held$freed | frames$q != 0) & (~kept$q | frames$q < 128));
// The epoch bit flips, and no frame of the channel before the last is on its way to the table: frames
// are released in the order in which they came, and `rule_two` holds for each.
wire given_epoch_bit = ~(begun & opens) | ((~live | opens_bit != epoch_bit_now)
   & ~(back$q & back_peer$q == who & back_epoch_bit$q == opens_bit));

// Contract 7.4: the limit that is reported to a peer is never ahead of the units that were released of
// frames of its present channel, plus those granted.
wire rule_never_ahead = ~(begun & live & tx_peer == who) | behind == on_the_way;
// Contract 7.4: four cycles after the last release it is exactly that.
wire rule_exact = ~(begun & live & tx_peer == who & quiet > 3) | tx_credit == limit;
// A release that raises the limit is reported, so that an Ack is pending (contract 7.2).
wire rule_returned = ~(begun & live & returned & returned_peer == who) | second;
// And each is.
wire rule_notified = ~(begun & live & second & ~opened) | (returned & returned_peer == who);

// A frame is released before its peer's second opening (7.4): two epochs are enough.
wire rule_two = ~(begun & watch & opens) | openings == 0;

// The watched frame is one of those counted, and an old one is one of the old ones.
wire lemma_place = ~(begun & watch) | (position != 0 & position <= frames$q
   & (openings == 0 | position <= old_frames$q));
// Old frames are frames.
wire lemma_old = ~begun | (old_frames$q <= frames$q & frames$q <= 128);
// The table's copies agree, and are behind by what is on the way.
wire lemma_word = ~(begun & live)
   | (word == word_tx & word[8] == epoch_bit_now & word[7:0] + on_the_way == limit);
// A return waits for a PeerOpen.
wire lemma_back = ~(begun & back$q) | quiet == 0;
// What was released is on its way at once.
wire lemma_before = ~(begun & freed_before) | quiet == 0;
// The ages agree.
wire lemma_ages = ~begun | quiet <= command_ago;
