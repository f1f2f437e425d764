"""What was found in a language model's attention."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from parityscope.language_models.measures import COMPARISONS, MEASURES
from parityscope.language_models.study import StudyRow, lower_share, means
from parityscope.language_models.word_problems import VARIANTS


def show_study(console: Console, row: StudyRow) -> None:
    """Print every measure of every model of a study: means over heads, and the share of heads where CoT is lower.

    >>> import io
    >>> console = Console(file=io.StringIO(), width=120)
    >>> from parityscope.language_models.study import EntropyStudy, StudyNumbers
    >>> from parityscope.records import Row
    >>> numbers = StudyNumbers(data="own.jsonl", problems=8, too_long=2, models=(), second_against_first=None)
    >>> show_study(console, Row(EntropyStudy(models=(), problems="9b2e", seed=0), numbers))
    >>> console.file.getvalue().splitlines()[0]
    'left out because they are too long: 2 problems'
    """
    study = row.numbers
    for place, model in enumerate(study.models):
        console.print(
            f"{model.label} on {study.problems} problems of {study.data}", style="bold", highlight=False, soft_wrap=True
        )
        table = Table(box=None, header_style="bold", padding=(0, 1, 0, 0))
        for title in ("measure", "sink", *VARIANTS, *(f"below {other}" for other in COMPARISONS)):
            table.add_column(title.removesuffix(" CoT") if "shuffled" in title else title)
        for index, measure in enumerate(MEASURES):
            shares = (lower_share(model.comparisons[other][index]) for other in COMPARISONS)
            table.add_row(*measure, *means(row, place, index), *shares)
        console.print(table)
        console.print()
    if study.second_against_first is not None:
        first, second = study.models[:2]
        lower = lower_share(study.second_against_first[0])
        console.print(f"with CoT, {second.name} is below {first.name} in {lower} of heads (Eq. 1)", highlight=False)
    if study.too_long:
        console.print(f"left out because they are too long: {study.too_long} problems", highlight=False)
    note = "below: share of heads whose mean over problems is lower with CoT, and its 95 % interval over problems"
    console.print(note, highlight=False, soft_wrap=True)
