"""A tree (K): the attention of every node while K's chain is trained, with teacher forcing or end to end."""

from __future__ import annotations

import time
from typing import Any, Literal

import torch
from pydantic import BaseModel, ConfigDict, Field

from parityscope.apps.explorer.learn import rounded
from parityscope.papers.k.chain import LINKS, QUADRATIC, ChainTransformer, ParityTree
from parityscope.papers.k.training import Variant, experiment, experiment_rate, fresh_answers
from parityscope.problems import seeded_generator

_MOMENTS = 40
# K trains 350 steps; from few examples its stages end to end take longer. Steps between two moments:
_PACES: dict[Variant, int] = {"CoT + teacher forcing": 10, "CoT + self-consistency": 25}


class TreeSettings(BaseModel):
    """A chain to train on the true values of its nodes, or end to end with K's weight filter."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    d: int = Field(32, ge=2, le=64)
    k: int = Field(8, ge=2, le=16)
    examples: int = Field(1024, ge=1, le=8192)
    link: Literal["piecewise quadratic", "−cos πt"] = "piecewise quadratic"
    training: Literal["CoT + teacher forcing", "CoT + self-consistency"] = "CoT + teacher forcing"
    seed: int = Field(0, ge=0, lt=2**32)


def learned_tree(settings: TreeSettings) -> dict[str, Any]:
    """Train until the answer is certified on all inputs, or for forty moments; return the attention at each of them."""
    started, tree = time.perf_counter(), ParityTree.random(settings.d, settings.k, settings.seed)
    model = ChainTransformer(tree, LINKS[settings.link], block=settings.training == "CoT + self-consistency")
    x = tree.draw(settings.examples, seeded_generator(settings.seed, "data"))
    pace, moments, accuracy = _PACES[settings.training], [model.attention().detach()], list[float]()
    while True:
        answers = fresh_answers(model, settings.seed)
        accuracy.append(answers.accuracy)
        if answers.certified_error < 1 or len(moments) > _MOMENTS:
            break
        experiment(settings.training, model, x, experiment_rate(tree), pace)
        moments.append(model.attention().detach())
    attention = torch.stack(moments)
    on_children = (attention * tree.is_child()).sum(-1)
    return {
        "d": tree.d,
        "children": tree.children,
        "steps": [pace * moment for moment in range(len(moments))],
        "attention": rounded(attention, 3),
        "levels": [rounded(on_children[:, tree.nodes(level)].mean(-1), 4) for level in range(1, tree.height + 1)],
        "accuracy": accuracy,
        "certified": answers.certified_error < 1,
        "parameters": model.trained_parameters(),
        "seconds": time.perf_counter() - started,
        "snippet": _snippet(settings, pace * (len(moments) - 1)),
    }


def _snippet(settings: TreeSettings, steps: int) -> str:
    """Return the Python lines that train to the last moment."""
    block = settings.training == "CoT + self-consistency"
    link = "QUADRATIC" if settings.link == QUADRATIC.name else "COSINE"
    return (
        f"from parityscope.papers.k.chain import {link}, ChainTransformer, ParityTree\n"
        "from parityscope.papers.k.training import experiment, experiment_rate, fresh_answers\n"
        "from parityscope.problems import seeded_generator\n\n"
        f"tree = ParityTree.random({settings.d}, {settings.k}, seed={settings.seed})\n"
        f"model = ChainTransformer(tree, {link}, block={block})\n"
        f'x = tree.draw({settings.examples}, seeded_generator({settings.seed}, "data"))\n'
        f'experiment("{settings.training}", model, x, experiment_rate(tree), {steps})\n'
        "attention = model.attention().detach()  # a row for each node\n"
        f"answers = fresh_answers(model, {settings.seed})\n"
        "print(tree.children, (attention * tree.is_child()).sum(-1), answers)\n"
    )
