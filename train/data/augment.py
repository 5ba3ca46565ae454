"""Which random changes training samples go through."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from axonnx.base.errors import AxonnxError
from axonnx.train.data.splits import Kind

EVENTS_ONLY = ("start", "blend", "gain", "tone", "time_jitter_us", "jitter_x")
SEQUENCES = ("drop", "time_stretch")  # of events or of frames


class Augmentation(BaseModel):
    """What may happen to a sample; each has a draw of its own. Everything is off unless asked for."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    blend: float = Field(
        default=0.0,
        ge=0,
        le=1,
        description="share of the samples that get half of their events from another recording of their class",
    )
    drop: float = Field(default=0.0, ge=0, le=1, description="largest share of a recording's events left out")
    gain: float = Field(
        default=0.0, ge=0, le=2, description="events become fewer or more (repeated), at most e^gain times: loudness"
    )
    tone: float = Field(
        default=0.0,
        ge=0,
        le=2,
        description="the same for each column (channel of a cochlea), by a curve with eight random corners: voices",
    )
    time_jitter_us: float = Field(default=0.0, ge=0, description="std of the noise on every event's time")
    time_stretch: float = Field(default=0.0, ge=0, lt=1, description="recordings run slower or faster by this share")
    start: float = Field(
        default=0.0, ge=0, lt=1, description="the largest share of a recording's time that is cut off at its beginning"
    )
    shift_x: int = Field(default=0, ge=0, description="columns (channels of a cochlea) a sample moves at most")
    shift_y: int = Field(default=0, ge=0, description="rows a sample moves at most")
    jitter_x: float = Field(
        default=0.0, ge=0, description="std of the noise on every event's column (channel of a cochlea)"
    )
    zoom: float = Field(default=0.0, ge=0, lt=1, description="samples become smaller or larger by this share")
    crop: int = Field(default=0, ge=0, description="padding around frames, of which the old size is cut out anywhere")
    flip: bool = Field(default=False, description="mirror every other sample from left to right")

    @property
    def is_off(self) -> bool:
        """Whether samples stay as they are."""
        return self == Augmentation()

    def check(self, kind: Kind) -> None:
        """Refuse what has no meaning for samples of this kind."""
        wrong = {"events": ("crop",), "frames": EVENTS_ONLY, "images": (*EVENTS_ONLY, *SEQUENCES)}[kind]
        for name in wrong:
            if getattr(self, name):
                instead = "use shift_x and shift_y" if kind == "events" else _needs(name)
                raise AxonnxError(f"augmentation: {name} does not work on {kind}; {instead}")


def _needs(name: str) -> str:
    return "it needs a sequence in time" if name in SEQUENCES else "it needs single events"
