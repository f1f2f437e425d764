// Learn: a live training over a WebSocket, every frame kept so that one can look back.
import { fillForm, formValues, writeAddress } from "./address.js";
import { SQUARE, dots, headArrows } from "./circle.js";
import { Panel, colour, element, headColour } from "./panels.js";
import { ask, complain } from "./server.js";

const MOST_FRAMES = 400;
const EVERY_BIT = 64; // up to so many bits each has a button
const $ = (id) => document.getElementById(id);
const form = $("learn-form");

let socket = null, info = null, frames = [], curve = null, shown = -1;
let running = false, wanted = null, drawing = false, active = false;
const panels = {};

const settings = () => {
  const { pace, support, ...rest } = formValues(form);
  if (support) { rest.support = support.split(",").map((part) => part.trim()); delete rest.k; }
  return rest;
};

function connect() {
  return new Promise((resolve, reject) => {
    socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/live`);
    socket.onopen = resolve;
    socket.onmessage = (event) => receive(JSON.parse(event.data));
    socket.onclose = (event) => {
      socket = null;
      setRunning(false);
      if (active) complain(event.reason || "the connection ended: press Reset to begin again");
      reject(new Error("closed"));
    };
  });
}

async function send(message) {
  try {
    if (socket === null) await connect();
    socket.send(JSON.stringify(message));
  } catch { /* onclose has said it */ }
}

function receive(message) {
  if (message.type === "ready") {
    info = message;
    frames = [];
    curve = { step: [], risk: [], accuracy: [] };
    shown = -1;
    complain("");
    prepare();
  } else if (message.type === "frame") {
    send({ do: "taken" });
    keep(message);
  } else if (message.type === "resting") {
    setRunning(false);
    if (wanted !== null) {
      const place = frames.findIndex((frame) => frame.step === wanted);
      wanted = null;
      if (place >= 0) show(place);
    }
    remember();
  } else if (message.type === "error") {
    complain(message.message);
    setRunning(false);
  }
}

function keep(frame) {
  const last = frames.at(-1);
  const following = shown === frames.length - 1;
  if (last && last.step === frame.step) frames.pop();
  else { curve.step.push(frame.step); curve.risk.push(frame.risk); curve.accuracy.push(frame.accuracy); }
  frames.push(frame);
  if (frames.length > MOST_FRAMES) frames = frames.filter((_, i) => i % 2 === 0 || i === frames.length - 1);
  $("scrub").max = frames.length - 1;
  if (following || shown >= frames.length || running) show(frames.length - 1);
}

function show(index) {
  shown = index;
  $("scrub").value = index;
  if (!drawing) {
    drawing = true;
    requestAnimationFrame(async () => { drawing = false; if (active) await draw(); });
  }
}

function setRunning(now) {
  running = now;
  $("train").textContent = now ? "Pause" : "Train";
  $("learn-status").setAttribute("aria-live", now ? "off" : "polite");
}

function remember() {
  if (!active || !frames.length) return;
  writeAddress("learn", { ...formValues(form), ...(frames.at(-1).step ? { trained: frames.at(-1).step, step: frames[shown].step } : {}) });
}

function prepare() {
  const { recipe } = info;
  $("learn-summary").textContent =
    `${recipe.summary}: ${info.heads} head${info.heads > 1 ? "s" : ""} × ${recipe.numbers_per_head} parameters on ${recipe.positions}` +
    ` positions, ${recipe.readout} readout, ${recipe.loss}, ${recipe.optimiser}, temperature ${+recipe.temperature.toPrecision(3)},` +
    ` learning rate ${+recipe.learning_rate.toPrecision(3)}, at most ${recipe.steps} steps.`;
  const bits = $("learn-bits");
  const listed = info.n <= EVERY_BIT ? [...Array(info.n).keys()] : info.support;
  bits.replaceChildren(...(info.n > EVERY_BIT ? [element("span", { class: "gap" }, "hidden:")] : []), ...listed.map((j) =>
    element("button", { type: "button", class: "bit", "data-bit": j, "data-hidden": info.support.includes(j),
      "aria-pressed": info.support.includes(j), onclick: () => toggle(j) }, String(j))));
  panels.where.title.textContent = info.circle ? "Heads on the circle" : "Weight of every position";
  panels.where.say(info.circle
    ? "Arrows point where a head looks; their length is how concentrated it is, 1 − H(γ)/log n. Rings are the hidden bits."
    : "c_j, the weight of bit j in the score S. Hidden bits are orange; learned means 1 on them and 0 elsewhere.");
}

function toggle(bit) {
  const support = new Set(info.support);
  if (!support.delete(bit)) support.add(bit);
  form.elements.support.value = [...support].sort((a, b) => a - b).join(",");
  form.elements.k.value = support.size;
  restart().then(() => document.querySelector(`#learn-bits [data-bit="${bit}"]`)?.focus());
}

async function draw() {
  const frame = frames[shown];
  if (!frame) return;
  mark(frame);
  await Promise.all([drawWhere(frame), drawHeat(frame), drawCurves(frame), drawReadout(frame)]);
}

function mark(frame) {
  const hidden = new Set(info.support);
  for (const chip of $("learn-bits").querySelectorAll(".bit")) {
    const bit = Number(chip.dataset.bit), strong = frame.weights[bit] > 0.5;
    chip.dataset.found = strong && hidden.has(bit);
    chip.dataset.wrong = strong && !hidden.has(bit);
    chip.setAttribute("aria-label", `bit ${bit}${hidden.has(bit) ? ", hidden" : ""}${strong ? ", recovered" : ""}`);
  }
  const found = info.support.filter((j) => frame.weights[j] > 0.5).length;
  const end = frame.diverged ? ["bad", "diverged"] : frame.learned ? ["good", "learned"] : frame.done ? ["bad", "stopped without learning"] : null;
  $("learn-status").replaceChildren(
    `Step ${frame.step} of ${info.recipe.steps} · risk ${frame.risk === null ? "not finite" : frame.risk.toPrecision(3)} · accuracy ` +
    `${frame.accuracy.toFixed(4)} (${frame.accuracy_kind}) · recovered ${found} of ${info.k} hidden bits`,
    ...(end ? [" · ", element("span", { class: end[0] }, end[1])] : []));
}

function drawWhere(frame) {
  if (info.circle) {
    return panels.where.draw([...dots(info.circle, info.support, frame.weights), ...headArrows(frame.directions, frame.attention)], SQUARE);
  }
  const hidden = new Set(info.support);
  return panels.where.draw([{
    type: "bar", y: frame.weights, marker: { color: frame.weights.map((_, j) => colour(hidden.has(j) ? "hidden" : "c0")), line: { width: 0 } },
    hovertemplate: "position %{x}<br>weight %{y:.3f}<extra></extra>",
  }, {
    x: info.support, y: info.support.map(() => -0.06), mode: "markers", hoverinfo: "skip",
    marker: { symbol: "triangle-up", size: 10, color: colour("hidden"), opacity: 1 }, cliponaxis: false,
  }], {
    xaxis: { title: { text: "position" }, range: [-0.6, info.n - 0.4] }, bargap: info.n > 100 ? 0 : 0.25,
    yaxis: { title: { text: "weight c" }, range: [-0.12, Math.max(1.1, ...frame.weights)] },
  });
}

function drawHeat(frame) {
  return panels.heat.draw([
    { type: "heatmap", z: frame.attention, zmin: 0, zmax: 1, colorscale: "Viridis", colorbar: { thickness: 10, outlinewidth: 0 },
      hovertemplate: "head %{y}, position %{x}<br>attention %{z:.3f}<extra></extra>" },
    { x: info.support, y: info.support.map(() => -0.78), mode: "markers", hoverinfo: "skip",
      marker: { symbol: "triangle-down", size: 11, color: colour("hidden"), opacity: 1 } },
  ], {
    xaxis: { title: { text: "position" }, range: [-0.5, info.n - 0.5], showgrid: false, zeroline: false },
    yaxis: { title: { text: "head" }, range: [info.heads - 0.5, -1.1], tickvals: [...Array(info.heads).keys()].filter((h) => h % Math.ceil(info.heads / 8) === 0), showgrid: false, zeroline: false },
  });
}

function drawCurves(frame) {
  const risk = curve.risk.map((value) => (value === null ? null : Math.max(value, 1e-6)));
  const now = { type: "line", x0: frame.step, x1: frame.step, yref: "paper", y0: 0, y1: 1, line: { color: colour("soft"), width: 1, dash: "dot" } };
  return panels.curves.draw([
    { x: curve.step, y: risk, mode: "lines", line: { color: colour("c1"), width: 2 }, name: "risk", hovertemplate: "step %{x}<br>risk %{y:.3g}<extra></extra>" },
    { x: curve.step, y: curve.accuracy, mode: "lines", line: { color: colour("c0"), width: 2 }, yaxis: "y2", name: "accuracy",
      hovertemplate: "step %{x}<br>accuracy %{y:.4f}<extra></extra>" },
  ], {
    xaxis: { title: { text: "step" }, rangemode: "tozero" }, shapes: [now], margin: { l: 56, r: 52, t: 12, b: 40 },
    yaxis: { title: { text: "risk", font: { color: colour("c1") } }, type: "log", exponentformat: "power", nticks: 6 },
    yaxis2: { title: { text: "accuracy", font: { color: colour("c0") } }, overlaying: "y", side: "right", range: [-0.02, 1.04], tickmode: "linear", tick0: 0, dtick: 0.25, showgrid: false },
  });
}

function drawReadout(frame) {
  const area = (y, name, color) => ({ x: info.score_axis, y, name, mode: "lines", fill: "tozeroy", yaxis: "y2", line: { color, width: 1.5 },
    hovertemplate: `S = %{x:.2f}, label ${name}<extra></extra>` });
  const top = Math.max(...frame.density.plus, ...frame.density.minus, 1e-9);
  return panels.readout.draw([
    area(frame.density.plus, "+1", colour("c0")), area(frame.density.minus, "−1", colour("c1")),
    { x: info.score_axis, y: info.readout, mode: "lines", line: { color: colour("ink"), width: 2.5 }, hovertemplate: "S = %{x:.2f}<br>ŷ = %{y:.2f}<extra></extra>" },
  ], {
    xaxis: { title: { text: "score S" }, dtick: Math.ceil(info.k / 10), tick0: 0 }, yaxis: { title: { text: "prediction ŷ" } },
    yaxis2: { overlaying: "y", side: "right", range: [0, 1.5 * top], visible: false },
  });
}

async function restart(until = 0, stops = []) {
  setRunning(until !== 0);
  await send({ do: "start", settings: settings(), until, stops });
}

export function rememberLearn() { remember(); }

export function openLearn(values, about) {
  active = true;
  if (!panels.where) build(about);
  if (values === null && info) { draw(); return; }
  if (values) fillForm(form, values);
  const trained = Number(values?.get("trained") || 0);
  wanted = trained && values.has("step") ? Number(values.get("step")) : null;
  const begun = restart(trained, wanted ? [wanted] : []);
  // A bare address is a first look, and that should move; a link shows the state that it names.
  if (values && ![...values].length && !matchMedia("(prefers-reduced-motion: reduce)").matches) begun.then(train);
}

export function closeLearn() {
  active = false;
  if (running) send({ do: "pause" });
}

export function redrawLearn() { if (active) draw(); }

function build(about) {
  const code = async () => (await ask("/api/snippet", { ...settings(), step: frames[shown]?.step ?? 0 })).snippet;
  const parent = $("learn-panels");
  panels.where = new Panel(parent, "where", "Heads", code);
  panels.readout = new Panel(parent, "readout", "Readout, and where the score S falls", code);
  panels.heat = new Panel(parent, "attention", "Attention", code);
  panels.curves = new Panel(parent, "curves", "Risk and accuracy", code);
  panels.readout.say("Line: the frozen readout ŷ(S). Areas: the exact distribution of S over all 2ⁿ inputs, label +1 blue, −1 orange. Learned: blue only where the line is up.");
  panels.heat.say("Each row is a head; ▼ marks the hidden bits.");
  panels.curves.say("Population risk (left, log) and accuracy (right): over all inputs, not a sample.");
  form.elements.recipe.replaceChildren(...about.recipes.map((one) => element("option", { value: one.name, title: one.summary }, one.name)));
  form.elements.recipe.value = about.default_recipe;
  form.elements.positions.append(...about.positions.map((name) => element("option", { value: name }, name)));
  form.addEventListener("submit", (event) => { event.preventDefault(); restart(); });
  form.addEventListener("change", (event) => {
    if (event.target.name === "pace") { if (running) train(); remember(); return; }
    if (event.target.name === "k" || event.target.name === "n") form.elements.support.value = "";
    restart();
  });
  $("train").addEventListener("click", () => (running ? pause() : train()));
  $("step").addEventListener("click", () => { if (frames.length) { setRunning(true); send({ do: "train", pace: 1, until: frames.at(-1).step + 1 }); } });
  $("reset").addEventListener("click", () => restart());
  $("scrub").addEventListener("input", () => { if (running) pause(); show(Number($("scrub").value)); });
  $("scrub").addEventListener("change", remember);
  document.addEventListener("keydown", (event) => {
    if (!active || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea, button, dialog, [role=tab]")) return;
    const button = { " ": "train", s: "step", r: "reset" }[event.key];
    if (button) { event.preventDefault(); $(button).click(); }
  });
}

function train() { setRunning(true); send({ do: "train", pace: Number(form.elements.pace.value) }); }
function pause() { setRunning(false); send({ do: "pause" }); }
