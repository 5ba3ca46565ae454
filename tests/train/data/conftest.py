"""Fixtures of the data set tests: small data, no touching of the user's caches, the real data where it is at hand."""

import os
from pathlib import Path

import numpy as np
import pytest

from axonnx.runtime.binning import Sensor
from axonnx.runtime.events.arrays import make_events
from axonnx.train.data.digits import load_saccade
from axonnx.train.data.recordings import Recordings, join_events

BESIDE = Path(__file__).resolve().parents[4] / "shared" / "data"
REAL = Path(os.environ.get("AXONNX_DATA") or BESIDE)


@pytest.fixture(autouse=True)
def _own_folders(tmp_path, monkeypatch):
    """Neither the user's caches nor the user's data come into a test that does not ask for them."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("AXONNX_DATA", raising=False)


@pytest.fixture(scope="session")
def real_data():
    if not REAL.is_dir():
        pytest.skip(f"no real data: AXONNX_DATA is not set and {BESIDE} is not there")
    return REAL


@pytest.fixture(scope="session")
def saccades():
    return load_saccade()


@pytest.fixture
def make_recordings():
    """Random recordings on a small sensor; recording k has k events, so that the first is empty."""

    def make(count=7, sensor=Sensor(width=6, height=4), classes=3, seed=0, groups=None):  # noqa: B008
        generator = np.random.default_rng(seed)
        parts = []
        for size in range(count):
            times = np.sort(generator.integers(0, 1000, size))
            x, y = generator.integers(sensor.width, size=size), generator.integers(sensor.height, size=size)
            parts.append(make_events(times, x, y, generator.integers(sensor.polarities, size=size)))
        labels = np.arange(count, dtype=np.int64) % classes
        return Recordings(*join_events(parts), labels, tuple("abcdefgh"[:classes]), sensor, groups)

    return make
