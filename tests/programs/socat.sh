# socat forks for each connection, and gives it to a program.
# needs: socat
# links: 1
source "${0%/*}/common.bash"
content 20000000 >"$FOLDER/big"
$RUN socat TCP-LISTEN:"$PORT",bind=127.0.0.1,reuseaddr,fork SYSTEM:'cat' 2>/dev/null &
listening "$PORT"
for _ in 1 2 3; do
    $RUN socat -t 10 - TCP:127.0.0.1:"$PORT" <"$FOLDER/big" | sha256sum
done
