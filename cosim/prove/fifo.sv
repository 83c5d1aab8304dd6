// First-in first-out memory (hdl/src/leaf/fifo.rs), LUT RAM version, by its page.
localparam DEPTH = 1 << `ADDRESS;

// What was accepted and not yet read; a misuse is ignored and remembered.
reg [15:0] count;
reg misused;
initial begin count = 0; misused = 0; end
wire puts = write & (count != DEPTH);
wire gets = read & (count != 0);

// One entry, chosen freely, is watched on its way: its word and the entries in front of it.
wire choose;
reg watching;
reg [`WIDTH-1:0] word;
reg [15:0] ahead;
initial watching = 0;
always @(posedge clock)
   if (reset) begin
      count <= 0; misused <= 0; watching <= 0;
   end else begin
      count <= count + puts - gets;
      misused <= misused | (write & (count == DEPTH)) | (read & (count == 0));
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
// empty: nothing to read; an entry is visible after the edge that wrote it.
wire rule_empty = empty == (level == 0);
// fault: sticky, a write while full or a read while empty.
wire rule_fault = fault == misused;
// Every entry comes out unchanged and in its turn.
wire rule_order = ~(watching & ahead == 0) | data_out == word;

// The count fits.
wire lemma_count = count <= DEPTH;
// The watched entry is one of those counted.
wire lemma_ahead = ~watching | ahead < count;
wire [`ADDRESS-1:0] place = read_at + ahead;
// It stands in the memory where its turn will come.
wire lemma_word = ~watching | words[place] == word;
wire [`ADDRESS-1:0] end_at = read_at + held;
// The pointers are the count apart.
wire lemma_pointers = write_at == end_at;
