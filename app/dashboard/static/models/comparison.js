/** Two versions side by side, first where they were asked the same questions. */

import { formatMetric, pluralize } from "../shell/format.js";
import { byId, element } from "../shell/html.js";
import { scrollRegion, table } from "../shell/tables.js";
import { checksTable } from "./checks.js";
import {
  byMetric,
  HEADLINE_REFERENCES,
  referenceName,
  runBetween,
  testMetrics,
} from "./metrics.js";
import { shortName } from "./roles.js";

const NOT_COMPARABLE = "measured on different test windows: not comparable";

/** Compare two descriptions; `other` is null where there is none to compare with. */
export function showComparison(one, other, runs) {
  const [says, place] = ["comparison-says", "comparison"].map(byId);
  if (other === null) {
    says.textContent = "There is no other version to compare with; train and publish one.";
    place.replaceChildren();
    return;
  }
  const run = runBetween(runs, one.version, other.version);
  const apart = ofManifests(one, other, isSameTest(one, other));
  says.textContent = run === null ? unasked(one, other) : asked(run);
  if (run === null) {
    place.replaceChildren(apart);
    return;
  }
  place.replaceChildren(
    ofRun(run, one.version, other.version),
    ...(run.decision ? [element("h3", {}, "What the gate said"), checksTable(run.decision)] : []),
    element("h3", {}, "Each by the test at its own training"),
    element("p", { class: "note" }, own(one, other)),
    apart,
  );
}

const asked = (run) =>
  `Asked the same ${pluralize(run.questions, "question")} on the same window by the retraining run ` +
  `${run.run_id}, which ${outcome(run)}.`;

const outcome = ({ result, reason }) => `ended as "${result}"${reason ? `: ${reason}` : ""}`;

function unasked(one, other) {
  const rest = isSameTest(one, other)
    ? "their data windows, numbers of questions and reference rankings agree, so they were probably asked " +
      "the same, but no interval says how much of a difference is chance."
    : `${NOT_COMPARABLE}.`;
  return `No retraining run asked these two the same questions: ${rest}`;
}

const own = (one, other) =>
  isSameTest(one, other) ? "The same test by all that their manifests tell." : `Those were ${NOT_COMPARABLE}.`;

/** Whether all that manifests tell of two tests agrees: window, events, split, and what others scored. */
function isSameTest({ manifest: one }, { manifest: other }) {
  const told = ({ data_window, counts, provenance, metrics }) => [
    data_window,
    counts,
    provenance.recipe?.split ?? null,
    metrics.questions ?? null,
    [...testMetrics(metrics).metrics].map(([name, { references }]) => [name, references]),
  ];
  const [tests, others] = [one, other].map((manifest) => JSON.stringify(told(manifest)));
  return one.metrics.questions !== undefined && tests === others;
}

function ofRun(run, one, other) {
  const [mine, theirs] = run.candidate === one ? ["challenger", "champion"] : ["champion", "challenger"];
  const rows = [...byMetric(run.metrics)].flatMap(([metric, rankers]) =>
    ["", "_withheld"]
      .filter((suffix) => rankers[mine + suffix] !== undefined)
      .map((suffix) => [
        metric,
        suffix === "" ? "given" : "withheld",
        ...pair(rankers[mine + suffix], rankers[theirs + suffix] ?? null),
        ...HEADLINE_REFERENCES.map((reference) => formatMetric(rankers[reference])),
      ]),
  );
  const columns = [
    "Metric",
    "Query time",
    `${shortName(one)}, ${mine}`,
    `${shortName(other)}, ${theirs}`,
    "Difference",
    ...HEADLINE_REFERENCES.map(referenceName),
  ];
  return framed("Metrics on the same questions", columns, rows, "compared");
}

function ofManifests(one, other, isSame) {
  const [mine, theirs] = [one, other].map(({ manifest }) => testMetrics(manifest.metrics).metrics);
  const rows = [...mine.keys()]
    .filter((metric) => theirs.has(metric))
    .flatMap((metric) =>
      ["given", "withheld"].map((how) => [
        metric,
        how,
        ...pair(mine.get(metric)[how], theirs.get(metric)[how]),
      ]),
    );
  if (rows.length === 0) return element("p", { class: "note" }, "Their manifests share no test metric.");
  const columns = ["Metric", "Query time", shortName(one.version), shortName(other.version), "Difference"];
  return framed("Metrics of each version's own test", columns, rows, isSame ? "compared" : "compared apart");
}

const pair = (mine, theirs) => [formatMetric(mine), formatMetric(theirs), difference(mine, theirs)];

function difference(mine, theirs) {
  if (mine === null || theirs === null) return "–";
  const value = mine - theirs;
  const said = Math.abs(value).toFixed(4);
  return `${value < 0 ? "−" : "+"}${said}`;
}

function framed(caption, columns, rows, name) {
  const made = table({ caption, columns, rows, className: name });
  return scrollRegion(made, caption);
}
