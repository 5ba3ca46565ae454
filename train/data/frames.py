"""Labelled frames: images, or events that are binned already."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from axonnx.base.errors import AxonnxError
from axonnx.train.data.digest import digest_of
from axonnx.train.data.labels import check_groups, check_labels


@dataclass(frozen=True, eq=False)
class Frames:
    """N samples of small integers: sequences [N, T, C, H, W] or images [N, C, H, W].

    `groups`, when known, says who was recorded (a speaker, a user).
    """

    frames: NDArray[np.uint8]
    labels: NDArray[np.int64]
    classes: tuple[str, ...]
    groups: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        check_labels(self.labels, self.classes, "frames")
        check_groups(self.groups, len(self.labels), "frames")
        shape = self.frames.shape
        if self.frames.dtype != np.uint8:
            raise AxonnxError(
                f"frames: values are {self.frames.dtype}; expected uint8 (whole numbers keep every sum exact)"
            )
        if len(shape) not in (4, 5) or 0 in shape[1:]:
            raise AxonnxError(f"frames: shape {shape}; expected [N, T, C, H, W] or [N, C, H, W], none of them empty")
        if shape[0] != len(self.labels):
            raise AxonnxError(f"frames: {shape[0]} samples but {len(self.labels)} labels")

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def is_sequence(self) -> bool:
        """Whether samples have a time axis."""
        return self.frames.ndim == 5

    @property
    def channels(self) -> int:
        """The number of channels of a frame."""
        return int(self.frames.shape[-3])

    def subset(self, indices: ArrayLike) -> Frames:
        """Take these samples only, in this order."""
        chosen = np.asarray(indices, dtype=np.int64)
        groups = None if self.groups is None else self.groups[chosen]
        return Frames(self.frames[chosen], self.labels[chosen], self.classes, groups)

    @cached_property
    def digest(self) -> str:
        """sha256 of everything in here."""
        return digest_of(self.classes, self.labels, self.groups, self.frames)
