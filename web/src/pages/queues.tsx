import { useMemo, useState } from "preact/hooks";
import { useAnswer, useList } from "../api";
import { amount, byName, main, plural, short, since } from "../format";
import type { QueueAnswer, QueueRow, Queues as Answer } from "../types";
import { Bar, Card, JobLink, Loaded } from "../ui";
import { Quotas } from "./quotas";

const nameOf = (q: QueueRow) => q.queue;
/** limit is a limit of a resource, undefined if there is none. */
const limit = (list: number[] | undefined, d: number) => (list?.[d] === undefined || list[d]! < 0 ? undefined : list[d]!);

function QueueBar({ queue: q, resource, d, scale }: { queue: QueueRow; resource: string; d: number; scale: number }) {
  const holds = q.holds?.[d] ?? 0,
    borrowed = q.borrowed?.[d] ?? 0,
    requests = q.requests?.[d] ?? 0;
  const guarantee = limit(q.guarantee, d),
    deserved = limit(q.deserved, d),
    ceiling = limit(q.ceiling, d);
  const write = (v: number | undefined, none: string) => (v === undefined ? none : amount(resource, v));
  const label =
    `${short(resource)}: uses ${amount(resource, holds)}${borrowed > 0 ? `, of which ${amount(resource, borrowed)} is borrowed` : ""}; requests ${amount(resource, requests)}; ` +
    `guarantee ${write(guarantee, "none")}; share ${write(deserved, "none")}; ceiling ${write(ceiling, "none")}`;
  return (
    <div class="queuebar">
      <span class="resource">{short(resource)}</span>
      <Bar
        label={label}
        whole={scale}
        parts={[
          { class: "used", value: holds - borrowed, title: "used" },
          { class: "borrowed", value: borrowed, title: "borrowed" },
          { class: "asked", value: Math.max(0, requests - holds), title: "requested" },
        ]}
        marks={[
          ...(guarantee ? [{ class: "guarantee", value: guarantee, title: "guarantee" }] : []),
          ...(deserved !== undefined ? [{ class: "share", value: deserved, title: "share" }] : []),
          ...(ceiling !== undefined ? [{ class: "ceiling", value: ceiling, title: "ceiling" }] : []),
        ]}
      />
      <span class="figures" aria-hidden="true">
        {amount(resource, holds)}
        {deserved !== undefined && ` / ${amount(resource, deserved)}`}
        {borrowed > 0 && <b> +{amount(resource, borrowed)} borrowed</b>}
      </span>
    </div>
  );
}

/** Branch is a queue in the tree. Its numbers of jobs include those of the queues below it, as amounts do. */
interface Branch {
  row: QueueRow;
  children: Branch[];
  depth: number;
  waiting: number;
  running: number;
  oldest: string | undefined;
}

function treeOf(rows: QueueRow[]): Branch[] {
  const all = new Map(
    rows.map((row) => [
      row.queue,
      { row, children: [], depth: 0, waiting: row.pending + row.admitted, running: row.running, oldest: row.oldest } as Branch,
    ]),
  );
  const roots: Branch[] = [];
  for (const b of all.values()) {
    const parent = b.row.parent ? all.get(b.row.parent) : undefined;
    (parent && parent !== b ? parent.children : roots).push(b);
  }
  const sort = (list: Branch[], depth: number) => {
    list.sort((a, b) => byName(a.row.queue, b.row.queue));
    for (const b of list) {
      b.depth = depth;
      if (depth < 50) sort(b.children, depth + 1);
      for (const below of b.children) {
        b.waiting += below.waiting;
        b.running += below.running;
        if (below.oldest && (!b.oldest || below.oldest < b.oldest)) b.oldest = below.oldest;
      }
    }
  };
  sort(roots, 0);
  return roots;
}

function flat(list: Branch[], closed: Set<string>, out: Branch[] = []): Branch[] {
  for (const b of list) {
    out.push(b);
    if (!closed.has(b.row.queue)) flat(b.children, closed, out);
  }
  return out;
}

export function Queues({ selected, quota }: { selected: string | undefined; quota: string | undefined }) {
  const live = useList<Answer, QueueRow>("queues", nameOf);
  const [closed, setClosed] = useState<Set<string>>(new Set());
  const [text, setText] = useState("");
  const roots = useMemo(() => treeOf(live.value?.rows ?? []), [live.value]);
  return (
    <>
      <h1>Queues</h1>
      <Loaded live={live}>
        {(answer) => {
          const dims = main(
            answer.resources,
            answer.rows.flatMap((q) => [q.holds, q.requests, q.guarantee, q.deserved]),
          );
          const shown = flat(roots, closed).filter((b) => !text || b.row.queue.toLowerCase().includes(text.toLowerCase()));
          const scale = dims.map((d) =>
            Math.max(
              1,
              ...answer.rows.map((q) =>
                Math.max(
                  q.holds?.[d] ?? 0,
                  q.requests?.[d] ?? 0,
                  limit(q.guarantee, d) ?? 0,
                  limit(q.deserved, d) ?? 0,
                  q.parent ? (limit(q.ceiling, d) ?? 0) : 0,
                ),
              ),
            ),
          );
          const toggle = (name: string) =>
            setClosed((old) => {
              const next = new Set(old);
              if (!next.delete(name)) next.add(name);
              return next;
            });
          const row = answer.rows.find((q) => q.queue === selected);
          return (
            <>
              <div class="filters" role="search" aria-label="Queues">
                <label>
                  Filter <input data-filter type="search" value={text} onInput={(e) => setText(e.currentTarget.value)} />
                </label>
                <ul class="legend" aria-label="Legend">
                  <li class="used">used</li>
                  <li class="borrowed">borrowed</li>
                  <li class="asked">requested</li>
                  <li class="guarantee">guarantee</li>
                  <li class="share">share</li>
                  <li class="ceiling">ceiling</li>
                </ul>
              </div>
              {row && <Queue row={row} />}
              {selected && !row && (
                <p class="problem" role="alert">
                  There is no queue {selected}.
                </p>
              )}
              <ul class="tree" aria-label="Queue tree">
                {shown.slice(0, 1000).map((b) => {
                  const q = b.row;
                  return (
                    <li
                      key={q.queue}
                      style={{ marginLeft: `${Math.min(b.depth, 6) * 1.25}rem` }}
                      class={q.queue === selected ? "selected" : ""}
                    >
                      <div class="queuehead">
                        {b.children.length > 0 && (
                          <button
                            type="button"
                            class="plain fold"
                            aria-expanded={!closed.has(q.queue)}
                            aria-label={`Queues below ${q.queue}`}
                            onClick={() => toggle(q.queue)}
                          >
                            {closed.has(q.queue) ? "▸" : "▾"}
                          </button>
                        )}
                        <a href={`#/queues/${encodeURIComponent(q.queue)}`}>{q.queue}</a>
                        {q.state !== "Open" && <span class="code bad">{q.state}</span>}
                        {q.problem && <span class="problem">{q.problem}</span>}
                        <span class="muted">
                          {plural(b.waiting, "job")} waiting, {b.running} running{b.oldest && `, the oldest for ${since(b.oldest)}`}
                        </span>
                      </div>
                      {dims.map((d, i) =>
                        q.holds?.[d] ||
                        q.requests?.[d] ||
                        limit(q.guarantee, d) ||
                        limit(q.deserved, d) ||
                        (q.parent && limit(q.ceiling, d) !== undefined) ? (
                          <QueueBar key={d} queue={q} resource={answer.resources[d]!} d={d} scale={scale[i]!} />
                        ) : null,
                      )}
                    </li>
                  );
                })}
              </ul>
              {shown.length > 1000 && <p class="muted">The first 1,000 of {plural(shown.length, "queue")} are listed: filter them.</p>}
            </>
          );
        }}
      </Loaded>
      <Quotas selected={quota} />
    </>
  );
}

function Queue({ row: q }: { row: QueueRow }) {
  // A queue is asked about in a namespace, in which the reader may ask; any job of it has one.
  const live = useAnswer<{ namespaces?: string[]; everything: boolean }>("overviews/summary");
  const namespace = live.value && (live.value.everything ? "default" : live.value.namespaces?.[0]);
  const answer = useAnswer<QueueAnswer>(
    namespace ? `namespaces/${encodeURIComponent(namespace)}/queues/${encodeURIComponent(q.queue)}` : undefined,
  );
  return (
    <Card
      title={q.queue}
      wide
      note={
        q.parent && (
          <>
            below <a href={`#/queues/${encodeURIComponent(q.parent)}`}>{q.parent}</a>
          </>
        )
      }
    >
      <p>
        Priority {q.priority}, weight {q.weight}. {plural(q.pending, "job")} pending admission, {q.admitted} admitted, {q.running} running:{" "}
        <a href={`#/jobs?queue=${encodeURIComponent(q.queue)}`}>show them</a>.
      </p>
      <Loaded live={answer}>
        {(a) => (
          <>
            {a.jobs.waiting && a.jobs.waiting.length > 0 && (
              <p>
                Waiting:{" "}
                {a.jobs.waiting.slice(0, 20).map((j, i) => (
                  <>
                    {i > 0 && ", "}
                    <JobLink job={j} />
                  </>
                ))}
                {a.jobs.waiting.length > 20 && " …"}
              </p>
            )}
            {[
              ["It may take from", a.takesFrom],
              ["It gives to", a.givesTo],
            ].map(
              ([title, list]) =>
                Array.isArray(list) &&
                list.length > 0 && (
                  <details key={String(title)}>
                    <summary>
                      {String(title)} {list.filter((r) => r.may).length} of {plural(list.length, "other queue")}
                    </summary>
                    <ul>
                      {list.map((r) => (
                        <li key={r.queue}>
                          <a href={`#/queues/${encodeURIComponent(r.queue)}`}>{r.queue}</a>: {r.may ? "yes" : `no, by ${r.rule}`}
                        </li>
                      ))}
                    </ul>
                  </details>
                ),
            )}
          </>
        )}
      </Loaded>
    </Card>
  );
}
