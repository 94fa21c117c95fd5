// Answers as a table, newest first.

import { h } from "/page/dom.js";
import { cell } from "/page/words.js";

const isNumber = (type) => /^(u?int|float|double|decimal)/.test(type);

/** `most` rows; the place that it is put into decides how many are seen at once. */
export function answerTable(found, most) {
  const rows = found.rows.slice(-most).reverse();
  const kind = (i) => (isNumber(found.types[i]) ? "num" : /^timestamp/.test(found.types[i]) ? "instant" : null);
  return h("div", { class: "scroll" }, h("table", { class: "answers" },
    h("thead", {}, h("tr", {}, found.columns.map((name, i) => h("th", { scope: "col", class: kind(i) }, name)))),
    h("tbody", {}, rows.map((row) => h("tr", {}, row.map((value, i) => h("td", { class: kind(i) }, cell(value, found.types[i]))))))));
}
