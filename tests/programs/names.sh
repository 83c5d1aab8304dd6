# Functions of the C library by other names, system calls without one, and execl.
# needs: gcc libc6-dev
# links: 5
source "${0%/*}/common.bash"
gcc -O1 -Wall -Werror -o "$FOLDER/names" "${0%/*}/names.c"
$RUN "$FOLDER/names" serve "$PORT" &
listening "$PORT"
$RUN "$FOLDER/names" ask "$PORT"
wait %1
