# A program whose connections all stay TCP, since the other end is not run so: it has only its own threads.
# needs: python3
# links: 0
source "${0%/*}/common.bash"
cat >"$FOLDER/echo.py" <<'END'
import socket, sys
with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as listener:
    connection, _ = listener.accept()
    while data := connection.recv(1000):
        connection.sendall(data)
END
python3 "$FOLDER/echo.py" "$PORT" &
listening "$PORT"
cat >"$FOLDER/ask.py" <<'END'
import os, socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as connection:
    for turn in range(1000):
        connection.sendall(b"%08d" % turn)
        assert connection.recv(8, socket.MSG_WAITALL) == b"%08d" % turn
    print("threads:", len(os.listdir("/proc/self/task")))
END
$RUN python3 "$FOLDER/ask.py" "$PORT"
