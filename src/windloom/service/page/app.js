// Which page is shown, who is asking, light or dark, and whether the service is there.

import { api, feed } from "/page/api.js";
import { byId, h, note, put, say } from "/page/dom.js";
import { editor } from "/page/editor.js";
import { overview } from "/page/overview.js";
import { plan } from "/page/plan.js";
import { queries } from "/page/queries.js";
import { query } from "/page/query.js";
import { waitText } from "/page/words.js";

const main = byId("main");
let leave = () => {};
let access = { level: "none", needs_token: true };

const mayChange = () => access.level === "admin";

function route() {
  const [, page = "", rest = ""] = location.hash.match(/^#\/(\w*)\/?(.*)$/) || [];
  return { page: page || "overview", name: safeDecode(rest) };
}

function safeDecode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function show() {
  leave();
  leave = () => {};
  if (access.level === "none") return logIn();
  const { page, name } = route();
  for (const link of document.querySelectorAll("#nav a")) {
    if (link.dataset.page === page || (page === "query" && link.dataset.page === "queries")) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (page === "queries") leave = queries(main);
  else if (page === "query") leave = query(main, name, mayChange());
  else if (page === "plan") leave = plan(main);
  else if (page === "new") leave = newQuery();
  else leave = overview(main);
}

function newQuery() {
  let left = false;
  put(main, h("h1", { class: "skip" }, "New query"));
  api.status().catch(() => ({ streams: [] })).then(({ streams }) => {
    if (left) return;
    put(main, h("section", { class: "card" }, h("h1", {}, "New query"), editor({ mayChange: mayChange(), streams })));
    byId("query-name").focus();
  });
  return () => { left = true; };
}

function logIn() {
  feed.forget();
  state("warn", "a token is needed");
  const token = h("input", { type: "password", id: "token", autocomplete: "current-password", required: true });
  const trouble = h("p", { class: "wrong-text", role: "alert", id: "login-trouble" }, "\u00a0");
  const submit = async (event) => {
    event.preventDefault();
    try {
      await api.logIn(token.value);
      await begin();
    } catch (error) {
      say(trouble, error.problem.message);
    }
  };
  put(main, h("section", { class: "card center" }, h("h1", {}, "Log in"), h("p", { class: "soft" }, "The token is in the token file of the service."),
    h("form", { onsubmit: submit }, h("div", { class: "field" }, h("label", { for: "token" }, "Token"), token), trouble, h("button", { class: "main", type: "submit", id: "login" }, "Log in"))));
  token.focus();
}

function state(kind, text) {
  document.querySelector(".dot").className = `dot ${kind}`;
  say(byId("state-text"), text);
}

let known = null; // the last status, and what rounds have changed of it since

function tellState() {
  const { active, message, round, rejected, waiting } = known;
  if (!active) state("bad", message);
  else if (waiting) state("bad", `round ${waiting.round} waits for ${waiting.sink}`);
  else state(rejected ? "warn" : "good", round === null ? message : `round ${round}${rejected ? `, ${rejected} not served` : ""}`);
  const alarm = byId("alarm");
  alarm.hidden = active && !waiting;
  if (waiting) say(alarm, waitText(waiting));
  else if (!active) say(alarm, message);
}

async function lookAtState() {
  known = await api.status().catch(() => null);
  if (known) tellState();
  else state("bad", "the service does not answer");
}

feed.watch((what, done) => {
  if (what === "round" && known) {
    known = { ...known, round: done.round, waiting: null };
    tellState();
  }
  if (what === "open" || what === "queries" || what === "waiting") lookAtState();
  if (what === "lost") state("bad", "connection lost, trying again");
});

async function begin() {
  try {
    access = await api.access();
  } catch (error) {
    state("bad", error.message);
    setTimeout(begin, 3000);
    return;
  }
  byId("logout").hidden = !access.needs_token || access.level === "none";
  if (access.level !== "none") {
    if (isSeen()) feed.open();
    lookAtState();
  }
  show();
}

const THEMES = ["auto", "light", "dark"];
const dark = matchMedia("(prefers-color-scheme: dark)");
const chosen = () => localStorage.getItem("theme") || "auto";
function paint() {
  const theme = chosen() === "auto" ? (dark.matches ? "dark" : "light") : chosen();
  document.documentElement.dataset.theme = theme;
  byId("theme").title = `Theme: ${chosen()}`;
}
byId("theme").addEventListener("click", () => {
  localStorage.setItem("theme", THEMES[(THEMES.indexOf(chosen()) + 1) % THEMES.length]);
  paint();
  note(`theme: ${chosen()}`);
});
dark.addEventListener("change", paint);

byId("logout").addEventListener("click", async () => {
  await api.logOut().catch(() => {});
  access = { level: "none", needs_token: true };
  byId("logout").hidden = true;
  show();
});

// A browser opens few connections to one place: a page that nobody sees leaves its own to the others.
const isSeen = () => document.visibilityState === "visible";
const watchAgain = () => {
  if (access.level === "none" || !isSeen()) return;
  feed.open();
  lookAtState();
};
document.addEventListener("visibilitychange", () => (isSeen() ? watchAgain() : feed.close()));
addEventListener("pagehide", () => feed.close());
addEventListener("pageshow", (event) => { if (event.persisted) watchAgain(); });

addEventListener("turned-away", () => {
  access = { level: "none", needs_token: true };
  show();
});
addEventListener("hashchange", () => {
  show();
  main.focus({ preventScroll: true });
  scrollTo(0, 0);
});
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA)$/.test(event.target.tagName)) return;
  if (event.key === "/" && byId("search")) {
    event.preventDefault();
    byId("search").focus();
  }
  const to = { n: "#/new", q: "#/queries", p: "#/plan", o: "#/" }[event.key];
  if (to) {
    event.preventDefault();
    location.hash = to;
  }
});

paint();
begin();
