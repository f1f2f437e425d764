// Claims: how many got which verdict, and of each how it was judged, clause by clause.
import { element, table } from "./panels.js";

const KIND = { proved: "holds", holds: "holds", fails: "fails", "holds in part": "part" };
const pill = (verdict) => element("span", { class: `verdict ${KIND[verdict] || "other"}` }, verdict);
const soft = (text) => element("div", { class: "soft" }, text);

function clauses(found) {
  return table(["clause", "measured", "holds if", "refuted if", "the limit is", ""], found.map((one) => [
    one.says, `${one.quantity}: ${one.measured}`, one.holds_if, one.refuted_if ?? "nothing computed here", one.source, pill(one.verdict)]));
}

function counterexample(entries) {
  return element("table", { class: "point" }, element("tbody", {}, ...entries.map(({ depth, name, value }) =>
    element("tr", {}, element("td", { style: `padding-left: ${depth + 0.7}rem` }, name), element("td", {}, value)))));
}

function details(claim) {
  const parts = [clauses(claim.clauses.filter((one) => !one.corrected))];
  if (claim.corrected) {
    parts.push(element("p", {}, `As meant: ${claim.corrected.statement} `, pill(claim.corrected.verdict)), clauses(claim.clauses.filter((one) => one.corrected)));
  }
  parts.push(element("p", {}, claim.how));
  if (claim.counterexample) {
    parts.push(element("p", {}, "A counterexample; by a second route: ", element("code", {}, `parityscope claims ${claim.id} --replay`)), counterexample(claim.counterexample));
  }
  if (claim.proof) parts.push(element("p", {}, "Proof: ", element("code", {}, claim.proof)));
  return element("details", {}, element("summary", {}, "how it was judged"), ...parts);
}

export function claims({ claims: listed, counts }) {
  return [
    table(["", ...counts.header], counts.rows),
    soft("Counted apart: statements of which no computation here could have said \u201cfails\u201d."),
    ...listed.map((one) => element("article", { class: "claim", id: one.id },
      element("h3", {}, `${one.id} `, pill(one.verdict), ...one.remarks.map((remark) => element("small", {}, ` ${remark}`))),
      soft(`${one.paper}, ${one.where}`),
      element("p", {}, one.statement), element("p", {}, one.number),
      soft(`Refuted if ${one.refuted_by}. Tried: ${one.tried}.`), details(one))),
  ];
}
