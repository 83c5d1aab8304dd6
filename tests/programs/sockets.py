"""What programs do with TCP sockets, case by case: each prints what it saw.

Two processes, a server and a client, do the two halves of each case. The output is the same by TCP and by
VIA. `python3 sockets.py [CASE...]` runs all cases, or those.
"""

import array
import concurrent.futures
import fcntl
import hashlib
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import termios

WARM = 60


def warm(sock, is_server):
    """Short calls to and fro, until a connection that can move has moved."""
    for turn in range(WARM):
        if is_server:
            sock.sendall(take(sock, 5))
        else:
            sock.sendall(b"%05d" % turn)
            assert take(sock, 5) == b"%05d" % turn
        if turn == WARM // 2:
            time.sleep(0.15)


def take(sock, count):
    parts = []
    while count:
        part = sock.recv(count)
        assert part, "the end, too early"
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def rest(sock):
    parts = []
    while True:
        part = sock.recv(65536)
        if not part:
            return b"".join(parts)
        parts.append(part)


def data(seed, count):
    block = hashlib.sha256(str(seed).encode()).digest() * 1024
    return (block * (count // len(block) + 1))[:count]


def digest(content):
    return f"{len(content)} {hashlib.sha256(content).hexdigest()[:12]}"


def place_of(sock):
    """The port of a new listener, from the other end, as an address."""
    return "127.0.0.1", struct.unpack("!H", take(sock, 2))[0]


def in_thread(run, *arguments):
    thread = threading.Thread(target=run, args=arguments)
    thread.start()
    return thread


# Cases: a server's half and a client's. What they return is printed.


def sizes_server(sock):
    for size in [1, 2, 100, 2047, 2048, 2049, 32768, 32769, 100000, 1 << 20]:
        sock.sendall(take(sock, size))


def sizes_client(sock):
    for size in [1, 2, 100, 2047, 2048, 2049, 32768, 32769, 100000, 1 << 20]:
        content = data(size, size)
        thread = in_thread(sock.sendall, content)
        assert take(sock, size) == content, size
        thread.join()
    return "all sizes"


def duplex_server(sock):
    thread = in_thread(sock.sendall, data("down", 8 << 20))
    got = take(sock, 8 << 20)
    thread.join()
    return digest(got)


def duplex_client(sock):
    thread = in_thread(sock.sendall, data("up", 8 << 20))
    got = take(sock, 8 << 20)
    thread.join()
    return digest(got)


def half_close_server(sock):
    got = rest(sock)
    sock.sendall(data("answer", 3 << 20))
    return digest(got)


def half_close_client(sock):
    sock.sendall(data("question", 1 << 20))
    sock.shutdown(socket.SHUT_WR)
    try:
        sock.send(b"more")
    except BrokenPipeError:
        return "no more; " + digest(rest(sock))
    return "sent after the end"


def flags_server(sock):
    sock.sendall(b"0123456789")
    assert take(sock, 1) == b"a"
    for part in [b"abc", b"def", b"ghi"]:
        sock.sendall(part)
        time.sleep(0.02)
    assert take(sock, 1) == b"b"


def flags_client(sock):
    seen = []
    while len(sock.recv(10, socket.MSG_PEEK)) < 10:
        pass
    seen.append(sock.recv(4, socket.MSG_PEEK))
    pending = array.array("i", [0])
    fcntl.ioctl(sock, termios.FIONREAD, pending)
    seen.append(pending[0])
    seen.append(sock.recv(10))
    try:
        sock.recv(1, socket.MSG_DONTWAIT)
    except BlockingIOError:
        seen.append("nothing")
    fcntl.ioctl(sock, termios.FIONREAD, pending)
    seen.append(pending[0])
    sock.sendall(b"a")
    seen.append(sock.recv(9, socket.MSG_WAITALL))
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, 50000))
    began = time.monotonic()
    try:
        sock.recv(1)
    except BlockingIOError:
        seen.append("in time" if 0.04 < time.monotonic() - began < 2 else "not in time")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, 0))
    sock.sendall(b"b")
    seen.append(sock.recv(1))
    return seen


def vectors_server(sock):
    sock.sendmsg([b"head", b"", data(1, 70000), b"tail"])
    with open(__file__, "rb") as own:
        count = os.fstat(own.fileno()).st_size
        at = 0
        while at < count:
            at += os.sendfile(sock.fileno(), own.fileno(), at, count - at)


def vectors_client(sock):
    buffers = [bytearray(3), bytearray(1), bytearray(70004)]
    count = 0
    while count < 70008:
        flat = bytearray(b"".join(buffers))
        got = sock.recvmsg_into([memoryview(flat)[count : count + 5], memoryview(flat)[count + 5 :]])
        count += got[0]
        buffers = [flat]
    with open(__file__, "rb") as own:
        same = own.read() == rest(sock)
    return [digest(bytes(flat)), same]


WAITS = ["select", "poll", "level", "edge", "once", "nested level", "nested edge"]


def wait_with(kind, sock):
    """Waits for the socket by one of the ways there are; the pipe is beside it."""
    reader, writer = os.pipe()
    if kind == "select":
        both = [sock.fileno(), reader]
        wait = lambda bound: select.select(both, [], [], bound)[0]
    elif kind == "poll":
        poll = select.poll()
        poll.register(sock, select.POLLIN)
        poll.register(reader, select.POLLIN)
        wait = lambda bound: dict(poll.poll(bound * 1000))
    else:
        way, *nested = kind.split()[::-1]
        flags = {"level": 0, "edge": select.EPOLLET, "once": select.EPOLLONESHOT}[way]
        epoll = select.epoll()
        own = 0 if nested else flags
        epoll.register(sock, select.EPOLLIN | own)
        epoll.register(reader, select.EPOLLIN | own)
        wait = lambda bound: dict(epoll.poll(bound))
        if nested:
            outer = select.epoll()
            outer.register(epoll, select.EPOLLIN | flags)
            wait = lambda bound: dict(epoll.poll(0)) if outer.poll(bound) else {}

    def ready(bound):
        found = wait(bound)
        return [one in found for one in (sock.fileno(), reader)]

    seen = [ready(0.02)]
    sock.sendall(b"go")
    seen.append(ready(5))
    if kind == "once":
        seen.append(ready(0.02))
        epoll.modify(sock, select.EPOLLIN | flags)
        seen.append(ready(5))
    elif kind.endswith("edge"):
        seen.append(ready(0.02))
    else:
        seen.append(ready(5))
    seen.append(take(sock, 4))
    if kind == "once":
        epoll.modify(sock, select.EPOLLIN | flags)
    seen.append(ready(0.02))
    os.write(writer, b"x")
    seen.append(ready(5))
    os.read(reader, 1)
    if kind == "once":
        epoll.modify(sock, select.EPOLLIN | flags)
    sock.sendall(b"go")
    seen.append(ready(5))
    seen.append(take(sock, 4))
    os.close(reader)
    os.close(writer)
    return seen


def ready_server(sock):
    for _ in range(2 * len(WAITS)):
        assert take(sock, 2) == b"go"
        time.sleep(0.03)
        sock.sendall(b"here")


def ready_client(sock):
    return {kind: wait_with(kind, sock) for kind in WAITS}


def full_server(sock):
    assert take(sock, 4) == b"full"
    time.sleep(0.2)
    return digest(rest(sock))


def full_client(sock):
    """A sender that does not wait, into a receiver that does not read."""
    sock.sendall(b"full")
    sock.setblocking(False)
    epoll = select.epoll()
    epoll.register(sock, select.EPOLLOUT)
    content, sent, stops = data("full", 20 << 20), 0, 0
    while sent < len(content):
        try:
            sent += sock.send(content[sent : sent + 100000])
        except BlockingIOError:
            stops += 1
            assert epoll.poll(10), "no room for ten seconds"
    epoll.close()
    return "stopped" if stops else "never stopped"


def copies_server(sock):
    sock.sendall(take(sock, 6))
    return digest(rest(sock))


def copies_client(sock):
    copy = sock.dup()
    number = os.dup2(sock.fileno(), 200)
    sock.close()
    os.write(number, b"abc")
    copy.sendall(b"def")
    got = take(copy, 6)
    os.close(number)
    copy.sendall(data("copy", 1 << 20))
    copy.close()
    return got


def fork_server(sock):
    """Parent and child share it, and take turns."""
    ours, theirs = os.pipe()
    back, forth = os.pipe()
    child = os.fork()
    if child == 0:
        os.read(ours, 1)
        sock.sendall(b"child " + take(sock, 5))
        os.write(forth, b"x")
        os.read(ours, 1)
        sock.sendall(b"child again " + take(sock, 5))
        os._exit(0)
    sock.sendall(b"parent " + take(sock, 5))
    os.write(theirs, b"x")
    os.read(back, 1)
    sock.sendall(b"parent again " + take(sock, 5))
    os.write(theirs, b"x")
    os.waitpid(child, 0)


def fork_client(sock):
    seen = []
    for turn in range(4):
        sock.sendall(b"%05d" % turn)
        seen.append(sock.recv(100))
    seen.append(rest(sock))
    return seen


def handed_server(sock):
    """A child takes a connection over that its parent has used."""
    if os.fork() == 0:
        warm(sock, True)
        sock.sendall(data("child", 1 << 20))
        os._exit(0)
    sock.close()
    os.wait()


def handed_client(sock):
    warm(sock, False)
    return digest(rest(sock))


def passed_server(sock):
    """Another process gets the descriptor, with bytes on the way that nobody has read."""
    time.sleep(0.1)
    here, there = socket.socketpair()
    taker = subprocess.Popen(
        [sys.executable, __file__, "--taker", str(there.fileno())], pass_fds=[there.fileno()]
    )
    there.close()
    socket.send_fds(here, [b"it"], [sock.fileno()])
    sock.close()
    here.recv(1)
    taker.wait()


def taker(number):
    there = socket.socket(fileno=number)
    _, descriptors, _, _ = socket.recv_fds(there, 10, 1)
    sock = socket.socket(fileno=descriptors[0])
    got = take(sock, 200000)
    sock.sendall(b"taker " + digest(got).encode())
    sock.close()
    there.sendall(b"x")


def passed_client(sock):
    thread = in_thread(sock.sendall, data("pass", 200000))
    got = rest(sock)
    thread.join()
    return got


def replaced_server(sock):
    """Another program takes the process's place, with the connection as its standard input."""
    time.sleep(0.05)
    if os.fork() == 0:
        os.dup2(sock.fileno(), 0)
        os.dup2(sock.fileno(), 1)
        os.execvp("cat", ["cat"])
    sock.close()
    os.wait()


def replaced_client(sock):
    content = data("cat", 300000)
    thread = in_thread(lambda: (sock.sendall(content), sock.shutdown(socket.SHUT_WR)))
    got = rest(sock)
    thread.join()
    return got == content


def ends_server(sock):
    sock.sendall(data("end", 100000))
    os._exit(0)


def ends_client(sock):
    """The other side ends without closing it."""
    time.sleep(0.1)
    return digest(rest(sock))


def urgent_server(sock):
    sock.sendall(b"before")
    sock.send(b"!", socket.MSG_OOB)
    sock.sendall(b"after")
    take(sock, 1)


def urgent_client(sock):
    seen = [take(sock, 6)]
    select.select([], [], [sock], 5)
    seen.append(sock.recv(1, socket.MSG_OOB))
    seen.append(take(sock, 5))
    sock.sendall(b"x")
    return seen


def signal_server(sock):
    time.sleep(0.3)
    sock.sendall(b"late")


def signal_client(sock):
    seen = []
    signal.signal(signal.SIGALRM, lambda *_: seen.append("alarm"))
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    seen.append(sock.recv(10))
    return seen


def killed_server(sock):
    sock.sendall(data("last words", 50_000))
    os.kill(os.getpid(), signal.SIGKILL)


def killed_client(sock):
    """What was sent has come, and the end is one: the kernel closes the connection."""
    return digest(rest(sock))


def unread_server(sock):
    """Closes what it has not read: a reset."""
    take(sock, 10)
    time.sleep(0.2)
    sock.close()


def unread_client(sock):
    sock.sendall(data("nobody reads this", 100_000))
    time.sleep(0.4)
    try:
        return rest(sock)
    except ConnectionResetError:
        return "reset"


def terminated_server(sock):
    sock.sendall(b"bye")
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGTERM)


def terminated_client(sock):
    """It waits in a call, and then writes: once is nothing, a second time an error."""
    seen = [rest(sock)]
    for _ in range(2):
        try:
            seen.append(sock.send(b"x"))
        except BrokenPipeError:
            seen.append("broken pipe")
        time.sleep(0.1)
    return seen


def run(case, script):
    """Both halves of a case of a script, and what they print."""
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    half = [sys.executable, script]
    client = subprocess.Popen([*half, "--client", case, str(port)], stdout=subprocess.PIPE)
    server = subprocess.Popen(
        [*half, "--server", case, str(listener.fileno())],
        stdout=subprocess.PIPE,
        pass_fds=[listener.fileno()],
    )
    listener.close()
    lines = []
    for name, process in {"client": client, "server": server}.items():
        try:
            output = process.communicate(timeout=40)[0].decode().strip()
            lines.append(f"{case} {name} {process.returncode}: {output}")
        except subprocess.TimeoutExpired:
            process.kill()
            lines.append(f"{case} {name} hangs")
    return "\n".join(lines)


def half(cases, role, case, number):
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    if role == "--server":
        sock, _ = socket.socket(fileno=number).accept()
    else:
        sock = socket.create_connection(("127.0.0.1", number))
    sock.settimeout(None)
    warm(sock, role == "--server")
    result = cases[f"{case}_{role[2:]}"](sock)
    if result is not None:
        print(result, flush=True)


def main(cases, script, side_by_side=False):
    """Runs the cases of a script that its arguments name, or all; or one half of one."""
    if sys.argv[1:2] in (["--server"], ["--client"]):
        half(cases, sys.argv[1], sys.argv[2], int(sys.argv[3]))
        return
    names = sys.argv[1:] or [name[:-7] for name in cases if name.endswith("_client")]
    with concurrent.futures.ThreadPoolExecutor(len(names) if side_by_side else 1) as pool:
        for text in pool.map(lambda case: run(case, script), names):
            print(text, flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--taker"]:
        taker(int(sys.argv[2]))
    else:
        main(globals(), __file__)
