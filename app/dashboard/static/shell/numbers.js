/** Numbers as a person reads them. */

/** A share of one, small ones with the digits they need. */
export function percent(share) {
  const percents = share * 100;
  if (percents > 0 && percents < 0.01) return "< 0.01 %";
  return `${percents.toFixed(percents < 1 ? 2 : 1)} %`;
}

const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

/** A count, with its thousands apart: 809,560. */
export const count = (number) => WHOLE.format(number);

/** A count with its noun: "1 event", "2 events". */
export const counted = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;

/** A measured figure such as NDCG, to four decimals; a dash where there is none. */
export const figure = (number) =>
  number === null || number === undefined ? "–" : number.toFixed(4);
