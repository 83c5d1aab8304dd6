// Work queue of a VI (hdl/src/vi/queue.rs): contract 2.2 and 2.3, for any one of the VIs.
//
// The three memories are taken out; this keeps their words of one VI, chosen freely once and for
// all, and answers reads of the others with anything. The proof `ram-block` is that of the memories.
reg [9:0] vi;
always @(posedge clock) vi <= vi;
reg [46:0] head_word, last_word, head_out, last_out;
reg [17:0] count_word, count_out;
wire [46:0] head_other, last_other;
wire [17:0] count_other;
initial begin head_word = 0; last_word = 0; count_word = 0; end
wire here = write_address == vi;
wire looked = read_address == vi;
assign head_ram$read_data = head_out;
assign last_ram$read_data = last_out;
assign count_ram$read_data = count_out;
always @(posedge clock) begin
   head_out <= looked ? head_word : head_other;
   last_out <= looked ? last_word : last_other;
   count_out <= looked ? count_word : count_other;
   if (here & head_ram$write_enable) head_word <= head_ram$write_data;
   if (here & last_ram$write_enable) last_word <= last_ram$write_data;
   if (here & count_ram$write_enable) count_word <= count_ram$write_data;
end

// Whether what was read of this VI is its newest state, in the RAMs' outputs and one cycle later.
reg newest, current;
initial begin newest = 0; current = 0; end
wire works = here & (post | unpost | pop | clear);
always @(posedge clock) begin
   newest <= looked & ~works;
   current <= newest & ~works;
end

// The queue as software sees it: how many descriptors, and one of them, chosen freely as it is
// posted, with the number of those in front of it.
reg [15:0] posted;
wire choose;
reg watching;
reg [46:0] watched;
reg [15:0] ahead;
initial begin posted = 0; watching = 0; end
wire may_pop = posted <= 2 | next_valid;
wire pops = here & pop & posted != 0 & may_pop;
wire posts = here & post;
// A push that comes back is the oldest one again.
wire returns = here & unpost;
always @(posedge clock)
   if (here & clear) begin
      posted <= 0; watching <= 0;
   end else begin
      posted <= posted + posts + returns - pops;
      if (~watching & posts & choose) begin
         watching <= 1; watched <= token; ahead <= posted;
      end else if (~watching & returns & choose) begin
         watching <= 1; watched <= token; ahead <= 0;
      end else if (watching & returns) begin
         ahead <= ahead + 1;
      end else if (watching & pops) begin
         watching <= ahead != 0; ahead <= ahead - 1;
      end
   end

// The pipeline (proof `pipeline`): an operation sees what the one before it on the VI has left.
wire given_current = ~works | current;
// One operation at a time.
wire given_single = post + unpost + pop + clear <= 1;
// Limit of the block's page: a posted count beyond 65,535 wraps.
wire given_count = ~((posts | returns) & posted == 16'hffff);
// Software links the descriptors: the head's Next names the one behind it.
wire given_next = ~(pops & posted > 2 & watching & ahead == 1) | next_token == watched[41:0];

// Contract 2.2: the posted count is that of the descriptors in the queue.
wire rule_count = ~works | count == posted;
// Contract 2.3: the head is the oldest descriptor in the queue, always.
wire rule_head = ~(works & watching & ahead == 0) | head[41:0] == watched[41:0];
// Contract 2.2: a post to an empty queue makes its token the head, with its hint of the length; so does a push that comes back.
wire rule_hint = ~(works & watching & ahead == 0 & fresh_hint) | head == watched;
// Contract 2.3: a successor that no valid read has covered is wanted, and nothing is done.
wire rule_need = ~(here & pop) | need_next == (posted > 2 & ~next_valid);
// Contract 2.3: a pop takes a descriptor if there is one.
wire rule_popped = ~works | popped == pops;
// `left`: the queue is not empty after the operation, if that is no post.
wire rule_left = ~(works & ~need_next & ~post)
   | left == (clear ? 0 : posted + returns - pops != 0);

// The watched one became the head by its post, or as the last one: its hint is its own.
reg fresh_hint;
initial fresh_hint = 0;
always @(posedge clock)
   if (~watching & posts & choose) fresh_hint <= posted == 0;
   else if (~watching & returns & choose) fresh_hint <= 1;
   else if (watching & returns) fresh_hint <= 0;

// What was read is there.
wire lemma_newest = ~newest | (head_out == head_word & last_out == last_word
   & count_out == count_word);
// And was taken over.
wire lemma_current = ~current | (head_now$q == head_word & last_now$q == last_word
   & count_now$q == count_word);
// The memories say what software sees.
wire lemma_count = count_word[15:0] == posted;
// And whether that is 0, 1, 2 or more.
wire lemma_few = count_word[17:16] == (posted > 3 ? 3 : posted);
// The watched one is one of those posted.
wire lemma_ahead = ~watching | ahead < posted;
// The last token is the youngest descriptor's.
wire lemma_last = ~(watching & ahead == posted - 1) | last_word == watched;
// The head token is the oldest one's.
wire lemma_head = ~(watching & ahead == 0) | head_word[41:0] == watched[41:0];
// With the length that it was posted with.
wire lemma_hint = ~(watching & ahead == 0 & fresh_hint) | head_word == watched;
// Who was posted to an empty queue is its head.
wire lemma_fresh = ~(watching & fresh_hint) | ahead == 0;
