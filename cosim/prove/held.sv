// Frames of staging in flight (hdl/src/channel/held.rs): contract 7.4, and what `epoch_bit` expects of
// frames that are released.
//
// The two FIFOs are taken out (`fifo` proves what is expected of them here); this counts their
// entries and watches one frame, chosen freely, from when it is remembered until it is released.
wire choose;
reg [5:0] kept, released;
reg watch, begun, freed_before;
reg [5:0] position;
reg [22:0] word;
reg [5:0] its_peer;
reg its_epoch_bit, its_sequenced;
reg [7:0] its_units;
reg [9:0] its_beats;
initial begin begun = 0; watch = 0; end
wire [12:0] bytes = header0[28:16];
// Data is type 1, RdmaWrite 6; both say in bit 3 of their flags whether they are sequenced.
wire may_be_unsequenced = header0[15:8] == 1 | header0[15:8] == 6;
always @(posedge clock) begin
   begun <= 1;
   freed_before <= freed & ~reset;
   kept <= kept + in_flight$write - in_flight$read;
   released <= released + gone$write - gone$read;
   if (~watch & in_flight$write & choose) begin
      watch <= 1; position <= kept - in_flight$read + 1; word <= in_flight$data_in;
      its_peer <= header0[37:32]; its_epoch_bit <= header0[7];
      its_sequenced <= ~may_be_unsequenced | header1[51];
      its_units <= bytes <= 256 ? 1 : (bytes + 255) >> 8;
      its_beats <= (bytes + 7) >> 3;
   end else if (watch & in_flight$read) begin
      position <= position - 1; watch <= position != 1;
   end
   if (reset) begin kept <= 0; released <= 0; watch <= 0; end
end
wire its_turn = begun & freed & watch & position == 1;

// The first cycle is one of reset.
wire given_reset = begun | reset;
// The page of the FIFO.
wire given_fifos = ~begun | (in_flight$empty == (kept == 0) & gone$empty == (released == 0)
   & (~(watch & position == 1) | in_flight$data_out == word));
// The page of the link: a frame that is kept has 4,112 bytes at most.
wire given_frame = bytes <= 4112;

// Contract 7.4: a frame releases a unit for each 256 bytes of payload, one at least.
wire rule_units = ~its_turn | freed_units == its_units;
// They are its source's, and of the channel that it came on; those of frames without a sequence
// number are nobody's.
wire rule_whose = ~its_turn | (freed_peer == its_peer & freed_epoch_bit == its_epoch_bit
   & freed_sequenced == its_sequenced);
// Its payload is released too.
wire rule_beats = ~its_turn | freed_beats == its_beats;
// Page of the block: two frames are not released in a row, and none while a peer opens.
wire rule_pause = ~(begun & freed) | (~freed_before & ~hold);
// What was not released, or not remembered yet, is not released.
wire rule_released = ~(begun & freed) | (released != 0 & kept != 0);

// The watched frame is one of those that are remembered.
wire lemma_position = ~(begun & watch) | (position != 0 & position <= kept);
// What is remembered of it says what its header said.
wire lemma_word = ~(begun & watch) | (word[5:0] == its_peer & word[6] == its_epoch_bit
   & word[7] == its_sequenced & word[12:8] == its_units & word[22:13] == its_beats
   & its_units <= 17);
// A pause is remembered.
wire lemma_pause = ~begun | ~freed_before | freeing$q;
// There is room for what is remembered (`room`): 16, and one whose header is still looked at.
wire given_room = ~begun | (kept <= 17 & released <= 17);
