"""The paper's mathematics in torch: posterior, estimators, neurons, layers, networks."""

from axonnx.models.delays import DelayLine
from axonnx.models.maths.current import Current
from axonnx.models.maths.estimators import (
    AnalyticGumbelRao,
    Estimator,
    GumbelRao,
    GumbelSoftmax,
    GumbelSoftmaxST,
    ImportanceWeighted,
    StraightThrough,
    SurrogateGradient,
    make_estimator,
)
from axonnx.models.maths.firing import MEAN_FIELD, Fire, Forced, MeanField, Replay, Sample
from axonnx.models.maths.kl import Divergence, divergence_sum
from axonnx.models.maths.posterior import GaussianPosterior
from axonnx.models.network import BinaryNetwork, Network, Output, SpikingNetwork
from axonnx.models.networks import (
    BinaryMLP,
    BinaryResNet,
    DenseLayer,
    RecurrentSNN,
    SpikingConvNet,
    SpikingMLP,
    SpikingResNet,
)
from axonnx.models.neurons import LIF, BinaryNeuron, LeakyReadout, LIFSettings, LinearReadout
from axonnx.models.normalisation import BatchNorm, ChannelScale
from axonnx.models.pooling import AveragePool2d, FilledPool2d, MaxPool2d, WholePool2d
from axonnx.models.regulariser import LayerTerm, Regulariser
from axonnx.models.residual import CountingBlock, ResidualBlock
from axonnx.models.resonate import ResonateAndFire
from axonnx.models.run import LIFState, Observation, ReadoutState, Run, State
from axonnx.models.synapses import Conv2d, Linear, Recurrent
from axonnx.models.variant import VARIANTS, Variant, variant

__all__ = [
    "LIF",
    "MEAN_FIELD",
    "VARIANTS",
    "AnalyticGumbelRao",
    "AveragePool2d",
    "BatchNorm",
    "BinaryMLP",
    "BinaryNetwork",
    "BinaryNeuron",
    "BinaryResNet",
    "ChannelScale",
    "Conv2d",
    "CountingBlock",
    "Current",
    "DelayLine",
    "DenseLayer",
    "Divergence",
    "Estimator",
    "FilledPool2d",
    "Fire",
    "Forced",
    "GaussianPosterior",
    "GumbelRao",
    "GumbelSoftmax",
    "GumbelSoftmaxST",
    "ImportanceWeighted",
    "LIFSettings",
    "LIFState",
    "LayerTerm",
    "LeakyReadout",
    "Linear",
    "LinearReadout",
    "MaxPool2d",
    "MeanField",
    "Network",
    "Observation",
    "Output",
    "ReadoutState",
    "Recurrent",
    "RecurrentSNN",
    "Regulariser",
    "Replay",
    "ResidualBlock",
    "ResonateAndFire",
    "Run",
    "Sample",
    "SpikingConvNet",
    "SpikingMLP",
    "SpikingNetwork",
    "SpikingResNet",
    "State",
    "StraightThrough",
    "SurrogateGradient",
    "Variant",
    "WholePool2d",
    "divergence_sum",
    "make_estimator",
    "variant",
]
