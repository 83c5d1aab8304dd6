"""Connections that move to VIA while small writes go to and fro, read in small pieces and by `select`.

`python3 stress.py threads|processes COUNT`: both ends in one process, or in two.
"""

import random
import select
import socket
import subprocess
import sys
import threading
import time

LINES = 3000


def line(turn):
    return b"%06d line of text\r\n" % turn


def serve(listener, count):
    for turn in range(count):
        sock, _ = listener.accept()
        got = bytearray()
        while True:
            if turn % 3 == 1:
                select.select([sock], [], [])
            if turn % 3 == 2:
                select.select([sock], [], [], 0.1)
            part = sock.recv(random.choice([1, 7, 100, 8192]))
            if not part:
                break
            got += part
            if turn % 2 and len(got) % 50 == 0:
                sock.send(b"k")
        sock.close()
        if bytes(got) != line(turn) * LINES:
            print("connection", turn, "differs:", len(got), "bytes", flush=True)


def connect(port, count):
    for turn in range(count):
        sock = socket.create_connection(("127.0.0.1", port))
        for step in range(LINES):
            sock.sendall(line(turn))
            if step == LINES // 10 * (turn % 10):
                time.sleep(0.01)
        if turn % 2:
            sock.shutdown(socket.SHUT_WR)
            while sock.recv(1000):
                pass
        sock.close()


if __name__ == "__main__":
    if sys.argv[1] == "client":
        connect(int(sys.argv[2]), int(sys.argv[3]))
        sys.exit()
    listener = socket.create_server(("127.0.0.1", 0))
    port, count = listener.getsockname()[1], int(sys.argv[2])
    if sys.argv[1] == "threads":
        thread = threading.Thread(target=connect, args=(port, count))
        thread.start()
        serve(listener, count)
        thread.join()
    else:
        client = subprocess.Popen([sys.executable, __file__, "client", str(port), str(count)])
        serve(listener, count)
        client.wait()
    print(sys.argv[1], "done")
