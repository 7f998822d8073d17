/** One version's kernel: psi and its rhythms, each with a table. */

import { Chart } from "../shell/chart.js";
import { element } from "../shell/html.js";
import { showAsTable } from "../shell/tables.js";
import { intervalAxis } from "../widgets/time_axes.js";
import { heightsOf, psiTraces } from "./psi_figure.js";
import { spectrumTraces } from "./spectrum_figure.js";
import { shownIntervals } from "./window.js";
import {
  aboutKernel,
  psiCaption,
  psiTable,
  psiTip,
  rhythmTable,
  rhythmTip,
  spectrumCaption,
  whyNoBefore,
  whyNoKernels,
} from "./words.js";

const ROOM_ABOVE = 1.06;

export class KernelCard {
  #place;
  #version = element("code");
  #about = element("p", { class: "note" });
  #pictures;
  #psi;
  #spectrum;

  /** Fills `place`, a section; `name` makes its ids differ from another's. */
  constructor(place, name) {
    this.#place = place;
    this.#psi = picture(`psi-${name}`, "psi, by interval");
    this.#spectrum = picture(`spectrum-${name}`, "Rhythms, by period");
    this.#pictures = element("div", { class: "figures" }, this.#psi.place, this.#spectrum.place);
    place.replaceChildren(
      element("h2", { id: `kernel-${name}` }, "Kernel of ", this.#version),
      this.#about,
      this.#pictures,
    );
    place.setAttribute("aria-labelledby", `kernel-${name}`);
  }

  /**
   * Show the `kernel` of a description of a version, null where it has none, on the same scales as
   * others: `extent` is `{longest, psi: [low, high], spectrum}`. Resolves once it is drawn.
   */
  async show({ description, kernel, state, extent }) {
    this.#version.textContent = description.version;
    this.#pictures.hidden = kernel === null;
    this.#about.textContent =
      kernel === null
        ? `No kernel to draw: ${whyNoKernels(description)}.`
        : [aboutKernel(kernel), unknownBefore(kernel, description)].join(" ");
    if (kernel === null) return;
    await Promise.all([this.#showPsi(kernel, state, extent), this.#showSpectrum(kernel, extent)]);
  }

  /** Show that there is no version to show. */
  set isHidden(isHidden) {
    this.#place.hidden = isHidden;
  }

  #showPsi(kernel, state, extent) {
    this.#psi.say(psiCaption(kernel), psiTable(kernel));
    return this.#psi.draw(
      ({ width }) => psiTraces(kernel, shownIntervals(state, extent.longest, width)),
      ({ width }) => ({
        xaxis: shownIntervals(state, extent.longest, width).axis,
        yaxis: { title: { text: "psi" }, range: extent.psi.map((height) => height * ROOM_ABOVE) },
      }),
      psiTip,
    );
  }

  #showSpectrum(kernel, extent) {
    const isThere = kernel.spectrum !== null;
    this.#spectrum.say(spectrumCaption(kernel), isThere ? rhythmTable(kernel) : null);
    if (!isThere) return null;
    return this.#spectrum.draw(
      () => spectrumTraces(kernel),
      ({ width }) => ({
        xaxis: intervalAxis(extent.spectrum, width, "period (log)"),
        yaxis: {
          title: { text: "share of all power" },
          tickformat: ".1~%",
          range: [0, extent.spectrum.highest],
        },
      }),
      rhythmTip,
    );
  }
}

/** The lowest and the highest place of psi, of kernels drawn over the same intervals. */
export function psiExtent(kernels, state, longest, width) {
  const shown = shownIntervals(state, longest, width);
  const heights = kernels.map((kernel) => heightsOf(psiTraces(kernel, shown)));
  return [
    Math.min(0, ...heights.map(([low]) => low)),
    Math.max(0.01, ...heights.map(([, high]) => high)),
  ];
}

function unknownBefore(kernel, description) {
  const why = kernel.initial_psi === null ? whyNoBefore(description) : "";
  return why ? `What it was before training is not known: ${why}.` : "";
}

/** A heading, a plot, a caption and a table. */
function picture(id, heading) {
  const plot = element("div", {
    id,
    class: "plot",
    role: "img",
    "aria-labelledby": `${id}-heading`,
    "aria-describedby": `${id}-caption`,
  });
  const caption = element("figcaption", { id: `${id}-caption` });
  const details = element("details", { id: `${id}-table` });
  const place = element(
    "div",
    {},
    element("h3", { id: `${id}-heading` }, heading),
    element("figure", {}, plot, caption),
    details,
  );
  const chart = new Chart(plot);
  return {
    place,
    say(text, content) {
      caption.textContent = text;
      plot.hidden = details.hidden = content === null;
      if (content !== null) showAsTable(details, content);
    },
    draw(traces, layout, tip) {
      let drawn = [];
      const build = (size) => {
        drawn = traces(size);
        return { traces: drawn.map(({ trace }) => trace), layout: layout(size) };
      };
      return chart.draw(build, ({ curveNumber, pointNumber }) => {
        const { trace, points } = drawn[curveNumber];
        const point = points[pointNumber];
        return point === undefined ? null : tip(trace.name, point);
      });
    },
  };
}
