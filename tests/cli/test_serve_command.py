"""``axonnx serve`` as a process: says where it is, serves, and stops in good order when told to."""

import json
import os
import signal
import subprocess
import sys

import pytest

pytest.importorskip("uvicorn", reason="serving needs uvicorn: pip install 'axonnx[serve]'")

from websockets.sync.client import connect

from axonnx.cli import main
from axonnx.runtime.events.arrays import make_events, to_records
from axonnx.runtime.serve import server as serving
from axonnx.runtime.serve.server import listen, read_token


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_a_server_says_where_it_is_and_stops_when_told_to(files, tmp_path, environment, stop):
    words = ["serve", str(files["plain"]), "--port", "0", "--sessions", str(tmp_path / "kept"), "--threads", "1"]
    command = [sys.executable, "-m", "axonnx.cli", *words]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as server:
        said = server.stdout.readline()
        assert said.startswith("plain.onnx is served at http://127.0.0.1:")
        address = said.split(" at ")[1].split("/ ")[0].replace("http", "ws")
        with connect(f"{address}/stream", proxy=None) as client:
            assert json.loads(client.recv(timeout=20))["saves"]
            client.send(to_records(make_events([100, 6_000], 1)))
            assert json.loads(client.recv(timeout=20))["type"] == "decision"
            server.send_signal(stop)
            assert json.loads(client.recv(timeout=20))["type"] == "saved"
        rest, faults = server.communicate(timeout=30)
    assert (server.returncode, faults) == (0, "")
    assert rest == "stopped after 1 streams, 2 events, 1 decisions; 1 sessions can be resumed\n"
    assert len(list((tmp_path / "kept").glob("*.npz"))) == 1


def test_what_is_wrong_is_said_before_anything_is_served(files, tmp_path, capsys):
    (tmp_path / "empty").write_text("\n")
    taken = listen("127.0.0.1", 0)
    port = str(taken.getsockname()[1])
    for words, text in [
        (["missing.onnx"], "missing.onnx"),
        ([str(files["frames"])], "does not state how events become frames"),
        ([str(files["plain"]), "--stop-at", "2"], "stop_at is 2.0"),
        ([str(files["plain"]), "--sensor", "128x128"], "resize the events"),
        ([str(files["plain"]), "--token-file", str(tmp_path / "empty")], "holds no token"),
        ([str(files["plain"]), "--port", port], f"cannot listen on 127.0.0.1:{port}"),
    ]:
        assert main(["serve", *words]) == 2
        assert text in capsys.readouterr().err
    taken.close()


def test_the_options_say_what_is_served(files, tmp_path, monkeypatch):
    words = ["--clients", "7", "--message-kib", "2", "--memory-mib", "900", "--threads", "3"]
    seen = []
    monkeypatch.setattr(serving, "serve", lambda service, *place, ready: seen.append(service))
    assert main(["serve", str(files["noisy"]), *words]) == 0
    (service,) = seen
    service.release()
    assert (service.rules.seed, service.threads) == (0, 3)
    limits = service.limits
    assert (limits.clients, limits.message_bytes, limits.memory_bytes) == (7, 2048, 900 * 2**20)


def test_a_token_comes_from_a_file_or_the_environment(tmp_path, monkeypatch):
    monkeypatch.delenv("AXONNX_TOKEN", raising=False)
    assert read_token(None) is None
    monkeypatch.setenv("AXONNX_TOKEN", "from outside")
    assert read_token(None) == "from outside"
    (tmp_path / "token").write_text("from a file\nand more\n")
    assert read_token(tmp_path / "token") == "from a file"
    assert "AXONNX_TOKEN" in os.environ
