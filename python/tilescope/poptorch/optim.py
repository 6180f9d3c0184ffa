"""Torch's optimisers with PopTorch's additional arguments, and LAMB."""

from __future__ import annotations

import functools
import math

import torch


class VariableAttributes:
    """The arguments that may change after compilation; on the CPU all may."""

    def __init__(self) -> None:
        self._constant = set()

    def isConstant(self, attr: str) -> bool:
        """True if an argument was marked as constant."""
        return attr in self._constant

    def markAsConstant(self, attr: str) -> None:
        """Marks an argument as constant."""
        self._constant.add(attr)

    def markAsVariable(self, attr: str) -> None:
        """Marks an argument as variable."""
        self._constant.discard(attr)


class Optimizer:
    """Common part of PopTorch's optimisers."""

    loss_scaling = 1.0
    max_grad_norm = math.inf

    @functools.cached_property
    def variable_attrs(self) -> VariableAttributes:
        """Which arguments may change after compilation."""
        return VariableAttributes()


def _given(**arguments) -> dict:
    """The given arguments; torch's defaults apply to the others."""
    return {name: value for name, value in arguments.items() if value is not None}


class SGD(Optimizer, torch.optim.SGD):
    """Stochastic gradient descent; ``use_combined_accum`` keeps momentum and accumulated
    gradients in one tensor."""

    def __init__(
        self,
        params,
        lr: float,
        momentum=None,
        dampening=None,
        weight_decay=None,
        nesterov=None,
        maximize=None,
        foreach=None,
        differentiable=None,
        loss_scaling=None,
        velocity_scaling=None,
        use_combined_accum=None,
        accum_type=None,
        velocity_accum_type=None,
        max_grad_norm=None,
    ) -> None:
        super().__init__(
            params,
            lr=lr,
            **_given(
                momentum=momentum,
                dampening=dampening,
                weight_decay=weight_decay,
                nesterov=nesterov,
                maximize=maximize,
                foreach=foreach,
                differentiable=differentiable,
            ),
        )
        self.loss_scaling = loss_scaling or 1.0
        self.velocity_scaling = velocity_scaling or 1.0
        self.use_combined_accum = bool(use_combined_accum)
        self.accum_type = accum_type or torch.float32
        self.velocity_accum_type = velocity_accum_type or torch.float32
        self.max_grad_norm = max_grad_norm or math.inf


class _AdamArguments(Optimizer):
    def __init__(
        self,
        params,
        lr=None,
        betas=None,
        eps=None,
        weight_decay=None,
        amsgrad=None,
        foreach=None,
        maximize=None,
        capturable=None,
        differentiable=None,
        fused=None,
        bias_correction=True,
        loss_scaling=None,
        accum_type=None,
        first_order_momentum_accum_type=None,
        second_order_momentum_accum_type=None,
        max_grad_norm=None,
    ) -> None:
        super().__init__(
            params,
            **_given(
                lr=lr,
                betas=betas,
                eps=eps,
                weight_decay=weight_decay,
                amsgrad=amsgrad,
                foreach=foreach,
                maximize=maximize,
                capturable=capturable,
                differentiable=differentiable,
                fused=fused,
            ),
        )
        self.bias_correction = bias_correction
        self.loss_scaling = loss_scaling or 1.0
        self.accum_type = accum_type or torch.float32
        self.first_order_momentum_accum_type = first_order_momentum_accum_type or torch.float32
        self.second_order_momentum_accum_type = second_order_momentum_accum_type or torch.float32
        self.max_grad_norm = max_grad_norm or math.inf


class Adam(_AdamArguments, torch.optim.Adam):
    """Adam."""


class AdamW(_AdamArguments, torch.optim.AdamW):
    """Adam with decoupled weight decay."""


class RMSprop(Optimizer, torch.optim.RMSprop):
    """RMSprop; ``use_tf_variant`` adds epsilon inside the root."""

    def __init__(
        self,
        params,
        lr=None,
        alpha=None,
        eps=None,
        weight_decay=None,
        momentum=None,
        centered=None,
        foreach=None,
        maximize=None,
        differentiable=None,
        loss_scaling=None,
        accum_type=None,
        first_order_momentum_accum_type=None,
        second_order_momentum_accum_type=None,
        use_tf_variant=None,
    ) -> None:
        super().__init__(
            params,
            **_given(
                lr=lr,
                alpha=alpha,
                eps=eps,
                weight_decay=weight_decay,
                momentum=momentum,
                centered=centered,
                foreach=foreach,
                maximize=maximize,
                differentiable=differentiable,
            ),
        )
        self.loss_scaling = loss_scaling or 1.0
        self.use_tf_variant = bool(use_tf_variant)


class LAMB(Optimizer, torch.optim.Optimizer):
    """Layer-wise adaptive moments (You et al., 2019): Adam's step, scaled for each tensor by the
    norm of its weights (up to ``max_weight_norm``) over that of the step."""

    def __init__(
        self,
        params,
        lr=1e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=1e-2,
        bias_correction=True,
        loss_scaling=None,
        max_weight_norm=65500.0,
        accum_type=None,
        first_order_momentum_accum_type=None,
        second_order_momentum_accum_type=None,
    ) -> None:
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))
        self.bias_correction = bias_correction
        self.loss_scaling = loss_scaling or 1.0
        self.max_weight_norm = math.inf if max_weight_norm is None else max_weight_norm

    @torch.no_grad()
    def step(self, closure=None):
        """One update of all weights that have a gradient."""
        loss = closure() if closure is not None else None
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is not None:
                    self._update(group, weight)
        return loss

    def _update(self, group, weight) -> None:
        state = self.state[weight]
        if not state:
            state.update(step=0, mean=torch.zeros_like(weight), square=torch.zeros_like(weight))
        state["step"] += 1
        beta1, beta2 = group["betas"]
        state["mean"].lerp_(weight.grad, 1 - beta1)
        state["square"].lerp_(weight.grad.square(), 1 - beta2)
        mean, square = state["mean"], state["square"]
        if self.bias_correction:
            mean = mean / (1 - beta1 ** state["step"])
            square = square / (1 - beta2 ** state["step"])
        step = mean / (square.sqrt() + group["eps"]) + group["weight_decay"] * weight
        weight_norm = weight.norm().clamp(max=self.max_weight_norm)
        step_norm = step.norm()
        trusted = bool(weight_norm > 0) and bool(step_norm > 0)
        trust = weight_norm / step_norm if trusted else 1.0
        weight.add_(step * trust, alpha=-group["lr"])


def kind_of(optimizer) -> str | None:
    """The ``model.optimizer`` of a spec for an optimiser; None if none corresponds."""
    if isinstance(optimizer, LAMB):
        return "lamb"
    if isinstance(optimizer, torch.optim.AdamW):
        return "adamw"
    if isinstance(optimizer, torch.optim.Adam):
        return "adam"
    if isinstance(optimizer, torch.optim.SGD):
        if not any(group.get("momentum") for group in optimizer.param_groups):
            return "sgd"
        combined = getattr(optimizer, "use_combined_accum", False)
        return "sgd_momentum_combined" if combined else "sgd_momentum"
    return None
