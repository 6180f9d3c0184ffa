"""A network that tests of PopTorch share."""

import torch
from torch import nn

from tilescope import poptorch


class Network(nn.Module):
    """Two linear layers in two blocks, with a loss in training."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 5)
        self.second = nn.Linear(5, 3)
        self.loss = nn.CrossEntropyLoss()

    def forward(self, x, labels=None):
        with poptorch.Block("A"):
            x = torch.relu(self.first(x))
        with poptorch.Block("B"):
            x = self.second(x)
            if labels is None:
                return x
            return x, self.loss(x, labels)


def two_stages():
    """Options of the network as a pipeline of two stages."""
    return poptorch.Options().setExecutionStrategy(poptorch.PipelinedExecution("A", "B"))
