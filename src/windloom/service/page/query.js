// One query: its answers as chart and table, its text, how it is answered; replace it or remove it.

import { api, feed } from "/page/api.js";
import { drawn, legend, lines } from "/page/charts.js";
import { h, note, put, throttled } from "/page/dom.js";
import { editor, wrong } from "/page/editor.js";
import { answerTable } from "/page/tables.js";

const MOST_SERIES = 8;

export function query(main, name, mayChange) {
  let found = null;
  const chart = h("div", { class: "chart tall" }), key = h("div", {}), table = h("div", {}), about = h("div", {}), text = h("div", {});
  const remove = h("button", { class: "danger", type: "button", id: "remove", disabled: !mayChange }, "Remove");
  const trouble = h("div", {});
  put(
    main,
    h("div", { class: "row" }, h("h1", { class: "grow" }, name), h("a", { class: "button", href: `/api/v1/queries/${encodeURIComponent(name)}/answers?format=csv&limit=100000`, download: `${name}.csv` }, "CSV"), remove),
    trouble,
    h("div", { class: "cols" },
      h("div", {}, h("section", { class: "card" }, h("h2", {}, "Answers"), chart, key), h("section", { class: "card" }, h("h2", {}, "Latest rows"), table)),
      h("div", {}, h("section", { class: "card" }, h("h2", {}, "Text"), text), h("section", { class: "card scroll" }, h("h2", {}, "How it is answered"), about))),
  );
  const draw = () => {
    const { series, column } = found ? seriesOf(found) : { series: [], column: "" };
    lines(chart, series.slice(0, MOST_SERIES), `${column} of ${name}`);
    const more = series.length > MOST_SERIES ? [h("span", { class: "soft" }, `and ${series.length - MOST_SERIES} more groups`)] : [];
    put(key, legend(series.slice(0, MOST_SERIES).map((one) => one.name)), more);
  };
  const answers = async () => {
    found = await api.answers(name, 1500);
    if (!main.contains(chart)) return;
    draw();
    put(table, answerTable(found, 40));
  };
  const load = async () => {
    const shown = await api.query(name);
    put(text, editor({ text: shown.text, replacing: name, mayChange }));
    put(about, h("pre", {}, shown.explain));
    await answers();
  };
  let sure = 0;
  remove.addEventListener("click", async () => {
    if (!sure) {
      remove.textContent = "Remove it: sure?";
      sure = setTimeout(() => { sure = 0; remove.textContent = "Remove"; }, 4000);
      return;
    }
    clearTimeout(sure);
    try {
      const done = await api.remove(name);
      note(`${name} is gone from round ${done.round} on`);
      location.hash = "#/queries";
    } catch (error) {
      sure = 0;
      remove.textContent = "Remove";
      wrong(put(trouble, h("div", { class: "verdict" })).firstChild, error.problem);
    }
  });
  drawn(chart, draw);
  load().catch((error) => {
    if (error.problem && error.status !== 401) wrong(put(trouble, h("div", { class: "verdict" })).firstChild, error.problem);
  });
  const soon = throttled(1500, () => main.contains(chart) && answers().catch(() => {}));
  return feed.watch((what) => { if (what === "round") soon(); });
}

/** A line per group of the first figure that is not among the grouping columns: those are text, or whole and before it. */
export function seriesOf(found) {
  const own = found.columns.map((name, i) => ({ name, i, type: found.types[i] })).filter((one) => !one.name.startsWith("window_"));
  const numbers = own.filter((one) => /^(u?int|float|double|decimal)/.test(one.type));
  if (!numbers.length) return { series: [], column: "" };
  const figure = numbers.find((one) => !own.slice(own.indexOf(one) + 1).some((later) => /^(string|dictionary|bool|date)/.test(later.type))) || numbers.at(-1);
  const groups = own.slice(0, own.indexOf(figure));
  const end = found.columns.indexOf("window_end");
  const series = new Map();
  for (const row of found.rows) {
    const value = Number(row[figure.i]);
    if (row[figure.i] === null || !Number.isFinite(value)) continue;
    const name = groups.map((one) => row[one.i] ?? "NULL").join(", ") || figure.name;
    const at = typeof row[end] === "number" ? row[end] : Date.parse(row[end]);
    if (!series.has(name)) series.set(name, { name, points: [] });
    series.get(name).points.push([at, value]);
  }
  return { series: [...series.values()].sort((a, b) => (a.name < b.name ? -1 : 1)), column: figure.name };
}

