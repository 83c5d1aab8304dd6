# openbsd-inetd starts a program for each connection, which is its standard input and output.
# needs: openbsd-inetd python3
# links: 1
source "${0%/*}/common.bash"
cat >"$FOLDER/server.py" <<'END'
import sys
for line in sys.stdin.buffer:
    sys.stdout.buffer.write(line[::-1].strip() + b"\n")
    sys.stdout.buffer.flush()
END
echo "$PORT stream tcp nowait root $(command -v python3) python3 $FOLDER/server.py" >"$FOLDER/conf"
$RUN /usr/sbin/inetd -i "$FOLDER/conf" &
listening "$PORT"
cat >"$FOLDER/client.py" <<'END'
import hashlib, socket, sys, time
digest = hashlib.sha256()
for connection in range(3):
    file = socket.create_connection(("127.0.0.1", int(sys.argv[1]))).makefile("rwb")
    for turn in range(500):
        file.write(b"%d of %d\n" % (turn, connection))
        file.flush()
        digest.update(file.readline())
        if turn < 100:  # Time to move.
            time.sleep(0.003)
    file.close()
print(digest.hexdigest())
END
$RUN python3 "$FOLDER/client.py" "$PORT"
