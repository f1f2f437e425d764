// Your data: a table of your own, its interactions, and what the same search finds in shuffled classes.
import { fillForm, formValues, writeAddress } from "./address.js";
import { Panel, colour, element, plain, table } from "./panels.js";
import { ask, complain, file, latest, send } from "./server.js";

const LARGEST = 50_000_000, SHUFFLES = 50, SHUFFLE_SECONDS = 12;
const $ = (id) => document.getElementById(id);
const form = $("data-form"), drop = $("data-drop");
const only = latest();
let sent = null, data = null, null_ = null, panels = [], active = false, run = 0;

const status = (...parts) => $("data-status").replaceChildren(...parts);
const asked = () => ({ table: sent.table, ...formValues(form) });
const percent = (share) => (share === null ? "no rows" : `${Math.round(100 * share)} %`);

async function take(file) {
  if (!file) return;
  if (file.size > LARGEST) { complain(`${file.name} has ${(file.size / 1e6).toFixed(0)} MB: at most 50 MB can be read`); return; }
  status(`Reading ${file.name} …`);
  await only(() => send(`/api/table?name=${encodeURIComponent(file.name)}`, file), (answer) => { form.elements.positive.value = ""; keep(answer); });
  if (!sent || sent.name !== file.name) status("");
}

async function example() {
  let taken;
  try { taken = await file("/example.csv", "machines.csv"); } catch (error) { complain(error.message); return; }
  await take(taken);
  if (sent?.name === "machines.csv") await search();
}

function keep(answer, values = null) {
  sent = answer;
  clear();
  $("data-name").textContent = `${sent.name}: ${sent.rows.toLocaleString("en")} rows, ${sent.features.toLocaleString("en")} columns (press to choose another)`;
  $("data-columns").replaceChildren(...sent.columns.map((name) => element("option", { value: name })));
  form.elements.target.value = sent.target;
  form.hidden = false;
  if (values) fillForm(form, values);
  const missing = Object.entries(sent.missing);
  notes([...sent.notes, ...(missing.length ? [`missing values in ${missing.slice(0, 12).map(([name, count]) => `${name} (${count})`).join(", ")}` +
    (missing.length > 12 ? ` and ${missing.length - 12} other columns` : "") + ": choose what to do with them"] : [])]);
  status("Which column has the classes?");
  if (active) writeAddress("data", asked());
}

function notes(sentences) {
  $("data-notes").replaceChildren(...sentences.map((sentence) => element("p", { class: "note" }, sentence)));
}

function clear() {
  run += 1; data = null; null_ = null; panels = [];
  $("data-summary").replaceChildren();
  $("data-panels").replaceChildren();
}

async function search() {
  if (!sent) return;
  clear();
  const mine = run, settings = asked(), button = form.querySelector("button");
  button.disabled = true;
  status("Searching …");
  const poll = setInterval(() => ask(`/api/table/${sent.table}/progress`).then(({ share, doing }) => {
    if (mine === run && !data && doing) status(`Searching ${doing}: ${Math.round(100 * share)} % of the time used`);
  }).catch(() => {}), 400);
  await only(() => ask("/api/fit", settings), (answer) => { data = answer; });
  clearInterval(poll);
  button.disabled = false;
  if (mine !== run) return;
  if (!data) { status(""); return; }
  show();
  draw();
  if (active) writeAddress("data", settings);
  if (data.k) await shuffle(mine, settings);
}

async function shuffle(mine, settings) {
  const began = performance.now();
  while (mine === run && (null_?.shuffled.length ?? 0) < SHUFFLES && performance.now() - began < 1000 * SHUFFLE_SECONDS) {
    let more;
    try { more = await ask("/api/shuffled", { ...settings, k: data.k, first: null_?.shuffled.length ?? 0 }); } catch (error) { complain(error.message); return; }
    if (mine !== run) return;
    null_ = { ...more, shuffled: [...(null_?.shuffled ?? []), ...more.shuffled] };
    drawNull();
    if (!more.shuffled.length) return;
  }
}

function show() {
  notes(data.notes);
  const found = data.interactions.length;
  status(`${data.rows.toLocaleString("en")} rows × ${data.features.toLocaleString("en")} columns · ${data.accuracy === null ? "too few rows to hold any out" : `held-out accuracy ${data.accuracy.toFixed(3)}`} · ${data.seconds.toFixed(1)} s · `,
    element("span", { class: found ? "good" : "bad" }, found ? `${found} interaction${found === 1 ? "" : "s"}` : "nothing found"));
  const rows = data.interactions.map((one, i) => [String(i + 1), one.columns.join(", "), one.kind, one.bits.join(" ⊕ "), one.p, `${one.adds.toFixed(3)} bits`, one.accuracy.toFixed(3)]);
  $("data-summary").replaceChildren(...(found ? [table(["", "columns", "kind", "parity of", "after the search", "adds per row", "accuracy with it"], rows)] : []),
    element("p", { class: "fact" }, data.explanation), element("p", { class: "fact" }, `Guarantee: ${data.guarantee}.`),
    ...(data.skipped ? [element("p", { class: "note" }, data.skipped)] : []),
    element("p", { class: "fact soft" }, "The same in a terminal: ", element("code", {}, data.command)));
  const parent = $("data-panels"), code = async () => data?.snippet ?? "";
  panels = data.interactions.slice(0, data.shown).map((one, i) => new Panel(parent, `interaction-${i + 1}`, `${i + 1}. ${one.columns.join(" × ")}`, code));
  if (found) {
    const panel = new Panel(parent, "shuffled", "Against shuffled classes", async () => null_?.snippet ?? "");
    panel.say("Searching the same table with its classes dealt out at random …");
    panels.push(panel);
  }
}

function draw() {
  if (!data) return;
  data.interactions.slice(0, data.shown).forEach((one, i) => {
    const lines = one.truth_table, names = Object.keys(lines[0].values);
    (names.length === 2 && one.columns.length === 2 ? drawMap : drawBars)(panels[i], lines, names);
    const block = Object.entries(one.block).map(([name, others]) => ` These rows cannot tell ${name} from ${others.join(", ")}.`).join("");
    panels[i].say(`Share of ${data.target} = ${data.classes[1]} for every combination, ${percent(baseRate(lines))} among all rows. ${one.p} after the search; adds ${one.adds.toFixed(3)} bits per held-out row.${block}`);
  });
  drawNull();
}

function drawMap(panel, lines, [first, second]) {
  const distinct = (name) => [...new Set(lines.map((line) => line.values[name]))];
  const ys = distinct(first), xs = distinct(second);
  const at = (y, x) => lines.find((line) => line.values[first] === y && line.values[second] === x);
  const cells = ys.map((y) => xs.map((x) => at(y, x))), shares = lines.map((line) => line.share).filter((share) => share !== null);
  const low = Math.min(...shares), high = Math.max(...shares);
  panel.draw([{ type: "heatmap", x: xs.map(plain), y: ys.map(plain), z: cells.map((row) => row.map((cell) => cell.share)), zmin: low, zmax: high, colorscale: "Viridis", xgap: 3, ygap: 3,
    text: cells.map((row) => row.map((cell) => `${percent(cell.share)}<br>${cell.rows} rows`)),
    colorbar: { thickness: 10, outlinewidth: 0, tickformat: ".0%" }, hovertemplate: `${plain(second)} %{x}<br>${plain(first)} %{y}<br>%{text}<extra></extra>` }],
  { xaxis: { type: "category", title: { text: plain(second) }, showgrid: false }, yaxis: { type: "category", title: { text: plain(first) }, autorange: "reversed", showgrid: false },
    annotations: cells.flatMap((row, y) => row.map((cell, x) => ({ x, y, showarrow: false, text: `${percent(cell.share)}<br>${cell.rows} rows`,
      font: { color: cell.share === null ? colour("ink") : cell.share > low + 0.6 * (high - low) ? "#000" : "#fff" } }))) });
}

/** Return the share among all rows, which a combination that tells nothing would have. */
const baseRate = (lines) => lines.reduce((sum, line) => sum + (line.share ?? 0) * line.rows, 0) / Math.max(1, lines.reduce((sum, line) => sum + line.rows, 0));

function drawBars(panel, all, names) {
  const lines = all.filter((line) => line.rows); // two limits of one column exclude each other in some combinations
  const labels = lines.map((line) => plain(Object.values(line.values).join(" · "))), base = baseRate(lines);
  const top = Math.min(1, 1.15 * Math.max(base, ...lines.map((line) => line.share ?? 0)));
  panel.draw([{ type: "bar", x: labels, y: lines.map((line) => line.share), customdata: lines.map((line) => line.rows),
    marker: { color: lines.map((line) => colour((line.share ?? 0) > base ? "c0" : "c1")) }, hovertemplate: "%{x}<br>%{y:.0%} of %{customdata} rows<extra></extra>" }],
  { xaxis: { type: "category", title: { text: plain(names.join(" · ")) }, ...(labels.length > 8 ? { tickangle: -60 } : {}), showticklabels: labels.length <= 64 }, yaxis: { range: [0, top || 1], tickformat: ".0%" },
    shapes: [{ type: "line", xref: "paper", x0: 0, x1: 1, y0: base, y1: base, line: { color: colour("ink"), width: 1.5, dash: "dash" } }],
    annotations: [{ xref: "paper", x: 1, y: base, xanchor: "right", yanchor: "bottom", showarrow: false, text: `all rows: ${percent(base)}`, bgcolor: colour("paper"), opacity: 0.9 }] });
}

function drawNull() {
  const panel = panels.at(-1);
  if (!null_ || !data?.k || !panel) return;
  const { shuffled, observed, k } = null_, most = Math.max(...shuffled, 0), top = Math.max(observed, most) * 1.12 || 1;
  panel.draw([
    { type: "histogram", x: shuffled, xbins: { start: 0, end: top, size: top / 60 }, marker: { color: colour("c0") }, hovertemplate: "correlation %{x}: %{y} shuffles<extra></extra>" },
  ], {
    xaxis: { title: { text: `largest correlation of a parity of ${k} column${k === 1 ? "" : "s"}` }, range: [0, top] },
    yaxis: { title: { text: "shuffles" }, rangemode: "tozero" }, bargap: 0.05,
    shapes: [{ type: "line", x0: observed, x1: observed, yref: "paper", y0: 0, y1: 1, line: { color: colour("hidden"), width: 3 } }],
    annotations: [{ x: observed, yref: "paper", y: 1, yanchor: "top", xanchor: "right", xshift: -6, showarrow: false, text: "your classes", font: { color: colour("hidden") } }],
  });
  panel.say(`The same search for ${k} column${k === 1 ? "" : "s"} in ${shuffled.length} tables with shuffled classes met ${most.toFixed(2)} at most; in yours ${observed.toFixed(2)}` +
    " (on the rows that are searched, 70 %).");
}

export function openData(values) {
  active = true;
  const key = values?.get("table");
  if (key && key !== sent?.table) {
    only(() => ask(`/api/table/${encodeURIComponent(key)}`), (answer) => { keep(answer, values); search(); });
  } else if (sent) {
    draw();
    writeAddress("data", asked());
  }
}

export function closeData() { active = false; }
export function redrawData() { if (active) draw(); }

$("data-example").addEventListener("click", example);
form.addEventListener("submit", (event) => { event.preventDefault(); search(); });
$("data-file").addEventListener("change", (event) => { take(event.target.files[0]); event.target.value = ""; });
for (const name of ["dragenter", "dragover", "dragleave", "drop"]) {
  drop.addEventListener(name, (event) => { event.preventDefault(); drop.dataset.over = name === "dragenter" || name === "dragover"; });
}
drop.addEventListener("drop", (event) => take(event.dataTransfer.files[0]));
