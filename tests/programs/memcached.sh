# memcached, and a client with several connections.
# needs: memcached python3
# links: 4
# also: udp: sim:model
source "${0%/*}/common.bash"
$RUN memcached -u root -l 127.0.0.1 -p "$PORT" -m 64 &
listening "$PORT"
cat >"$FOLDER/client.py" <<'END'
import hashlib, socket, sys
socks = [socket.create_connection(("127.0.0.1", int(sys.argv[1]))) for _ in range(4)]
files = [sock.makefile("rwb") for sock in socks]
digest = hashlib.sha256()
for turn in range(2000):
    file = files[turn % 4]
    value = str(turn).encode() * (turn % 300)
    file.write(b"set key%d 0 0 %d\r\n%s\r\n" % (turn % 50, len(value), value))
    file.flush()
    digest.update(file.readline())
    other = files[(turn + 1) % 4]
    other.write(b"get key%d\r\n" % (turn % 50))
    other.flush()
    while (text := other.readline()) != b"END\r\n":
        digest.update(text)
print(digest.hexdigest())
END
$CLIENT python3 "$FOLDER/client.py" "$PORT"
