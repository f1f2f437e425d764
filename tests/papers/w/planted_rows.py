"""Planted rows of W's figures, its three-step trainings and its studies of language models."""

from collections.abc import Sequence

import torch

from harness.planted import Planted, World
from parityscope.language_models.measures import COMPARISONS, MEASURES
from parityscope.language_models.study import EntropyStudy, ModelNumbers, StudyNumbers
from parityscope.language_models.summary import compare
from parityscope.papers.claim import Context
from parityscope.papers.w.settings import DecoderRow, ShownDecoder, smoke
from parityscope.papers.w.three_step_rows import ThreeStepNumbers
from parityscope.papers.w.three_steps import WeakestAnswer
from parityscope.records import Result, Row
from parityscope.runs.decoder import DecoderNumbers

SEEDS = range(5)
STEP = torch.tensor([0.0, 10.0, 20.0, 30.0])
JUMP = torch.tensor([0.5, 0.5, 1.0, 1.0])
SPARSE_EARLY, SPARSE_LATE = torch.tensor([1.0, 0.1, 0.1, 0.1]), torch.tensor([1.0, 1.0, 1.0, 0.1])
HIGH = torch.tensor([1.0, 0.9, 0.9, 0.9])


def training(
    samples: int | None,
    *,
    entropy: torch.Tensor = SPARSE_EARLY,
    loss: Sequence[float] = (0.0, 0.7, 0.7, 0.7),
    accuracy: torch.Tensor = JUMP,
    attention: torch.Tensor | None = None,
    label: str = "",
    seed: int = 0,
    **settings,
) -> DecoderRow:
    """Return the row of a training that needed so many samples; none: it did not learn."""
    shown = smoke(label, n=4, seed=seed, **settings)
    layers = shown.training.layers
    arrays = {"step": STEP, "accuracy": accuracy, "loss": torch.tensor(loss)}
    arrays["entropy"] = entropy[:, None, None].expand(-1, layers, 1)
    arrays["attention"] = torch.zeros(layers, 1, 2, 8) if attention is None else attention
    arrays["on_secret"] = arrays["attention"][:, :, [0, 1], [0, 1]].amax(1)
    numbers = DecoderNumbers.model_construct(samples=(samples,), secret=(0, 1), secret_attention=0.9)
    return Row(shown, numbers, arrays)


def own_size(shown: ShownDecoder, samples: int | None) -> DecoderRow:
    """Return a row of a planned training that needed so many samples; its attention is on the secret bits."""
    settings, links = shown.training, shown.training.k if shown.training.chain_of_thought else 1
    secret = tuple(range(settings.k))
    attention = torch.zeros(settings.layers, settings.heads, links, settings.n + links)
    attention[..., range(links), secret[:links]] = 1.0
    attention[1:] = 1 / torch.arange(settings.n + 1, settings.n + links + 1)[:, None]
    curves = SPARSE_EARLY[:, None, None].expand(-1, settings.layers, settings.heads)
    arrays = {"step": STEP, "loss": STEP / 100, "entropy": curves.clone(), "label_entropy": curves.clone()}
    arrays["accuracy"] = JUMP if samples else torch.full_like(JUMP, 0.5)
    arrays |= {
        "attention": attention,
        "one_attention": attention.clone(),
        "on_secret": torch.ones(settings.layers, links),
    }
    numbers = DecoderNumbers(
        samples=(samples,) * 3,
        steps=30,
        accuracy=1.0 if samples else 0.5,
        free_running=1.0,
        secret=secret,
        secret_attention=0.9,
        final_entropy=0.1,
        parameters=1,
    )
    return Row(shown, numbers, arrays)


def attending(share: float, layers: int = 1) -> torch.Tensor:
    """Return attention of the two chain positions on their secret bits, the rest on another one."""
    attention = torch.zeros(layers, 1, 2, 8)
    attention[:, :, 0, 0] = attention[:, :, 1, 1] = share
    attention[:, :, :, 3] = 1 - share
    return attention


def figure(number: int | str, what_is_false: str, rows) -> Planted:
    """Return the worlds of a figure; `rows(shows, seed)` are those of a seed that shows the statement or does not."""

    own = {"parityscope.papers.w.claims.figures.unlike_the_paper": lambda rows, own: ""}

    def world(what: str, shows: bool) -> World:
        planted = [row for seed in SEEDS for row in rows(shows, seed)]
        return World(f"{what}, taken for the paper's sizes", own, Context("smoke", rows=lambda name: planted))

    return Planted(world(what_is_false, False), world(f"rows of five seeds that show Figure {number}", True))


def three_steps(good: bool) -> Context:
    """Return a context in which all trainings of Theorem 3 went as well as can be, or as badly."""
    numbers = ThreeStepNumbers(
        token_accuracy=float(good),
        smallest_attention=float(good),
        margin=1.0 if good else -1.0,
        largest_output_in_training=0.1 if good else 2.0,
        bits_that_suffice=3 if good else None,
        weakest=WeakestAnswer(link=2, token=0, signal=0.2, offset=0.0 if good else 0.3, start=0.0, drift=0.0),
        smallest_secret_score=1.0 if good else -1.0,
        largest_other_score=0.0 if good else 1.0,
        distances_from_one_hot=(0.0, 0.0) if good else (1.0, 1.0),
        attention_moved=0.0,
        outputs=100,
        share_in_band=float(good),
        share_right=float(good),
        smallest_output=0.3,
        largest_output=0.3,
    )
    return Context("reference", row=lambda config: Row.of(config, Result(numbers), 0.0))


def study(effect: float) -> Context:
    """Return a context with a study in which CoT and a second model lower every head by `effect`, in every measure."""
    found = compare(-effect + 0.01 * torch.randn(30, 4, generator=torch.Generator().manual_seed(0)))
    by_measure = (found,) * len(MEASURES)
    model = ModelNumbers(
        name="Qwen2-7B, planted",
        weights="float32",
        fingerprint="1f0c",
        layers_by_heads=(2, 2),
        comparisons=dict.fromkeys(COMPARISONS, by_measure),
        layers=dict.fromkeys(COMPARISONS, ((found, found),) * len(MEASURES)),
    )
    numbers = StudyNumbers(
        data="planted", problems=30, too_long=0, models=(model, model), second_against_first=by_measure
    )
    row = Row(EntropyStudy(models=("1f0c", "07aa"), problems="9b2e", seed=0), numbers)
    return Context("smoke", rows=lambda name: [row])
