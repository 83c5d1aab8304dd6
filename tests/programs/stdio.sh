# The C library's own buffers on connections: standard input and output, fdopen, dprintf.
# needs: gcc libc6-dev
# links: 1
# also: udp: sim:model sim:rtl
source "${0%/*}/common.bash"
gcc -O1 -Wall -Werror -o "$FOLDER/stdio" "${0%/*}/stdio.c"
$RUN "$FOLDER/stdio" serve "$PORT" &
listening "$PORT"
$CLIENT "$FOLDER/stdio" ask "$PORT" 100 | sha256sum
