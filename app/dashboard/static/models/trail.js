/** The audit trail: who changed what is served, and why. */

import { formatInstant } from "../shell/format.js";
import { byId, element, nothing, render } from "../shell/html.js";
import { scrollRegion, table } from "../shell/tables.js";
import { inWords } from "./changes.js";
import { versionCode } from "./roles.js";

/** Show changes, newest first. */
export function showTrail(changes) {
  const place = byId("trail");
  byId("trail-note").textContent = changes.length === 0 ? "Nothing was ever changed here." : "";
  if (changes.length === 0) {
    render(nothing, place);
    return;
  }
  const made = table({
    className: "trail",
    caption: "Changes of what is served, newest first",
    columns: ["When (UTC)", "Who", "What", "From", "To", "Reason"],
    rows: changes.map((change) => [
      formatInstant(Date.parse(change.at)),
      element("span", { class: "title" }, change.actor),
      change.change,
      versionCode(change.previous_version),
      change.change === "traffic" ? inWords(change.traffic) : versionCode(change.version),
      element("span", { class: "title" }, change.reason ?? "–"),
    ]),
  });
  render(scrollRegion(made, "Changes of what is served"), place);
}
