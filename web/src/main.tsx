import { render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import "uplot/dist/uPlot.min.css";
import "./style.css";
import { connect, disconnect, forgetLists, onRefused, setToken, takeToken, useConnection } from "./api";
import { span } from "./format";
import { Charts } from "./pages/charts";
import { Cycles } from "./pages/cycles";
import { Evictions } from "./pages/evictions";
import { Job } from "./pages/job";
import { Jobs } from "./pages/jobs";
import { Nodes } from "./pages/nodes";
import { Overview } from "./pages/overview";
import { Queues } from "./pages/queues";
import { Workload } from "./pages/workload";
import { Clock, useNow } from "./ui";

const pages: { key: string; title: string; short: string }[] = [
  { key: "", title: "Overview", short: "o" },
  { key: "queues", title: "Queues", short: "q" },
  { key: "jobs", title: "Jobs", short: "j" },
  { key: "nodes", title: "Nodes", short: "n" },
  { key: "evictions", title: "Evictions", short: "e" },
  { key: "charts", title: "Charts", short: "h" },
  { key: "cycles", title: "Cycles", short: "c" },
];

/** usePath is the address behind the #, in parts, and what follows its question mark. */
function usePath(): { parts: string[]; query: URLSearchParams } {
  const read = () => {
    const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
    return { parts: path!.split("/").map(decodeURIComponent), query: new URLSearchParams(query) };
  };
  const [path, set] = useState(read);
  useEffect(() => {
    const change = () => set(read());
    addEventListener("hashchange", change);
    return () => removeEventListener("hashchange", change);
  }, []);
  return path;
}

function Login({ why, enter }: { why: string; enter: (token: string) => void }) {
  const [token, set] = useState("");
  return (
    <main class="login" id="main">
      <h1>Hekla</h1>
      <p>
        The page shows what you may see, by your token of this cluster. The token stays in this tab, and is sent to this scheduler only.
      </p>
      {why && (
        <p class="problem" role="alert">
          {why}
        </p>
      )}
      <form
        onSubmit={(e) => {
          e.preventDefault();
          if (token.trim()) enter(token.trim());
        }}
      >
        <label for="token">Bearer token</label>
        <input
          id="token"
          type="password"
          autocomplete="off"
          spellcheck={false}
          value={token}
          onInput={(e) => set(e.currentTarget.value)}
          autofocus
        />
        <button type="submit">Show</button>
      </form>
      <p class="muted">
        On a local cluster, <code>hekla up</code> prints an address with a token. On others, a ServiceAccount that may view a namespace has
        one: <code>kubectl -n NAMESPACE create token NAME</code>
      </p>
    </main>
  );
}

const linked = { live: "live", stale: "not up to date", lost: "not connected", connecting: "connecting" };

function Live() {
  const { state, why } = useConnection();
  return (
    <span class={`live is-${state}`} role="status" title={why}>
      {linked[state]}
    </span>
  );
}

/** patience is how long the page may be behind until it says so, in milliseconds: a new connection takes a moment. */
const patience = 2000;

/** Stale says that what is shown is old, since when, and why. */
function Stale() {
  const { since, why } = useConnection();
  const now = useNow(since !== undefined);
  if (since === undefined || now - since < patience) return null;
  return (
    <p class="note stale" role="status">
      What is shown is not up to date{" "}
      <span aria-hidden="true">
        since <Clock time={new Date(since).toISOString()} />, {span((now - since) / 1000)}
      </span>
      : {(why || "the connection is lost").replace(/\.$/, "")}. Trying again.
    </p>
  );
}

function Help({ close }: { close: () => void }) {
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    box.current!.showModal();
  }, []);
  return (
    <dialog ref={box} aria-labelledby="keys" onClose={close}>
      <h2 id="keys">Keys</h2>
      <dl class="keys">
        {pages.map((p) => (
          <div key={p.key}>
            <dt>
              <kbd>g</kbd> <kbd>{p.short}</kbd>
            </dt>
            <dd>{p.title}</dd>
          </div>
        ))}
        <div>
          <dt>
            <kbd>/</kbd>
          </dt>
          <dd>filter</dd>
        </div>
        <div>
          <dt>
            <kbd>↑</kbd> <kbd>↓</kbd> <kbd>Enter</kbd>
          </dt>
          <dd>move in a table, and open</dd>
        </div>
        <div>
          <dt>
            <kbd>?</kbd>
          </dt>
          <dd>this help</dd>
        </div>
      </dl>
      <form method="dialog">
        <button>Close</button>
      </form>
    </dialog>
  );
}

function Page({ leave }: { leave: () => void }) {
  const {
    parts: [page = "", ...rest],
    query,
  } = usePath();
  const [help, setHelp] = useState(false);
  const main = useRef<HTMLElement>(null);
  const path = [page, ...rest].join("/"),
    shown = useRef(path);
  useEffect(() => {
    document.title = `${rest.at(-1) || (pages.find((p) => p.key === page)?.title ?? "Overview")} · Hekla`;
    if (shown.current === path) return;
    shown.current = path;
    scrollTo(0, 0);
    main.current!.focus({ preventScroll: true }); // a screen reader reads on from here
  }, [path]);
  useEffect(() => {
    let last = "";
    const keys = (e: KeyboardEvent) => {
      const inText =
        e.target instanceof HTMLInputElement || e.target instanceof HTMLSelectElement || e.target instanceof HTMLTextAreaElement;
      if (inText || e.ctrlKey || e.metaKey || e.altKey) return;
      const to = last === "g" ? pages.find((p) => p.short === e.key) : undefined;
      last = e.key;
      if (to) location.hash = `#/${to.key}`;
      else if (e.key === "?") setHelp(true);
      else if (e.key === "/") document.querySelector<HTMLElement>("[data-filter]")?.focus();
      else return;
      e.preventDefault();
    };
    addEventListener("keydown", keys);
    return () => removeEventListener("keydown", keys);
  }, []);
  return (
    <>
      <a
        class="skip"
        href="#main"
        onClick={(e) => {
          e.preventDefault();
          main.current!.focus();
        }}
      >
        Skip to the content
      </a>
      <header>
        <a class="brand" href="#/">
          Hekla
        </a>
        <nav aria-label="Pages">
          {pages.map((p) => (
            <a key={p.key} href={`#/${p.key}`} {...(p.key === page ? { "aria-current": "page" as const } : {})}>
              {p.title}
            </a>
          ))}
        </nav>
        <Live />
        <button type="button" class="plain" onClick={() => setHelp(true)} aria-label="Keys">
          ?
        </button>
        <button type="button" class="plain" onClick={leave}>
          Sign out
        </button>
      </header>
      <main id="main" ref={main} tabIndex={-1}>
        <Stale />
        {page === "queues" ? (
          <Queues selected={rest.length === 1 ? rest[0] : undefined} quota={rest.length > 1 ? rest.join("/") : undefined} />
        ) : page === "jobs" && rest.length > 1 && rest[1]!.startsWith("workload/") ? (
          <Workload key={path} namespace={rest[0]!} name={rest[1]!.slice("workload/".length)} />
        ) : page === "jobs" && rest.length > 1 ? (
          <Job key={path} namespace={rest[0]!} name={rest.slice(1).join("/")} />
        ) : page === "jobs" ? (
          <Jobs query={query} />
        ) : page === "nodes" ? (
          <Nodes selected={rest[0]} />
        ) : page === "evictions" ? (
          <Evictions query={query} />
        ) : page === "charts" ? (
          <Charts query={query} />
        ) : page === "cycles" ? (
          <Cycles />
        ) : (
          <Overview />
        )}
      </main>
      {help && <Help close={() => setHelp(false)} />}
    </>
  );
}

function App() {
  const [token, set] = useState(takeToken);
  const [why, setWhy] = useState("");
  const use = (next: string, reason = "") => {
    setToken(next);
    forgetLists();
    setWhy(reason);
    set(next);
  };
  useEffect(() => {
    onRefused((reason) => use("", `The token was refused: ${reason}`));
    // An address with a token may be opened in a tab that shows the page already.
    const given = () => {
      if (location.hash.startsWith("#token=")) use(takeToken());
    };
    addEventListener("hashchange", given);
    return () => removeEventListener("hashchange", given);
  }, []);
  useEffect(() => {
    if (token) void connect();
    return disconnect;
  }, [token]);
  return token ? <Page leave={() => use("")} /> : <Login why={why} enter={use} />;
}

render(<App />, document.getElementById("page")!);
