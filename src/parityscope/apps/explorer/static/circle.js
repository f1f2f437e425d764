// The circle of H1: positions as dots, heads as arrows.
import { colour, headColour } from "./panels.js";

export const SQUARE = {
  xaxis: { visible: false, range: [-1.32, 1.32], fixedrange: true },
  yaxis: { visible: false, range: [-1.32, 1.32], scaleanchor: "x", fixedrange: true },
  margin: { l: 4, r: 4, t: 4, b: 4 },
};

const row = (points, index) => points.map((point) => point[index]);

/** Dots of all positions, hidden ones ringed and named; a dot grows with its weight c_j. */
export function dots(points, support, weights) {
  const hidden = new Set(support);
  const found = (j) => weights[j] > 0.5;
  const size = weights.map((weight, j) => (hidden.has(j) ? 11 : 5) + 11 * Math.min(1, weight));
  const fill = weights.map((_, j) => (found(j) ? colour(hidden.has(j) ? "good" : "bad") : colour("line")));
  const angle = Array.from({ length: 121 }, (_, i) => (2 * Math.PI * i) / 120);
  return [
    { x: angle.map(Math.cos), y: angle.map(Math.sin), mode: "lines", line: { color: colour("line"), width: 1 }, hoverinfo: "skip" },
    {
      x: row(points, 0), y: row(points, 1), mode: "markers",
      marker: { size, color: fill, opacity: 1,
        line: { width: weights.map((_, j) => (hidden.has(j) ? 3 : 0)), color: colour("hidden") } },
      text: weights.map((weight, j) => `position ${j}, weight ${weight.toFixed(3)}`), hoverinfo: "text",
    },
    {
      x: support.map((j) => 1.2 * points[j][0]), y: support.map((j) => 1.2 * points[j][1]), mode: "text",
      text: support.map((j) => `<b>${j}</b>`), textfont: { color: colour("hidden"), size: 15 }, hoverinfo: "skip",
    },
  ];
}

export function arrow(from, to, color, name, width = 3) {
  return {
    x: [from[0], to[0]], y: [from[1], to[1]], mode: "lines+markers", line: { color, width },
    marker: { symbol: ["circle", "arrow"], size: [1, 6 + 3 * width], angleref: "previous", color, opacity: 1 }, name,
    text: name, hoverinfo: "text",
  };
}

/** 1 − H(γ)/log n: 0 for uniform attention, 1 for a single position. */
export function concentration(attention) {
  const entropy = attention.reduce((sum, p) => (p > 0 ? sum - p * Math.log(p) : sum), 0);
  return attention.length > 1 ? Math.max(0, 1 - entropy / Math.log(attention.length)) : 1;
}

export function headArrows(directions, attention, ink = null) {
  return directions.map(([x, y], h) => {
    const length = Math.hypot(x, y) || 1;
    const reach = 0.12 + 0.8 * concentration(attention[h]);
    return arrow([0, 0], [(reach * x) / length, (reach * y) / length], ink ?? headColour(h), `head ${h}`, 4);
  });
}
