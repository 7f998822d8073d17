/** The gate's decision, rule by rule. */

import { element } from "../shell/html.js";
import { scrollRegion, table } from "../shell/tables.js";

/** A table of the checks of a decision. */
export function checksTable({ promote, checks }) {
  const caption = promote ? "Every check passed" : "The gate refused";
  const made = table({
    className: "checks",
    caption,
    columns: ["Check", "Passed", "Value", "Threshold", "In words"],
    rows: checks.map((check) => [
      element("code", {}, check.name),
      element("span", { class: check.passed ? "passed" : "refusal" }, check.passed ? "✓ yes" : "✗ no"),
      precise(check.value),
      precise(check.threshold),
      check.sentence,
    ]),
  });
  return scrollRegion(made, caption);
}

const precise = (number) => (number === null ? "–" : String(Number(number.toPrecision(4))));
