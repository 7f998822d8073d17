/** What versions do, and names short enough for an axis. */

import { formatPercent } from "../shell/format.js";
import { element } from "../shell/html.js";

/** What a version does, in words; `traffic` tells the challenger's share. */
export function rolesOf(model, traffic) {
  const roles = [];
  if (model.is_current) roles.push(model.is_serving ? "current" : "current, not serving here yet");
  else if (model.is_serving) roles.push("serving here");
  if (model.version === traffic.challenger) roles.push(`challenger, ${formatPercent(traffic.share)}`);
  if (model.version === traffic.shadow) roles.push("shadow");
  return roles;
}

/** A role as a badge. */
export const roleBadge = (role) => element("span", { class: "role" }, role);

/** The part of a version that tells it from others: its digest, as far as it has one. */
export const shortName = (version) => version.split("-").at(-1).slice(0, 8) || version;

/** A version as text that breaks anywhere; a dash for none. */
export const versionCode = (version) =>
  version === null ? "none" : element("code", {}, version);
