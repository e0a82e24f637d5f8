import { useMemo, useState } from "preact/hooks";
import { useAnswer, useList } from "../api";
import { amount, byName, main, plural, short } from "../format";
import type { QueueAnswer, QueueRow, Queues as Answer } from "../types";
import { amountColumns, type Columns } from "../export";
import { Bar, Card, Column, countColumns, demandColumn, Export, JobLink, Loaded, Sheet, Sort, sorted } from "../ui";
import { Quotas } from "./quotas";

const nameOf = (q: QueueRow) => q.queue;
/** limit is a limit of a resource, undefined if there is none. */
const limit = (list: number[] | undefined, d: number) => (list?.[d] === undefined || list[d]! < 0 ? undefined : list[d]!);

/** isFar is how many times what a queue holds and deserves its ceiling may be for the bar to reach to it. */
const isFar = 2;

/** scaleOf is what the whole bar of a queue stands for: what it may hold by right, or its ceiling if it has no share. */
function scaleOf(q: QueueRow, d: number): number {
  const ceiling = limit(q.ceiling, d) ?? 0,
    own = Math.max(q.holds?.[d] ?? 0, limit(q.guarantee, d) ?? 0, limit(q.deserved, d) ?? 0);
  return Math.max(1, own || ceiling, ceiling <= own * isFar ? ceiling : 0);
}

/** fullness is how much of its share a queue holds of a resource, or of its ceiling if it has none. */
function fullness(q: QueueRow, d: number): number {
  return (q.holds?.[d] ?? 0) / (limit(q.deserved, d) || limit(q.ceiling, d) || scaleOf(q, d));
}

function QueueBar({ queue: q, resource, d }: { queue: QueueRow; resource: string; d: number }) {
  const holds = q.holds?.[d] ?? 0,
    borrowed = q.borrowed?.[d] ?? 0,
    requests = q.requests?.[d] ?? 0;
  const guarantee = limit(q.guarantee, d),
    deserved = limit(q.deserved, d),
    ceiling = limit(q.ceiling, d);
  if (!holds && !requests && !guarantee && !deserved && ceiling === undefined) return null;
  const write = (v: number | undefined, none: string) => (v === undefined ? none : amount(resource, v));
  const scale = scaleOf(q, d),
    of = deserved || ceiling;
  const label =
    `${short(resource)}: uses ${amount(resource, holds)}${borrowed > 0 ? `, of which ${amount(resource, borrowed)} is borrowed` : ""}; requests ${amount(resource, requests)}; ` +
    `guarantee ${write(guarantee, "none")}; share ${write(deserved, "none")}; ceiling ${write(ceiling, "none")}${q.notEnforced && ceiling !== undefined ? ", which is not enforced" : ""}`;
  return (
    <div class="queuebar">
      <Bar
        label={label}
        whole={scale}
        parts={[
          { class: "used", value: holds - borrowed, title: "used" },
          { class: "borrowed", value: borrowed, title: "borrowed" },
          { class: "asked", value: Math.max(0, Math.min(requests, scale) - holds), title: "requested" },
        ]}
        marks={[
          ...(guarantee ? [{ class: "guarantee", value: guarantee, title: "guarantee" }] : []),
          ...(deserved !== undefined ? [{ class: "share", value: deserved, title: "share" }] : []),
          ...(ceiling !== undefined && ceiling <= scale
            ? [{ class: q.notEnforced ? "ceiling loose" : "ceiling", value: ceiling, title: "ceiling" }]
            : []),
        ]}
      />
      <span class="figures" aria-hidden="true">
        {amount(resource, holds)}
        {of !== undefined && ` / ${amount(resource, of)}`}
        {borrowed > 0 && <b> +{amount(resource, borrowed)}</b>}
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

/** exported are the columns of an exported list. The numbers of jobs are those of the queue and of all below it, as amounts are. */
function exported(resources: string[]): Columns<Branch> {
  const amounts = (name: string, of: (q: QueueRow) => number[] | undefined) => amountColumns<Branch>(name, resources, (b) => of(b.row));
  return [
    ["queue", (b) => b.row.queue],
    ["parent", (b) => b.row.parent],
    ["state", (b) => b.row.state],
    ["problem", (b) => b.row.problem],
    ["priority", (b) => b.row.priority],
    ["weight", (b) => b.row.weight],
    ["waiting", (b) => b.waiting],
    ["running", (b) => b.running],
    ["oldest", (b) => b.oldest],
    ["notEnforced", (b) => b.row.notEnforced],
    ...amounts("holds", (q) => q.holds),
    ...amounts("requests", (q) => q.requests),
    ...amounts("demand", (q) => q.waiting),
    ...amounts("borrowed", (q) => q.borrowed),
    ...amounts("guarantee", (q) => q.guarantee),
    ...amounts("share", (q) => q.deserved),
    ...amounts("ceiling", (q) => q.ceiling),
  ];
}

/** columnsOf are the columns of the table of queues. */
function columnsOf(answer: Answer, dims: number[], closed: Set<string>, toggle: (name: string) => void, isTree: boolean): Column<Branch>[] {
  return [
    {
      key: "queue",
      title: "Queue",
      class: "queuename",
      sort: (a, b) => byName(a.row.queue, b.row.queue),
      cell: ({ row: q, children, depth }) => (
        <span style={{ paddingLeft: isTree ? `${Math.min(depth, 6) * 0.9 + (children.length ? 0 : 1.9)}rem` : "0" }}>
          {isTree && children.length > 0 && (
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
        </span>
      ),
    },
    ...dims.map((d): Column<Branch> => ({
      key: `used-${d}`,
      title: short(answer.resources[d]!),
      class: "barcell",
      sort: (a, b) => fullness(a.row, d) - fullness(b.row, d),
      cell: ({ row }) => <QueueBar queue={row} resource={answer.resources[d]!} d={d} />,
    })),
    demandColumn(answer.resources, dims, (b) => b.row.waiting),
    ...countColumns<Branch>((b) => (b.children.length ? undefined : `#/jobs?state=waiting&queue=${encodeURIComponent(b.row.queue)}`)),
  ];
}

export function Queues({ selected, quota }: { selected: string | undefined; quota: string | undefined }) {
  const live = useList<Answer, QueueRow>("queues", nameOf);
  const [closed, setClosed] = useState<Set<string>>(new Set());
  const [text, setText] = useState("");
  const [sort, setSort] = useState<Sort>({ key: "", down: false });
  const roots = useMemo(() => treeOf(live.value?.rows ?? []), [live.value]);
  return (
    <>
      <h1>Queues</h1>
      <Loaded live={live}>
        {(answer) => {
          const toggle = (name: string) =>
            setClosed((old) => {
              const next = new Set(old);
              if (!next.delete(name)) next.add(name);
              return next;
            });
          const dims = main(
            answer.resources,
            answer.rows.flatMap((q) => [q.holds, q.requests, q.guarantee, q.deserved]),
          );
          const columns = columnsOf(answer, dims, closed, toggle, sort.key === "");
          // Sorted, the table is no tree any more: no queue is folded away.
          const shown = sorted(flat(roots, sort.key ? new Set() : closed), columns, sort).filter(
            (b) => !text || b.row.queue.toLowerCase().includes(text.toLowerCase()),
          );
          const row = answer.rows.find((q) => q.queue === selected);
          return (
            <>
              <div class="filters" role="search" aria-label="Queues">
                <label>
                  Filter <input data-filter type="search" value={text} onInput={(e) => setText(e.currentTarget.value)} />
                </label>
                <Export name="queues" rows={shown} columns={exported(answer.resources)} />
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
              {answer.rows.some((q) => q.notEnforced) && (
                <p class="note">
                  Of{" "}
                  {answer.rows
                    .filter((q) => q.notEnforced)
                    .map((q) => q.queue)
                    .join(", ")}{" "}
                  the ceiling is not enforced: {answer.rows.find((q) => q.notEnforced)!.notEnforced}. It is drawn as a broken line.
                </p>
              )}
              <Sheet
                label="Queue tree"
                rows={shown}
                columns={columns}
                name={(b) => b.row.queue}
                selected={selected}
                sort={sort}
                onSort={setSort}
              />
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
        <a href={`#/jobs?queue=${encodeURIComponent(q.queue)}`}>show them</a>.{" "}
        <a href={`#/charts?of=${encodeURIComponent(`Queue/${q.queue}`)}`}>Over hours and days</a>.
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
