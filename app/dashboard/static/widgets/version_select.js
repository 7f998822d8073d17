/** A choice among the published versions. */

import { element } from "../shell/dom.js";

/**
 * Offer versions, as `GET /v1/models` lists them, in a `<select>`; `chosen` may be null for the one
 * that serves. Answers the version that is selected then, or null where none is published.
 */
export function offerVersions(select, models, chosen) {
  const readable = models.filter((model) => model.refused === null);
  select.replaceChildren(
    ...readable.map((model) => element("option", { value: model.version }, described(model))),
  );
  const serving = readable.find((model) => model.is_serving)?.version;
  const known = readable.some((model) => model.version === chosen) ? chosen : null;
  select.value = known ?? serving ?? readable[0]?.version ?? "";
  return select.value || null;
}

/** A version and what it does here. */
export function described(model) {
  const roles = [
    model.is_current && "current",
    model.is_challenger && "challenger",
    model.is_shadow && "shadow",
  ].filter(Boolean);
  return roles.length ? `${model.version} (${roles.join(", ")})` : model.version;
}
