"""Health and metrics, as machines read them."""

import json
import re

import numpy as np

from axonnx.runtime.events.arrays import make_events
from axonnx.runtime.model import load
from axonnx.runtime.serve.limits import KEPT, Metrics

from .live import follow, serving

SAMPLE = re.compile(r'(axonnx_\w+)(\{\w+="[\w.]+"\})? (NaN|[-+.e\d]+)')


def parsed(text):
    """Samples by name and labels; every line is a comment or a sample, and each family says its type first."""
    typed, samples = set(), {}
    for line in text.removesuffix("\n").split("\n"):
        if line.startswith("# "):
            _, word, name, *_ = line.split(" ", 3)
            assert word in ("HELP", "TYPE")
            typed.add(name) if word == "TYPE" else None
            continue
        name, labels, value = SAMPLE.fullmatch(line).groups()
        assert name in typed or name.rsplit("_", 1)[0] in typed
        samples[name + (labels or "")] = float(value)
    return samples


def test_health_and_metrics_of_a_server(files):
    events = make_events([100, 6_000, 50, 12_000], [1, 1, 1, 40])
    with serving(files["plain"]) as live:
        assert json.loads(live.get("/health")) == {
            "status": "ok",
            "model": "plain.onnx",
            "engine": load(files["plain"]).engine.name,
            "threads": 2,
            "streams": 0,
            "clients": 1024,
        }
        before = parsed(live.get("/metrics"))
        _, decisions, _, _ = follow(live, [events])
        after = parsed(live.get("/metrics"))
    assert (before["axonnx_events_total"], np.isnan(before['axonnx_decision_latency_seconds{quantile="0.99"}'])) == (
        0,
        1,
    )
    assert after["axonnx_events_total"] == len(events)
    assert after["axonnx_received_bytes_total"] == 16 * len(events)
    assert after["axonnx_decisions_total"] == len(decisions) == after["axonnx_decision_latency_seconds_count"]
    assert after['axonnx_events_dropped_total{reason="late"}'] == 1
    assert after['axonnx_events_dropped_total{reason="off_sensor"}'] == 1
    assert after["axonnx_streams_total"] == 1
    assert after["axonnx_resident_bytes"] > 2**20
    quantiles = [after[f'axonnx_decision_latency_seconds{{quantile="{q}"}}'] for q in (0.5, 0.9, 0.99)]
    assert 0 < quantiles[0] <= quantiles[1] <= quantiles[2]


def test_percentiles_are_those_of_the_last_decisions():
    metrics = Metrics()
    assert np.isnan(metrics.percentiles()[0.5])
    metrics.count_decisions(3, 1.0)
    metrics.count_decisions(1, 5.0)
    assert metrics.percentiles()[0.5] == 1.0
    metrics.count_decisions(3 * KEPT, 2.0)
    assert set(metrics.percentiles().values()) == {2.0}
    metrics.count_decisions(KEPT // 2, 4.0)
    assert metrics.percentiles()[0.5] == np.quantile([2.0] * (KEPT // 2) + [4.0] * (KEPT // 2), 0.5)
    assert metrics.latency_s == 3 + 5 + 6 * KEPT + 2 * KEPT
