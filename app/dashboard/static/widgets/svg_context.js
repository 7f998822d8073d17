// @ts-check
/**
 * A drawing context that writes SVG: the part of `CanvasRenderingContext2D` that the charts use.
 *
 * Libraries for this build elements with `style` attributes, which the pages' policy refuses.
 */

/** @type {Record<string, string>} */
const ANCHORS = { left: "start", center: "middle", right: "end" };
const XML = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

export class SvgContext {
  #size;
  /** @type {string[]} */
  #elements = [];
  /** @type {string[]} */
  #path = [];
  #offset = { x: 0, y: 0 };
  #saved = /** @type {{x: number, y: number}[]} */ ([]);
  #measure = /** @type {CanvasRenderingContext2D} */ (document.createElement("canvas").getContext("2d"));
  fillStyle = "#000";
  strokeStyle = "#000";
  lineWidth = 1;
  globalAlpha = 1;
  font = "10px sans-serif";
  textAlign = "left";
  textBaseline = "middle";

  /** @param {{width: number, height: number}} size in pixels */
  constructor(size) {
    this.#size = size;
  }

  save() {
    this.#saved.push(this.#offset);
  }

  restore() {
    this.#offset = this.#saved.pop() ?? this.#offset;
  }

  translate(x, y) {
    this.#offset = { x: this.#offset.x + x, y: this.#offset.y + y };
  }

  measureText(text) {
    this.#measure.font = this.font;
    return this.#measure.measureText(text);
  }

  fillRect(x, y, width, height) {
    if (width > 0 && height > 0) this.#add("rect", { ...this.#at(x, y), width, height, ...this.#filled() });
  }

  strokeRect(x, y, width, height) {
    this.#add("rect", { ...this.#at(x, y), width, height, ...this.#stroked() });
  }

  /** Only `textBaseline` "middle" is supported; `width` is the most that the text may take. */
  fillText(text, x, y, width = Infinity) {
    const natural = this.measureText(text).width;
    const fitted = natural > width ? { textLength: width, lengthAdjust: "spacingAndGlyphs" } : {};
    const [, weight = "400", size, family] = /^(?:(\d+) )?([\d.]+)px (.+)$/.exec(this.font) ?? [];
    this.#add(
      "text",
      {
        ...this.#at(x, y),
        ...fitted,
        ...this.#filled(),
        "font-family": family,
        "font-size": size,
        "font-weight": weight,
        "text-anchor": ANCHORS[this.textAlign] ?? "start",
        "dominant-baseline": "central",
      },
      escapeXml(String(text)),
    );
  }

  beginPath() {
    this.#path = [];
  }

  moveTo(x, y) {
    this.#step("M", x, y);
  }

  lineTo(x, y) {
    this.#step("L", x, y);
  }

  /** Full circles only. */
  arc(x, y, radius, _from, _until) {
    this.#step("M", x - radius, y);
    this.#path.push(`a${radius} ${radius} 0 1 0 ${2 * radius} 0a${radius} ${radius} 0 1 0 ${-2 * radius} 0`);
  }

  fill() {
    this.#add("path", { d: this.#path.join(""), ...this.#filled() });
  }

  stroke() {
    if (this.#path.length > 0) this.#add("path", { d: this.#path.join(""), ...this.#stroked() });
  }

  /** Inserts another document at the origin. */
  insertSvg(text) {
    const { x, y } = this.#at(0, 0);
    this.#elements.push(text.replace("<svg ", `<svg x="${x}" y="${y}" `));
  }

  /** The document, without the characters that XML forbids. */
  toText() {
    const { width, height } = this.#size;
    const text =
      `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" ` +
      `viewBox="0 0 ${width} ${height}">\n${this.#elements.join("\n")}\n</svg>\n`;
    return text.replace(FORBIDDEN, "");
  }

  #at(x, y) {
    return { x: round(x + this.#offset.x), y: round(y + this.#offset.y) };
  }

  #step(command, x, y) {
    const at = this.#at(x, y);
    this.#path.push(`${command}${at.x} ${at.y}`);
  }

  #filled() {
    return { fill: this.fillStyle, ...this.#faded() };
  }

  #stroked() {
    return { fill: "none", stroke: this.strokeStyle, "stroke-width": this.lineWidth, ...this.#faded() };
  }

  #faded() {
    return this.globalAlpha < 1 ? { opacity: this.globalAlpha } : {};
  }

  #add(name, attributes, content = "") {
    const written = Object.entries(attributes).map(
      ([key, value]) => `${key}="${typeof value === "number" ? round(value) : escapeXml(String(value))}"`,
    );
    this.#elements.push(`<${name} ${written.join(" ")}>${content}</${name}>`);
  }
}

const round = (number) => Math.round(number * 100) / 100;

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is removed.
const FORBIDDEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff\p{Surrogate}]/gu;

const escapeXml = (text) => text.replace(/[&<>"]/g, (one) => XML[one]);
