/** The controls for challenger, share and shadow. */

import { element } from "../shell/html.js";
import { versionLabel } from "../widgets/versions.js";
import { versionCode } from "./roles.js";

const NONE = "";

/** `nodes` for a form, and `read()` for what they say as `PUT /v1/models/traffic` takes it. */
export function trafficFields(models, traffic, current) {
  const challenger = selectOf("challenger", traffic.challenger, models);
  const shadow = selectOf("shadow", traffic.shadow, models);
  const slider = element("input", { id: "share", type: "range", min: 0, max: 100, step: 1 });
  const said = element("output", { htmlFor: "share" });
  const summary = element("p", { class: "says" });
  let share = traffic.share;
  slider.value = Math.round(share * 100);

  const show = () => {
    slider.disabled = challenger.value === NONE;
    const percents = challenger.value === NONE ? 0 : Number((share * 100).toFixed(2));
    said.textContent = `${percents} %`;
    slider.setAttribute("aria-valuetext", `${percents} % of the users`);
    summary.replaceChildren(...sentences(read(), current));
  };
  const read = () => ({
    challenger: challenger.value || null,
    share: challenger.value === NONE ? 0 : share,
    shadow: shadow.value || null,
  });
  // A share that is no whole percent stays as it is until the slider is moved.
  slider.addEventListener("input", () => {
    share = Number(slider.value) / 100;
    show();
  });
  challenger.addEventListener("change", show);
  shadow.addEventListener("change", show);
  show();
  const nodes = [
    element("label", { htmlFor: "challenger" }, "Challenger"),
    challenger,
    element("div", { class: "share" }, element("label", { htmlFor: "share" }, "Share of the users"), said),
    slider,
    element("label", { htmlFor: "shadow" }, "Shadow"),
    shadow,
    summary,
  ];
  return { nodes, read };
}

/** The current version is offered only where it has the role already. */
function selectOf(id, chosen, models) {
  const offered = models.filter(
    (model) => (model.refused === null && !model.is_current) || model.version === chosen,
  );
  const options = [
    element("option", { value: NONE }, "none"),
    ...offered.map((model) => element("option", { value: model.version }, versionLabel(model))),
  ];
  if (chosen !== null && !offered.some((model) => model.version === chosen)) {
    options.push(element("option", { value: chosen }, `${chosen} (not published)`));
  }
  const select = element("select", { id }, ...options);
  select.value = chosen ?? NONE;
  return select;
}

function sentences({ challenger, share, shadow }, current) {
  const rest = current === null ? [] : [" in place of ", versionCode(current)];
  const said =
    challenger === null
      ? ["The current version answers all users."]
      : [
          versionCode(challenger),
          ` answers ${Number((share * 100).toFixed(2))} % of the users, always the same ones,`,
          ...rest,
          ".",
        ];
  if (shadow !== null) {
    said.push(" ", versionCode(shadow), " is asked, too; its answers are counted, never returned.");
  }
  return said;
}
