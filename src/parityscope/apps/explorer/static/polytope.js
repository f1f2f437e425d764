// What can be learned: positions as corners of a polytope, whether B is a face of it, and a training that shows it.
import { fillForm, formValues, writeAddress } from "./address.js";
import { Panel, colour, element } from "./panels.js";
import { ask, latest } from "./server.js";

const $ = (id) => document.getElementById(id);
const form = $("polytope-form");
const panels = {};
const only = latest();
const EVERY_EDGE = 24; // up to so many corners all edges are drawn
let data = null, active = false;

function request() {
  const { support, ...rest } = formValues(form);
  return support ? { ...rest, support: support.split(",").map((part) => part.trim()) } : rest;
}

function compute() {
  // Answers come at once: a status that came and went would move what is being pressed.
  if (!data) $("polytope-status").textContent = "Looking for a face …";
  return only(() => ask("/api/polytope", request()), (answer) => {
    data = answer;
    $("polytope-step").max = data.steps.length - 1;
    $("polytope-step").value = data.steps.length - 1;
    choose();
    draw();
    if (active) writeAddress("polytope", formValues(form));
  }).then(() => { if ($("polytope-status").textContent.startsWith("Looking")) $("polytope-status").textContent = ""; });
}

/** A button per position: press one to hide or unhide it. */
function choose() {
  $("polytope-bits").replaceChildren(...data.points.map((_, j) => element("button", {
    type: "button", class: "bit", "data-bit": j, "data-hidden": data.support.includes(j), "aria-pressed": data.support.includes(j), onclick: () => toggle(j),
  }, String(j))));
}

function toggle(bit) {
  const support = new Set(data.support);
  if (!support.delete(bit)) support.add(bit);
  form.elements.support.value = [...support].sort((a, b) => a - b).join(",");
  compute().then(() => document.querySelector(`#polytope-bits [data-bit="${bit}"]`)?.focus());
}

function draw() {
  if (!data) return;
  const name = `{${data.support.join(", ")}}`, last = data.correlation.at(-1).toPrecision(3);
  const trained = `Training ${data.parameters} parameters ended at C = ${last} after ${data.steps.at(-1)} steps.`;
  $("polytope-status").replaceChildren(...(data.face
    ? [element("span", { class: "good" }, `${name} is a face`), `: some parameters give it equal scores and everybody else smaller ones, by a margin of ${data.margin.toPrecision(2)}, so C comes as near to 1 as one likes. ${trained}`]
    : [element("span", { class: "bad" }, `${name} is ${data.sentence}`),
       data.reachable < 1
         ? `: a mixture of its corners is one of other corners too. ${whatever()}, C ≤ ${data.reachable.toPrecision(3)}. ${trained}`
         : `. ${trained}`]));
  drawShape();
  drawScores();
  drawWeights();
}

const whatever = () => (data.up_to === null ? "Whatever the parameters" : `With parameters up to ${data.up_to.toExponential(0)}`);
const column = (points, index) => points.map((point) => point[index]);
const segment = (a, b, color, width, dash = "solid") => ({ x: [a[0], b[0]], y: [a[1], b[1]], mode: "lines", line: { color, width, dash }, hoverinfo: "skip" });

/** Every pair of corners as one broken line: with two harmonics or more each is an edge. */
function edges() {
  const pairs = data.points.flatMap((a, i) => data.points.slice(i + 1).map((b) => [a, b, [null, null]])).flat();
  return { x: column(pairs, 0), y: column(pairs, 1), mode: "lines", line: { color: colour("line"), width: 0.6 }, hoverinfo: "skip" };
}

/** Where a corner's name does not lie on an edge: away from the middle. */
function outwards(points) {
  const middle = [0, 1].map((index) => column(points, index).reduce((sum, value) => sum + value, 0) / points.length);
  return points.map(([x, y]) => `${y < middle[1] ? "bottom" : "top"} ${x < middle[0] ? "left" : "right"}`);
}

function drawShape() {
  const circle = data.harmonics === 1, weights = data.weights[Number($("polytope-step").value)], hidden = new Set(data.support);
  const ring = circle ? [...data.points, data.points[0]] : [...data.curve, data.curve[0]];
  const corners = {
    x: column(data.points, 0), y: column(data.points, 1), mode: "markers+text", textposition: outwards(data.points),
    text: data.points.map((_, j) => (hidden.has(j) || data.n <= 16 ? String(j) : "")),
    textfont: { color: data.points.map((_, j) => colour(hidden.has(j) ? "hidden" : "soft")), size: 13 },
    marker: { size: weights.map((weight) => 7 + 11 * Math.min(1, weight)), opacity: 1, color: data.points.map((_, j) => colour(hidden.has(j) ? "hidden" : "c0")) },
    customdata: weights, hovertemplate: "position %{pointNumber}, weight %{customdata:.3f}<extra></extra>",
  };
  const proof = data.line ? [segment(...data.line, colour("good"), 3)] : data.mixture ? mixture() : [];
  panels.shape.draw([
    ...(!circle && data.n <= EVERY_EDGE ? [edges()] : []),
    { x: column(ring, 0), y: column(ring, 1), mode: "lines", line: { color: colour("soft"), width: 1.5 }, hoverinfo: "skip" },
    ...proof, corners,
  ], {
    xaxis: { visible: false, fixedrange: true }, yaxis: { visible: false, scaleanchor: "x", fixedrange: true }, margin: { l: 16, r: 16, t: 16, b: 16 },
  });
  panels.shape.title.textContent = circle ? "The circle is a polygon" : `${data.n} corners in ${2 * data.harmonics} dimensions, seen in a plane`;
  panels.shape.say((data.line
    ? "Green: where scores equal those of B. Everybody else is on one side of it: that is what makes B a face."
    : data.mixture
      ? "The cross lies between the corners of B (orange lines) and also between others (blue lines, as wide as their share): no score can be equal on B and smaller on all others."
      : "Training has not come near enough to its maximum to show a proof.") +
    (circle ? "" : " The plane was chosen so that B is seen well; other corners may lie in front or behind.") + " Dots grow with the weight.");
}

function mixture() {
  const { point, others, hidden } = data.mixture;
  const spokes = (shares, color, widest) => shares.flatMap((share, j) => Math.abs(share) < 0.005 ? [] :
    segment(point, data.points[j], color, 1 + widest * Math.min(1, Math.abs(share)), share < 0 ? "dot" : "solid"));
  return [...spokes(others, colour("c0"), 8), ...spokes(hidden, colour("hidden"), 3),
    { x: [point[0]], y: [point[1]], mode: "markers", marker: { symbol: "x", size: 12, color: colour("bad") }, hovertext: "between corners of B, and between others", hoverinfo: "text" }];
}

function drawScores() {
  const { at, places, between } = data.scores, hidden = new Set(data.support);
  panels.scores.draw([
    { x: places, y: between, mode: "lines", line: { color: colour("soft"), width: 1.5 }, hoverinfo: "skip" },
    { x: at.map((_, j) => j), y: at, mode: "markers", marker: { size: at.map((_, j) => (hidden.has(j) ? 12 : 7)), color: at.map((_, j) => colour(hidden.has(j) ? "hidden" : "c0")) },
      hovertemplate: "position %{x}<br>%{y:.4g}<extra></extra>" },
  ], { xaxis: { title: { text: "position" } }, yaxis: { title: { text: data.face ? "score, B’s being 0" : "log c" } } });
  panels.scores.title.textContent = data.face ? "Scores that touch 0 at B only" : "The best scores training found";
  panels.scores.say(data.face
    ? `The q of length 1 with the largest margin. It is a wave of ${data.harmonics} harmonic${data.harmonics > 1 ? "s" : ""}; between positions, where nobody stands, it may rise above 0.`
    : "log c = ⟨p, q⟩ + β where training ended: B should be at 0 and everybody else far below, and no wave of so few harmonics does that.");
}

function drawWeights() {
  const hidden = new Set(data.support), shown = data.steps[Number($("polytope-step").value)];
  const lines = data.points.map((_, j) => ({
    x: data.steps, y: column(data.weights, j), mode: "lines", line: { color: colour(hidden.has(j) ? "hidden" : "c0"), width: hidden.has(j) ? 2.5 : 1 },
    hovertemplate: `position ${j}, step %{x}<br>weight %{y:.3f}<extra></extra>`,
  }));
  panels.weights.draw([
    ...lines.filter((_, j) => !hidden.has(j)), ...lines.filter((_, j) => hidden.has(j)),
    { x: data.steps, y: data.correlation, mode: "lines", line: { color: colour("good"), width: 2, dash: "dot" }, hovertemplate: "step %{x}<br>C = %{y:.4g}<extra></extra>" },
  ], { xaxis: { title: { text: "step of Newton’s method" } }, yaxis: { title: { text: "weight c, and C" }, rangemode: "tozero" },
       shapes: [{ type: "line", x0: shown, x1: shown, yref: "paper", y0: 0, y1: 1, line: { color: colour("line"), width: 1 } }] });
}

export function openPolytope(values) {
  active = true;
  if (!panels.shape) build();
  if (values) fillForm(form, values);
  if (!data || values) compute(); else { draw(); writeAddress("polytope", formValues(form)); }
}

export function closePolytope() { active = false; }
export function redrawPolytope() { if (active) draw(); }

function build() {
  const code = async () => data?.snippet ?? "";
  panels.shape = new Panel($("polytope-panels"), "polytope", "The polytope of positions", code);
  panels.scores = new Panel($("polytope-panels"), "scores", "Scores", code);
  panels.weights = new Panel($("polytope-panels"), "trained", "Weights while it learns", code);
  panels.weights.say("Orange: the hidden positions, which should end at 1; blue: all others, at 0. Dotted: the correlation C of the answer with the parity. log C is concave in the trained parameters, so there is no wrong place to stop at.");
  form.addEventListener("submit", (event) => { event.preventDefault(); compute(); });
  form.addEventListener("change", compute);
  $("polytope-step").addEventListener("input", () => { drawShape(); drawWeights(); });
}
