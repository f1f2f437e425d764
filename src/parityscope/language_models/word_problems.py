"""Word problems with solutions: reading them from a file, and the three texts whose attention is compared."""

from __future__ import annotations

import csv
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal

import torch

from parityscope.core.errors import InvalidInput, naming_the_extra
from parityscope.problems import seeded_generator

Variant = Literal["no CoT", "CoT", "shuffled CoT"]
VARIANTS: tuple[Variant, ...] = ("no CoT", "CoT", "shuffled CoT")
OWN_PROBLEMS = Path(__file__).with_name("word_problems.jsonl")  # written for this project
_ANSWER_MARK = "####"


@dataclass(frozen=True)
class WordProblem:
    """A question, its solution in steps, and the final answer alone."""

    question: str
    solution: str
    answer: str
    # W's text does not say what joins a question and what follows; its published script has a space.
    separator: str = " "

    @property
    def prompt(self) -> str:
        """The part that all variants share."""
        return self.question + self.separator

    @property
    def key(self) -> str:
        """A hash of the whole problem."""
        text = json.dumps([self.question, self.solution, self.answer, self.separator])
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def text(self, variant: Variant, seed: int = 0) -> str:
        """Return what the model reads. W, Appendix C.1: the solution as it stands, or the answer in one sentence."""
        if variant == "CoT":
            return self.prompt + self.solution
        if variant == "shuffled CoT":
            return self.prompt + shuffled_words(self.solution, int(self.key, 16) % 2**32 + seed)
        return f"{self.prompt}The answer is {self.answer}."


def shuffled_words(text: str, seed: int) -> str:
    """Return the same words in random order, with the spaces and line breaks left where they were."""
    pieces = re.split(r"(\s+)", text.strip())  # words at even places, white space between them
    words = pieces[::2]
    order = torch.randperm(len(words), generator=seeded_generator(seed, "data")).tolist()
    pieces[::2] = [words[place] for place in order]
    return "".join(pieces)


def final_answer(solution: str) -> str | None:
    """Return what follows the last `####`, commas stripped, or None without one.

    Differs from W's published script: its regular expression cuts `2,125` to `125`.
    """
    _, mark, answer = solution.rpartition(_ANSWER_MARK)
    return answer.strip().replace(",", "") if mark else None


def read_word_problems(
    path: Path,
    *,
    question: str = "question",
    solution: str = "answer",
    answer: str | None = None,
    separator: str = " ",
    limit: int | None = None,
) -> Iterator[WordProblem]:
    """Yield the problems of a parquet, JSONL or CSV file, one at a time, at most `limit`.

    `question` and `solution` name columns. The final answer stands after `####` in the solution, unless `answer` names
    a column of its own.
    """
    if limit is not None and limit < 1:
        raise InvalidInput(f"limit must be 1 or more, got {limit}")
    records = islice(_records(path), limit)
    first = next(records, None)
    if first is None:
        raise InvalidInput(f"{path} holds no problems: it is empty")
    for column in (question, solution, *([answer] if answer else [])):
        if column not in first:
            raise InvalidInput(f"{path} has no column {column!r}: it has {', '.join(map(str, first))}")
    numbered = enumerate(chain([first], records), start=1)
    return (_problem(path, number, record, (question, solution, answer), separator) for number, record in numbered)


def _problem(
    path: Path, number: int, record: Mapping[str, Any], named: tuple[str, str, str | None], separator: str
) -> WordProblem:
    question, solution, answer = named
    columns = [question, solution, *([answer] if answer else [])]
    texts = ["" if record.get(column) is None else str(record[column]).strip() for column in columns]
    for column, text in zip(columns, texts, strict=True):
        if not text:
            raise InvalidInput(f"{path}, problem {number}: column {column!r} is empty")
    stated = texts[2].replace(",", "") if answer else final_answer(texts[1])
    if not stated:
        raise InvalidInput(
            f"{path}, problem {number}: no answer after {_ANSWER_MARK} in column {solution!r}; "
            "name a column that holds the answers"
        )
    return WordProblem(texts[0], texts[1], stated, separator)


def _records(path: Path) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of a file as dictionaries; its ending says how to read it."""
    if not path.is_file():
        raise InvalidInput(f"there is no file {path}")
    if path.stat().st_size == 0:
        raise InvalidInput(f"{path} holds no problems: it is empty")
    readers = {".parquet": _parquet, ".jsonl": _json_lines, ".csv": _csv}
    if path.suffix.lower() not in readers:
        raise InvalidInput(f"{path} ends in {path.suffix!r}: expected one of {', '.join(readers)}")
    return readers[path.suffix.lower()](path)


def _parquet(path: Path) -> Iterator[Mapping[str, Any]]:
    with naming_the_extra():
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    try:
        with ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=64):
                yield from batch.to_pylist()
    except ArrowException as error:
        raise InvalidInput(f"{path} is not a readable parquet file ({error})") from None


def _json_lines(path: Path) -> Iterator[Mapping[str, Any]]:
    for number, line in enumerate(_lines(path), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise InvalidInput(f"{path}, line {number} is not JSON ({error})") from None
        if not isinstance(record, dict):
            raise InvalidInput(f"{path}, line {number} is not a JSON object")
        yield record


def _csv(path: Path) -> Iterator[Mapping[str, Any]]:
    yield from csv.DictReader(_lines(path))


def _lines(path: Path) -> Iterator[str]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            yield from file
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not UTF-8 text ({error.reason} at byte {error.start})") from None
