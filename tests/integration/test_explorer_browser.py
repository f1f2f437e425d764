"""The explorer in a real browser: train, look back, share, be refused; nothing leaves this machine."""

import os
import re
import shutil

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the explorer's web server is not installed")
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from explorer_server import running_explorer  # noqa: E402

CHROMIUM = os.environ.get("PARITYSCOPE_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking"]
pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on this machine")]
expect = playwright.expect
WAIT = 30_000
expect.set_options(timeout=WAIT)  # a busy machine takes its time


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    from parityscope.apps.reproduce import reproduce
    from parityscope.papers.registry import named_claims

    out = tmp_path_factory.mktemp("reproduced")
    reproduce(["H1-success"], "smoke", out, claims=named_claims(["H1-lemma-14-derivative", "H1-lemma-15"]))
    with running_explorer(out) as running:
        yield running


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as started:
        launched = started.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield launched
        launched.close()


@pytest.fixture
def page(browser, server):
    """A page that fails its test on any console error and on any request to elsewhere.

    An answer of 422 is a sentence that the page shows; the browser notes it all the same.
    """
    context = browser.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True)
    context.set_default_timeout(WAIT)
    opened = context.new_page()
    wrong = []

    def note(message):
        if message.type in ("error", "warning") and "status of 422" not in message.text:
            wrong.append(message.text)

    opened.on("console", note)
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    local = (server.url, server.url.replace("http", "ws"), "data:", f"blob:{server.url}")
    opened.on("request", lambda request: None if request.url.startswith(local) else wrong.append(request.url))
    opened.on("websocket", lambda ws: None if ws.url.startswith(local) else wrong.append(ws.url))
    yield opened
    context.close()
    assert wrong == []


def status(page, text):
    expect(page.locator("#learn-status")).to_contain_text(re.compile(text), timeout=WAIT)


def found(page):
    return page.locator("#learn-bits .bit[data-found=true]")


def test_train_to_success_and_see_the_hidden_bits_found(page, server):
    page.goto(f"{server.url}/#learn?n=20&support=7,10,17&k=3&pace=5")
    status(page, "^Step 0 ")
    expect(page.locator("#learn-bits .bit[data-hidden=true]")).to_have_text(["7", "10", "17"])
    expect(found(page)).to_have_count(0)
    page.get_by_role("button", name="Train", exact=True).click()
    status(page, "recovered 3 of 3 hidden bits · learned")
    expect(found(page)).to_have_text(["7", "10", "17"])
    expect(page.locator("#learn-bits .bit[data-wrong=true]")).to_have_count(0)
    expect(page.locator("#learn-panels .plot .main-svg").first).to_be_visible()
    assert page.locator("#learn-panels .panel").count() == 4
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save as SVG: Attention").click()
    assert saved.value.suggested_filename == "parityscope-attention.svg"
    page.get_by_role("button", name="Show the Python code: Attention").click()
    expect(page.locator("#code-text")).to_contain_text("ps.Parity(n=20, support=(7, 10, 17))")


def test_pause_scrub_share_and_reload_to_the_same_state(page, server):
    page.goto(f"{server.url}/#learn?n=16&k=3&recipe=repaired&pace=1&seed=2")
    status(page, "^Step 0 ")
    page.get_by_role("button", name="Train", exact=True).click()
    status(page, r"^Step ([5-9]|\d\d) ")
    page.get_by_role("button", name="Pause", exact=True).click()
    expect(page.get_by_role("button", name="Train", exact=True)).to_be_visible()
    page.wait_for_function("location.hash.includes('trained=')")
    page.locator("#scrub").focus()
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    page.locator("#scrub").dispatch_event("change")
    page.wait_for_function("/step=\\d+/.exec(location.hash)[0] !== 'step=' + /trained=(\\d+)/.exec(location.hash)[1]")
    address, shown = page.evaluate("[location.hash, document.getElementById('learn-status').textContent]")
    step = re.search(r"[?&]step=(\d+)", address)[1]
    assert shown.startswith(f"Step {step} ")
    page.goto("about:blank")
    page.goto(f"{server.url}/{address}")
    status(page, f"^{re.escape(shown)}$")
    page.wait_for_function("address => location.hash === address", arg=address)


def test_a_bare_address_trains_by_itself(page, server):
    page.goto(f"{server.url}/")
    status(page, r"learned|stopped without learning")


def test_an_example_is_searched_and_drawn_against_the_share_of_all_rows(page, server):
    page.goto(f"{server.url}/#data")
    page.get_by_role("button", name="Try an example").click()
    expect(page.locator("#data-status")).to_contain_text("1 interaction", timeout=WAIT)
    expect(page.locator("#data-panels h3").first).to_have_text(re.compile("valve|pump|shift"))
    expect(page.locator("#plot-interaction-1 .main-svg").first).to_be_visible()
    shares, base, top = page.evaluate(
        "const plot = document.getElementById('plot-interaction-1');"
        "[plot.data[0].y, plot.layout.shapes[0].y0, plot.layout.yaxis.range[1]]"
    )
    assert 0.25 < base < 0.45  # of the machines fail
    assert max(shares) < top < 1
    assert min(shares) < base < max(shares)


@pytest.mark.parametrize(
    ("code", "body", "sentence"),
    [
        (500, "Internal Server Error", "the server failed \\(500\\): the terminal"),
        (200, "<html>another program</html>", "does another program answer at this address"),
        (503, '{"message": "4 searches are waiting already"}', "4 searches are waiting already"),
    ],
)
def test_whatever_a_server_answers_is_a_sentence(browser, server, code, body, sentence):
    opened = browser.new_page()
    opened.set_default_timeout(WAIT)
    opened.route("**/api/fit", lambda route: route.fulfill(status=code, body=body))
    opened.goto(f"{server.url}/#data")
    opened.get_by_role("button", name="Try an example").click()
    expect(opened.get_by_role("alert")).to_have_text(re.compile(sentence))
    opened.close()


def test_results_stand_under_their_papers_by_their_titles(page, server):
    page.goto(f"{server.url}/#results?show=H1-success")
    paper = page.locator("#results-list details").filter(has_text="H1: ").first
    expect(paper).to_have_attribute("open", "")
    expect(paper.get_by_role("button", name="Which recipe learns, where")).to_have_attribute("aria-current", "true")


def test_a_copied_link_says_what_its_reader_needs(page, server):
    page.goto(f"{server.url}/#learn?n=20")
    status(page, "^Step 0 ")
    note = page.locator("#share-note")
    expect(note).to_be_hidden()
    page.locator("#share").click()
    expect(note).to_contain_text(f"runs parityscope explore --port {server.port} on their own machine")
    expect(note).to_contain_text("computed again there")
    page.get_by_role("tab", name="Results").click()
    page.locator("#share").click()
    expect(note).to_contain_text(f"--port {server.port} --store FOLDER, with the same rows,")


def test_an_invalid_value_shows_a_sentence_and_a_valid_one_removes_it(page, server):
    page.goto(f"{server.url}/#learn?n=20")
    status(page, "^Step 0 ")
    page.get_by_label("Hidden k").first.fill("21")
    page.get_by_label("Hidden k").first.press("Enter")
    expect(page.get_by_role("alert")).to_have_text(re.compile("up to k = 16|between 1 and n = 20"))
    page.get_by_label("Hidden k").first.fill("2")
    page.get_by_label("Hidden k").first.press("Enter")
    expect(page.get_by_role("alert")).to_be_hidden()
    expect(page.locator("#learn-bits .bit[data-hidden=true]")).to_have_count(2)
    page.locator("#learn-bits .bit").nth(0).click()
    expect(page.locator("#learn-bits .bit[data-hidden=true]")).to_have_count(3)


def test_a_support_is_a_face_or_not_as_positions_are_pressed(page, server):
    page.goto(f"{server.url}/#polytope?n=12&support=2,5&harmonics=1")
    verdict = page.locator("#polytope-status")
    expect(verdict).to_contain_text(re.compile(r"\{2, 5\} is no face.*C ≤ 0\.129"), timeout=WAIT)
    for bit in (3, 5):  # 2 and 3 are neighbours
        pressed = page.locator(f"#polytope-bits [data-bit='{bit}']")
        pressed.click()
        expect(pressed).to_have_attribute("data-hidden", str(bit == 3).lower(), timeout=WAIT)
    expect(verdict).to_contain_text("{2, 3} is a face", timeout=WAIT)
    page.get_by_label("Hidden positions B").fill("2,5")
    page.locator("#polytope-form [name=harmonics]").select_option("2")
    expect(verdict).to_contain_text("{2, 5} is a face", timeout=WAIT)
    expect(page.locator("#polytope-panels .main-svg").first).to_be_visible()
    assert page.evaluate("location.hash") == "#polytope?n=12&support=2%2C5&harmonics=2"
    page.get_by_role("button", name="Show the Python code: The polytope of positions").click()
    expect(page.locator("#code-text")).to_contain_text("ps.is_face(harmonics(12, 2), problem.support)")


def test_every_view_opens_by_keyboard_and_draws(page, server):
    page.goto(f"{server.url}/#why?n=8&k=2&recipe=repaired&steps=40")
    expect(page.locator("#why-status")).to_contain_text("all of it depends on B")
    page.get_by_role("tab", name="Why it fails").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#onestep-status")).to_contain_text("learned")
    expect(page.locator("#onestep-panels .main-svg").first).to_be_visible()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#chain-status")).to_contain_text("held-out inputs right")
    tokens = page.locator("#chain-bits").inner_text()
    page.locator("#chain-bits button.bit").nth(0).click()
    page.wait_for_function("text => document.getElementById('chain-bits').innerText !== text", arg=tokens)


def test_a_tree_is_learned_step_by_step(page, server):
    page.goto(f"{server.url}/#tree?d=16&k=4&examples=512&training=CoT+%2B+self-consistency")
    said = page.locator("#tree-status")
    expect(said).to_contain_text("right on all 2^16 inputs")
    expect(page.locator("#tree-panels .main-svg").first).to_be_visible()
    page.locator("#tree-step").fill("0")
    expect(said).to_contain_text(re.compile("^Step 0 .* not learned"))
    page.get_by_label("Examples").fill("16")
    page.get_by_label("Examples").press("Enter")
    expect(said).to_contain_text("not learned")
    assert "examples=16" in page.evaluate("location.hash")
    page.get_by_role("button", name="Show the Python code: Where each node looks").click()
    expect(page.locator("#code-text")).to_contain_text("ParityTree.random(16, 4, seed=0)")


def test_a_cell_of_the_store_opens_as_a_replay(page, server):
    page.goto(f"{server.url}/#results?show=H1-success")
    expect(page.locator("#results-body .figure")).to_be_visible()
    expect(page.locator("#plot-phase .main-svg").first).to_be_visible()
    page.get_by_role("row").filter(has_text="repaired, sharp start").get_by_role("button", name="Replay").click()
    status(page, "^Step 0 ")
    expect(page.locator("#learn-summary")).to_contain_text("H1's model with 2 trainable parameters per head")
    assert page.locator("#learn-form [name=start_radius]").input_value() == "8"


def test_a_claim_unfolds_to_how_it_was_judged(page, server):
    page.goto(f"{server.url}/#results?show=claims")
    expect(page.locator(".claim")).to_have_count(2, timeout=WAIT)  # the summary of a whole store takes a moment
    refuted = page.locator("#H1-lemma-14-derivative")
    expect(refuted.locator("p").first).to_contain_text("fails · what is true instead (ours): holds")
    judged = refuted.locator("details").first
    expect(judged.locator("pre")).to_be_hidden()
    judged.locator("summary").click()
    expect(judged.locator("pre")).to_contain_text("distance")
    expect(judged.get_by_role("listitem").filter(has_text="∂γ as printed")).to_contain_text("refuted if > 1e-\u206006")
    expect(page.locator("#results-body table").first.get_by_role("row").last).to_contain_text("H1")


@pytest.fixture(scope="module")
def plants(tmp_path_factory):
    """Two pairs share the classes; a measurement has gaps, a text column many values; semicolons between fields."""
    random = np.random.default_rng(0)
    lines = ["gene a;gene b;pressure;plant;serial;fault"]
    for row in range(1200):
        genes, pressure = random.integers(0, 3, size=2), random.normal(50, 8)
        plant = str(random.choice(["Ulm", "Bonn", "Kiel", "Jena", "Hof", "Suhl"]))
        pair = (genes[0] > 0) ^ (genes[1] == 1) if random.random() < 0.5 else (pressure > 53) ^ (plant == "Kiel")
        measured = "" if row % 50 == 7 else f"{pressure:.1f}"
        lines.append(f"{genes[0]};{genes[1]};{measured};{plant};x{row};{'yes' if pair else 'no'}")
    path = tmp_path_factory.mktemp("plants") / "plants.csv"
    path.write_text("\n".join(lines))
    return path


def test_a_table_of_your_own_shows_its_interactions_against_shuffled_classes(page, server, plants):
    page.goto(f"{server.url}/#data")
    expect(page.locator("#data-form")).to_be_hidden()
    page.locator("#data-file").set_input_files(plants)
    expect(page.locator("#data-name")).to_contain_text("plants.csv: 1,200 rows, 6 columns")
    expect(page.locator("#data-notes")).to_contain_text("missing values in pressure (24)")
    expect(page.get_by_label("Target: the column with the classes")).to_have_value("fault")
    page.get_by_label("Target: the column with the classes").fill("falt")
    search = page.get_by_role("button", name="Search", exact=True)
    search.click()
    expect(page.get_by_role("alert")).to_have_text(re.compile("did you mean 'fault'"))
    page.get_by_label("Target: the column with the classes").fill("fault")
    page.get_by_label("Missing values").select_option("median")
    page.get_by_label("At most k columns").fill("2")
    search.click()
    expect(page.locator("#data-status")).to_contain_text("2 interactions", timeout=WAIT)
    expect(page.get_by_role("alert")).to_be_hidden()
    expect(page.locator("#data-notes")).to_contain_text("not searched: serial (text of 1200 different values")
    rows = page.locator("#data-summary tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.filter(has_text="plant = Kiel")).to_contain_text("pressure >")
    expect(page.locator("#data-summary")).to_contain_text("Guarantee: given the terms above, any further parity")
    expect(page.locator("#data-panels .panel")).to_have_count(3)
    expect(page.locator("#plot-interaction-2 .main-svg").first).to_be_visible()
    expect(page.locator("#plot-interaction-2 .annotation-text").first).to_contain_text("rows")
    shuffled = page.locator("#data-panels .panel").last
    expect(shuffled).to_contain_text(
        re.compile(r"in \d+ tables with shuffled classes met 0\.\d\d at most"), timeout=WAIT
    )
    page.get_by_role("button", name="Show the Python code: Against shuffled classes").click()
    expect(page.locator("#code-text")).to_contain_text("against_shuffled(known, 2, range(50)")
    page.get_by_role("button", name="Close").click()
    page.get_by_role("button", name="Show the Python code: 1.").click()
    expect(page.locator("#code-text")).to_contain_text("fit_file(")
    expect(page.locator("#code-text")).to_contain_text("missing='median'")
    address = page.evaluate("location.hash")
    page.goto("about:blank")
    page.goto(f"{server.url}/{address}")  # the server still keeps the table
    expect(page.locator("#data-status")).to_contain_text("2 interactions", timeout=WAIT)


def test_a_dropped_file_is_taken_and_a_bad_one_is_a_sentence(page, server):
    page.goto(f"{server.url}/#data")
    dropped = (
        "([name, text]) => { const data = new DataTransfer(); data.items.add(new File([text], name)); return data; }"
    )
    for name, text in (("faults.csv", "a,a\n1,2\n"), ("faults.csv", "a,y\n" + "0,no\n1,yes\n" * 30)):
        files = page.evaluate_handle(dropped, [name, text])
        page.locator("#data-drop").dispatch_event("dragover", {"dataTransfer": files})
        expect(page.locator("#data-drop")).to_have_attribute("data-over", "true")
        page.locator("#data-drop").dispatch_event("drop", {"dataTransfer": files})
        if "a,a" in text:
            expect(page.get_by_role("alert")).to_have_text(re.compile("several columns called 'a'"))
    expect(page.locator("#data-name")).to_contain_text("faults.csv: 60 rows, 2 columns")
    expect(page.get_by_role("alert")).to_be_hidden()
    page.get_by_role("button", name="Search", exact=True).click()
    expect(page.locator("#data-status")).to_contain_text("1 interaction", timeout=WAIT)
    expect(page.locator("#data-summary tbody tr")).to_contain_text("main effect")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_it_whole_and_soon(browser, server, scheme):
    context = browser.new_context(viewport={"width": 390, "height": 844}, color_scheme=scheme)
    page = context.new_page()
    page.goto(f"{server.url}/#learn?n=12&k=2&recipe=repaired")
    status(page, "^Step 0 ")
    page.wait_for_selector("#learn-panels .main-svg")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate("document.documentElement.dataset.theme") == scheme
    context.close()
