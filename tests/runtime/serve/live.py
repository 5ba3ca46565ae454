"""A server in a thread of the test, and a client that talks to it."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from urllib.request import Request, urlopen

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from axonnx.runtime.events.arrays import to_records
from axonnx.runtime.model import load
from axonnx.runtime.serve.server import Access, listen, make_server
from axonnx.runtime.serve.service import Service

HOST = "127.0.0.1"


class Live:
    """A server under way."""

    def __init__(self, service, server, port):
        self.service, self.server, self.port = service, server, port

    def address(self, path="/stream"):
        return f"ws://{HOST}:{self.port}{path}"

    def client(self, path="/stream", **options):
        return connect(self.address(path), proxy=None, compression=None, max_size=None, **options)

    def get(self, path, **headers):
        with urlopen(Request(f"http://{HOST}:{self.port}{path}", headers=headers), timeout=10) as answer:
            return answer.read().decode()

    def metric(self, name):
        lines = self.get("/metrics").splitlines()
        return float(next(line for line in lines if line.startswith(f"axonnx_{name} ")).split()[1])

    def stop(self):
        self.server.should_exit = True
        self.thread.join(30)
        assert not self.thread.is_alive()


@contextmanager
def serving(path, rules=None, limits=None, sessions=None, token=None, engine="auto", threads=2, access=None):
    """A server on a free port, stopped at the end."""
    service = Service(load(path, engine), rules, limits, sessions, threads)
    listener = listen(HOST, 0)
    server = make_server(service, HOST, access or Access(token))
    live = Live(service, server, listener.getsockname()[1])
    live.thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    live.thread.start()
    try:
        yield live
    finally:
        live.stop()
        service.release()
        listener.close()


def told(socket):
    """The next message of the server."""
    return json.loads(socket.recv(timeout=20))


def everything(socket):
    """All messages until the server closes, the code and the reason that it gives."""
    found = []
    try:
        while True:
            found.append(told(socket))
    except ConnectionClosed as closed:
        return found, closed.rcvd.code, closed.rcvd.reason


def follow(live, chunks, path="/stream", end=True):
    """Send chunks of events while reading; hello, decisions, and the rest."""
    with live.client(path) as socket, ThreadPoolExecutor(1) as beside:
        hello = told(socket)

        def send():
            for chunk in chunks:
                socket.send(to_records(chunk))
            if end:
                socket.send('{"type": "end"}')

        sending = beside.submit(send)
        messages, code, _ = everything(socket)
        sending.result(20)
    decisions = [each for each in messages if each["type"] == "decision"]
    return hello, decisions, [each for each in messages if each["type"] != "decision"], code
