// The mathematics of this page, without the page: the same formulas as parityscope's, in double precision.
// A browser test compares every number below with the Python library.
"use strict";

const parity = (() => {
  // H1, Eq. (3), and its higher harmonics: position j has [sin(hθ), cos(hθ)], θ = 2π(j + 1)/n, h = 1 … count.
  function harmonics(n, count) {
    return Array.from({ length: n }, (_, j) => {
      const angle = (2 * Math.PI * (j + 1)) / n;
      return Array.from({ length: count }, (_, h) => [Math.sin((h + 1) * angle), Math.cos((h + 1) * angle)]).flat();
    });
  }

  const dot = (a, b) => a.reduce((sum, value, i) => sum + value * b[i], 0);

  // log C = Σ_B log sin(πc/2) + Σ_others log cos(πc/2) with c = e^u: the correlation of cos(πS) with the parity.
  function logCorrelation(u, hidden) {
    let sum = 0;
    for (let j = 0; j < u.length; j++) {
      const c = Math.exp(u[j]);
      if (c >= (hidden[j] ? 2 : 1)) return -Infinity; // outside the domain
      sum += Math.log(hidden[j] ? Math.sin((Math.PI * c) / 2) : Math.cos((Math.PI * c) / 2));
    }
    return sum;
  }

  // Slopes ∂log C/∂u_j and curvatures −∂²log C/∂u_j², both in closed form; the curvatures are positive: log C is concave.
  function slopesAndCurvatures(u, hidden) {
    const pairs = u.map((value, j) => {
      const v = (Math.PI * Math.exp(value)) / 2;
      if (hidden[j]) return [v / Math.tan(v), v * (v / Math.sin(v) ** 2 - 1 / Math.tan(v))];
      return [-v * Math.tan(v), v * (Math.tan(v) + v / Math.cos(v) ** 2)];
    });
    return { slopes: pairs.map((pair) => pair[0]), curvatures: pairs.map((pair) => pair[1]) };
  }

  // Cholesky's solution of Hx = g, with a small multiple of the diagonal added where H is singular to rounding.
  function solve(matrix, right, damping) {
    const size = right.length;
    const factor = matrix.map((row) => row.slice());
    const x = right.slice();
    for (let i = 0; i < size; i++) {
      factor[i][i] += damping * (matrix[i][i] || 1);
      for (let j = 0; j <= i; j++) {
        let sum = factor[i][j];
        for (let l = 0; l < j; l++) sum -= factor[i][l] * factor[j][l];
        if (i === j) {
          if (!(sum > 0)) return null;
          factor[i][i] = Math.sqrt(sum);
        } else factor[i][j] = sum / factor[j][j];
      }
    }
    for (let i = 0; i < size; i++) {
      for (let l = 0; l < i; l++) x[i] -= factor[i][l] * x[l];
      x[i] /= factor[i][i];
    }
    for (let i = size - 1; i >= 0; i--) {
      for (let l = i + 1; l < size; l++) x[i] -= factor[l][i] * x[l];
      x[i] /= factor[i][i];
    }
    return x;
  }

  // One head with a trained scale, c_j = exp(⟨p_j, q⟩ + β), by damped Newton steps on log C from uniform attention.
  class ConcaveHead {
    constructor(n, support, count) {
      this.hidden = Array.from({ length: n }, (_, j) => support.includes(j));
      this.code = harmonics(n, count).map((row) => [...row, 1]);
      this.parameters = new Array(2 * count + 1).fill(0);
      this.parameters[2 * count] = Math.log(support.length / n);
      this.value = logCorrelation(this.logWeights(), this.hidden);
      this.steps = 0;
      this.stopped = false;
    }

    logWeights(parameters = this.parameters) {
      return this.code.map((row) => dot(row, parameters));
    }

    weights() {
      return this.logWeights().map(Math.exp);
    }

    step() {
      const { slopes, curvatures } = slopesAndCurvatures(this.logWeights(), this.hidden);
      const size = this.parameters.length;
      const gradient = new Array(size).fill(0);
      const hessian = gradient.map(() => new Array(size).fill(0));
      this.code.forEach((row, j) => {
        for (let a = 0; a < size; a++) {
          gradient[a] += slopes[j] * row[a];
          for (let b = 0; b < size; b++) hessian[a][b] += curvatures[j] * row[a] * row[b];
        }
      });
      for (const damping of [0, 1e-14, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4, 1e-2]) {
        const direction = solve(hessian, gradient, damping);
        for (let power = 4; direction && power >= -30; power--) {
          const tried = this.parameters.map((value, a) => value + 2 ** power * direction[a]);
          const value = logCorrelation(this.logWeights(tried), this.hidden);
          // A smaller gain may be rounding.
          if (value > this.value + 1e-13) {
            this.parameters = tried;
            this.value = value;
            this.steps += 1;
            return true;
          }
        }
      }
      this.stopped = true;
      return false;
    }

    // Where training has stopped at a maximum, Σ_j y_j (p_j, 1) = 0 for the slopes y, which are negative off B. Such a
    // relation (Motzkin's theorem) excludes every score that is equal on B and lower elsewhere. Returns how far from 0.
    relation() {
      const { slopes } = slopesAndCurvatures(this.logWeights(), this.hidden);
      const total = slopes.reduce((sum, y) => sum + Math.abs(y), 0);
      const sums = this.parameters.map((_, a) => this.code.reduce((sum, row, j) => sum + slopes[j] * row[a], 0));
      return Math.max(...sums.map(Math.abs)) / total;
    }
  }

  // H1's readout (Eq. 2): a zig-zag through (−1)^S at whole numbers S, its corners rounded by b.
  function zigZag(S, k, b) {
    let value = 1, slope = 0;
    for (let i = 1; i <= k; i++) {
      const z = S + 0.5 - i, root = Math.sqrt(z * z + b), sign = i % 2 ? -1 : 1;
      value += sign * (8 * i - 4) * 0.5 * (z + root);
      slope += sign * (8 * i - 4) * 0.5 * (1 + z / root);
    }
    return [value, slope];
  }

  // H1's k heads on the circle: gradient descent on the squared hinge, averaged over all 2^n inputs, none sampled.
  class CircleHeads {
    constructor(n, support, angles, { temperature = 1 / n, rate = 0.04 / support.length ** 2, smoothing = 0.01 } = {}) {
      Object.assign(this, { n, support, temperature, rate, smoothing });
      this.code = harmonics(n, 1);
      this.heads = angles.map((angle) => [Math.cos(angle), Math.sin(angle)]);
      this.steps = 0;
      this.evaluate();
    }

    attention() {
      return this.heads.map((head) => {
        const scores = this.code.map((row) => dot(row, head) / this.temperature);
        const top = Math.max(...scores);
        const powers = scores.map((score) => Math.exp(score - top));
        const sum = powers.reduce((a, b) => a + b, 0);
        return powers.map((power) => power / sum);
      });
    }

    // Risk, accuracy and gradient at the present heads.
    evaluate() {
      const { n, support } = this;
      const attention = this.attention();
      const weights = this.code.map((_, j) => attention.reduce((sum, head) => sum + head[j], 0));
      const mask = support.reduce((bits, j) => bits | (1 << j), 0);
      const inputs = 2 ** n, byWeight = new Array(n).fill(0);
      const scores = new Float64Array(inputs), labels = new Int8Array(inputs);
      let risk = 0, correct = 0;
      labels[0] = 1;
      for (let x = 0; x < inputs; x++) {
        if (x) {
          const low = x & -x, j = 31 - Math.clz32(low);
          scores[x] = scores[x ^ low] + weights[j];
          labels[x] = mask & low ? -labels[x ^ low] : labels[x ^ low];
        }
        const [value, slope] = zigZag(scores[x], support.length, this.smoothing);
        const short = 1 - labels[x] * value;
        if (short < 1) correct += 1;
        if (short <= 0) continue;
        risk += short * short;
        const change = -2 * short * labels[x] * slope;
        for (let rest = x; rest; rest &= rest - 1) byWeight[31 - Math.clz32(rest & -rest)] += change;
      }
      this.risk = risk / inputs;
      this.accuracy = correct / inputs;
      this.gradient = attention.map((head) => {
        const mean = head.reduce((sum, share, j) => sum + share * byWeight[j], 0);
        return [0, 1].map(
          (axis) =>
            head.reduce((sum, share, j) => sum + share * (byWeight[j] - mean) * this.code[j][axis], 0) /
            (inputs * this.temperature),
        );
      });
    }

    step() {
      this.heads = this.heads.map((head, i) => head.map((value, axis) => value - this.rate * this.gradient[i][axis]));
      this.evaluate();
      this.steps += 1;
    }
  }

  // Random angles that are the same in every browser (mulberry32).
  function drawnAngles(count, seed) {
    let state = seed >>> 0;
    return Array.from({ length: count }, () => {
      state = (state + 0x6d2b79f5) >>> 0;
      let t = Math.imul(state ^ (state >>> 15), 1 | state);
      t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
      return (2 * Math.PI * ((t ^ (t >>> 14)) >>> 0)) / 2 ** 32;
    });
  }

  return { harmonics, ConcaveHead, CircleHeads, drawnAngles };
})();
