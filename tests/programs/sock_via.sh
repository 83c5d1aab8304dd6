# A program that asks for VIA, by SOVIA's own type of sockets.
# needs: gcc libc6-dev
# links: 2
# bytes: 14
source "${0%/*}/common.bash"
here=${0%/*}
gcc -O1 -Wall -Werror -I "$here/../../via-user/include" -o "$FOLDER/sock_via" "$here/sock_via.c"
# Where processors are busy the other end may come too late for one.
for _ in 1 2 3; do
    $RUN "$FOLDER/sock_via" serve "$PORT" &
    listening "$PORT"
    $RUN "$FOLDER/sock_via" ask "$PORT"
    wait
done
