// A panel: a titled plot that can be saved as PNG or SVG and shows the Python that makes its numbers.

import { complain } from "./server.js";

let loading = null;

/** Load plotly.js, once and after the page is there: it is by far the largest file. */
function plotly() {
  loading ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = "/plotly.js";
    script.onload = () => resolve(window.Plotly);
    script.onerror = () => reject(new Error("the pictures need plotly.js, which did not load: is parityscope explore still running?"));
    document.head.append(script);
  });
  return loading;
}

export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
export const headColour = (index) => colour(`c${index % 6}`);

/** A text of somebody's table as plotly shows it: it would take tags for marks and %{…} for values. */
export const plain = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/%\{/g, "% {");

export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (/^(aria|data)-/.test(name)) made.setAttribute(name, String(value)); // there "false" is a value, not absence
    else if (value !== null && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}

export function table(header, rows) {
  return element("div", { class: "scroll", tabindex: 0 }, element("table", {},
    element("thead", {}, element("tr", {}, ...header.map((name) => element("th", {}, name)))),
    element("tbody", {}, ...rows.map((line) => element("tr", {}, ...line.map((cell) => element("td", {}, cell)))))));
}

export class Panel {
  constructor(parent, id, title, snippet) {
    this.id = id;
    this.snippet = snippet;
    this.title = element("h3", {}, title);
    this.plot = element("div", { class: "plot", id: `plot-${id}`, role: "img", "aria-label": title });
    this.caption = element("p");
    const tool = (text, label, press) =>
      element("button", { type: "button", class: "tool", "aria-label": `${label}: ${title}`, onclick: press }, text);
    const head = element("div", {}, this.title,
      tool("PNG", "Save as PNG", () => this.save("png")),
      tool("SVG", "Save as SVG", () => this.save("svg")),
      tool("Python", "Show the Python code", () => this.code()));
    this.box = element("section", { class: "panel" }, head, this.plot, this.caption);
    parent.append(this.box);
    this.last = null;
  }

  /** Draw traces; the same panel is redrawn in place. */
  async draw(traces, layout = {}) {
    this.last = [traces, layout];
    let Plotly;
    try { Plotly = await plotly(); } catch (error) { complain(error.message); return; }
    if (this.last[0] !== traces || !this.box.isConnected) return;
    const axis = { gridcolor: colour("line"), zerolinecolor: colour("line"), linecolor: colour("line"), automargin: true };
    const full = {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { color: colour("ink"), size: 12 },
      margin: { l: 48, r: 16, t: 12, b: 40 }, showlegend: false, hovermode: "closest", ...layout,
    };
    for (const name of ["xaxis", "yaxis", "xaxis2", "yaxis2"]) {
      if (name.length === 5 || layout[name]) full[name] = { ...axis, ...(layout[name] || {}) };
    }
    await Plotly.react(this.plot, traces, full, { displayModeBar: false, responsive: true });
  }

  say(text) { this.caption.textContent = text; }

  async save(format) {
    if (!this.last) return;
    const Plotly = await plotly();
    const shown = this.plot.layout.paper_bgcolor;
    await Plotly.relayout(this.plot, { paper_bgcolor: colour("paper") });
    const url = await Plotly.toImage(this.plot, { format, width: 900, height: 600, scale: 2 });
    await Plotly.relayout(this.plot, { paper_bgcolor: shown });
    element("a", { href: url, download: `parityscope-${this.id}.${format}` }).click();
  }

  async code() {
    try { document.getElementById("code-text").textContent = await this.snippet(); } catch (error) { complain(error.message); return; }
    document.getElementById("code").showModal();
  }
}
