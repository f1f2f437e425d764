"""`entropy`: its arguments."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from parityscope.apps.cli.application import QUIET, app, errors, interruptible, named_path, nothing_left_in
from parityscope.core.errors import naming_the_extra
from parityscope.core.strict_json import strict_json


@app.command()
def entropy(
    model: Annotated[str, typer.Option(help="A model folder, a .gguf file, or a name on the Hugging Face hub.")],
    data: Annotated[
        Path | None,
        typer.Option(
            parser=named_path,
            metavar="<path>",
            help="Problems with solutions: .parquet, .jsonl or .csv; otherwise ten written for this project.",
        ),
    ] = None,
    second_model: Annotated[
        str | None, typer.Option(help="A model fine-tuned from the first, to compare on the same solutions.")
    ] = None,
    question: Annotated[str, typer.Option(help="The column with the questions.")] = "question",
    solution: Annotated[str, typer.Option(help="The column with the solutions.")] = "answer",
    answer: Annotated[
        str | None, typer.Option(help="The column with the final answers; otherwise what follows #### in a solution.")
    ] = None,
    separator: Annotated[
        str, typer.Option(help="What stands between a question and what follows it.", show_default="a space")
    ] = " ",
    limit: Annotated[int | None, typer.Option(min=1, help="Read so many problems at most.")] = None,
    batch: Annotated[int, typer.Option(min=1, help="Problems read at once; results stay the same.")] = 1,
    dtype: Annotated[str, typer.Option(help="float32, bfloat16 or float16.")] = "float32",
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:1, …")] = "cpu",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the shuffled words.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option(
            parser=named_path, metavar="<path>", help="Folder for rows and figures; a folder of `reproduce` will do."
        ),
    ] = None,
    quiet: Annotated[bool, QUIET] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Compare how sparse the attention of a language model is with and without chain of thought (W, Section 4.3).

    For every head: the paper's minimum over positions, the mean, the solution or answer alone, the same number of
    positions of each, all with the attention sink kept and removed, and the solution's words shuffled as a control.
    With --out every problem is stored as it is read: the same command continues after an interruption.
    """
    from parityscope.apps.terminal.progress import Progress
    from parityscope.apps.terminal.tables import show_study
    from parityscope.language_models.loading import load_language_model
    from parityscope.language_models.study import run_study, study_json
    from parityscope.language_models.word_problems import OWN_PROBLEMS, read_word_problems
    from parityscope.records import Store

    if out is not None:  # now, since hours would be lost if the plotting library were missing
        with naming_the_extra():
            from parityscope.papers.w.figures.language_models import draw_study
    path = data or OWN_PROBLEMS
    problems = list(
        read_word_problems(path, question=question, solution=solution, answer=answer, separator=separator, limit=limit)
    )
    advice = (
        "the same command continues from the last problem" if out else "nothing was stored, since there was no --out"
    )
    with nothing_left_in(out), interruptible(advice), Progress(errors(quiet)) as progress:
        store = None if out is None else Store(out / "store")
        if store is not None:
            store.check_writable()
        study = run_study(
            [model, *([second_model] if second_model else [])],
            problems,
            partial(load_language_model, dtype=dtype, device=device),
            data=path.name if separator == " " else f"{path.name} joined by {separator!r}",
            seed=seed,
            batch=batch,
            store=store,
            on_progress=progress.study,
        )
    drawn = [] if out is None else draw_study(out)
    if as_json:
        typer.echo(strict_json(study_json(study)))
        return
    console = Console()
    show_study(console, study)
    if drawn:
        console.print(f"figures: {', '.join(map(str, drawn))}", highlight=False, soft_wrap=True)
        console.print(f"in the report: parityscope reproduce --out {out}", highlight=False, soft_wrap=True)
