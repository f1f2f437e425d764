"""The page that trains in a browser, from a folder without a server: its numbers are those of the library."""

import os
import re
import shutil
from pathlib import Path

import pytest
import torch

import parityscope as ps
from parityscope.models.positions import circle, harmonics
from parityscope.training.steps.log_attention import log_value

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

CHROMIUM = os.environ.get("PARITYSCOPE_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking"]
pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on this machine")]
expect = playwright.expect
WAIT = 60_000
FOLDER = Path(__file__).parents[2] / "docs" / "try"
HEADS = """([n, support, angles, steps]) => {
  const heads = new parity.CircleHeads(n, support, angles);
  for (let step = 0; step < steps; step++) heads.step();
  return [heads.risk, heads.accuracy, heads.gradient, heads.heads];
}"""
CONCAVE = """([n, support, count]) => {
  const head = new parity.ConcaveHead(n, support, count);
  while (head.value < -1e-6 && head.step());
  return [Math.exp(head.value), head.weights(), head.relation()];
}"""


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as started:
        launched = started.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield launched
        launched.close()


@pytest.fixture
def page(browser):
    """The page as a folder has it; a test fails on any error and on any request to elsewhere."""
    opened, wrong = browser.new_page(), []
    opened.set_default_timeout(WAIT)
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    opened.on("request", lambda request: None if request.url.startswith("file:") else wrong.append(request.url))
    opened.goto((FOLDER / "index.html").as_uri())
    yield opened
    opened.close()
    assert wrong == []


@pytest.mark.parametrize("steps", [0, 20])
def test_heads_on_the_circle_descend_as_the_library_does(page, steps):
    problem, angles = ps.Parity(7, (1, 4)), [0.3, 4.0]
    start = torch.tensor([[[angle] for angle in angles]], dtype=torch.float64)
    directions = torch.cat([start.cos(), start.sin()], -1)
    for _ in range(steps + 1):
        model = ps.ParityTransformer(7, 2, positions=circle(7), smoothing=0.01, directions=directions)
        value = ps.population_risk(model, problem, loss="squared-hinge").value.sum()
        (gradient,) = torch.autograd.grad(value, [model.directions])
        now, directions = directions, directions - 0.04 / 4 * gradient.detach()
    accuracy = ps.population_accuracy(model, problem).value.item()
    risk, correct, slopes, heads = page.evaluate(HEADS, [7, [1, 4], angles, steps])
    assert risk == pytest.approx(value.item(), rel=1e-9)
    assert correct == pytest.approx(accuracy, abs=1e-12)
    assert torch.allclose(torch.tensor(slopes, dtype=torch.float64), gradient[0], rtol=1e-7, atol=1e-9)
    assert torch.allclose(torch.tensor(heads, dtype=torch.float64), now[0], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("support", "count"), [((2, 3), 1), ((2, 5), 1), ((2, 5), 2), ((0, 4, 8), 1), ((1, 4, 7), 3)])
def test_one_head_learns_exactly_the_faces(page, support, count):
    correlation, weights, relation = page.evaluate(CONCAVE, [12, list(support), count])
    problem = ps.Parity(12, support)
    again = log_value(torch.tensor(weights, dtype=torch.float64), problem.mask()).exp().item()
    assert correlation == pytest.approx(again, rel=1e-9)
    if ps.is_face(harmonics(12, count), support):
        assert correlation > 1 - 1e-5
        return
    run = ps.learn(problem, "concave", positions="harmonics", numbers_per_head=2 * count, steps=100)
    best = log_value(run.model.score_weights()[0].detach(), problem.mask()).exp().item()
    assert correlation == pytest.approx(best, rel=1e-6)  # the only maximum
    assert relation < 1e-5  # which proves that there is nothing better


def test_both_learners_run_by_themselves_and_say_how_it_ended(page):
    concave, circle_heads = page.locator("#concave .says"), page.locator("#circle .says")
    expect(concave).to_have_text(re.compile(r"^\{2, 5\} is no face: no q and β have C above 0\.129"), timeout=WAIT)
    expect(circle_heads).to_have_text(re.compile("^After 3000 steps the risk is .* this start is stuck"), timeout=WAIT)


def test_its_links_lead_to_the_pages_of_the_folder_it_is_opened_from(page):
    links = [Path(url.removeprefix("file://")) for url in page.eval_on_selector_all("a", "all => all.map(a => a.href)")]
    assert links
    assert [link for link in links if not link.is_file()] == []
