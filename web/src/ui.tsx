// What several pages show.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Live } from "./api";
import type { Entry, JobAnswer } from "./types";
import { Columns, save, toCSV, toJSON } from "./export";
import { amount, clock, plural, short, since, span, tail } from "./format";

export function jobAddress(job: string): string {
  const [namespace, ...name] = job.split("/");
  return `#/jobs/${encodeURIComponent(namespace!)}/${encodeURIComponent(name.join("/"))}`;
}

/** JobLink names a job, and leads to it unless its name is hidden. */
export function JobLink({ job }: { job: string | undefined }) {
  if (!job) return null;
  return job.startsWith("(") ? <span class="muted">{job}</span> : <a href={jobAddress(job)}>{job.replace("/workload/", "/")}</a>;
}

/** workloadID is the name of a Workload among those of jobs. */
export function workloadID(name: string): string {
  return name.startsWith("(") ? name : name.replace("/", "/workload/");
}

/** QuotaLink leads to a ClusterQueue or Cohort. */
export function QuotaLink({ kind, name }: { kind: "ClusterQueue" | "Cohort"; name: string }) {
  return <a href={`#/queues/${kind}/${encodeURIComponent(name)}`}>{name}</a>;
}

/** Further is what else keeps a job from starting, and the names in it that nothing in the cluster has. */
export function Further({ answer }: { answer: JobAnswer }) {
  const lines = [
    ...(answer.also ?? []).map((c) => ({ code: c.code, text: `Also ${c.code}: ${c.message}` })),
    ...(answer.mistakes ?? []).map((m) => ({ code: "", text: m.message })),
  ];
  if (lines.length === 0) return null;
  return (
    <ul class="further">
      {lines.map((line) => (
        <li key={line.text} data-also={line.code || undefined}>
          {line.text}
        </li>
      ))}
    </ul>
  );
}

export function Code({ code, never }: { code: string; never?: boolean | undefined }) {
  return <span class={`code ${never ? "bad" : code === "Running" || code === "Finished" ? "good" : "wait"}`}>{code}</span>;
}

export function State({ state }: { state: string }) {
  return <span class={`state ${state.toLowerCase()}`}>{state}</span>;
}

export function Clock({ time }: { time: string }) {
  return <time dateTime={time}>{clock(time)}</time>;
}

/** KnownSince says from when on a list of decisions is complete. */
export function KnownSince({ time }: { time: string }) {
  return (
    <>
      {" "}
      All since <Clock time={time} /> are known: what was decided before, also by another process that led, is not listed.
    </>
  );
}

/** Sentence is a sentence on one line. If the line is too short the middle is left out, and not its end. */
export function Sentence({ text }: { text: string | undefined }) {
  if (!text) return null;
  const [head, end] = tail(text);
  return (
    <span class="said ends" title={text}>
      {head && <span class="beginning">{head}</span>}
      <span class="end">
        <span>{end}</span>
      </span>
    </span>
  );
}

/** useFilter is a filter that is in the address of a page, so that it can be sent to somebody, and the way back finds it. */
export function useFilter(page: string, query: URLSearchParams): [(key: string) => string, (key: string, value: string) => void] {
  return [
    (key) => query.get(key) ?? "",
    (key, value) => {
      const next = new URLSearchParams(query);
      if (value) next.set(key, value);
      else next.delete(key);
      location.replace(`#/${page}${next.size ? `?${next}` : ""}`);
    },
  ];
}

/** NamespaceFilter chooses a namespace, or all. */
export function NamespaceFilter({ all, value, onChange }: { all: string[]; value: string; onChange: (value: string) => void }) {
  return (
    <label>
      Namespace{" "}
      <select value={value} onChange={(e) => onChange(e.currentTarget.value)}>
        <option value="">all</option>
        {(all.includes(value) || !value ? all : [value, ...all]).map((n) => (
          <option key={n}>{n}</option>
        ))}
      </select>
    </label>
  );
}

/** Export offers the rows that are shown as a file. */
export function Export<R>({ name, rows, columns }: { name: string; rows: R[]; columns: Columns<R> }) {
  return (
    <div class="chips" role="group" aria-label={`Export ${name}`}>
      <button type="button" onClick={() => save(`${name}.csv`, "text/csv", toCSV(rows, columns))}>
        CSV
      </button>
      <button type="button" onClick={() => save(`${name}.json`, "application/json", toJSON(rows, columns))}>
        JSON
      </button>
    </div>
  );
}

/** useNow is the time in milliseconds, and a new one each second while that is wanted. */
export function useNow(isWanted: boolean): number {
  const [now, set] = useState(Date.now);
  useEffect(() => {
    if (!isWanted) return;
    set(Date.now());
    const timer = setInterval(() => set(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [isWanted]);
  return now;
}

/** Old says how old values are that could not be read again, and why. */
function Old({ at, why }: { at: number; why: string }) {
  const now = useNow(true);
  return (
    <p class="note stale" role="status" data-age={Math.round((now - at) / 1000)}>
      These values are of <Clock time={new Date(at).toISOString()} />
      <span aria-hidden="true">, {span((now - at) / 1000)} ago</span>: {why.replace(/\.$/, "")}. Trying again.
    </p>
  );
}

/** Loaded shows what has been loaded, or why it has not. */
export function Loaded<T>({ live, children }: { live: Live<T>; children: (value: T) => ComponentChildren }) {
  return (
    <>
      {live.problem && live.value === undefined && (
        <p class="problem" role="alert">
          {live.problem.message}
        </p>
      )}
      {live.problem && live.value !== undefined && <Old at={live.at ?? 0} why={live.problem.message} />}
      {live.value !== undefined
        ? children(live.value)
        : !live.problem && (
            <p class="muted" role="status">
              Loading …
            </p>
          )}
    </>
  );
}

/** Card is a part of a page with a heading. */
export function Card({
  title,
  note,
  children,
  wide,
}: {
  title: string;
  note?: ComponentChildren;
  children: ComponentChildren;
  wide?: boolean;
}) {
  return (
    <section class={wide ? "card wide" : "card"}>
      <h2>
        {title}
        {note !== undefined && <small> {note}</small>}
      </h2>
      {children}
    </section>
  );
}

const words: Record<string, string> = {
  Bound: "bound",
  Evicted: "evicted",
  PlanBegun: "plan begun",
  PlanCancelled: "plan cancelled",
  PlanFulfilled: "plan fulfilled",
  Admitted: "admitted",
  SentBack: "sent back",
  VerdictChanged: "waits",
  NothingInTheWay: "nothing in the way",
};

/** Decision is one entry of the journal as a sentence. */
export function Decision({ entry: e, of }: { entry: Entry; of?: string }) {
  const isOwn = of !== undefined && e.job === of;
  return (
    <>
      <span class={`kind ${e.kind}`}>{words[e.kind] ?? e.kind}</span>{" "}
      {e.kind === "Evicted" || e.kind === "Bound" ? <b>{e.pod}</b> : !isOwn && <JobLink job={e.job} />}
      {e.kind === "Evicted" && !isOwn && e.job && (
        <>
          {" "}
          of <JobLink job={e.job} />
        </>
      )}
      {e.node && <> on {e.node}</>}
      {e.for && e.for !== of && (
        <>
          {" "}
          for <JobLink job={e.for} />
        </>
      )}
      {e.action && <> by {e.action}</>}
      {e.rule && (
        <>
          {" "}
          under <span class="rule">rule {e.rule}</span>
        </>
      )}
      {e.reason && (
        <>
          {" "}
          <Code code={e.reason} />
        </>
      )}
      {e.message && <span class="said">{e.message}</span>}
    </>
  );
}

/** Timeline lists entries, the newest first. */
export function Timeline({ entries, of, empty }: { entries: Entry[]; of?: string; empty: string }) {
  if (!entries.length) return <p class="muted">{empty}</p>;
  return (
    <ol class="timeline">
      {entries.map((e, i) => (
        <li key={`${e.cycle}-${i}`}>
          <Clock time={e.time} />
          <span class="cycle">cycle {e.cycle}</span>
          <div>
            <Decision entry={e} {...(of === undefined ? {} : { of })} />
          </div>
        </li>
      ))}
    </ol>
  );
}

export interface Column<R> {
  key: string;
  title: string;
  cell: (row: R) => ComponentChildren;
  sort: (a: R, b: R) => number;
  class?: string;
}

/** Sort is by which column a table is sorted; by none with the key "". */
export interface Sort {
  key: string;
  down: boolean;
}

/** turned is what a click on the head of a column makes of a sort: up, down, and then as it was at first. */
export function turned(old: Sort, key: string): Sort {
  if (old.key !== key) return { key, down: false };
  return old.down ? { key: "", down: false } : { key, down: true };
}

/** sorted returns rows in the order of a column, as they are if it is none. */
export function sorted<R>(rows: R[], columns: Column<R>[], sort: Sort): R[] {
  const column = columns.find((c) => c.key === sort.key);
  return column ? [...rows].sort((a, b) => (sort.down ? column.sort(b, a) : column.sort(a, b))) : rows;
}

function Head<R>({ column: c, sort, onSort }: { column: Column<R>; sort: Sort; onSort: (key: string) => void }) {
  return (
    <button type="button" onClick={() => onSort(c.key)}>
      {c.title}
      <span aria-hidden="true">{sort.key === c.key ? (sort.down ? " ▾" : " ▴") : ""}</span>
    </button>
  );
}

function direction(sort: Sort, key: string) {
  return sort.key === key ? (sort.down ? "descending" : "ascending") : "none";
}

/** Sheet is a table whose head sorts it. The first column names the row. It shows the first 1,000 rows. */
export function Sheet<R>({
  label,
  rows,
  columns,
  name,
  sort,
  onSort,
  selected,
}: {
  label: string;
  rows: R[];
  columns: Column<R>[];
  name: (row: R) => string;
  sort: Sort;
  onSort: (sort: Sort) => void;
  selected?: string | undefined;
}) {
  const most = 1000,
    [first, ...others] = columns;
  return (
    <>
      <div class="sheet" tabIndex={0} role="region" aria-label={label}>
        <table>
          <thead>
            <tr>
              {columns.map((c) => (
                <th key={c.key} scope="col" class={c.class ?? ""} aria-sort={direction(sort, c.key)}>
                  <Head column={c} sort={sort} onSort={(key) => onSort(turned(sort, key))} />
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, most).map((r) => (
              <tr key={name(r)} data-row={name(r)} class={name(r) === selected ? "selected" : ""}>
                <th scope="row" class={first!.class ?? ""}>
                  {first!.cell(r)}
                </th>
                {others.map((c) => (
                  <td key={c.key} class={c.class ?? ""}>
                    {c.cell(r)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {rows.length > most && <p class="muted">The first 1,000 of {plural(rows.length, "row")} are listed: filter them.</p>}
    </>
  );
}

/** Counted counts the jobs of a row. */
interface Counted {
  waiting: number;
  running: number;
  oldest: string | undefined;
}

/** demandColumn shows what jobs need that wait for admission, of the resources of a list. */
export function demandColumn<R>(resources: string[], dims: number[], of: (row: R) => number[] | undefined): Column<R> {
  return {
    key: "demand",
    title: "Demand that waits",
    class: "demand",
    // By the first resource of which there is a difference.
    sort: (a, b) => dims.map((d) => (of(a)?.[d] ?? 0) - (of(b)?.[d] ?? 0)).find((difference) => difference !== 0) ?? 0,
    cell: (r) =>
      dims
        .filter((d) => (of(r)?.[d] ?? 0) > 0)
        .map((d) => `${short(resources[d]!)} ${amount(resources[d]!, of(r)![d]!)}`)
        .join(", "),
  };
}

/** countColumns show how many jobs wait and run, and since when. jobs is the address of those of a row. */
export function countColumns<R extends Counted>(jobs: (row: R) => string | undefined): Column<R>[] {
  return [
    {
      key: "waiting",
      title: "Waiting",
      class: "number",
      cell: (r) => {
        const count = r.waiting.toLocaleString("en"),
          address = r.waiting ? jobs(r) : undefined;
        return address ? <a href={address}>{count}</a> : count;
      },
      sort: (a, b) => a.waiting - b.waiting,
    },
    {
      key: "running",
      title: "Running",
      class: "number",
      cell: (r) => r.running.toLocaleString("en"),
      sort: (a, b) => a.running - b.running,
    },
    {
      key: "oldest",
      title: "Oldest",
      class: "number",
      cell: (r) => (r.oldest ? since(r.oldest) : ""),
      // Ascending is from those that have waited for the shortest time, as the numbers say.
      sort: (a, b) => (b.oldest ?? "~").localeCompare(a.oldest ?? "~"),
    },
  ];
}

/** Grid is a table of any number of rows, of which only those in sight are in the document. Arrow keys move, Enter opens. */
export function Grid<R>({
  label,
  rows,
  columns,
  name,
  open,
  sort,
  onSort,
  rowHeight,
}: {
  label: string;
  rows: R[];
  columns: Column<R>[];
  name: (row: R) => string;
  open: (row: R) => void;
  sort: Sort;
  onSort: (sort: Sort) => void;
  rowHeight: number;
}) {
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(600);
  const [active, setActive] = useState<string>();
  const at = active === undefined ? -1 : rows.findIndex((r) => name(r) === active);
  useEffect(() => {
    const watch = new ResizeObserver(() => setHeight(box.current?.clientHeight ?? 600));
    watch.observe(box.current!);
    return () => watch.disconnect();
  }, []);
  const beyond = 8,
    first = Math.max(0, Math.floor(top / rowHeight) - beyond);
  const last = Math.min(rows.length, Math.ceil((top + height) / rowHeight) + beyond);
  const go = (index: number) => {
    const row = rows[Math.max(0, Math.min(rows.length - 1, index))];
    if (!row) return;
    setActive(name(row));
    const y = Math.max(0, Math.min(rows.length - 1, index)) * rowHeight,
      el = box.current!,
      head = el.firstElementChild!.clientHeight;
    if (y < el.scrollTop) el.scrollTop = y;
    else if (y + rowHeight + head > el.scrollTop + el.clientHeight) el.scrollTop = y + rowHeight + head - el.clientHeight;
  };
  const keys = (e: KeyboardEvent) => {
    const page = Math.max(1, Math.floor(height / rowHeight) - 2);
    const to: Record<string, number> = {
      ArrowDown: at + 1,
      ArrowUp: at - 1,
      PageDown: at + page,
      PageUp: at - page,
      Home: 0,
      End: rows.length - 1,
    };
    if (e.key === "Enter" && at >= 0) open(rows[at]!);
    else if (e.key in to) go(to[e.key]!);
    else return;
    e.preventDefault();
  };
  return (
    <div
      class="grid"
      role="grid"
      aria-label={label}
      aria-rowcount={rows.length + 1}
      tabIndex={0}
      ref={box}
      onKeyDown={keys}
      onScroll={(e) => setTop(e.currentTarget.scrollTop)}
      {...(at >= first && at < last ? { "aria-activedescendant": `row-${at}` } : {})}
    >
      <div class="row head" role="row" aria-rowindex={1}>
        {columns.map((c) => (
          <span key={c.key} role="columnheader" class={c.class ?? ""} aria-sort={direction(sort, c.key)}>
            <Head column={c} sort={sort} onSort={(key) => onSort(turned(sort, key))} />
          </span>
        ))}
      </div>
      <div class="body" role="rowgroup" style={{ height: `${rows.length * rowHeight}px` }}>
        {rows.slice(first, last).map((r, i) => (
          <div
            key={name(r)}
            id={`row-${first + i}`}
            role="row"
            aria-rowindex={first + i + 2}
            aria-selected={first + i === at}
            class={first + i === at ? "row active" : "row"}
            style={{ transform: `translateY(${(first + i) * rowHeight}px)`, height: `${rowHeight}px` }}
            onClick={() => open(r)}
          >
            {columns.map((c) => (
              <span key={c.key} role="gridcell" class={c.class ?? ""}>
                {c.cell(r)}
              </span>
            ))}
          </div>
        ))}
      </div>
    </div>
  );
}

/** useNarrow is true on a phone. */
export function useNarrow(): boolean {
  const query = "(max-width: 700px)";
  const [narrow, set] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const list = matchMedia(query),
      change = () => set(list.matches);
    list.addEventListener("change", change);
    return () => list.removeEventListener("change", change);
  }, []);
  return narrow;
}

/** Bars shows parts of a whole as one bar, with the same said in words. */
export function Bar({
  parts,
  whole,
  marks = [],
  label,
}: {
  parts: { class: string; value: number; title: string }[];
  whole: number;
  marks?: { class: string; value: number; title: string }[];
  label: string;
}) {
  const at = (value: number) => `${Math.max(0, Math.min(100, whole > 0 ? (value / whole) * 100 : 0))}%`;
  return (
    <div class="bar" role="img" aria-label={label} title={label}>
      {parts
        .filter((p) => p.value > 0)
        .map((p) => (
          <span key={p.class} class={`part ${p.class}`} style={{ width: at(p.value) }} />
        ))}
      {marks.map((m) => (
        <span key={m.class} class={`mark ${m.class}`} style={{ left: at(m.value) }} />
      ))}
    </div>
  );
}
