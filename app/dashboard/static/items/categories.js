/** Sorts the items of a map by their categories. */

import { seriesStyles } from "../widgets/series.js";

const MOST_NAMED = 16;

/** Items none of whose categories is among the most frequent, and items that have none. */
const OTHER = { kind: "other", name: "other categories", style: { token: "--faint", symbol: "square-open" } };
const NONE = { kind: "none", name: "no category", style: { token: "--faint", symbol: "circle-open" } };

/**
 * The groups that items fall into, the most frequent categories first: `{kind, name, style, count}`,
 * where `kind` is "category", "other" or "none". Items of two categories count in both.
 */
export function groupsOf(items) {
  const counts = new Map();
  for (const item of items) {
    for (const name of new Set(item.categories)) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  const named = [...counts]
    .sort(([one, ones], [other, others]) => others - ones || (one < other ? -1 : 1))
    .slice(0, MOST_NAMED);
  const styles = seriesStyles(named.map(([name]) => name));
  const none = items.filter((item) => item.categories.length === 0).length;
  const other = items.filter(
    ({ categories }) => categories.length > 0 && !categories.some((name) => styles.has(name)),
  ).length;
  return [
    ...named.map(([name, count]) => ({ kind: "category", name, style: styles.get(name), count })),
    ...(other > 0 ? [{ ...OTHER, count: other }] : []),
    ...(none > 0 ? [{ ...NONE, count: none }] : []),
  ];
}

/** Whether a group is to be shown, by what the page's state says. */
export function isShown(group, { categories, other, none }) {
  if (group.kind === "other") return other;
  if (group.kind === "none") return none;
  return categories === null || categories.includes(group.name);
}

/**
 * The groups that are shown, each with its `items`: an item stands in the first of its own categories
 * that is shown. What has none of these is left out.
 */
export function shownGroups(items, groups, state) {
  const named = new Set(groups.filter(({ kind }) => kind === "category").map(({ name }) => name));
  const shown = groups.filter((group) => isShown(group, state)).map((group) => ({ ...group, items: [] }));
  const byName = new Map(shown.filter(({ kind }) => kind === "category").map((group) => [group.name, group]));
  const byKind = new Map(shown.map((group) => [group.kind, group]));
  for (const item of items) {
    const group =
      item.categories.length === 0
        ? byKind.get("none")
        : item.categories.some((name) => named.has(name))
          ? byName.get(item.categories.find((name) => byName.has(name)))
          : byKind.get("other");
    group?.items.push(item);
  }
  return shown;
}
