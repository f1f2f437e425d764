// Chain of thought: a trained decoder's attention on a sequence that can be edited.
import { fillForm, formValues, writeAddress } from "./address.js";
import { Panel, colour, element } from "./panels.js";
import { ask, latest } from "./server.js";

const $ = (id) => document.getElementById(id);
const form = $("chain-form");
const panels = {};
const only = latest();
let data = null, bits = null, active = false;

function compute(focus) {
  const { chain, ...rest } = formValues(form);
  const body = { ...rest, chain: chain === "true" };
  if (bits) body.bits = bits;
  $("chain-status").textContent = "Training the decoder the first time takes some seconds …";
  only(() => ask("/api/chain", body), (answer) => {
    data = answer;
    bits = answer.bits;
    draw();
    if (focus !== undefined) document.querySelector(`#chain-bits [data-bit="${focus}"]`)?.focus();
    if (active) writeAddress("chain", { ...formValues(form), bits: bits.join("") });
  }).then(() => { if ($("chain-status").textContent.startsWith("Training")) $("chain-status").textContent = ""; });
}

function draw() {
  if (!data) return;
  const secret = new Set(data.secret), answer = data.tokens.at(-1), right = answer === data.truth.at(-1);
  $("chain-bits").replaceChildren(
    ...data.bits.map((bit, j) => element("button", { type: "button", class: "bit", "data-bit": j, "data-on": bit === 1, "data-hidden": secret.has(j),
      "aria-label": `bit ${j} is ${bit}${secret.has(j) ? ", hidden" : ""}`, onclick: () => { bits = data.bits.map((b, i) => (i === j ? 1 - b : b)); compute(j); } }, String(bit))),
    element("span", { class: "gap" }, data.chain ? "chain →" : "answer →"),
    ...data.tokens.slice(data.prompt).map((token, i) => element("span", { class: "bit", "data-found": token === data.truth[data.prompt + i],
      "data-wrong": token !== data.truth[data.prompt + i], title: `confidence ${data.confidence[i]}` }, `${token}${token === data.truth[data.prompt + i] ? "✓" : "✗"}`)));
  $("chain-status").replaceChildren(
    `Trained on ${data.examples.toLocaleString("en")} examples in ${data.seconds.toFixed(1)} s: answers ${(100 * data.free_running).toFixed(1)} % of held-out inputs right. Here: `,
    element("span", { class: right ? "good" : "bad" }, right ? `parity ${answer}, right` : `parity ${answer}, wrong`));
  const rows = data.attention.map((_, i) => `${data.prompt + i}`);
  const marks = data.attended.slice(0, rows.length);
  panels.attention.draw([
    { type: "heatmap", z: data.attention, y: rows, zmin: 0, zmax: 1, colorscale: "Viridis", colorbar: { thickness: 10, outlinewidth: 0 },
      hovertemplate: "token %{y} looks at position %{x}<br>attention %{z:.3f}<extra></extra>" },
    { x: data.chain ? marks : data.secret, y: data.chain ? rows.slice(0, marks.length) : data.secret.map(() => rows[0]), mode: "markers", hoverinfo: "skip",
      marker: { symbol: "square-open", size: 18, color: colour("hidden"), line: { width: 3, color: colour("hidden") } } },
  ], {
    xaxis: { title: { text: "position attended to" }, showgrid: false, zeroline: false, dtick: data.n > 14 ? 2 : 1, range: [-0.5, data.attention[0].length - 0.5] },
    yaxis: { title: { text: "token that is written" }, type: "category", autorange: "reversed", showgrid: false },
    shapes: [{ type: "line", x0: data.n - 0.5, x1: data.n - 0.5, yref: "paper", y0: 0, y1: 1, line: { color: "#ffffff88", width: 1.5 } }],
  });
  panels.training.draw([
    { x: data.history.step, y: data.history.accuracy, mode: "lines", line: { color: colour("c0"), width: 2 }, hovertemplate: "step %{x}<br>accuracy %{y:.3f}<extra></extra>" },
    { x: data.history.step, y: data.entropy, mode: "lines", line: { color: colour("c1"), width: 2, dash: "dash" }, hovertemplate: "step %{x}<br>entropy %{y:.3f}<extra></extra>" },
  ], { xaxis: { title: { text: "training step" } }, yaxis: { rangemode: "tozero", title: { text: "accuracy, entropy" } } });
}

export function openChain(values) {
  active = true;
  if (!panels.attention) build();
  if (values) {
    fillForm(form, values);
    bits = values.has("bits") ? [...values.get("bits")].map(Number) : null;
  }
  if (!data || values) compute(); else { draw(); writeAddress("chain", { ...formValues(form), bits: bits.join("") }); }
}

export function closeChain() { active = false; }
export function redrawChain() { if (active) draw(); }

function build() {
  const code = async () => data?.snippet ?? "";
  panels.attention = new Panel($("chain-panels"), "chain", "Where each written token looked", code);
  panels.training = new Panel($("chain-panels"), "decoder", "How the decoder learned", code);
  panels.attention.say("Rows are tokens the decoder wrote; squares mark the hidden bit each one needs. Right of the line: the 0 and the chain itself.");
  panels.training.say("Accuracy of held-out tokens (solid) and mean entropy of attention (dashed).");
  form.addEventListener("submit", (event) => { event.preventDefault(); bits = null; compute(); });
  form.elements.chain.addEventListener("change", () => compute());
}
