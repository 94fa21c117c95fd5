// One query: its figures, its answers as chart and table, its text, how it is answered; replace it or remove it.

import { api, feed } from "/page/api.js";
import { drawn, legend, lines } from "/page/charts.js";
import { h, note, put, throttled } from "/page/dom.js";
import { editor, wrong } from "/page/editor.js";
import { answerTable } from "/page/tables.js";
import { number, share, work } from "/page/words.js";

const MOST_SERIES = 8;
/** Rows that are asked for after every round, and those of them that the table shows. */
const ROWS = 600, SHOWN = 60;

export function query(main, name, mayChange) {
  let found = null, left = false;
  const chart = h("div", { class: "chart tall" }), key = h("div", { class: "key" }), table = h("div", { class: "rows", tabindex: "0", role: "region", "aria-label": "Latest rows" }, h("p", { class: "soft" }, "reading …"));
  const trouble = h("div", {});
  const show = (one, streams) => put(
    main,
    h("div", { class: "row" }, h("h1", { class: "grow" }, name), h("a", { class: "button", href: `/api/v1/queries/${encodeURIComponent(name)}/answers?format=csv&limit=100000`, download: `${name}.csv` }, "CSV"), removal(name, mayChange, trouble)),
    trouble,
    figures(one),
    h("div", { class: "cols" },
      h("div", {}, h("section", { class: "card" }, h("h2", {}, "Answers"), chart, key), h("section", { class: "card" }, h("h2", {}, "Latest rows"), table)),
      h("div", {}, h("section", { class: "card" }, h("h2", {}, "Text"), editor({ text: one.text, replacing: name, mayChange, streams })), h("section", { class: "card scroll" }, h("h2", {}, "How it is answered"), h("pre", {}, one.explain)))),
  );
  const draw = () => {
    const { series, column } = found ? seriesOf(found) : { series: [], column: "" };
    lines(chart, series.slice(0, MOST_SERIES), `${column} of ${name}`, found ? "no answer yet" : "reading …");
    const more = series.length > MOST_SERIES ? [h("span", { class: "soft" }, `and ${series.length - MOST_SERIES} more groups`)] : [];
    put(key, legend(series.slice(0, MOST_SERIES).map((one) => one.name)), more);
  };
  const answers = async () => {
    const read = await api.answers(name, ROWS);
    if (left) return;
    found = read;
    draw();
    put(table, found.rows.length ? answerTable(found, SHOWN) : h("p", { class: "soft" }, "no answer yet"));
  };
  const load = async () => {
    const [one, status] = await Promise.all([api.query(name), api.status()]);
    if (left) return;
    show(one, status.streams);
    drawn(chart, draw);
    await answers();
  };
  put(main, h("h1", {}, name), trouble);
  load().catch((error) => {
    if (error.problem && error.status !== 401) tellTrouble(trouble, error.problem);
  });
  const soon = throttled(1500, () => main.contains(chart) && answers().catch(() => {}));
  const unwatch = feed.watch((what) => { if (what === "round") soon(); });
  return () => { left = true; unwatch(); };
}

const tellTrouble = (place, problem) => wrong(put(place, h("div", { class: "verdict" })).firstChild, problem);

function figures(one) {
  const told = [
    ["Costs", work(one.seconds), "of work per second of event time"], ["Share of the plan", share(one.share), one.trees.join(", ") || "\u00a0"],
    ["Alone", work(one.alone), "without the other queries"], ["Rows per second", number(one.rows_per_second), one.window],
  ];
  return h("div", { class: "figures four" }, told.map(([label, value, more]) => h("div", { class: "figure" }, h("div", { class: "label" }, label), h("div", { class: "value" }, value), h("div", { class: "more", title: more }, more))));
}

/** The button that removes a query, after it was asked again. */
function removal(name, mayChange, trouble) {
  const remove = h("button", { class: "danger", type: "button", id: "remove", disabled: !mayChange }, "Remove");
  let sure = 0;
  const calm = () => { sure = 0; remove.textContent = "Remove"; };
  remove.addEventListener("click", async () => {
    if (!sure) {
      remove.textContent = "Remove it: sure?";
      sure = setTimeout(calm, 4000);
      return;
    }
    clearTimeout(sure);
    try {
      const done = await api.remove(name);
      note(`${name} is gone from round ${done.round} on`);
      location.hash = "#/queries";
    } catch (error) {
      calm();
      tellTrouble(trouble, error.problem);
    }
  });
  return remove;
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
