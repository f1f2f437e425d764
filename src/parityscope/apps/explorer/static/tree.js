// A tree (K): where every node looks, step by step of a training, and how each level learns.
import { fillForm, formValues, writeAddress } from "./address.js";
import { Panel, colour, element, headColour } from "./panels.js";
import { ask, latest } from "./server.js";

const $ = (id) => document.getElementById(id);
const form = $("tree-form"), slider = $("tree-step");
const panels = {};
const only = latest();
let data = null, active = false;

function compute() {
  $("tree-status").textContent = "Training …";
  only(() => ask("/api/tree", formValues(form)), (answer) => {
    data = answer;
    slider.max = data.steps.length - 1; // before its value, which may not be larger
    slider.value = slider.max;
    draw();
    if (active) writeAddress("tree", formValues(form));
  }).then(() => { if ($("tree-status").textContent === "Training …") $("tree-status").textContent = ""; });
}

function draw() {
  if (!data) return;
  const at = Number(slider.value), accuracy = data.accuracy[at], last = at === data.steps.length - 1;
  const verdict = accuracy === 1 ? ["good", data.certified && last ? `right on all 2^${data.d} inputs` : "learned"] : ["bad", "not learned"];
  $("tree-status").replaceChildren(
    `Step ${data.steps[at]} of ${data.steps.at(-1)} · ${data.parameters} parameters · the generated chain answers ${(100 * accuracy).toFixed(1)} % of fresh inputs right · ${data.seconds.toFixed(1)} s · `,
    element("span", { class: verdict[0] }, verdict[1]));
  const rows = data.children.map((_, node) => `${data.d + node}`);
  panels.attention.draw([
    { type: "heatmap", z: data.attention[at], y: rows, zmin: 0, zmax: 0.5, colorscale: "Viridis", colorbar: { thickness: 10, outlinewidth: 0 },
      hovertemplate: "node %{y} looks at token %{x}<br>attention %{z:.3f}<extra></extra>" },
    { x: data.children.flat(), y: rows.flatMap((row) => [row, row]), mode: "markers", hoverinfo: "skip",
      marker: { symbol: "square-open", size: 10, color: colour("hidden"), line: { width: 2, color: colour("hidden") } } },
  ], {
    xaxis: { title: { text: "token attended to" }, showgrid: false, zeroline: false },
    yaxis: { title: { text: "node" }, type: "category", autorange: "reversed", showgrid: false },
    shapes: [{ type: "line", x0: data.d - 0.5, x1: data.d - 0.5, yref: "paper", y0: 0, y1: 1, line: { color: "#ffffff88", width: 1.5 } }],
  });
  panels.levels.draw([
    ...data.levels.map((share, level) => ({ x: data.steps, y: share, mode: "lines", line: { color: headColour(level), width: 2 },
      hovertemplate: `level ${level + 1}, step %{x}<br>attention on children %{y:.3f}<extra></extra>` })),
    { x: data.steps, y: data.accuracy, mode: "lines", line: { color: colour("soft"), width: 2, dash: "dash" }, hovertemplate: "step %{x}<br>accuracy %{y:.3f}<extra></extra>" },
  ], { xaxis: { title: { text: "training step" } }, yaxis: { range: [0, 1.05], title: { text: "attention on children, accuracy" } },
       shapes: [{ type: "line", x0: data.steps[at], x1: data.steps[at], yref: "paper", y0: 0, y1: 1, line: { color: colour("line"), width: 1 } }] });
}

export function openTree(values) {
  active = true;
  if (!panels.attention) build();
  if (values) fillForm(form, values);
  if (!data || values) compute(); else { draw(); writeAddress("tree", formValues(form)); }
}

export function closeTree() { active = false; }
export function redrawTree() { if (active) draw(); }

function build() {
  const code = async () => data?.snippet ?? "";
  panels.attention = new Panel($("tree-panels"), "tree", "Where each node looks", code);
  panels.levels = new Panel($("tree-panels"), "levels", "How each level learns", code);
  panels.attention.say("Rows are the tree’s nodes, the parity last; squares mark the two children each one should find. Right of the line: nodes below.");
  panels.levels.say("Mean attention that the nodes of a level give to their two children, and the accuracy of the generated answer on fresh inputs (dashed).");
  form.addEventListener("submit", (event) => { event.preventDefault(); compute(); });
  form.addEventListener("change", compute);
  slider.addEventListener("input", draw);
}
