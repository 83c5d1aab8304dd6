// Rings of the event queues (hdl/src/event/table.rs): contract 10.1 and 2.4, for any one of the
// queues.
//
// The memories are taken out; this keeps their words of one queue, chosen freely once and for all,
// and answers reads of the others with anything.
reg [7:0] number;
always @(posedge clock) number <= number;
reg [57:0] base_word, base_out;
reg [16:0] config_word_kept, config_out;
reg [34:0] index_word, index_out;
wire [57:0] base_other;
wire [16:0] config_other;
wire [34:0] index_other;
initial begin base_word = 0; config_word_kept = 0; index_word = 0; end
wire here = queue == number;
assign base_ram$read_data = base_out;
assign config_ram$read_data = config_out;
assign index_ram$read_data = index_out;
always @(posedge clock) begin
   base_out <= here ? base_word : base_other;
   config_out <= here ? config_word_kept : config_other;
   index_out <= here ? index_word : index_other;
   if (base_ram$write_enable & base_ram$write_address == number) base_word <= base_ram$write_data;
   if (config_ram$write_enable & config_ram$write_address == number)
      config_word_kept <= config_ram$write_data;
   if (index_ram$write_enable & index_ram$write_address == number)
      index_word <= index_ram$write_data;
end

// How far the queue at the head is read: from the RAMs, in the registers, and with its sums.
wire changes = produce | put_off | consume | create | start_drain | want_drain | config_write;
reg newest, loaded, settled;
initial begin newest = 0; loaded = 0; settled = 0; end
always @(posedge clock) begin
   newest <= here & ready & ~changes & ~reset;
   loaded <= (load ? newest : loaded) & here & ~changes & ~reset;
   settled <= loaded & ~load & here & ~changes & ~reset;
end
wire acts = settled & here;
reg [15:0] consumer_then;
always @(posedge clock) consumer_then <= new_consumer;

// The ring as the contract has it: free-running producer and consumer indexes, and what was asked
// for when it was created.
reg there, is_wide;
reg [3:0] log;
reg [5:0] domain_of;
reg [4:0] vector_of;
reg [57:0] base_of;
reg [15:0] put_in, taken_out;
reg is_armed, is_deferring;
// The queue's entry was cleared since the reset.
reg wiped;
initial begin there = 0; wiped = 0; end
wire [16:0] entries = 17'd1 << log;
wire [15:0] used = put_in - taken_out;
always @(posedge clock)
   if (reset) begin
      there <= 0; wiped <= 0;
   end else if (~ready) begin
      if (clear_index == number) begin wiped <= 1; is_deferring <= 0; end
   end else if (here) begin
      if (config_write) begin
         there <= config_word[0]; is_wide <= config_word[1]; log <= config_word[5:2];
         domain_of <= config_word[11:6]; vector_of <= config_word[16:12];
      end
      if (create) begin
         base_of <= base; put_in <= 0; taken_out <= 0; is_armed <= 0;
      end else if (produce) begin
         put_in <= put_in + 1; is_armed <= 0;
      end else if (put_off) is_deferring <= 1;
      else if (consume) begin
         taken_out <= new_consumer; is_armed <= arm;
      end else if (start_drain) is_deferring <= 0;
   end

// The block's sequence (proof `event-order`): a queue is changed when its sums are there, and the
// doorbell's index has stood for a cycle by then.
wire given_order = ~(changes & here) | (acts & ready & (~consume | consumer_then == new_consumer));
// And nothing is changed before the tables are clear.
wire given_ready = ~changes | ready;
// One change of the indexes at a time; a drain is wanted alone or by a doorbell.
wire given_single = produce + put_off + consume + create + start_drain <= 1
   & (~want_drain | ~(produce | put_off | create | start_drain));
// Records (proof `event-record`): one is put in only if the queue exists and is not full.
wire given_produce = ~(produce & here) | (exists & ~full);
// Doorbells (proof `event-bell`): the index is taken only if the queue exists and it fits.
wire given_consume = ~(consume & here) | (exists & new_fill <= size);
// Contract 1.4: EventCreate of an absent queue, of 4 to 32,768 entries; it is configured at once.
wire given_create = ~(create & here) | (config_write & ~exists & config_word[0]);
wire log_good = config_word[5:2] >= 2;
// Contract 1.4: EventDestroy leaves an absent queue.
wire given_config = ~(config_write & here) | (create ? log_good : config_word == 0)
   & ~produce & ~consume;

// Contract 10.1: a ring never holds more records than it has entries.
wire rule_never_over = ~there | used <= entries;
// Contract 10.1: there is room if and only if producer - consumer is below the size.
wire rule_full = ~(acts & there) | full == (used >= entries);
wire [15:0] slot_of = put_in & (entries - 1);
wire [63:0] address_of = {base_of, 6'b0} + (is_wide ? {slot_of, 6'b0} : {slot_of, 4'b0});
// Contract 10.1: the record goes to the entry producer mod size, of 16 bytes or, in a wide queue,
// of 64.
wire rule_place = ~(acts & there) | record_address == address_of;
// The phase of a record is that of its pass through the ring: 1 in the first one.
wire rule_phase = ~(acts & there) | phase == ~put_in[log];
// Contract 2.4: what the doorbell is judged by is producer - consumer with its index, modulo 65,536.
wire rule_fill = ~(acts & there) | (new_fill == put_in - consumer_then & size == entries[15:0]);
// Contract 2.4: armed by a doorbell until the next record.
wire rule_armed = ~(acts & there) | armed == is_armed;
// Contract 10.1: a queue that has put something off says so until that is tried again.
wire rule_deferring = ~acts | deferring == is_deferring;
// A queue exists from EventCreate to EventDestroy, with the domain, vector and width asked for.
wire rule_exists = ~acts | (exists == there
   & (~there | (domain == domain_of & vector == vector_of & wide == is_wide)));

// The memories say the same.
wire lemma_config = ~wiped | (config_word_kept[0] == there & (~there | (config_word_kept[1] == is_wide
   & config_word_kept[5:2] == log & config_word_kept[11:6] == domain_of
   & config_word_kept[16:12] == vector_of & log >= 2)));
// The indexes too.
wire lemma_index = ~wiped | (index_word[33] == is_deferring & (~there | (base_word == base_of
   & index_word[15:0] == put_in & index_word[31:16] == taken_out & index_word[32] == is_armed)));
// What was read is there.
wire lemma_newest = ~newest | (base_out == base_word & config_out == config_word_kept
   & index_out == index_word);
// And was taken over.
wire lemma_loaded = ~loaded | (base_now$q == base_word & config_now$q == config_word_kept
   & index_now$q == index_word);
// And was summed.
wire lemma_settled = ~settled | (loaded & fill$q == producer - consumer
   & fill_then$q == producer - consumer_then & size_now$q == one << log2
   & offset$q == (wide ? {slot, 6'b0} : {slot, 4'b0}) & phase_now$q == ~producer[log2]);
// Clearing goes in rising order.
wire lemma_wiped = wiped == (ready | clear_index > number);
// Nothing is read before, nor is there.
wire lemma_ready = ready | ~(there | newest | loaded | settled);
