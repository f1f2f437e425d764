// What the page shows of the two learners: a circle of positions that can be clicked, curves, and one sentence.
"use strict";

const MIDDLE = 180, RADIUS = 130, MOST_HIDDEN = 4;
const CONCAVE_STEPS = 60, CIRCLE_STEPS = 3000, STEPS_A_FRAME = 20;

function element(name, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

// A code [sin θ, cos θ] is drawn with its angle counted from above, clockwise.
const at = ([sine, cosine], length = 1) => [MIDDLE + RADIUS * length * sine, MIDDLE - RADIUS * length * cosine];

const digits = (value) => (value > 0 && value < 0.001 ? value.toExponential(0) : value.toFixed(3));

// A training on a circle of n positions: controls, what is hidden, and the loop over animation frames.
class Panel {
  constructor(id, hidden) {
    this.root = document.getElementById(id);
    this.hidden = new Set(hidden);
    this.says = this.root.querySelector(".says");
    for (const input of this.root.querySelectorAll("input")) {
      input.addEventListener("input", () => this.reset());
    }
    this.root.querySelector("[data-do=train]").addEventListener("click", () => this.train());
  }

  setting(name) {
    return Number(this.root.querySelector(`[data-name=${name}]`).value);
  }

  view(name) {
    return this.root.querySelector(`[data-view=${name}]`);
  }

  support() {
    return [...this.hidden].sort((a, b) => a - b);
  }

  toggle(position) {
    if (this.hidden.has(position)) {
      if (this.hidden.size > 1) this.hidden.delete(position);
    } else if (this.hidden.size < MOST_HIDDEN) this.hidden.add(position);
    this.reset();
    this.view("circle").querySelectorAll(".place")[position].focus();
  }

  // Stop what runs, begin anew with the present settings and draw that.
  reset() {
    cancelAnimationFrame(this.frame);
    for (const input of this.root.querySelectorAll("input")) input.nextElementSibling.textContent = input.value;
    const n = this.setting("n");
    for (const position of this.hidden) if (position >= n) this.hidden.delete(position);
    if (!this.hidden.size) this.hidden.add(0);
    this.begin(n);
    this.draw();
  }

  train() {
    this.reset();
    const go = () => {
      const more = this.advance();
      this.draw();
      if (more) this.frame = requestAnimationFrame(go);
    };
    this.frame = requestAnimationFrame(go);
  }

  drawPositions(svg, code, sizes, below) {
    const places = code.map((row, j) => {
      const [x, y] = at(row), [labelX, labelY] = at(row, 1.17), hidden = this.hidden.has(j);
      const place = element(
        "g",
        { class: "place", tabindex: 0, role: "button", "aria-pressed": hidden, "aria-label": `position ${j}` },
        element("circle", { cx: x, cy: y, r: 16, fill: "transparent" }),
        element("circle", { cx: x, cy: y, r: sizes[j], fill: hidden ? "var(--hidden)" : "var(--soft)" }),
        element("text", { x: labelX, y: labelY + 4, "text-anchor": "middle" }, String(j)),
      );
      place.addEventListener("click", () => this.toggle(j));
      place.addEventListener("keydown", (event) => {
        if (event.key === "Enter" || event.key === " ") {
          event.preventDefault();
          this.toggle(j);
        }
      });
      return place;
    });
    svg.replaceChildren(...below, ...places);
  }
}

class ConcavePanel extends Panel {
  begin(n) {
    this.learner = new parity.ConcaveHead(n, this.support(), this.setting("harmonics"));
    this.values = [Math.exp(this.learner.value)];
  }

  // Slow enough to watch: one step in several frames.
  advance() {
    this.wait = ((this.wait ?? 0) + 1) % 8;
    if (this.wait) return true;
    const moved = this.learner.step();
    if (moved) this.values.push(Math.exp(this.learner.value));
    return moved && this.learner.steps < CONCAVE_STEPS && this.learner.value < Math.log(0.999);
  }

  draw() {
    const { learner } = this, code = parity.harmonics(learner.hidden.length, 1), weights = learner.weights();
    const polygon = element("polygon", { points: code.map((row) => at(row).join(",")).join(" "), fill: "none", stroke: "var(--line)" });
    const chosen = element("polygon", { points: this.support().map((j) => at(code[j]).join(",")).join(" "), fill: "none", stroke: "var(--hidden)", "stroke-dasharray": "5 4" });
    this.drawPositions(this.view("circle"), code, weights.map((weight) => 3 + 11 * Math.sqrt(Math.min(weight, 1.4))), [polygon, chosen]);
    this.drawWeights(weights);
    this.says.textContent = this.sentence();
  }

  drawWeights(weights) {
    const n = weights.length, wide = 380 / n, height = (weight) => 150 * Math.min(weight, 1.3) / 1.3;
    const bars = weights.map((weight, j) => element("rect", {
      x: 30 + j * wide + 1, y: 170 - height(weight), width: wide - 2, height: Math.max(height(weight), 0.5),
      fill: this.hidden.has(j) ? "var(--hidden)" : "var(--soft)",
    }));
    const one = 170 - height(1);
    const points = this.values.map((value, s) => `${30 + (s * 380) / Math.max(this.values.length - 1, 12)},${300 - 95 * value}`);
    this.view("weights").replaceChildren(
      element("line", { x1: 30, x2: 410, y1: one, y2: one, stroke: "var(--line)" }),
      element("text", { x: 30, y: 12 }, "attention weight c of every position (line: 1)"), ...bars,
      element("line", { x1: 30, x2: 410, y1: 205, y2: 205, stroke: "var(--line)" }),
      element("line", { x1: 30, x2: 410, y1: 300, y2: 300, stroke: "var(--line)" }),
      element("text", { x: 30, y: 199 }, "correlation C with the label after every step (line: 1)"),
      element("polyline", { points: points.join(" "), fill: "none", stroke: "var(--good)", "stroke-width": 2.5 }),
      ...points.map((point) => element("circle", { cx: point.split(",")[0], cy: point.split(",")[1], r: 3, fill: "var(--good)" })),
    );
  }

  sentence() {
    const { learner } = this, value = Math.exp(learner.value), set = `{${this.support().join(", ")}}`;
    if (learner.value >= Math.log(0.999)) return `${set} is a face: learned after ${learner.steps} steps, C = ${digits(value)}.`;
    if (learner.stopped && learner.relation() < 1e-5) {
      return `${set} is no face: no q and β have C above ${digits(value)}. The slopes at this maximum prove it: weighted by them, the codes cancel.`;
    }
    if (learner.stopped) return `Double precision ends here, at C = ${digits(value)} after ${learner.steps} steps.`;
    return learner.steps ? `Step ${learner.steps}: C = ${digits(value)}.` : `Uniform attention: C = ${digits(value)}. Press Train.`;
  }
}

class CirclePanel extends Panel {
  constructor(id, hidden) {
    super(id, hidden);
    this.root.querySelector("[data-do=next]").addEventListener("click", () => {
      const seed = this.root.querySelector("[data-name=seed]");
      seed.value = (Number(seed.value) + 1) % (Number(seed.max) + 1);
      this.train();
    });
  }

  begin(n) {
    const support = this.support();
    const angles = parity.drawnAngles(support.length, this.setting("seed"));
    this.learner = new parity.CircleHeads(n, support, angles, { temperature: this.setting("temperature") / n, rate: 0.01 });
    this.risks = [this.learner.risk];
  }

  advance() {
    for (let s = 0; s < STEPS_A_FRAME; s++) {
      this.learner.step();
      this.risks.push(this.learner.risk);
    }
    return this.learner.steps < CIRCLE_STEPS && this.learner.risk > 0.01;
  }

  draw() {
    const { learner } = this, attention = learner.attention();
    const weights = learner.code.map((_, j) => attention.reduce((sum, head) => sum + head[j], 0));
    const ring = element("circle", { cx: MIDDLE, cy: MIDDLE, r: RADIUS, fill: "none", stroke: "var(--line)" });
    const arrows = learner.heads.map((head) => {
      const length = Math.hypot(...head), [x, y] = at(head.map((value) => value / length), 0.86);
      return element("line", { x1: MIDDLE, y1: MIDDLE, x2: x, y2: y, stroke: "var(--head)", "stroke-width": 4, "stroke-linecap": "round" });
    });
    this.drawPositions(this.view("circle"), learner.code, weights.map((weight) => 3 + 11 * Math.sqrt(Math.min(weight, 1.4))), [ring, ...arrows]);
    this.drawRisk();
    this.says.textContent = this.sentence();
  }

  drawRisk() {
    const top = Math.max(4, ...this.risks), last = Math.max(this.risks.length - 1, 200);
    const every = Math.ceil(this.risks.length / 400);
    const points = this.risks.map((risk, s) => [s, risk]).filter(([s]) => s % every === 0 || s === this.risks.length - 1);
    const lines = [0, 1, 2, 3, 4].map((risk) => 290 - (260 * risk) / top);
    this.view("risk").replaceChildren(
      ...lines.map((y) => element("line", { x1: 40, x2: 410, y1: y, y2: y, stroke: "var(--line)" })),
      ...lines.map((y, risk) => element("text", { x: 28, y: y + 4, "text-anchor": "end" }, String(risk))),
      element("text", { x: 40, y: 14 }, "risk: squared hinge loss over all inputs"),
      element("text", { x: 410, y: 310, "text-anchor": "end" }, `${last} steps`),
      element("polyline", { points: points.map(([s, risk]) => `${40 + (370 * s) / last},${290 - (260 * risk) / top}`).join(" "), fill: "none", stroke: "var(--head)", "stroke-width": 2.5 }),
    );
  }

  sentence() {
    const { learner } = this, right = `${(100 * learner.accuracy).toFixed(0)} % of all inputs correct`;
    if (!learner.steps) return `Start ${this.setting("seed")}: risk ${digits(learner.risk)}, ${right}. Press Train.`;
    const slope = Math.hypot(...learner.gradient.flat());
    if (learner.risk <= 0.01) return `Learned after ${learner.steps} steps: risk ${digits(learner.risk)}, ${right}.`;
    if (learner.steps < CIRCLE_STEPS) return `Step ${learner.steps}: risk ${digits(learner.risk)}, ${right}.`;
    const end = slope < 1e-3 ? `the gradient has length ${digits(slope)}: this start is stuck` : `the gradient still has length ${digits(slope)}`;
    return `After ${learner.steps} steps the risk is ${digits(learner.risk)} (${right}), and ${end}.`;
  }
}

const panels = { concave: new ConcavePanel("concave", [2, 5]), circle: new CirclePanel("circle", [1, 4]) };
for (const panel of Object.values(panels)) panel.reset();
if (!matchMedia("(prefers-reduced-motion: reduce)").matches) Object.values(panels).forEach((panel) => panel.train());
// In a clone the pages beside this one are not built yet.
if (location.protocol === "file:" && location.pathname.includes("/docs/try/")) {
  for (const link of document.querySelectorAll('a[href$=".html"]')) link.href = link.getAttribute("href").replace(/html$/, "md");
}
