"""Common ground: a tiny run, exported in three ways, and what verification and profiling would say of it."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch

from axonnx.base.files import sha256_of
from axonnx.cli import main
from axonnx.runtime.engines.numpy_engine import NumpyEngine
from axonnx.runtime.format.contract import Contract
from axonnx.runtime.measure.energy import EnergyParts, Hardware
from axonnx.runtime.measure.profile_result import ProfileResult
from axonnx.runtime.measure.result_files import read_result
from axonnx.runtime.measure.samples import Chosen, open_samples
from axonnx.runtime.measure.verify_result import VerifyResult
from axonnx.runtime.report.material import Material, read_run
from axonnx.runtime.report.measure import measure
from axonnx.runtime.report.model_view import view_model
from axonnx.train import run as train_run_module
from axonnx.train.config.read import check_config

CLASSES, SIDE, STEPS = 3, 6, 8


@pytest.fixture(scope="module", autouse=True)
def _small_world(tmp_path_factory):
    """One thread, caches of our own, no pictures beside the run."""
    threads, before = torch.get_num_threads(), os.environ.get("XDG_CACHE_HOME")
    patch = pytest.MonkeyPatch()
    patch.setattr(train_run_module, "draw_curves", lambda *_: False)
    patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
    patch.undo()
    assert os.environ.get("XDG_CACHE_HOME") == before


def write_data(path: Path, *, time: bool) -> Path:
    """Noisy frames or images: class k is bright in row k."""
    generator, samples = np.random.default_rng(0), 60
    labels = np.arange(samples) % CLASSES
    share = np.full((samples, SIDE, SIDE), 0.1)
    share[np.arange(samples), labels] = 0.8
    shape = (samples, STEPS, 2, SIDE, SIDE) if time else (samples, 1, SIDE, SIDE)
    frames = generator.random(shape) < share.reshape(samples, *(1,) * (len(shape) - 3), SIDE, SIDE)
    np.savez(path, frames=frames.astype(np.uint8), labels=labels)
    return path


def read_samples(path: Path, contract: Contract, limit: int) -> Chosen:
    """Some samples of a file, with labels or without."""
    return open_samples(path, contract, labelled=False).choose(limit)


def trained(folder: Path, *, time: bool) -> Path:
    data = write_data(folder / "samples.npz", time=time)
    config = check_config(
        {
            "device": "cpu",
            "eval_samples": 2,
            "data": {"name": str(data)},
            "model": {"network": "spiking-mlp" if time else "binary-mlp", "hidden": [12, 9]},
            "variant": {},
            "optimiser": {"epochs": 3, "batch_size": 8},
            "finetune": {},
        },
        "tiny",
    )
    train_run_module.train_run(config, folder / "run")
    return folder / "run"


def exported(run: Path, name: str, *options: str) -> Path:
    path = run.parent / name
    assert main(["export", str(run), "-o", str(path), "--passes", "2", "--quiet", *options]) == 0
    return path


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    return trained(tmp_path_factory.mktemp("spiking"), time=True)


@pytest.fixture(scope="module")
def model(run) -> Path:
    return exported(run, "tiny.onnx")


@pytest.fixture(scope="module")
def samples(run) -> Path:
    return run.parent / "samples.npz"


@pytest.fixture(scope="module")
def ensemble(run) -> Path:
    return exported(run, "ensemble.onnx", "--collapse", "sampled", "--members", "2")


@pytest.fixture(scope="module")
def images(tmp_path_factory) -> Path:
    return exported(trained(tmp_path_factory.mktemp("binary"), time=False), "images.onnx")


@pytest.fixture(scope="module")
def verify_json(model) -> Path:
    return write_json(model.parent / "verify.json", verification(str(model)))


@pytest.fixture(scope="module")
def profile_json(model) -> Path:
    return write_json(model.parent / "profile.json", profile(str(model)))


@pytest.fixture(scope="module")
def material(model, run, samples, verify_json, profile_json) -> Material:
    """Everything that a report can show."""
    view = view_model(model)
    measured = measure(NumpyEngine(view.program), read_samples(samples, view.contract, 24), 4)
    verified, profiled = read_result(VerifyResult, verify_json), read_result(ProfileResult, profile_json)
    return Material(view, "2025-01-01 12:00", read_run(run), verified, profiled, measured)


def write_json(path: Path, content: object) -> Path:
    path.write_text(json.dumps(content), "utf-8")
    return path


def sha256_where(model: str) -> str:
    """Of the file, where there is one."""
    return sha256_of(model) if Path(model).is_file() else 64 * "0"


def verification(model: str) -> dict:
    return {
        "format": 1,
        "model": model,
        "file_sha256": sha256_where(model),
        "run": "run",
        "verdict": "equal",
        "mismatches": 0,
        "compared": {"spikes": 12345, "membranes": 678, "logits": 90},
        "stages": [{"name": "structure", "ok": True, "lines": ["hashes equal"]}],
        "implementations": [
            {"name": "onnxruntime", "samples": 16, "spikes_differing": 0, "membranes_differing": 0}
            | {"max_logit_difference": 0.0}
        ],
        "accuracy": [
            {"of": "file", "engine": "native", "accuracy": 0.75, "interval": [0.5, 0.9], "samples": 12, "right": 9}
            | {"nll": 0.5}
        ],
        "first_divergence": None,
    }


def profile(model: str) -> dict:
    layers = [
        {"name": f"hidden.{n}.neuron", "neurons": 12, "rate": 0.2, "spikes_per_inference": 20.5}
        | {"rate_over_time": [0.1 + 0.2 * n] * STEPS}
        for n in (0, 1)
    ]
    done = {"accumulates": 100.5, "multiply_accumulates": 0.0, "dense_operations": 1000}
    read = {"weights_read": 120.5, "inputs": 72, "active_inputs": 10.5, "input_bits": 7, "follows_spikes": True}
    parts = EnergyParts(accumulates=1.5, membrane_updates=0.5, weights=3.0)
    return {
        "format": 2,
        "model": model,
        "file_sha256": sha256_where(model),
        "samples": 24,
        "engine": "native",
        "collapse": "mfa",
        "layers": layers,
        "synapses": [
            {
                "name": "hidden.0.synapse",
                "weights": 864,
                "stored_as": "int8",
                "connection_sparsity": 0.1,
                **done,
                **read,
            }
        ],
        "totals": {"events_in": 77.5, "active_inputs": 60.0, "membrane_updates": 96, "footprint_bytes": 4000}
        | {"state_bytes": 200, "biases": 0, "activation_sparsity": 0.8, "connection_sparsity": 0.1, **done},
        "energy": {"hardware": Hardware().model_dump(), "total_nj": parts.total, "memory_pj_per_byte": 1.25}
        | {"parts": parts.model_dump(), "rate": 0.2}
        | {
            "dense": [
                {"passes": STEPS, "activation_bits": 8, "break_even_rate": 0.9, "parts": {"weights": 30.0}},
                {"passes": 1, "activation_bits": 4, "break_even_rate": 0.1, "parts": {"weights": 3.0}},
            ]
        },
        "latency_ms_per_step": 0.01,
        "accuracy": 0.75,
        "accuracy_interval": [0.5, 0.9],
        "ece": 0.1,
        "early_exit": [{"stop_at": 0.9, "accuracy": 0.7, "mean_steps": 3.5}],
    }
