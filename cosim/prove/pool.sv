// Credits and pool quotas of a peer (hdl/src/channel/ask.rs): contract 7.4 and 7.5, for any one of
// the peers.
//
// The tables are taken out; this keeps their words of one peer, chosen freely once and for all, and
// answers reads of the others with anything.
reg [5:0] who;
always @(posedge clock) who <= who;
reg [7:0] share_word, share_give_word, unit_word, unit_give_word;
wire [7:0] share_other, share_give_other, unit_other, unit_give_other;
initial begin share_word = 0; share_give_word = 0; unit_word = 0; unit_give_word = 0; end
assign shares$read_data = shares$read_address == who ? share_word : share_other;
assign shares_give$read_data = shares_give$read_address == who ? share_give_word : share_give_other;
assign units$read_data = units$read_address == who ? unit_word : unit_other;
assign units_give$read_data = units_give$read_address == who ? unit_give_word : unit_give_other;
always @(posedge clock) begin
   if (shares$write_enable & shares$write_address == who) share_word <= shares$write_data;
   if (shares_give$write_enable & shares_give$write_address == who)
      share_give_word <= shares_give$write_data;
   if (units$write_enable & units$write_address == who) unit_word <= units$write_data;
   if (units_give$write_enable & units_give$write_address == who)
      unit_give_word <= units_give$write_data;
end

// What the question needs, as the contract says it.
wire mine = ask_peer == who;
wire good = ask_done & ask_ok & ~ask_probe;
wire [7:0] due = ask_length <= 256 ? 1 : (ask_length + 255) >> 8;
wire [7:0] cost_units = ask_sequenced ? due : 0;
wire [7:0] reserve = ask_data ? 4 : 0;

// Free chunks; those of the peer; units of its sequenced frames since it was opened, and its limit.
reg [7:0] spare, share_of, units_of, bound;
reg [7:0] bound1, bound2;
reg [3:0] was_open;
// The peer was opened; its entry was wiped; good answers whose reservation was not taken.
reg live, wiped, begun;
reg [2:0] pending;
wire [7:0] step, start;
wire opens = opened & opened_peer == who;
wire gives = give & give_peer == who;
// Cycles since this peer, and since any peer, was opened.
reg [2:0] opened_ago, command_ago;
initial begun = 0;
always @(posedge clock) begin
   begun <= 1;
   bound1 <= bound; bound2 <= bound1;
   was_open <= {was_open[2:0], open[who]};
   opened_ago <= opens ? 0 : opened_ago == 7 ? 7 : opened_ago + 1;
   command_ago <= opened ? 0 : command_ago == 7 ? 7 : command_ago + 1;
   bound <= bound + step;
   if (good) spare <= spare - due;
   else if (give) spare <= spare + give_chunks;
   if (good & mine) begin
      share_of <= share_of + due; units_of <= units_of + cost_units;
   end else if (gives) begin
      share_of <= share_of - give_chunks; units_of <= units_of - give_units;
   end
   pending <= pending + good - reserved_taken;
   if (~ready & building[5:0] == who) wiped <= 1;
   if (opens) begin units_of <= 0; bound <= start; live <= 1; end
   if (reset) begin
      spare <= 128; share_of <= 0; pending <= 0; live <= 0; wiped <= 0;
      was_open <= 0; opened_ago <= 7; command_ago <= 7;
   end
end
wire [7:0] left = bound - units_of;
wire [7:0] left_then = bound2 - units_of - cost_units;

// The question of the cycle before, if it was not answered then.
reg asking;
reg [7:0] peer_then;
reg [12:0] length_then;
reg data_then, sequenced_then, probe_then, ready_then;
initial ready_then = 0;
always @(posedge clock) begin
   asking <= begun & ~reset & ask_valid & ~ask_done;
   peer_then <= ask_peer; length_then <= ask_length;
   ready_then <= ready & ~reset;
   data_then <= ask_data; sequenced_then <= ask_sequenced; probe_then <= ask_probe;
end

// A reservation of this peer that has to wait, chosen freely, is watched until it is taken: its
// position among those that wait, and the openings of its peer since.
wire choose;
reg watch;
reg [2:0] position;
reg [1:0] openings;
initial watch = 0;
always @(posedge clock)
   if (reset) watch <= 0;
   else if (~watch & good & mine & reservations$write & choose) begin
      watch <= 1; position <= reservations$level - reservations$read + 1; openings <= opens;
   end else if (watch) begin
      if (reservations$read) begin position <= position - 1; watch <= position != 1; end
      if (opens) openings <= openings + (openings != 3);
   end

// The first cycle is one of reset.
wire given_reset = begun | reset;
// A question stays until its answer.
wire given_question = ~(begun & asking) | (ask_valid & ask_peer == peer_then
   & ask_length == length_then & ask_data == data_then & ask_sequenced == sequenced_then
   & ask_probe == probe_then);
// It is about a node below 64 and a frame of 4,112 bytes at most.
wire given_frame = ask_peer < 64 & ask_length <= 4112;
// `ready` says that the tables were wiped, and stays.
wire given_ready = (wiped | ~ready) & (~ready_then | ready);
// Chunks and units that are released were charged; and `may_give` is respected.
wire given_give = ~give | (begun & ready & may_give & give_chunks <= 128 - spare
   & (gives ? give_chunks <= share_of & give_units <= 31
            : give_chunks <= 128 - spare - share_of));
// A channel is open only after PeerOpen, which finds it closed for some cycles and leaves it so.
wire given_open = ~(begun & open[who]) | (live & opened_ago > 3 & ~opens);
// PeerOpen comes when the old channel has been closed for some cycles, once in some cycles, and not
// while old reservations wait (hdl/src/channel.rs).
wire given_opened = ~begun | ((~opened | (ready & command_ago > 3 & ~old))
   & (~opens | (was_open == 0 & ~open[who])));
// Contract 7.4: `limit` is the peer's limit, starts at no more than 64 and moves forward; the units
// released are those of frames that were sent, so it is at most 64 ahead of the units charged.
wire given_limit = (limit_peer != who | limit == bound) & start <= 64 & step <= 127
   & (~live | left >= 8'd224 | left <= 64);
// A reservation is taken when there is one.
wire given_taken = ~reserved_taken | reserved_valid;

// Contract 7.5: a good answer leaves no fewer than no chunks free; a data frame leaves
// POOL_RESERVED_CHUNKS.
wire rule_pool = ~(begun & good) | spare >= due + reserve;
// Contract 7.5: with a data frame a peer holds POOL_PEER_CHUNKS at most.
wire rule_share = ~(begun & good & mine & ask_data) | share_of + due <= 64;
// Contract 7.4, 7.5: the units of a peer's sequenced frames are at most CREDITS_AHEAD beyond its
// limit (signed difference).
wire rule_credit = ~(begun & live) | ~left[7] | left >= 8'd224;
// Contract 7.5: a frame beyond the limit leaves POOL_AHEAD_CHUNKS free.
wire rule_ahead = ~(begun & good & mine & ask_sequenced & left_then[7]) | spare >= due + 64;
// Contract 7.4, 7.5: the answer is good exactly if the channel is open, and chunks and credits are
// enough, as they were when it was judged.
wire rule_answer = ~(begun & ask_done & mine) | ask_ok == (was_open[1] & spare >= due + reserve
   & (~ask_data | share_of + due <= 64)
   & (~ask_sequenced | ~left_then[7] | (left_then >= 8'd224 & spare >= due + 64)));
// Each good answer leaves one reservation, but for a probe.
wire rule_reserved = ~begun | reserved_valid == (pending != 0 | good);
// The reservation says what was asked for, and what was charged for it: chunks rounded up, one at
// least (7.5), and as many units (7.4).
wire rule_content = ~(begun & good & pending == 0) | (reserved[6:0] == {ask_sequenced, ask_peer[5:0]}
   & reserved[20:8] == ask_length & reserved[25:21] == due & reserved[30:26] == cost_units);
// `ask_down` says that the channel was not open.
wire rule_down = ~(begun & ask_done & mine) | ask_down == ~was_open[1];

// A reservation that waits is taken before its peer's second opening (7.1): two epochs are enough.
wire rule_two = ~(begun & watch & opens) | openings == 0;

wire idle = state$q == AskState$Idle;
wire judge = state$q == AskState$Judge;
wire answer = state$q == AskState$Answer;
// One of three states; a question is in flight beyond the first.
wire lemma_state = ~begun | ((idle | judge | answer) & (idle | asking));
// The question stands in registers.
wire lemma_question = ~begun | idle | (peer$q == peer_then[5:0] & peer_then < 64
   & data_frame$q == data_then & sequenced$q == sequenced_then & probe$q == probe_then
   & length_then <= 4112
   & needed$q == (length_then <= 256 ? 1 : (length_then + 255) >> 8)
   & cost$q == (sequenced_then ? (length_then <= 256 ? 1 : (length_then + 255) >> 8) : 0));
// Free chunks.
wire lemma_spare = ~begun | (available$q == spare & spare <= 128);
// The peer's are among those that are not free.
wire lemma_share = ~begun | share_of <= 128 - spare;
// The tables say the same, in both copies.
wire lemma_tables = ~begun | ((~wiped | (share_word == share_of & share_give_word == share_of))
   & (~live | clearing$q & cleared$q == who
      | (unit_word == units_of & unit_give_word == units_of)));
// While the entry is being wiped nothing is charged.
wire lemma_clearing = ~(begun & clearing$q & cleared$q == who)
   | (live & units_of == 0 & (opened_ago == 0 | opened_ago == 1 & idle));
// Clearing waits for a charge for one cycle.
wire lemma_open = ~begun | (was_open == 0 | live);
// What was judged by, and what will be charged.
wire lemma_read = ~(begun & judge & ~gave$q & peer$q == who) | (share$q == share_of
   & is_open$q == was_open[0] & allowed$q == bound1 & (~was_open[0] | charged$q == units_of));
// The answer is that of the rule.
wire lemma_answer = ~(begun & answer & peer$q == who) | (share_after$q == share_of + needed$q
   & is_open$q == was_open[1]
   & (~was_open[1] | units_after$q == units_of + cost$q));
// A give is remembered for a cycle.
wire lemma_gave = ~begun | ~(gave$q & answer);
// Reservations, by the page of the FIFO.
wire lemma_reserved = ~begun | (reservations$level == pending & pending <= 4
   & reservations$empty == (pending == 0) & reservations$full == (pending == 4)
   & (idle | pending < 4));
// The watched reservation is one of those that wait, and an old one is one of the old ones.
wire lemma_place = ~(begun & watch) | (position != 0 & position <= reservations$level
   & (openings == 0 | position <= old_count$q));
// Old ones are among those that wait.
wire lemma_old = ~begun | old_count$q <= reservations$level;
// The tables were wiped before a question is taken.
wire lemma_cleared = ~begun | idle | (wiped & ready);
// Nothing is charged before.
wire lemma_unready = ~begun | ready | (share_of == 0 & spare == 128 & pending == 0 & ~live);
// The last PeerOpen was not before this peer's.
wire lemma_command = ~begun | (command_ago <= opened_ago
   & (~clearing$q | command_ago == 0 | command_ago == 1 & idle)
   & (~clearing$q | cleared$q != who | command_ago == opened_ago));
