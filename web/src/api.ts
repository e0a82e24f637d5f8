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

// The stream of changes. Every hook below is told of each, and asks for what it shows.
export type Connection = "connecting" | "live" | "lost";
const listeners = new Set<() => void>();
const watchers = new Set<(state: Connection, why: string) => void>();
let stopped: AbortController | undefined;

function tell(state: Connection, why = ""): void {
  for (const w of watchers) w(state, why);
}

export function disconnect(): void {
  stopped?.abort();
  stopped = undefined;
}

/** connect follows changes until disconnect is called. */
export async function connect(): Promise<void> {
  disconnect();
  const own = (stopped = new AbortController());
  for (let wait = 500; !own.signal.aborted; wait = Math.min(wait * 2, 10_000)) {
    try {
      tell("connecting");
      const response = await request("overviews?watch=true", { signal: own.signal, headers: { Accept: "text/event-stream" } });
      const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
      for (let text = ""; ;) {
        const { value, done } = await reader.read();
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
      if (own.signal.aborted) return;
      tell("lost", (problem as Error).message);
      if (problem instanceof Problem && problem.status === 401) return;
    }
    await new Promise((done) => setTimeout(done, wait));
  }
}

export function useConnection(): [Connection, string] {
  const [state, set] = useState<[Connection, string]>(["connecting", ""]);
  useEffect(() => {
    const watch = (s: Connection, why: string) => set([s, why]);
    watchers.add(watch);
    return () => {
      watchers.delete(watch);
    };
  }, []);
  return state;
}

/** pace is the shortest time between two requests for the same thing, in milliseconds. */
const pace = 1000;

/** follow asks at once and after each change, one request at a time, while the tab is seen. It returns what ends it. */
function follow(load: (signal: AbortSignal) => Promise<void>, fail: (why: Problem) => void): () => void {
  const own = new AbortController();
  let busy = false,
    due = false,
    last = 0;
  const go = async () => {
    due = true;
    if (busy || own.signal.aborted) return;
    busy = true;
    while (due && !own.signal.aborted) {
      const wait = last + pace - Date.now();
      if (wait > 0) await new Promise((done) => setTimeout(done, wait));
      if (document.hidden && last) break; // visibilitychange asks again
      due = false;
      last = Date.now();
      try {
        await load(own.signal);
      } catch (problem) {
        if (!own.signal.aborted) fail(problem instanceof Problem ? problem : new Problem(0, String(problem)));
      }
    }
    busy = false;
  };
  const seen = () => {
    if (!document.hidden && due) void go();
  };
  listeners.add(go);
  document.addEventListener("visibilitychange", seen);
  void go();
  return () => {
    own.abort();
    listeners.delete(go);
    document.removeEventListener("visibilitychange", seen);
  };
}

export interface Live<T> {
  value?: T;
  problem?: Problem;
}

/** useAnswer is an answer that stays up to date. */
export function useAnswer<T>(path: string | undefined): Live<T> {
  const [state, set] = useState<Live<T> & { path?: string }>({});
  useEffect(() => {
    if (path === undefined) return;
    return follow(
      async (signal) => set({ path, value: await ask<T>(path, signal) }),
      (problem) => set((old) => ({ path, problem, ...(old.path === path && problem.status === 0 ? { value: old.value } : {}) })),
    );
  }, [path]);
  return state.path === path ? state : {};
}

// What has been read of each list, so that going back to it shows it at once.
const lists = new Map<string, { token: string; rows: Map<string, unknown>; answer: unknown }>();

export function forgetLists(): void {
  lists.clear();
}

/** useList is a list that stays up to date: only rows that have changed are sent. */
export function useList<A extends List<R>, R>(part: string, name: (row: R) => string): Live<A> {
  const [state, set] = useState<Live<A>>(() => ({ value: lists.get(part)?.answer as A | undefined }));
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
          lists.set(part, { token: answer.token, rows, answer: whole });
          set({ value: whole });
        },
        (problem) => set((old) => ({ ...(problem.status === 0 ? old : {}), problem })),
      ),
    [part],
  );
  return state;
}
