/** The controls that say what is asked and how it is shown, but for the query time's own. */

import { byId, element } from "../shell/html.js";
import { COUNTS } from "./state.js";

/**
 * Listen to the controls: `change(update)` is told what has to be asked again, `redisplay(update)`
 * what is a matter of the display.
 */
export function listenToControls({ change, redisplay }) {
  byId("n").addEventListener("change", ({ target }) => change({ n: Number(target.value) }));
  byId("exclude-seen").addEventListener("change", ({ target }) =>
    change({ exclude_seen: target.checked }),
  );
  byId("withheld").addEventListener("change", ({ target }) =>
    change({ query_time_withheld: target.checked }),
  );
  byId("head").addEventListener("change", ({ target }) =>
    redisplay({ head: target.value === "" ? null : Number(target.value) }),
  );
  for (const radio of document.querySelectorAll('input[name="scale"]')) {
    radio.addEventListener("change", () => redisplay({ scale: radio.value }));
  }
}

/** Let the controls say what a state says. */
export function showControls(state) {
  const select = byId("n");
  const counts = [...new Set([...COUNTS, state.n])].sort((one, other) => one - other);
  select.replaceChildren(...counts.map((n) => element("option", { value: String(n) }, String(n))));
  select.value = state.n;
  byId("exclude-seen").checked = state.exclude_seen;
  byId("withheld").checked = state.query_time_withheld;
  document.querySelector(`input[name="scale"][value="${state.scale}"]`).checked = true;
  offerHeads(state.head ?? 0, state.head);
}

/** Let the link to the what-if view lead to the same user and instant; a pasted history has none. */
export function showWhatIfLink({ user, query_time: at }) {
  const link = byId("what-if");
  link.hidden = user === null;
  if (user === null) return;
  const query = new URLSearchParams({ user, query_time: new Date(at).toISOString() });
  link.href = `what_if.html#${query}`;
}

/** Offer so many heads, one of them or null for their mean chosen. */
export function offerHeads(count, chosen) {
  const select = byId("head");
  if (select.options.length !== count + 1) {
    const heads = Array.from({ length: count }, (_, head) =>
      element("option", { value: String(head + 1) }, `head ${head + 1}`),
    );
    select.replaceChildren(element("option", { value: "" }, "mean of all"), ...heads);
  }
  select.value = chosen ?? "";
}
