// All queries as a table to search and sort, with what each costs and its latest answer.

import { api, feed } from "/page/api.js";
import { sparkline } from "/page/charts.js";
import { breakable, byId, debounced, h, put, throttled } from "/page/dom.js";
import { cell, counted, number, share, work } from "/page/words.js";

/** Rows drawn at once; the search finds the others. */
const MOST = 200;
/** Queries whose latest answers are asked for at once. */
const AT_ONCE = 50;

const COLUMNS = [
  { key: "name", label: "query", order: 1 },
  { key: "window", label: "window", order: 1, wide: true },
  { key: "share", label: "cost share", order: -1, num: true },
  { key: "seconds", label: "costs", order: -1, num: true, wide: true },
  { key: "alone", label: "alone", order: -1, num: true, wide: true },
  { key: "rows_per_second", label: "rows/s", order: -1, num: true, wide: true },
  { key: null, label: "last answer" },
  { key: null, label: "", wide: true },
];

export function queries(main) {
  let all = [], wrong = [], latest = {}, sort = { key: "share", order: -1 };
  const search = h("input", { type: "search", id: "search", placeholder: "Search names and texts ( / )", "aria-label": "Search queries" });
  const count = h("span", { class: "soft" }, "\u00a0");
  const head = h("tr", {}), body = h("tbody", {}), bad = h("div", {});
  const show = () => put(
    main,
    h("div", { class: "row" }, h("div", { class: "grow" }, search), count, h("a", { class: "button", href: "#/new" }, "New query")),
    bad,
    h("section", { class: "card scroll", "aria-label": "Queries" }, h("table", { id: "queries", class: "fixed" }, h("thead", {}, head), body)),
  );
  let left = false;

  const shown = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = all.filter((one) => words.every((word) => `${one.name} ${one.text}`.toLowerCase().includes(word)));
    const value = (one) => one[sort.key] ?? -1;
    return found.sort((a, b) => (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : a.name < b.name ? -1 : 1) * (value(a) === value(b) ? 1 : sort.order));
  };
  const draw = () => {
    const found = shown(), focused = document.activeElement, id = body.contains(focused) || head.contains(focused) ? focused.id : null;
    put(head, COLUMNS.map(header));
    put(body, found.slice(0, MOST).map((one) => row(one, latest[one.name])));
    if (id) byId(id)?.focus();
    count.textContent = found.length === all.length ? counted(all.length, "query", "queries") : `${found.length} of ${counted(all.length, "query", "queries")}`;
    put(bad, wrong.map(rejected));
  };
  const header = (column) => {
    const kind = [column.num && "num", column.wide && "wide", `w-${column.key || column.label.replace(" ", "-") || "spark"}`].filter(Boolean).join(" ");
    if (!column.key) return h("th", { scope: "col", class: kind }, column.label);
    const current = sort.key === column.key && (sort.order > 0 ? "ascending" : "descending");
    const turn = () => {
      sort = { key: column.key, order: sort.key === column.key ? -sort.order : column.order };
      draw();
      fetchLatest();
    };
    return h("th", { scope: "col", class: kind, "aria-sort": current || null }, h("button", { type: "button", id: `sort-${column.key}`, onclick: turn }, column.label));
  };
  const fetchLatest = async () => {
    const names = shown().slice(0, AT_ONCE).map((one) => one.name);
    if (!names.length) return;
    const found = await api.latest(names).catch(() => null);
    if (found && main.contains(body)) {
      latest = { ...latest, ...found };
      for (const name of names) {
        const cells = byId(`answer-${name}`);
        if (cells) put(cells, lastAnswer(latest[name])) && put(byId(`spark-${name}`), sparkline(latest[name]?.points || []));
      }
    }
  };
  const refresh = async () => {
    const found = await api.queries();
    if (left) return;
    if (!main.contains(body)) show();
    all = found.queries;
    wrong = found.rejected;
    draw();
    await fetchLatest();
  };
  search.addEventListener("input", debounced(150, () => { draw(); fetchLatest(); }));
  put(main, h("h1", { class: "skip" }, "Queries"));
  refresh().catch(() => {});
  const soon = throttled(1500, () => main.contains(body) && fetchLatest());
  const unwatch = feed.watch((what) => {
    if (what === "queries") refresh().catch(() => {});
    if (what === "round") soon();
  });
  return () => { left = true; unwatch(); };
}

function row(one, latest) {
  const to = `#/query/${encodeURIComponent(one.name)}`;
  const meter = h("span", { class: "meter", "aria-hidden": "true" }, h("i", {}));
  meter.firstChild.style.width = `${Math.max(2, 100 * (one.share || 0))}%`;
  const open = (event) => { if (event.target.tagName !== "A") location.hash = to; };
  return h("tr", { class: "link", onclick: open },
    h("td", { class: "name" }, h("a", { href: to, id: `open-${one.name}` }, breakable(one.name))), h("td", { class: "wide soft window" }, one.window),
    h("td", { class: "num" }, meter, h("span", { class: "percent" }, share(one.share))), h("td", { class: "num wide" }, work(one.seconds)),
    h("td", { class: "num wide soft" }, work(one.alone)), h("td", { class: "num wide" }, number(one.rows_per_second)),
    h("td", { class: "clip", id: `answer-${one.name}` }, lastAnswer(latest)), h("td", { class: "wide", id: `spark-${one.name}` }, sparkline(latest?.points || [])));
}

function lastAnswer(latest) {
  if (!latest) return h("span", { class: "soft" }, "…");
  if (!latest.row) return h("span", { class: "soft" }, "none yet");
  const own = Object.entries(latest.row).filter(([name]) => !name.startsWith("window_"));
  const told = [...own.filter(([name]) => name === latest.figure), ...own.filter(([name]) => name !== latest.figure)];
  return h("span", {}, told.map(([name, value], i) => [i ? ", " : "", h("span", { class: "soft" }, `${name} `), typeof value === "number" ? number(value) : cell(value)]));
}

function rejected(one) {
  return h("section", { class: "card verdict wrong" }, h("p", { class: "wrong-text" }, `Not served: ${one.error.message}`), h("pre", {}, one.error.detail), one.error.hint && h("p", {}, one.error.hint));
}
