// Writing a query: mistakes and costs are told as one types; add it, put it in another's place, or ask once.

import { api } from "/page/api.js";
import { debounced, h, note, put } from "/page/dom.js";
import { answerTable } from "/page/tables.js";
import { counted, instant, work } from "/page/words.js";

const IS_NUMBER = /^(tinyint|smallint|int|bigint|float|double|decimal)/;

/** A query over one of the streams, as an example to begin with. */
function example(streams) {
  const [stream] = streams;
  if (!stream) return "SELECT … FROM … [RANGE 1 hour SLIDE 1 minute]";
  const columns = Object.entries(stream.columns).filter(([name]) => name !== stream.time);
  const figure = columns.find(([, kind]) => IS_NUMBER.test(kind)), group = columns.find(([, kind]) => kind === "string");
  const shown = [group && group[0], figure ? `avg(${figure[0]}) AS average` : "count(*) AS n"].filter(Boolean).join(", ");
  return `SELECT ${shown} FROM ${stream.name} [RANGE 1 hour SLIDE 1 minute]${group ? ` GROUP BY ${group[0]}` : ""}`;
}

const described = (stream) => h("p", { class: "stream" }, h("strong", {}, stream.name), h("span", { class: "soft" }, ` ${Object.entries(stream.columns).map(([name, kind]) => `${name} ${kind}`).join(", ")}`));

/** `replacing` is the name of the query whose place it takes; `mayChange` whether the token allows changes. */
export function editor({ text = "", replacing = null, mayChange = true, streams = [] }) {
  let stop = new AbortController();
  const name = h("input", { id: "query-name", autocomplete: "off", spellcheck: "false", maxlength: "200" });
  const area = h("textarea", { id: "query-text", spellcheck: "false", placeholder: example(streams), "aria-describedby": "verdict", value: text });
  const verdict = h("div", { class: "verdict", id: "verdict", role: "status" }, h("p", { class: "soft" }, replacing ? "Change the text to see what that would cost." : "What it would cost is shown here."));
  const add = h("button", { class: "main", type: "submit", id: "add", disabled: true }, replacing ? "Replace" : "Add");
  const ask = h("button", { type: "button", id: "ask", disabled: !text }, "Ask once");
  const answer = h("div", { id: "answer" });
  let isRight = false;

  const settle = () => {
    const changed = !replacing || area.value.trim() !== text.trim();
    add.disabled = !mayChange || !isRight || !changed || (!replacing && !name.value.trim());
    ask.disabled = !area.value.trim();
  };
  const judge = async () => {
    stop.abort();
    stop = new AbortController();
    isRight = false;
    settle();
    if (!area.value.trim() || (replacing && area.value.trim() === text.trim())) return;
    try {
      const found = await api.dryRun(area.value, stop.signal);
      isRight = found.allowed;
      right(verdict, found);
      area.removeAttribute("aria-invalid");
    } catch (error) {
      if (error.name === "AbortError") return;
      wrong(verdict, error.problem);
      area.setAttribute("aria-invalid", "true");
    }
    settle();
  };
  const submit = async (event) => {
    event.preventDefault();
    add.disabled = true;
    try {
      const one = replacing || name.value.trim();
      const done = await (replacing ? api.replace(one, area.value) : api.add(one, area.value));
      note(`${one} takes part from round ${done.round} on${done.complete_from ? `, complete from ${instant(done.complete_from)}` : ""}${done.warning ? `; ${done.warning}` : ""}`);
      location.hash = `#/query/${encodeURIComponent(one)}`;
      if (replacing) window.dispatchEvent(new HashChangeEvent("hashchange"));
    } catch (error) {
      wrong(verdict, error.problem);
      settle();
    }
  };
  const once = async () => {
    ask.disabled = true;
    put(answer, h("p", { class: "soft" }, "asking …"));
    try {
      const found = await api.ask(area.value);
      put(answer, h("h2", {}, `${counted(found.rows.length, "row")}, complete up to ${instant(found.watermark)}`), answerTable(found, 200));
    } catch (error) {
      put(answer);
      wrong(verdict, error.problem);
    }
    settle();
  };
  const soon = debounced(350, judge);
  area.addEventListener("input", () => { isRight = false; settle(); soon(); });
  name.addEventListener("input", settle);
  ask.addEventListener("click", once);
  return h("form", { onsubmit: submit, autocomplete: "off" },
    !replacing && h("div", { class: "field" }, h("label", { for: "query-name" }, "Name"), name),
    h("div", { class: "field" }, h("label", { for: "query-text" }, "Query"), area, !replacing && streams.map(described)),
    verdict,
    h("div", { class: "row" }, add, ask, !mayChange && h("span", { class: "soft" }, "this token may only read")),
    answer);
}

function right(place, found) {
  place.classList.toggle("wrong", !found.allowed);
  put(place,
    found.keeps.length > 0 ? kept(found) : costs(found),
    h("p", { class: "soft" }, `${found.place}; ${found.complete_from ? `complete from ${instant(found.complete_from)}` : "complete from the beginning"}`),
    !found.allowed && h("p", { class: "wrong-text" }, `more than the ${work(found.max_cost)} that are allowed`));
}

function costs(found) {
  const spared = found.alone > 0 && found.added < found.alone ? `; alone it would take ${work(found.alone)}` : "";
  return [h("p", { class: "cost" }, `adds ${work(found.added)}`), h("p", {}, `of event time, to ${work(found.before)} now${spared}`)];
}

/** The work of a row query is not predicted: what is kept for it says more. */
function kept(found) {
  return [h("p", { class: "cost" }, "keeps tuples"), found.keeps.map((each) => h("p", {}, each))];
}

export function wrong(place, problem) {
  place.classList.add("wrong");
  put(place, h("p", { class: "wrong-text" }, problem.message), problem.detail && h("pre", {}, problem.detail), problem.hint && h("p", {}, problem.hint));
}
