// One step (H2): scores and weights before and after.
import { fillForm, formValues, writeAddress } from "./address.js";
import { Panel, colour, element, headColour } from "./panels.js";
import { ask, latest } from "./server.js";

const $ = (id) => document.getElementById(id);
const form = $("onestep-form");
const panels = {};
const only = latest();
let data = null, active = false;

function compute() {
  $("onestep-status").textContent = "Stepping …";
  only(() => ask("/api/one-step", formValues(form)), (answer) => {
    data = answer;
    draw();
    if (active) writeAddress("onestep", formValues(form));
  }).then(() => { if ($("onestep-status").textContent === "Stepping …") $("onestep-status").textContent = ""; });
}

function draw() {
  if (!data) return;
  const verdict = data.learned ? ["good", "learned"] : ["bad", "not learned"];
  $("onestep-status").replaceChildren(
    `${data.steps} step${data.steps === 1 ? "" : "s"} of ${data.parameters} parameters on n = ${data.n} · hidden ${data.support.join(", ")} · recovered ` +
    `${data.found.join(", ")} · accuracy ${data.accuracy.toFixed(4)} (${data.accuracy_kind})` +
    (data.worst_loss === null ? "" : ` · no input loses more than ${data.worst_loss.toPrecision(2)}`) + ` · ${data.seconds.toFixed(2)} s · `,
    element("span", { class: verdict[0] }, verdict[1]));
  drawScores(panels.before, data.before);
  drawScores(panels.after, data.after);
  const hidden = new Set(data.support), names = data.positions.map(String);
  const bars = (moment, name, color) => ({ type: "bar", x: names, y: moment.weights, name,
    marker: { color: typeof color === "string" ? color : data.positions.map(color) }, hovertemplate: `position %{x}, ${name}<br>weight %{y:.4g}<extra></extra>` });
  panels.weights.draw([
    bars(data.before, "before", colour("line")),
    bars(data.after, "after", (j) => colour(hidden.has(j) ? "hidden" : "c0")),
  ], { xaxis: { type: "category", title: { text: "position" }, tickangle: -60 }, yaxis: { title: { text: "weight c" }, rangemode: "tozero" }, barmode: "group" });
}

function drawScores(panel, moment) {
  const width = (moment.high - moment.low) / moment.others.length;
  const centres = moment.others.map((_, i) => moment.low + (i + 0.5) * width);
  const top = Math.max(...moment.others, 1);
  panel.draw([
    { type: "bar", x: centres, y: moment.others, width, marker: { color: colour("c0") }, hovertemplate: "score %{x:.2f}: %{y} positions<extra></extra>" },
    ...moment.hidden.map((scores, head) => ({
      x: scores, y: scores.map(() => top * 3.5 ** (head + 0.7)), mode: "markers+text", text: scores.map((_, i) => String(data.support[i])), textposition: "top center",
      textfont: { color: headColour(head + 1) }, marker: { symbol: "triangle-down", size: 12, color: headColour(head + 1) },
      hovertemplate: `hidden %{text}, head ${head}<br>score %{x:.3f}<extra></extra>`,
    })),
  ], {
    xaxis: { title: { text: "score s_j" } }, bargap: 0,
    yaxis: { title: { text: "positions that are not hidden" }, type: "log", exponentformat: "power", dtick: 1, range: [-0.3, Math.log10(top) + 0.55 * (moment.hidden.length + 0.9)] },
  });
}

export function openOneStep(values) {
  active = true;
  if (!panels.before) build();
  if (values) fillForm(form, values);
  if (!data || values) compute(); else { draw(); writeAddress("onestep", formValues(form)); }
}

export function closeOneStep() { active = false; }
export function redrawOneStep() { if (active) draw(); }

function build() {
  const code = async () => data?.snippet ?? "";
  panels.before = new Panel($("onestep-panels"), "before", "Scores before", code);
  panels.after = new Panel($("onestep-panels"), "after", "Scores after", code);
  panels.weights = new Panel($("onestep-panels"), "weights", "Weights before and after", code);
  panels.before.say("How the scores of all positions are spread, over all heads; ▼ the hidden ones, a colour per head.");
  panels.after.say("Attention is the softmax of these: a score that leads by more than log n takes nearly all of it.");
  panels.weights.say("The forty largest weights after the step, and the hidden bits (orange); grey: before.");
  form.addEventListener("submit", (event) => { event.preventDefault(); compute(); });
}
