"""Read an exported file from disk, and check its version, its contract and its operators."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import onnx
import onnx.checker
import onnx.shape_inference
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from axonnx.base.errors import AxonnxError
from axonnx.base.files import read_at_most
from axonnx.runtime.format.contract import METADATA_KEY, Contract, read_contract
from axonnx.runtime.format.fields import check_fields, every_graph
from axonnx.runtime.format.opset import DOMAIN, IR_VERSION, ONNX_OPSET, OPS, VERSION, function
from axonnx.runtime.format.restored import restore

STANDARD = ("", "ai.onnx")
MOST_BYTES = 2**31 - 1  # of a protobuf message


@dataclass(frozen=True, eq=False)
class ModelFile:
    """The ONNX model, the contract in its metadata, and the path of the file."""

    proto: onnx.ModelProto
    contract: Contract
    path: Path

    @property
    def name(self) -> str:
        """Name of the file in error messages."""
        return self.path.name


def read_model_file(path: str | os.PathLike[str]) -> ModelFile:
    """Read and check an exported file.

    Raises:
        AxonnxError: If the file was not exported by axonnx, was changed, or has an unknown version.
    """
    path = Path(path)
    data = _read(path)
    proto = _parse(data, path)
    check_fields(proto, path.name)
    proto = _restored(proto, data, path)
    _check_versions(proto, path.name)
    _check_functions(proto, path.name)
    _check_meaning(data, path.name)
    return ModelFile(proto, _contract(proto, path.name), path)


def _restored(proto: onnx.ModelProto, data: bytes, path: Path) -> onnx.ModelProto:
    """Undo the changes of ONNX tools; if that fails, return the model as it is, and later checks report the fault."""
    try:
        restore(proto, path.name)
    except AxonnxError:
        raise
    except (TypeError, ValueError, LookupError):  # tensors without a type, nodes without inputs
        return _parse(data, path)
    return proto


def _read(path: Path) -> bytes:
    if path.is_dir():
        raise AxonnxError(f"{path}: is a folder; expected an exported file. Make one with: axonnx export {path}")
    try:
        return read_at_most(path, MOST_BYTES)
    except AxonnxError:
        raise
    except (OSError, ValueError) as fault:  # a name with a zero byte raises ValueError
        raise AxonnxError(f"{path}: cannot be read: {getattr(fault, 'strerror', None) or fault}") from None


def _parse(data: bytes, path: Path) -> onnx.ModelProto:
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(data)
    except DecodeError:
        raise AxonnxError(
            f"{path.name}: {len(data)} bytes that are not an ONNX model. The file is of another kind, or was cut off. "
            f"Copy or export it again"
        ) from None
    if not proto.graph.node or not proto.opset_import:
        raise AxonnxError(f"{path.name}: {len(data)} bytes without an ONNX graph. Copy or export the file again")
    return proto


def _check_meaning(data: bytes, where: str) -> None:
    """Run ONNX's checker and strict shape inference: other runtimes refuse what these refuse."""
    try:
        onnx.checker.check_model(data, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError, ValueError, RuntimeError) as fault:
        said = " ".join(str(fault).split())
        raise AxonnxError(f"{where}: ONNX's checker refuses it: {said[:300]}. Export the network again") from None


def _nodes(proto: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    return (node for graph in every_graph(proto.graph) for node in graph.node)


def _check_versions(proto: onnx.ModelProto, where: str) -> None:
    versions = {entry.domain if entry.domain not in STANDARD else "": entry.version for entry in proto.opset_import}
    if proto.ir_version != IR_VERSION:
        raise AxonnxError(
            f"{where}: has ONNX IR version {proto.ir_version}; expected version {IR_VERSION}. Export the network again"
        )
    for node in _nodes(proto):
        domain = "" if node.domain in STANDARD else node.domain
        if domain == DOMAIN:
            _check_spike_op(node, versions.get(DOMAIN, 0), where)
        elif domain:
            raise AxonnxError(
                f"{where}: node {node.name!r} is {domain}::{node.op_type}; expected ONNX's own operators and "
                f"those of {DOMAIN}. Export the network with axonnx"
            )
    unknown = sorted(versions.keys() - {"", DOMAIN})
    if unknown or len(versions) != len(proto.opset_import):
        raise AxonnxError(
            f"{where}: imports the operators of {[entry.domain for entry in proto.opset_import]}; expected ONNX's "
            f"own and those of {DOMAIN}, once each. Export the network again"
        )
    if versions.get("") != ONNX_OPSET:
        raise AxonnxError(
            f"{where}: uses standard operators of opset {versions.get('', 'none')}; expected opset "
            f"{ONNX_OPSET}. Upgrade axonnx, or export the network again"
        )


def _check_spike_op(node: onnx.NodeProto, version: int, where: str) -> None:
    if version != VERSION:
        raise AxonnxError(
            f"{where}: node {node.name!r} is {DOMAIN}::{node.op_type} version {version}; expected version "
            f"{VERSION}. Upgrade axonnx, or export the network again"
        )
    if node.op_type not in OPS:
        raise AxonnxError(
            f"{where}: node {node.name!r} is the unknown operator {DOMAIN}::{node.op_type}; known operators are "
            f"{', '.join(sorted(OPS))}. Upgrade axonnx"
        )


def _check_functions(proto: onnx.ModelProto, where: str) -> None:
    """Refuse a function body that differs from ours: other runtimes would compute other spikes."""
    found = {entry.name: entry for entry in proto.functions}
    if len(found) != len(proto.functions):
        raise AxonnxError(f"{where}: defines an operator twice. Export the network again")
    for name, body in found.items():
        if body.domain != DOMAIN or name not in OPS:
            raise AxonnxError(
                f"{where}: defines the unknown operator {body.domain}::{name}; known operators are "
                f"{', '.join(sorted(OPS))} of {DOMAIN}. Upgrade axonnx, or export the network again"
            )
        if _plain(body) != _plain(function(name)):
            raise AxonnxError(
                f"{where}: its body of {DOMAIN}::{name} is not that of version {VERSION} ({OPS[name].formula}): other "
                f"runtimes would compute other spikes. Export the network again"
            )
    used = {node.op_type for node in _nodes(proto) if node.domain == DOMAIN}
    if used - found.keys():
        raise AxonnxError(
            f"{where}: uses {', '.join(sorted(used - found.keys()))} of {DOMAIN} without their bodies, so no other "
            f"runtime can run it. Export the network again"
        )


def _plain(body: onnx.FunctionProto) -> bytes:
    """Return a function without its documentation and metadata."""
    copy = onnx.FunctionProto()
    copy.CopyFrom(body)
    copy.ClearField("doc_string")
    copy.ClearField("metadata_props")
    return bytes(copy.SerializeToString(deterministic=True))


def _contract(proto: onnx.ModelProto, where: str) -> Contract:
    texts = [entry.value for entry in proto.metadata_props if entry.key == METADATA_KEY]
    if len(texts) != 1:
        raise AxonnxError(
            f"{where}: has {len(texts)} contracts under {METADATA_KEY!r} in its metadata; expected one. This ONNX file "
            "was not written by axonnx export, or a tool removed its metadata. Export the network with axonnx"
        )
    return read_contract(texts[0], where)
