/** Which versions answer, in words. */

import { formatPercent } from "../shell/format.js";
import { byId, element } from "../shell/html.js";
import { versionBefore } from "./line.js";
import { versionCode } from "./roles.js";

/** Say who answers whom, and where a rollback would lead. */
export function showServing({ models, traffic, changes }) {
  const current = models.find((model) => model.is_current)?.version ?? null;
  const serving = models.find((model) => model.is_serving)?.version ?? null;
  const facts = [["Current", versionCode(current)]];
  if (serving !== current) facts.push(["Serving here", versionCode(serving)]);
  facts.push(
    ["Challenger", traffic.challenger === null ? "none" : challenger(traffic)],
    ["Shadow", traffic.shadow === null ? "none" : shadow(traffic)],
    ["Before it", versionCode(versionBefore(changes, current))],
  );
  byId("serving").replaceChildren(
    ...facts.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]),
  );
}

const challenger = (traffic) =>
  element(
    "span",
    {},
    versionCode(traffic.challenger),
    ` answers ${formatPercent(traffic.share)} of the users in place of the current one`,
  );

const shadow = (traffic) =>
  element("span", {}, versionCode(traffic.shadow), " is asked, too; its answers are never returned");
