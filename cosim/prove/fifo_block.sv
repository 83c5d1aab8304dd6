// First-in first-out memory (hdl/src/leaf/fifo.rs), block RAM version, by its page.
localparam DEPTH = 1 << `ADDRESS;

// What was accepted and not yet read; a misuse is ignored and remembered.
reg [15:0] count;
reg misused;
// Cycles in a row in which something is held and nothing can be read.
reg [1:0] hidden;
initial begin count = 0; misused = 0; hidden = 0; end
wire puts = write & (count != DEPTH);
wire gets = read & ~empty;

// One entry, chosen freely, is watched on its way: its word and the entries in front of it.
wire choose;
reg watching;
reg [`WIDTH-1:0] word;
reg [15:0] ahead;
initial watching = 0;
always @(posedge clock)
   if (reset) begin
      count <= 0; misused <= 0; watching <= 0; hidden <= 0;
   end else begin
      count <= count + puts - gets;
      hidden <= (empty & count != 0) ? hidden + 1 : 0;
      misused <= misused | (write & (count == DEPTH)) | (read & empty);
      if (~watching & puts & choose) begin
         watching <= 1; word <= data_in; ahead <= count - gets;
      end else if (watching & gets) begin
         watching <= ahead != 0; ahead <= ahead - 1;
      end
   end

// level: entries accepted and not yet read.
wire rule_level = level == count;
// full: level is the capacity.
wire rule_full = full == (level == DEPTH);
// almost_full: level is at least the capacity less two.
wire rule_almost_full = almost_full == (level >= DEPTH - 2);
// empty: whatever is empty has nothing to read.
wire rule_empty = empty | (level != 0);
// An entry can be read after three edges at most: empty is high for two cycles at most while
// the level is not zero.
wire rule_visible = ~(empty & (level != 0)) | (hidden < 2);
// fault: sticky, a write while full or a read while empty.
wire rule_fault = fault == misused;
// Every entry comes out unchanged and in its turn.
wire rule_order = ~(watching & ahead == 0 & ~empty) | data_out == word;

// The count fits.
wire lemma_count = count <= DEPTH;
// The watched entry is one of those counted.
wire lemma_ahead = ~watching | ahead < count;
wire shown = ~empty;
// What is held is in the output, in the register before it, or in the memory.
wire lemma_parts = count == unread + fetched + shown;
// How long nothing was to be seen says how far the first entry has come.
wire lemma_hidden = (hidden == 0) | ~empty | fetched;
wire [15:0] in_front = ahead - fetched - shown;
wire [`ADDRESS-1:0] place = read_at + in_front;
// The watched entry stands where its turn will come.
wire lemma_word = ~watching
   | (ahead == 0 & ~empty ? data_out == word
   : ahead == shown & fetched ? fetched_word == word : words[place] == word);
wire [`ADDRESS-1:0] end_at = read_at + unread;
// The pointers are the memory's entries apart.
wire lemma_pointers = write_at == end_at;
