/** What an operator may change: which version is current, and who answers beside it. */

import { call, encodePath } from "../shell/api.js";
import { formatPercent } from "../shell/format.js";
import { element } from "../shell/html.js";
import { confirm } from "./confirm.js";
import { versionBefore } from "./line.js";
import { versionCode } from "./roles.js";
import { trafficFields } from "./traffic.js";

const CHECKED_FIRST =
  "It is opened and checked first; where that fails, what serves now goes on serving. " +
  "Every process of the service follows within two seconds.";

/** Ask, then make `version` the current one. Answers a sentence on what was done, or null. */
export async function activate(version, { models }) {
  const current = currentOf(models);
  const answer = await confirm({
    heading: "Activate this version?",
    says: [becomes(version, current), CHECKED_FIRST],
    verb: "Activate",
    send: (reason) => call(`v1/models/${encodePath(version)}/activate`, { body: { reason } }),
  });
  return answer && done(answer);
}

/** Ask, then make the version before the current one current again. */
export async function rollBack({ models, changes }) {
  const current = currentOf(models);
  const before = versionBefore(changes, current);
  const answer = await confirm({
    heading: "Roll back?",
    says: [
      before === null
        ? "The audit trail tells of no version that was current before this one, " +
          "so the service is likely to refuse."
        : becomes(before, current),
      CHECKED_FIRST,
    ],
    verb: "Roll back",
    send: (reason) => call("v1/models/rollback", { body: { reason } }),
  });
  return answer && done(answer);
}

/** Ask which versions are to answer beside the current one, then have them do so. */
export async function setTraffic({ models, traffic }) {
  const fields = trafficFields(models, traffic, currentOf(models));
  const answer = await confirm({
    heading: "Who answers beside the current version",
    says: [],
    fields: fields.nodes,
    verb: "Set traffic",
    send: (reason) => call("v1/models/traffic", { method: "PUT", body: { ...fields.read(), reason } }),
  });
  return answer && `Done: ${inWords(answer)}.`;
}

/** Who answers beside the current version, in words. */
export function inWords({ challenger, share, shadow }) {
  const parts = [];
  if (challenger !== null) parts.push(`challenger ${challenger} answers ${formatPercent(share)} of the users`);
  if (shadow !== null) parts.push(`shadow ${shadow} is asked, too`);
  return parts.join(", ") || "no challenger, no shadow";
}

const currentOf = (models) => models.find((model) => model.is_current)?.version ?? null;

const becomes = (version, current) =>
  element(
    "span",
    {},
    versionCode(version),
    " becomes current",
    ...(current === null ? [", where none is now."] : [" in place of ", versionCode(current), "."]),
  );

const done = ({ version, previous_version: previous }) =>
  `Done: ${version} is current now, in place of ${previous ?? "none"}.`;
