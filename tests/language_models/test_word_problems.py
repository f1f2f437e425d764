import csv
import json
import os
import re
from pathlib import Path

import pytest

from parityscope import InvalidInput
from parityscope.language_models.word_problems import (
    OWN_PROBLEMS,
    WordProblem,
    final_answer,
    read_word_problems,
    shuffled_words,
)

RECORDS = [
    {"question": "How much is 1,000 + 125, twice?", "answer": "1,000 + 125 = 1,125.\nTwice is 2,250.\n#### 2,250"},
    {"question": "Größer, 3 or 4?", "answer": "4 is.\n#### 4"},
]


def write(path, records):
    if path.suffix == ".jsonl":
        path.write_text("\n".join(json.dumps(record) for record in records))
    elif path.suffix == ".csv":
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(records[0]))
            writer.writeheader()
            writer.writerows(records)
    else:
        pyarrow = pytest.importorskip("pyarrow", reason="parquet needs the extra 'lm'")
        parquet = pytest.importorskip("pyarrow.parquet", reason="parquet needs the extra 'lm'")
        parquet.write_table(pyarrow.Table.from_pylist(records), path)
    return path


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_every_format_gives_the_same_problems(tmp_path, ending):
    found = list(read_word_problems(write(tmp_path / f"problems.{ending}", RECORDS)))
    assert [problem.question for problem in found] == [record["question"] for record in RECORDS]
    assert [problem.solution for problem in found] == [record["answer"] for record in RECORDS]
    assert [problem.answer for problem in found] == ["2250", "4"]


def test_columns_have_the_names_one_gives(tmp_path):
    records = [{"q": "What?", "steps": "So.", "result": "1,5"}]
    path = write(tmp_path / "named.csv", records)
    (problem,) = read_word_problems(path, question="q", solution="steps", answer="result")
    assert problem == WordProblem("What?", "So.", "15")


def test_limit_reads_no_further(tmp_path):
    path = tmp_path / "problems.jsonl"
    path.write_text(json.dumps(RECORDS[0]) + "\nthis line is not JSON\n")
    assert len(list(read_word_problems(path, limit=1))) == 1
    with pytest.raises(InvalidInput, match="line 2 is not JSON"):
        list(read_word_problems(path))


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.jsonl", "", "holds no problems: it is empty"),
        ("a.csv", "question,answer\n", "holds no problems: it is empty"),
        ("a.csv", "frage,antwort\na,b\n", "has no column 'question': it has frage, antwort"),
        ("a.jsonl", '{"question": "a", "answer": "no mark"}', "problem 1: no answer after ####"),
        ("a.jsonl", '{"question": " ", "answer": "#### 1"}', "problem 1: column 'question' is empty"),
        ("a.jsonl", '{"question": null, "answer": "#### 1"}', "problem 1: column 'question' is empty"),
        ("a.jsonl", '{"question": "a", "answer": "####"}', "problem 1: no answer after ####"),
        ("a.jsonl", "[1]", "line 1 is not a JSON object"),
        ("a.csv", b"question,answer\n\xff\xfe,b\n", "is not UTF-8 text"),
        ("a.parquet", "not parquet", "is not a readable parquet file"),
        ("a.txt", "question", "expected one of .parquet, .jsonl, .csv"),
    ],
)
def test_bad_files_are_one_sentence(tmp_path, name, content, sentence):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow", reason="parquet needs the extra 'lm'")
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InvalidInput, match=re.escape(sentence)) as raised:
        list(read_word_problems(path))
    assert "\n" not in str(raised.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InvalidInput, match=r"there is no file .*nowhere\.jsonl"):
        read_word_problems(tmp_path / "nowhere.jsonl")


def test_the_three_texts():
    problem = WordProblem("How many?", "One and one\nare two.\n#### 2", "2")
    assert problem.text("no CoT") == "How many? The answer is 2."
    assert problem.text("CoT") == "How many? One and one\nare two.\n#### 2"
    shuffled = problem.text("shuffled CoT")
    assert shuffled.startswith("How many? ")
    assert sorted(shuffled.split()) == sorted(problem.text("CoT").split())
    assert shuffled == problem.text("shuffled CoT") != problem.text("CoT")
    assert problem.text("shuffled CoT", seed=1) != shuffled
    below = WordProblem(problem.question, problem.solution, problem.answer, separator="\n")
    assert below.text("no CoT") == "How many?\nThe answer is 2."
    assert below.key != problem.key


def test_shuffling_leaves_white_space_where_it_was():
    text = "a bb\nccc  dddd\n\neeeee"
    shuffled = shuffled_words(text, seed=3)
    assert re.findall(r"\s+", shuffled) == re.findall(r"\s+", text)
    assert len(shuffled) == len(text)


def test_the_last_mark_counts():
    assert final_answer("#### 3 was wrong\n#### 1,234,567") == "1234567"
    assert final_answer("no mark") is None


def test_our_own_problems_are_solved_right():
    """Every equation in the solutions is true, and the last result is the answer."""
    problems = list(read_word_problems(OWN_PROBLEMS))
    assert len(problems) == 10
    for problem in problems:
        equations = re.findall(r"([\d.]+(?: [-+*/] [\d.]+)+) = ([\d.]+\d|\d)", problem.solution.replace(",", ""))
        assert len(equations) >= 2
        for left, right in equations:
            first, *rest = left.split()
            value = float(first)
            for sign, number in zip(rest[::2], rest[1::2], strict=True):
                value = {"+": value.__add__, "-": value.__sub__, "*": value.__mul__, "/": value.__truediv__}[sign](
                    float(number)
                )
            assert value == pytest.approx(float(right)), left
        assert float(equations[-1][1]) == float(problem.answer)


@pytest.mark.skipif("PARITYSCOPE_DATA" not in os.environ, reason="needs gsm8k-test.parquet in PARITYSCOPE_DATA")
def test_every_answer_of_gsm8k_is_a_number():
    pytest.importorskip("pyarrow", reason="parquet needs the extra 'lm'")
    problems = list(read_word_problems(Path(os.environ["PARITYSCOPE_DATA"]) / "gsm8k-test.parquet"))
    assert len(problems) == 1319
    assert all(re.fullmatch(r"-?\d+(\.\d+)?", problem.answer) for problem in problems)
