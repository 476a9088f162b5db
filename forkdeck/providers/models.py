"""What is known of the models, as data: context, output, cache minimum, thinking, effort.

Used by `prices` for `ModelFacts`. From the public documentation of the Messages API; a model that
is not listed gets the careful defaults of `ModelFacts`, with thinking and effort left out.
"""

from __future__ import annotations

from forkdeck.model.ports import ModelFacts
from forkdeck.model.raw import JsonDict


def _adaptive() -> JsonDict:
    # Without a display the newer models send no thinking text at all.
    return {"type": "adaptive", "display": "summarized"}


def _facts(
    cache_minimum: int,
    effort: str | None,
    *,
    context: int | None = 1_000_000,
    output: int = 128_000,
    adaptive: bool = True,
) -> ModelFacts:
    return ModelFacts(
        context_tokens=context,
        max_output_tokens=output,
        cache_minimum_tokens=cache_minimum,
        thinking=_adaptive() if adaptive else None,
        effort=effort,
    )


MODELS: dict[str, ModelFacts] = {
    "claude-fable-5-2": _facts(512, "high"),
    "claude-mythos-5-2": _facts(512, "high"),
    "claude-fable-5-1": _facts(512, "high"),
    "claude-mythos-5-1": _facts(512, "high"),
    "claude-fable-5": _facts(512, "high"),
    "claude-mythos-5": _facts(512, "high"),
    "claude-opus-5-5": _facts(512, "medium"),
    "claude-opus-5": _facts(512, "high"),
    "claude-sonnet-5-5": _facts(512, "high"),
    "claude-sonnet-5": _facts(1_024, "high"),
    # The smallest model's minimum is not published: the careful default stands.
    "claude-haiku-5-5": _facts(4_096, "medium"),
    # Their context depends on the account, so the smaller one is counted with.
    "claude-opus-4-8": _facts(1_024, "high", context=200_000, output=32_000),
    "claude-opus-4-7": _facts(2_048, "high", context=200_000, output=32_000),
    "claude-opus-4-6": _facts(4_096, "high", context=200_000, output=32_000),
    "claude-sonnet-4-6": _facts(1_024, "high", context=200_000, output=32_000),
    "claude-opus-4-5": _facts(4_096, None, context=200_000, output=64_000, adaptive=False),
    "claude-sonnet-4-5": _facts(1_024, None, context=200_000, output=64_000, adaptive=False),
    "claude-haiku-4-5": _facts(4_096, None, context=200_000, output=64_000, adaptive=False),
}


def model_facts(model: str) -> ModelFacts:
    """Return what is known of a model, also under a dated name; careful for an unknown one."""
    for family, facts in MODELS.items():
        rest = model.removeprefix(family)
        dated = rest.startswith("-") and len(rest) == 9 and rest[1:].isdigit()
        if rest != model and (not rest or dated or rest == "-latest"):
            return facts
    return ModelFacts()
