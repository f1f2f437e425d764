// Tabs, theme, links. Each view is a module that opens from an address and closes again.
import { readAddress } from "./address.js";
import { closeChain, openChain, redrawChain } from "./chain.js";
import { closeData, openData, redrawData } from "./data.js";
import { closeLearn, openLearn, redrawLearn, rememberLearn } from "./learn.js";
import { closeOneStep, openOneStep, redrawOneStep } from "./onestep.js";
import { closePolytope, openPolytope, redrawPolytope } from "./polytope.js";
import { closeResults, openResults, redrawResults } from "./results.js";
import { ask, complain } from "./server.js";
import { closeTree, openTree, redrawTree } from "./tree.js";
import { closeWhy, openWhy, redrawWhy } from "./why.js";

const views = {
  learn: { open: openLearn, close: closeLearn, redraw: redrawLearn, remember: rememberLearn },
  polytope: { open: openPolytope, close: closePolytope, redraw: redrawPolytope },
  why: { open: openWhy, close: closeWhy, redraw: redrawWhy },
  onestep: { open: openOneStep, close: closeOneStep, redraw: redrawOneStep },
  chain: { open: openChain, close: closeChain, redraw: redrawChain },
  tree: { open: openTree, close: closeTree, redraw: redrawTree },
  data: { open: openData, close: closeData, redraw: redrawData },
  results: { open: openResults, close: closeResults, redraw: redrawResults },
};
const names = Object.keys(views);
const tab = (name) => document.getElementById(`tab-${name}`);
let current = null, about = null;

function show(name, values = null) {
  if (current) views[current].close();
  current = name;
  complain("");
  for (const one of names) {
    tab(one).setAttribute("aria-selected", one === name);
    tab(one).tabIndex = one === name ? 0 : -1;
    document.getElementById(`view-${one}`).hidden = one !== name;
  }
  tab(name).scrollIntoView({ inline: "nearest", block: "nearest" }); // on a phone the tabs are wider than the screen
  if (values === null) history.replaceState(null, "", `#${name}`);
  views[name].open(values, about, replay);
  views[name].remember?.();
}

function replay(settings) {
  const values = new URLSearchParams();
  values.set("positions", "");
  for (const [name, value] of Object.entries(settings)) values.set(name, Array.isArray(value) ? value.join(",") : String(value));
  show("learn", values);
  window.scrollTo({ top: 0 });
}

function tabs() {
  for (const name of names) {
    tab(name).addEventListener("click", () => show(name));
    tab(name).addEventListener("keydown", (event) => {
      const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!move) return;
      const next = names[(names.indexOf(name) + move + names.length) % names.length];
      tab(next).focus();
      show(next);
    });
  }
}

function theme() {
  const root = document.documentElement, system = matchMedia("(prefers-color-scheme: dark)");
  let stored = null;
  try { stored = localStorage.getItem("theme"); } catch { /* private windows have none */ }
  const set = (name) => { root.dataset.theme = name; if (current) views[current].redraw(); };
  set(stored ?? (system.matches ? "dark" : "light"));
  system.addEventListener("change", () => { if (!stored) set(system.matches ? "dark" : "light"); });
  document.getElementById("theme").addEventListener("click", () => {
    stored = root.dataset.theme === "dark" ? "light" : "dark";
    try { localStorage.setItem("theme", stored); } catch { /* then only for now */ }
    set(stored);
  });
}

async function copy(text, button) {
  const label = button.textContent;
  try { await navigator.clipboard.writeText(text); button.textContent = "Copied"; } catch { button.textContent = "Copy it from the address bar"; }
  setTimeout(() => { button.textContent = label; }, 1500);
}

theme();
tabs();
/** What whoever gets the link needs: it holds settings, and nothing of the training is stored anywhere. */
function needed() {
  if (!["127.0.0.1", "localhost", "[::1]"].includes(location.hostname)) {
    return `It opens for whoever reaches ${location.hostname}, while this explorer runs.`;
  }
  const port = location.port === "8321" ? "" : ` --port ${location.port}`;
  const store = current === "results" && about?.own_store ? " --store FOLDER, with the same rows," : "";
  return `Whoever opens it first runs parityscope explore${port}${store} on their own machine (version ${about?.version ?? "of this page"}); the link holds the settings and is computed again there.`;
}

document.getElementById("share").addEventListener("click", async (event) => {
  await copy(location.href, event.currentTarget);
  const note = document.getElementById("share-note");
  note.textContent = needed();
  note.hidden = false;
});
document.getElementById("code-copy").addEventListener("click", (event) => copy(document.getElementById("code-text").textContent, event.currentTarget));
window.addEventListener("hashchange", () => { const { view, values } = readAddress(); if (views[view]) show(view, values); });
ask("/api/about").then((answer) => {
  about = answer;
  document.getElementById("version").textContent = `parityscope ${about.version}`;
  const { view, values } = readAddress();
  show(views[view] ? view : "learn", values);
}).catch((error) => complain(error.message));
