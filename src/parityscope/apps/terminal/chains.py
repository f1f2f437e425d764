"""Chain of thought: both trainings of every seed, and where the tokens of the first looked."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from rich.console import Console
from rich.table import Table
from torch.nn import functional

from parityscope.apps.chain_of_thought import ChainPair, looks, on_the_secret
from parityscope.apps.terminal.runs import attention_heat_map
from parityscope.training.decoders import DecoderRun

_TITLES = ("seed", "hidden", "", "right", "examples", "on hidden", "entropy")


def show_chains(console: Console, pairs: Sequence[ChainPair]) -> None:
    """Print where the first seed's tokens looked, and a table of all.

    >>> import io
    >>> from parityscope.apps.chain_of_thought import settings_of, train_pair
    >>> console = Console(file=io.StringIO(), width=100)
    >>> show_chains(console, [train_pair(settings_of(6, secret=(1, 4), width=16, batch=32, steps=2))])
    >>> [line.split("  ")[0] for line in console.file.getvalue().splitlines()[:4]]
    ['hidden', 'link 0', 'link 1', 'at once']
    """
    first = pairs[0]
    links, answer = looks(first.chain), looks(first.at_once)
    hidden = torch.zeros(links.shape[-1], dtype=torch.bool)
    hidden[list(first.chain.task.secret)] = True
    rows = torch.cat([links, functional.pad(answer, (0, links.shape[-1] - answer.shape[-1]))])
    names = [*(f"link {link}" for link in range(len(links))), "at once"]
    console.print(attention_heat_map(rows, hidden, min(console.width, 120), names))
    console.print()
    console.print(_table(pairs))
    console.print()
    even = 1 / (first.chain.task.n + 1)
    for line in (
        "right: answers to held-out inputs, written from what it wrote itself · examples: seen when all was right",
        f"on hidden: attention on the hidden bits, {even:.2f} if even · entropy (W, Eq. 1): before → after training",
        f"positions: {first.chain.task.n} bits, a 0, the chain · {sum(_seconds(pair) for pair in pairs):.1f} s",
    ):
        console.print(line, highlight=False, soft_wrap=True)


def _table(pairs: Sequence[ChainPair]) -> Table:
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    for title in _TITLES:
        table.add_column(title, justify="left" if title in ("hidden", "") else "right", no_wrap=title != "hidden")
    for pair in pairs:
        seed, secret = str(pair.chain.config.seed), ",".join(map(str, pair.chain.task.secret))
        table.add_row(seed, secret, "chain", *_numbers(pair.chain))
        table.add_row("", "", "at once", *_numbers(pair.at_once))
    return table


def _seconds(pair: ChainPair) -> float:
    return pair.chain.seconds + pair.at_once.seconds


def _numbers(run: DecoderRun) -> tuple[str, ...]:
    needed = run.samples_to(1.0)
    seen = f"not in {run.history.step[-1] * run.config.batch:,}" if needed is None else f"{needed:,}"
    share = sum(on_the_secret(run)) / run.task.k
    before, after = (float(run.history.entropy[place].min()) for place in (0, -1))
    return f"{run.free_running:.3f}", seen, f"{share:.2f}", f"{before:.2f} → {after:.2f}"
