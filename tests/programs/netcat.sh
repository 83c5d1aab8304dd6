# OpenBSD's netcat, files both ways at once.
# needs: netcat-openbsd
# links: 0
source "${0%/*}/common.bash"
content 20000000 >"$FOLDER/big"
content 100000 >"$FOLDER/small"
$RUN nc -l -N 127.0.0.1 "$PORT" <"$FOLDER/small" >"$FOLDER/got" &
listening "$PORT"
$RUN nc -N 127.0.0.1 "$PORT" <"$FOLDER/big" | sha256sum
wait %1
sha256sum <"$FOLDER/got"
