// Requests to the API, and the one stream of events that every page shares.

export class Refused extends Error {
  constructor(status, problem) {
    super(problem.message);
    this.status = status;
    this.problem = problem;
  }
}

async function call(method, path, body, signal) {
  const options = { method, signal, headers: {}, credentials: "same-origin" };
  if (body !== undefined) {
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  let answer;
  try {
    answer = await fetch(`/api/v1/${path}`, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, { message: "the service does not answer", detail: "", hint: "is it still running?" });
  }
  if (answer.ok) return answer.json();
  const told = await answer.json().catch(() => ({ error: { message: `status ${answer.status}` } }));
  if (answer.status === 401 && path !== "login") window.dispatchEvent(new Event("turned-away"));
  throw new Refused(answer.status, told.error);
}

const name = encodeURIComponent;

export const api = {
  access: () => call("GET", "login"),
  logIn: (token) => call("POST", "login", { token }),
  logOut: () => call("DELETE", "login"),
  status: () => call("GET", "status"),
  rounds: () => call("GET", "rounds"),
  plan: () => call("GET", "plan"),
  sharing: () => call("GET", "sharing"),
  queries: () => call("GET", "queries"),
  query: (one) => call("GET", `queries/${name(one)}`),
  answers: (one, limit) => call("GET", `queries/${name(one)}/answers?limit=${limit}`),
  latest: (all) => call("GET", `latest?${all.map((one) => `query=${name(one)}`).join("&")}`),
  dryRun: (text, signal) => call("POST", "queries/dry-run", { text }, signal),
  ask: (text) => call("POST", "ask", { text }),
  add: (one, text) => call("POST", "queries", { name: one, text }),
  replace: (one, text) => call("PUT", `queries/${name(one)}`, { text }),
  remove: (one) => call("DELETE", `queries/${name(one)}`),
};

/** Rounds of this process, newest last; `watch` calls back for each that comes, when queries change and when one waits. */
export const feed = {
  rounds: [],
  listeners: new Set(),
  source: null,

  open() {
    this.close();
    const last = this.rounds.at(-1);
    this.source = new EventSource(`/api/v1/rounds/live${last ? `?after=${last.round}` : ""}`);
    this.source.addEventListener("round", (event) => {
      const done = JSON.parse(event.data);
      this.rounds = [...this.rounds.filter((one) => one.round < done.round), done].slice(-100);
      this.tell("round", done);
    });
    for (const what of ["queries", "waiting"]) this.source.addEventListener(what, () => this.tell(what));
    this.source.addEventListener("open", () => this.tell("open"));
    this.source.addEventListener("error", () => this.tell("lost"));
  },

  close() {
    if (this.source) this.source.close();
    this.source = null;
  },

  forget() {
    this.close();
    this.rounds = [];
  },

  watch(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  },

  tell(what, value) {
    for (const listener of [...this.listeners]) listener(what, value);
  },
};
