// How the page asks: with the reader's token, which stays in this tab, and never in an address.
import { useEffect, useState } from "preact/hooks";
import type { List } from "./types";

const base = "/apis/answers.hekla.sh/v1alpha1/";
const store = "hekla-token";

/** takeToken takes a token out of the fragment of the address, if there is one, and returns the one to use. */
export function takeToken(): string {
  const given = /^#token=(.+)$/.exec(location.hash);
  if (given) {
    sessionStorage.setItem(store, decodeURIComponent(given[1]!));
    history.replaceState(null, "", location.pathname + "#/");
  }
  return sessionStorage.getItem(store) ?? "";
}

export function setToken(token: string): void {
  if (token) sessionStorage.setItem(store, token);
  else sessionStorage.removeItem(store);
}

/** Problem is an answer that is an error, with the status of HTTP; 0 if the scheduler could not be reached. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

let refused: (why: string) => void = () => {};
/** onRefused is called when the token is not, or no longer, good. */
export function onRefused(call: (why: string) => void): void {
  refused = call;
}

async function request(path: string, init: RequestInit = {}): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(base + path, {
      ...init,
      headers: { Accept: "application/json", ...init.headers, Authorization: `Bearer ${sessionStorage.getItem(store) ?? ""}` },
    });
  } catch (problem) {
    if ((problem as Error).name === "AbortError") throw problem;
    throw new Problem(0, "The scheduler cannot be reached.");
  }
  if (response.ok) return response;
  const said = (await response.json().catch(() => ({}))) as { message?: string };
  const message = said.message ?? response.statusText;
  if (response.status === 401) refused(message);
  throw new Problem(response.status, message);
}

export async function ask<T>(path: string, signal?: AbortSignal): Promise<T> {
  const response = await request(path, { signal: signal ?? null });
  return ((await response.json()) as { answer: T }).answer;
}

/** passes is true of a problem that may pass: what was read before is shown on, with its age, and is asked for again. */
function passes(problem: Problem): boolean {
  return problem.status === 0 || problem.status === 408 || problem.status === 429 || problem.status >= 500;
}

// The stream of changes. Every hook below is told of each, and asks for what it shows.
export type Connection = "connecting" | "live" | "stale" | "lost";
/** Link says how the page is connected: since when it was not up to date, in milliseconds, and why. */
export interface Link {
  state: Connection;
  since?: number;
  why: string;
}
const listeners = new Set<() => void>();
const watchers = new Set<() => void>();
/** failing are the requests whose last answer was an error that may pass, by what asks. */
const failing = new Map<object, string>();
let stopped: AbortController | undefined;
let stream: Connection = "connecting";
let trouble = "";
/** wrong is since when something has not been up to date. */
let wrong: number | undefined;

function tell(state: Connection, why = ""): void {
  // While it tries again, it says why it had to.
  trouble = state === "connecting" ? trouble : why;
  stream = state;
  notice();
}

function notice(): void {
  if (stream === "live" && !failing.size) wrong = undefined;
  else if (stream === "lost" || failing.size) wrong ??= Date.now();
  for (const w of watchers) w();
}

/** link is how the page is connected now. Nothing is live of which a part is not. */
function link(): Link {
  const state = stream === "live" && failing.size ? "stale" : stream;
  const why = state === "stale" ? [...failing.values()][0]! : trouble;
  return { state, why, ...(wrong === undefined ? {} : { since: wrong }) };
}

let hurry = () => {};
/** sleep waits, or until something calls hurry. */
function sleep(milliseconds: number): Promise<void> {
  return new Promise((done) => {
    const timer = setTimeout(done, milliseconds);
    hurry = () => {
      clearTimeout(timer);
      done();
    };
  });
}

export function disconnect(): void {
  stopped?.abort();
  stopped = undefined;
}

/** silence is how long the stream may bring nothing, in milliseconds. The scheduler says something every 15 seconds. */
const silence = 40_000;

/** heard passes on what a stream brings, and an error if it brings nothing for too long: a connection may end without a word. */
async function heard(reader: ReadableStreamDefaultReader<string>): Promise<ReadableStreamReadResult<string>> {
  let timer: number | undefined;
  const late = new Promise<never>((_, fail) => {
    timer = setTimeout(() => fail(new Problem(0, "The scheduler has said nothing for a while.")), silence);
  });
  try {
    return await Promise.race([reader.read(), late]);
  } finally {
    clearTimeout(timer);
  }
}

/** connect follows changes until disconnect is called. */
export async function connect(): Promise<void> {
  disconnect();
  const own = (stopped = new AbortController());
  const again = () => {
    if (!document.hidden) hurry();
  };
  addEventListener("online", again);
  document.addEventListener("visibilitychange", again);
  for (let wait = 500; !own.signal.aborted; wait = Math.min(wait * 2, 10_000)) {
    const attempt = new AbortController();
    const stop = () => attempt.abort();
    own.signal.addEventListener("abort", stop);
    try {
      tell("connecting");
      const response = await request("overviews?watch=true", { signal: attempt.signal, headers: { Accept: "text/event-stream" } });
      const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
      for (let text = ""; ;) {
        const { value, done } = await heard(reader);
        if (done) break;
        text += value;
        const events = text.split("\n\n");
        text = events.pop()!;
        if (events.some((e) => e.startsWith("event: change"))) {
          wait = 500;
          tell("live");
          for (const l of listeners) l();
        }
      }
      tell("lost", "The scheduler has ended the connection.");
    } catch (problem) {
      if (own.signal.aborted) break;
      tell("lost", (problem as Error).message);
      if (problem instanceof Problem && problem.status === 401) break;
    } finally {
      own.signal.removeEventListener("abort", stop);
      attempt.abort();
    }
    await sleep(wait);
  }
  removeEventListener("online", again);
  document.removeEventListener("visibilitychange", again);
}

export function useConnection(): Link {
  const [state, set] = useState<Link>(link);
  useEffect(() => {
    const watch = () => set(link());
    watchers.add(watch);
    watch();
    return () => {
      watchers.delete(watch);
    };
  }, []);
  return state;
}

/** pace is the shortest time between two requests for the same thing, in milliseconds. */
const pace = 1000;

/** longestWait is the longest time until what has failed is asked for again, in milliseconds. */
const longestWait = 10_000;

/**
 * follow asks at once and after each change, one request at a time, while the tab is seen. What has failed and may pass it asks for
 * again. It returns what ends it.
 */
function follow(load: (signal: AbortSignal) => Promise<void>, fail: (why: Problem) => void): () => void {
  const own = new AbortController();
  let busy = false,
    due = false,
    last = 0,
    failures = 0,
    notBefore = 0,
    wake = () => {};
  const settle = (why?: string) => {
    if (why === undefined ? failing.delete(own) : failing.set(own, why)) notice();
  };
  const run = async () => {
    busy = true;
    while (due && !own.signal.aborted) {
      for (let wait; (wait = Math.max(last + pace, notBefore) - Date.now()) > 0 && !own.signal.aborted;)
        await new Promise<void>((done) => {
          const timer = setTimeout(done, wait);
          wake = () => {
            clearTimeout(timer);
            done();
          };
        });
      if (own.signal.aborted || (document.hidden && last)) break; // visibilitychange asks again
      due = false;
      last = Date.now();
      try {
        await load(own.signal);
        failures = notBefore = 0;
        settle();
      } catch (e) {
        if (own.signal.aborted) break;
        const problem = e instanceof Problem ? e : new Problem(0, String(e));
        fail(problem);
        if (passes(problem)) {
          due = true;
          notBefore = Date.now() + Math.min(pace * 2 ** failures++, longestWait);
          settle(problem.message);
        } else settle();
      }
    }
    busy = false;
  };
  const go = () => {
    due = true;
    notBefore = 0; // the scheduler is there
    if (busy) wake();
    else if (!own.signal.aborted) void run();
  };
  const seen = () => {
    if (!document.hidden && due) go();
  };
  listeners.add(go);
  document.addEventListener("visibilitychange", seen);
  go();
  return () => {
    own.abort();
    wake();
    settle();
    listeners.delete(go);
    document.removeEventListener("visibilitychange", seen);
  };
}

/** Live is an answer: the last one that was read, when that was, and what was wrong with the request after it. */
export interface Live<T> {
  value?: T;
  at?: number;
  problem?: Problem;
}

/** failed is what is shown when a request has failed. What may not be seen any more, or is gone, is not shown on. */
function failed<T>(old: Live<T>, problem: Problem): Live<T> {
  return passes(problem) ? { ...old, problem } : { problem };
}

/** useAnswer is an answer that stays up to date. */
export function useAnswer<T>(path: string | undefined): Live<T> {
  const [state, set] = useState<Live<T> & { path?: string }>({});
  useEffect(() => {
    if (path === undefined) return;
    return follow(
      async (signal) => set({ path, value: await ask<T>(path, signal), at: Date.now() }),
      (problem) => set((old) => ({ ...failed(old.path === path ? old : {}, problem), path })),
    );
  }, [path]);
  return state.path === path ? state : {};
}

// What has been read of each list, so that going back to it shows it at once.
const lists = new Map<string, { token: string; rows: Map<string, unknown>; answer: unknown; at: number }>();

export function forgetLists(): void {
  lists.clear();
}

/** useList is a list that stays up to date: only rows that have changed are sent. */
export function useList<A extends List<R>, R>(part: string, name: (row: R) => string): Live<A> {
  const [state, set] = useState<Live<A>>(() => {
    const known = lists.get(part);
    return known ? { value: known.answer as A, at: known.at } : {};
  });
  useEffect(
    () =>
      follow(
        async (signal) => {
          const known = lists.get(part);
          const answer = await ask<A>(`overviews/${part}${known ? `?since=${encodeURIComponent(known.token)}` : ""}`, signal);
          const rows = answer.whole || !known ? new Map<string, unknown>() : known.rows;
          for (const row of answer.rows) rows.set(name(row), row);
          for (const gone of answer.gone ?? []) rows.delete(gone);
          const whole = { ...answer, rows: [...rows.values()] as R[] } as A;
          const at = Date.now();
          lists.set(part, { token: answer.token, rows, answer: whole, at });
          set({ value: whole, at });
        },
        (problem) => {
          if (!passes(problem)) lists.delete(part);
          set((old) => failed(old, problem));
        },
      ),
    [part],
  );
  return state;
}
