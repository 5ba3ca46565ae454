"""docs/serving.md: its client is run as it stands against a server, and what it names exists."""

import re
import sys
from pathlib import Path

from axonnx.runtime.events.arrays import Sensor, make_events
from axonnx.runtime.readers import write_npz
from axonnx.runtime.serve import admission, messages
from axonnx.runtime.serve.limits import RESERVED, Limits

from .live import serving

PAGE = (Path(__file__).parents[3] / "docs" / "serving.md").read_text("utf-8")


def test_the_client_runs(files, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_npz("recording.npz", make_events([100, 200, 7_000, 7_100], [1, 2, 3, 40]), Sensor(width=64, height=6))
    (client,) = re.findall(r'^```python title="client.py"\n(.*?)^```', PAGE, re.MULTILINE | re.DOTALL)
    with serving(files["plain"]) as live:
        monkeypatch.setattr(sys, "argv", ["client.py", f"127.0.0.1:{live.port}"])
        exec(compile(client, "docs/serving.md", "exec"), {"__name__": "client"})
    hello, answer = capsys.readouterr().out.splitlines()
    assert hello.startswith("plain.onnx ['left', 'right', 'up', 'down'] {'width': 8, 'height': 6")
    assert re.fullmatch(r"\['\w+', '\w+'\] 4 \{'off_sensor': 1\}", answer)


def test_the_codes_and_limits_are_those_of_the_code():
    codes = {value for name, value in vars(messages).items() if name.isupper() and type(value) is int and value >= 1000}
    table = PAGE.split("| close code |")[1].split("\n\n")[0]
    assert {int(code) for code in re.findall(r"\b1\d{3}\b", table.split("beyond")[0] + table)} == codes
    limits = Limits()
    assert f"--clients {limits.clients}" in PAGE
    assert f"--memory-mib {limits.memory_bytes >> 20}" in PAGE
    assert f"--message-kib {limits.message_bytes >> 10}" in PAGE
    assert f"| saved sessions | {limits.saved:,} |" in PAGE
    assert f"| pages that watch | {limits.watchers} |" in PAGE
    assert f"| {limits.handover_s:g} seconds for that one to end |" in PAGE


def test_the_limits_of_connections_are_those_of_the_code():
    limits, access = Limits(), PAGE.split("## Access")[1].split("\n## ")[0]
    assert f"has {limits.per_address} connections already" in access
    assert f"has {limits.header_s:g} seconds for its request. At most {limits.pending} connections" in access
    assert f"{limits.pending_per_address} of one address" in access
    assert f"silent for {limits.quiet_s:g} seconds" in access
    assert f"{admission.CONTROL_FRAMES} pings waiting, and {admission.CONTROL_FRAMES_PER_S} more" in access
    assert f"{RESERVED // 2} files are kept in reserve" in access
    assert f"At most {admission.LOG_LINES} lines" in access
