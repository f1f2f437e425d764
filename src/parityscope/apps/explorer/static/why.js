// Why it fails: the risk over two heads' angles, the path of training on it, the gradient's two parts as arrows.
import { fillForm, formValues, writeAddress } from "./address.js";
import { SQUARE, arrow, dots, headArrows } from "./circle.js";
import { Panel, colour } from "./panels.js";
import { ask, latest } from "./server.js";

const $ = (id) => document.getElementById(id);
const form = $("why-form");
const panels = {};
const only = latest();
const VISIBLE = 0.02; // of the longest arrow
let data = null, active = false;

const request = () => ({ ...formValues(form), at: Number($("why-at").value) / 100 });

function compute() {
  $("why-status").textContent = "Computing the landscape …";
  only(() => ask("/api/landscape", request()), (answer) => { data = answer; draw(); remember(); })
    .then(() => { if ($("why-status").textContent.startsWith("Computing")) $("why-status").textContent = ""; });
}

function remember() {
  if (active) writeAddress("why", { ...formValues(form), at: $("why-at").value });
}

/** Break a line where it wraps around the circle. */
function unwrapped(path) {
  const x = [], y = [];
  path.forEach(([a, b], i) => {
    if (i && (Math.abs(a - path[i - 1][0]) > 180 || Math.abs(b - path[i - 1][1]) > 180)) { x.push(null); y.push(null); }
    x.push(a); y.push(b);
  });
  return { x, y };
}

/** A ratio for people: two digits, no powers of ten below a million. */
const spoken = (ratio) => (ratio < 1e6 ? Number(ratio.toPrecision(2)).toLocaleString("en") : ratio.toPrecision(2));
const lengthOf = (vectors) => Math.sqrt(vectors.flat().reduce((sum, value) => sum + value * value, 0));

function draw() {
  if (!data) return;
  const free = lengthOf(data.free), dependent = lengthOf(data.dependent);
  const ratio = free > dependent
    ? `the part that does not depend on B is ${spoken(free / Math.max(dependent, 1e-300))} times longer than the part that does`
    : free > 1e-12 * dependent
      ? `the part that depends on B is ${spoken(dependent / free)} times longer than the part that does not`
      : "all of it depends on B";
  const risk = data.risks[data.index];
  $("why-status").textContent =
    `Step ${data.steps[data.index]} of ${data.steps.at(-1)} · ${data.loss} risk ${risk === null ? "not finite" : risk.toPrecision(3)} · of the gradient, ${ratio}.`;
  drawLandscape();
  drawCircle();
  drawShares();
}

function drawLandscape() {
  const here = data.path[data.index], hidden = data.hidden, line = unwrapped(data.path);
  const pairs = hidden.flatMap((a, i) => hidden.filter((_, j) => j !== i).map((b) => [a, b]));
  const turns = [[data.turn_dependent, "good", "depends on B"], [data.turn_free, "bad", "same for every B"]];
  const longest = Math.max(...turns.map(([turn]) => Math.hypot(turn[0], turn[1])), 1e-300);
  const arrows = turns.filter(([turn]) => Math.hypot(turn[0], turn[1]) > VISIBLE * longest).map(([turn, color, name]) =>
    arrow(here, [here[0] + (70 * turn[0]) / longest, here[1] + (70 * turn[1]) / longest], colour(color), name, 4));
  const degrees = { range: [0, 360], dtick: 90, ticksuffix: "°", showgrid: false, zeroline: false };
  panels.landscape.draw([
    { type: "heatmap", x: data.angles, y: data.angles, z: data.risk, colorscale: "Greys", reversescale: true, zsmooth: "best",
      colorbar: { thickness: 10, outlinewidth: 0, title: { text: "risk", side: "right" } },
      hovertemplate: "head 0 at %{x:.0f}°, head 1 at %{y:.0f}°<br>risk %{z:.4f}<extra></extra>" },
    { x: pairs.map((p) => p[0]), y: pairs.map((p) => p[1]), mode: "markers", hovertext: "both heads on hidden bits", hoverinfo: "text",
      marker: { symbol: "circle-open", size: 16, color: colour("hidden"), line: { width: 3, color: colour("hidden") } } },
    { ...line, mode: "lines+markers", line: { color: colour("c5"), width: 2.5 }, marker: { size: 3, color: colour("c5") }, hoverinfo: "skip" },
    ...arrows,
    { x: [here[0]], y: [here[1]], mode: "markers", marker: { size: 10, color: colour("c4"), line: { color: "#000", width: 1 } }, hoverinfo: "skip" },
  ], { xaxis: { ...degrees, title: { text: "angle of head 0" } }, yaxis: { ...degrees, title: { text: "angle of head 1" } } });
}

function drawCircle() {
  const attention = softmaxes();
  const weights = data.positions.map((_, j) => (data.support.length / attention.length) * attention.reduce((sum, row) => sum + row[j], 0));
  const longest = Math.max(...[...data.dependent, ...data.free].map(([x, y]) => Math.hypot(x, y)), 1e-300);
  const tips = headArrows(data.heads, attention).map((trace) => [trace.x[1], trace.y[1]]);
  const part = (vectors, color, name) => vectors.flatMap(([x, y], h) => Math.hypot(x, y) <= VISIBLE * longest ? [] :
    arrow(tips[h], [tips[h][0] + (0.55 * x) / longest, tips[h][1] + (0.55 * y) / longest], colour(color), `${name}, head ${h}`, 3));
  panels.circle.draw([
    ...dots(data.positions, data.support, weights), ...headArrows(data.heads, attention, colour("soft")),
    ...part(data.free, "bad", "same for every B"), ...part(data.dependent, "good", "depends on B"),
  ], SQUARE);
}

function softmaxes() {
  return data.heads.map(([x, y]) => {
    const scores = data.positions.map(([p, q]) => (x * p + y * q) / data.temperature);
    const top = Math.max(...scores), raised = scores.map((s) => Math.exp(s - top));
    const total = raised.reduce((a, b) => a + b, 0);
    return raised.map((value) => value / total);
  });
}

function drawShares() {
  panels.shares.draw([
    { x: data.share_steps, y: data.shares, mode: "lines+markers", line: { color: colour("good"), width: 2 }, marker: { size: 4 },
      hovertemplate: "step %{x}<br>share %{y:.3f}<extra></extra>" },
    { x: data.steps, y: data.risks, mode: "lines", yaxis: "y2", line: { color: colour("c1"), width: 1.5, dash: "dot" }, hovertemplate: "step %{x}<br>risk %{y:.3g}<extra></extra>" },
  ], {
    xaxis: { title: { text: "step" } }, margin: { l: 52, r: 56, t: 12, b: 40 },
    yaxis: { title: { text: "share that depends on B", font: { color: colour("good") } }, range: [-0.03, 1.05] },
    yaxis2: { title: { text: "risk", font: { color: colour("c1") } }, overlaying: "y", side: "right", tickmode: "auto", nticks: 6, rangemode: "tozero", showgrid: false },
  });
}

export function openWhy(values) {
  active = true;
  if (!panels.landscape) build();
  if (values) {
    fillForm(form, values);
    if (values.has("at")) $("why-at").value = values.get("at");
  }
  if (!data || values) compute();
  else { draw(); remember(); }
}

export function closeWhy() { active = false; }
export function redrawWhy() { if (active) draw(); }

function build() {
  const code = async () => data?.snippet ?? "";
  panels.landscape = new Panel($("why-panels"), "landscape", "The risk over two angles", code);
  panels.circle = new Panel($("why-panels"), "gradient", "The gradient of every head", code);
  panels.shares = new Panel($("why-panels"), "shares", "How much of the gradient knows B", code);
  panels.landscape.say("Light is low. Circles: both heads on hidden bits. Line: the training. Arrows at the dot: descent by the part that depends on B (green) and by the part that does not (red), to scale; one too short to see is left out. Lengths and other heads are those of this moment.");
  panels.circle.say("Arrows from the centre are heads. At their tips: descent by the part that depends on B (green) and by the part that is the same for every B (red), to scale.");
  panels.shares.say("Green: length of the part that depends on B, as a share of both lengths. Dotted: the risk.");
  form.addEventListener("submit", (event) => { event.preventDefault(); compute(); });
  $("why-at").addEventListener("change", compute);
}
