"""Programs that close descriptors which they have not opened, or use their numbers, as `sockets.py` has cases.

`python3 closing.py [CASE...]` runs all cases side by side, or those.
"""

import ctypes
import errno
import os
import socket
import struct
import time

from sockets import data, digest, in_thread, main, place_of, take, warm

libc = ctypes.CDLL(None)


def closes_server(sock):
    return closes(sock, lambda: os.closerange(3, 65536), True)


def closes_client(sock):
    return closes(sock, lambda: libc.close_range(3, 0xFFFFFFFF, 0), False)


def closes_singly_server(sock):
    return closes(sock, lambda: libc.closefrom(3), True)


def closes_singly_client(sock):
    def close_each():
        for number in range(3, 4096):
            libc.close(number)

    return closes(sock, close_each, False)


def closes(sock, close_all, is_server):
    """Everything is closed, and a new connection opened that moves, too; twice."""
    got = []
    for turn in range(2):
        if is_server:
            listener = socket.create_server(("127.0.0.1", 0))
            port = listener.getsockname()[1]
            sock.sendall(struct.pack("!H", port))
            assert take(sock, 1) == b"x"
            kept = os.dup2(listener.detach(), 2)
            sock.detach()
            close_all()
            listener = socket.socket(fileno=os.dup(kept))
            sock, _ = listener.accept()
            listener.close()
        else:
            place = place_of(sock)
            sock.sendall(b"x")
            assert sock.recv(1) == b"", "it is closed"
            sock.detach()
            close_all()
            sock = socket.create_connection(place)
        files = [open(__file__, "rb") for _ in range(20)]
        warm(sock, is_server)
        thread = in_thread(sock.sendall, data(is_server, 1 << 20))
        got.append(digest(take(sock, 1 << 20)))
        thread.join()
        # They are the program's own.
        own = files[0].read()
        assert all(file.read() == own for file in files[1:])
        [file.close() for file in files]
    return got


def numbers_server(sock):
    for _ in range(2):
        sock.sendall(take(sock, 3 * 64))
        sock.sendall(data("numbers", 1 << 20))
        take(sock, 1)


def numbers_client(sock):
    """Copies of the connection take fixed numbers, and all numbers that nobody of the program has opened."""
    known = {0, 1, 2, sock.fileno()}
    got = []
    for turn in range(2):
        found = {int(name) for name in os.listdir("/proc/self/fd")} - known
        copies = []
        for number in sorted({*range(3, 64)} - known | found):
            try:
                copies.append(os.dup2(sock.fileno(), number))
            except OSError as error:
                # The library's own, which are not among the low ones.
                assert error.errno == errno.EBADF and number > 64, (number, error)
        for number in copies[:64]:
            os.write(number, b"abc")
        sock.sendall(b"abc" * (64 - len(copies[:64])))
        got.append(take(sock, 3 * 64) == b"abc" * 64)
        for number in copies:
            os.close(number)
        got.append(digest(take(sock, 1 << 20)))
        sock.sendall(b"x")
    return got


def threads_end_server(sock):
    time.sleep(0.2)
    sock.sendall(b"later")


def threads_end_client(sock):
    """A thread that has waited ends; a child has the files that were opened afterwards."""
    in_thread(take, sock, 5).join()
    files = [open(__file__, "rb") for _ in range(10)]
    child = os.fork()
    if child == 0:
        ok = all(file.read(3) == b'"""' for file in files)
        os._exit(0 if ok else 1)
    return os.waitpid(child, 0)[1]


if __name__ == "__main__":
    main(globals(), __file__, side_by_side=True)
