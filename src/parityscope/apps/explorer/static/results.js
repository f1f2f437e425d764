// Results: figures, tables, verdicts and phase diagrams of a store; a cell opens as a replay.
import { writeAddress } from "./address.js";
import { Panel, element, plain, table } from "./panels.js";
import { ask, complain, latest } from "./server.js";

const $ = (id) => document.getElementById(id);
const only = latest();
const MOST_LINES = 200;
let summary = null, shown = null, chosen = {}, active = false, diagram = null, goTo = null;

const dark = () => document.documentElement.dataset.theme === "dark";

function list() {
  if (!summary) { $("results-status").textContent = "Reading what else is stored …"; return; }
  $("results-list").replaceChildren(
    ...(summary.claims ? [element("div", { class: "group" }, element("button", { type: "button", onclick: () => open("claims"), "aria-current": shown === "claims" }, `Every statement with its verdict (${summary.claims})`))] : []),
    ...summary.papers.map((paper) => element("details", { class: "group", open: paper.experiments.some((one) => one.id === shown) || !shown },
      element("summary", {}, paper.title),
      ...paper.experiments.map((one) => element("button", { type: "button", title: `${one.id}: ${one.rows} rows`, onclick: () => open(one.id), "aria-current": shown === one.id }, one.title)))));
  $("results-status").textContent = summary.store === null
    ? "The rows of the reference run, which are shipped. For others: parityscope explore --store DIR, where DIR is the --out folder of reproduce or sweep."
    : `Store ${summary.store}`;
}

function open(id) {
  shown = id;
  list();
  remember();
  if (id === "claims") { $("results-body").innerHTML = summary.claims_html; return undefined; }
  return only(() => ask(`/api/results/${encodeURIComponent(id)}`), render);
}

function remember() {
  if (active) writeAddress("results", { show: shown, ...chosen });
}

function render(answer) {
  const body = $("results-body"), parts = [element("h2", {}, answer.title)];
  if (answer.html) {
    const below = element("div"), theme = dark() ? "dark" : "light";
    below.innerHTML = answer.html; // written by the server, which escapes what rows hold
    parts.push(element("img", { class: "figure", alt: answer.title, onerror: () => complain(`the figure ${answer.id} could not be drawn: the terminal that runs parityscope explore says why`), src: `/api/results/${encodeURIComponent(answer.id)}/figure.svg?theme=${theme}` }), below);
  }
  const place = element("div");
  parts.push(element("h2", {}, "Phase diagram"), place);
  body.replaceChildren(...parts);
  phase(place, answer);
}

const names = (rows, part) => [...new Set(rows.flatMap((row) => Object.keys(row[part])))];
const compare = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));

function phase(place, answer) {
  const fields = names(answer.rows, "config").filter((name) => new Set(answer.rows.map((row) => row.config[name])).size > 1);
  const numbers = names(answer.rows, "numbers").filter((name) => answer.rows.some((row) => ["number", "boolean"].includes(typeof row.numbers[name])));
  if (!fields.length || !numbers.length) { place.append("These rows do not vary in two ways: there is nothing to lay out."); return; }
  const pick = (name, options, fallback) => {
    const select = element("select", { name }, ...options.map((one) => element("option", { value: one }, one)));
    select.value = options.includes(chosen[name]) ? chosen[name] : fallback;
    chosen[name] = select.value;
    select.addEventListener("change", () => { chosen[name] = select.value; remember(); lay(); });
    return element("label", {}, { x: "Across", y: "Down", value: "Colour" }[name], select);
  };
  const prefer = (options, wanted, other) => wanted.find((name) => options.includes(name)) ?? options[other] ?? options[0];
  const first = prefer(fields, ["n"], 0);
  const controls = element("form", { class: "controls" }, pick("x", fields, first),
    pick("y", fields, prefer(fields.filter((name) => name !== first), ["label", "recipe.name", "k"], 0) ?? first), pick("value", numbers, prefer(numbers, ["learned", "accuracy"], 0)));
  const panels = element("div", { class: "panels" });
  place.append(controls, panels);
  diagram = new Panel(panels, "phase", "Cells of the store", async () => storeSnippet(answer));
  diagram.say("The mean over rows of a cell. Press a cell, or a row below, to replay its training: it is deterministic, so its settings are its recording.");
  const rows = element("div");
  place.append(rows);
  const lay = () => {
    drawDiagram(answer);
    const shownFields = fields.slice(0, 6);
    rows.replaceChildren(table([...shownFields, chosen.value, ""], answer.rows.slice(0, MOST_LINES).map((row) => [
      ...shownFields.map((name) => String(row.config[name] ?? "–")), String(row.numbers[chosen.value] ?? "–"),
      row.replay ? element("button", { type: "button", class: "tool", onclick: () => goTo(row.replay) }, "Replay") : ""])));
  };
  lay();
  redraw = lay;
}

let redraw = () => {};

function drawDiagram(answer) {
  const values = (name) => [...new Set(answer.rows.map((row) => row.config[name] ?? "–"))].sort(compare);
  const x = values(chosen.x), y = values(chosen.y);
  const cells = y.map((v) => x.map((u) => answer.rows.filter((row) =>
    (row.config[chosen.x] ?? "–") === u && (row.config[chosen.y] ?? "–") === v && row.numbers[chosen.value] !== null && row.numbers[chosen.value] !== undefined)));
  const z = cells.map((line) => line.map((rows) => (rows.length ? rows.reduce((sum, row) => sum + Number(row.numbers[chosen.value]), 0) / rows.length : null)));
  diagram.draw([{
    type: "heatmap", x: x.map(plain), y: y.map(plain), z, colorscale: "Viridis", xgap: 2, ygap: 2, colorbar: { thickness: 10, outlinewidth: 0 },
    text: z.map((line) => line.map((value) => (value === null ? "" : String(+value.toPrecision(3))))), texttemplate: "%{text}", hoverongaps: false,
    hovertemplate: `${plain(chosen.x)} %{x}, ${plain(chosen.y)} %{y}<br>${plain(chosen.value)} %{z:.4g}<extra></extra>`,
  }], { xaxis: { type: "category", title: { text: plain(chosen.x) }, showgrid: false }, yaxis: { type: "category", showgrid: false } }).then(() => {
    diagram.plot.removeAllListeners?.("plotly_click");
    diagram.plot.on("plotly_click", (event) => {
      const [row, column] = event.points[0].pointIndex;
      const replayed = cells[row][column].find((one) => one.replay);
      if (replayed) goTo(replayed.replay);
    });
  });
}

function storeSnippet(answer) {
  const id = JSON.stringify(answer.id);
  const [imports, rows] = answer.scale
    ? ["from parityscope.papers.registry import load_figure\nfrom parityscope.papers.results import stored_rows\n", `stored_rows(load_figure(${id}), "${answer.scale}", store)`]
    : ["", `store.rows(${id})`];
  return `from pathlib import Path\n\n${imports}from parityscope.records import Store\n\nstore = Store(Path("…/store"))\nfor row in ${rows}:\n    print(row.config, row.numbers)\n`;
}

export function openResults(values, _about, replay) {
  active = true;
  goTo = replay;
  if (values) { chosen = Object.fromEntries(["x", "y", "value"].filter((name) => values.has(name)).map((name) => [name, values.get(name)])); shown = values.get("show"); }
  if (summary) { remember(); return; }
  // What the address names comes first: the list of everything takes a moment.
  if (shown && shown !== "claims") open(shown).then(() => summarise(false)); else summarise(true);
}

function summarise(andOpen) {
  ask("/api/results").then((answer) => {
    summary = answer;
    list();
    const first = shown ?? (answer.papers[0]?.experiments[0]?.id ?? (answer.claims ? "claims" : null));
    if (!andOpen) return;
    if (first) open(first); else remember();
  }, (error) => complain(error.message));
}

export function closeResults() { active = false; }

export function redrawResults() {
  if (!active || !shown || shown === "claims") return;
  const figure = document.querySelector("#results-body .figure");
  if (figure) figure.src = figure.src.replace(/theme=\w+/, `theme=${dark() ? "dark" : "light"}`);
  redraw();
}
