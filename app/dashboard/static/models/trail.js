/** The audit trail: who changed what is served, and why. */

import { byId, element } from "../shell/dom.js";
import { asText } from "../shell/instants.js";
import { scrolling, table } from "../shell/tables.js";
import { inWords } from "./changes.js";
import { versionCode } from "./roles.js";

/** Show changes, newest first. */
export function showTrail(changes) {
  const place = byId("trail");
  byId("trail-note").textContent = changes.length === 0 ? "Nothing was ever changed here." : "";
  if (changes.length === 0) {
    place.replaceChildren();
    return;
  }
  const made = table({
    caption: "Changes of what is served, newest first",
    columns: ["When (UTC)", "Who", "What", "From", "To", "Reason"],
    rows: changes.map((change) => [
      asText(Date.parse(change.at)),
      element("span", { class: "title" }, change.actor),
      change.change,
      versionCode(change.previous_version),
      change.change === "traffic" ? inWords(change.traffic) : versionCode(change.version),
      element("span", { class: "title" }, change.reason ?? "–"),
    ]),
  });
  made.className = "trail";
  place.replaceChildren(scrolling(made, "Changes of what is served"));
}
