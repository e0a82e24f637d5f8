import { useMemo, useState } from "preact/hooks";
import { useList } from "../api";
import { byName, plural, since } from "../format";
import type { JobRow, Jobs as Answer } from "../types";
import { amountColumns, type Columns } from "../export";
import {
  Code,
  Column,
  Export,
  Grid,
  jobAddress,
  Loaded,
  NamespaceFilter,
  Sentence,
  Sort,
  sorted,
  State,
  useFilter,
  useNarrow,
} from "../ui";

const nameOf = (r: JobRow) => r.job;
const states = ["Pending", "Admitted", "Running", "Finished", "Foreign"] as const;
const order = { Pending: 0, Admitted: 1, Foreign: 2, Running: 3, Finished: 4 };
const isWaiting = (r: JobRow) => r.state === "Pending" || r.state === "Admitted";

const columns: Column<JobRow>[] = [
  {
    key: "name",
    title: "Job",
    class: "name",
    cell: (r) => (
      <a href={jobAddress(r.job)} tabIndex={-1} onClick={(e) => e.stopPropagation()}>
        {r.name}
      </a>
    ),
    sort: (a, b) => byName(a.name, b.name),
  },
  {
    key: "kind",
    title: "Kind",
    class: "kindcell",
    cell: (r) => <span title={r.owner}>{r.kind}</span>,
    sort: (a, b) => byName(a.kind, b.kind) || byName(a.owner ?? "", b.owner ?? ""),
  },
  { key: "queue", title: "Queue", class: "queue", cell: (r) => r.queue, sort: (a, b) => byName(a.queue, b.queue) },
  {
    key: "state",
    title: "State",
    class: "statecell",
    cell: (r) => <State state={r.state} />,
    sort: (a, b) => order[a.state] - order[b.state],
  },
  {
    key: "reason",
    title: "Reason",
    class: "reason",
    cell: (r) => (
      <>
        {r.reason && <Code code={r.reason} />} <Sentence text={r.message} />
      </>
    ),
    sort: (a, b) => (a.reason ?? "~").localeCompare(b.reason ?? "~"),
  },
  {
    key: "pods",
    title: "Pods",
    class: "number",
    cell: (r) => (
      <span title={`${r.minAvailable - r.lacks} of the ${r.minAvailable} that must start together have nodes`}>
        {r.minAvailable - r.lacks}/{r.minAvailable}
      </span>
    ),
    sort: (a, b) => a.pods - b.pods,
  },
  { key: "priority", title: "Priority", class: "number", cell: (r) => r.priority, sort: (a, b) => a.priority - b.priority },
  { key: "age", title: "Age", class: "number", cell: (r) => since(r.created), sort: (a, b) => b.created.localeCompare(a.created) },
];

/** exported are the columns of an exported list.  */
function exported(resources: string[]): Columns<JobRow> {
  return [
    ["namespace", (r) => r.job.split("/")[0]],
    ["name", (r) => r.name.split("/").slice(1).join("/")],
    ["kind", (r) => r.kind],
    ["owner", (r) => r.owner],
    ["queue", (r) => r.queue],
    ["localQueue", (r) => r.localQueue],
    ["state", (r) => r.state],
    ["reason", (r) => r.reason],
    ["message", (r) => r.message],
    ["priority", (r) => r.priority],
    ["pods", (r) => r.pods],
    ["minAvailable", (r) => r.minAvailable],
    ["lacks", (r) => r.lacks],
    ["created", (r) => r.created],
    ...amountColumns<JobRow>("requests", resources, (r) => r.requests),
  ];
}

/** haystacks are what a filter looks in, written once for each row. */
const haystacks = new WeakMap<JobRow, string>();
function haystack(r: JobRow): string {
  let text = haystacks.get(r);
  if (text === undefined)
    haystacks.set(
      r,
      (text =
        `${r.name} ${r.job} ${r.kind} ${r.owner ?? ""} ${r.queue} ${r.localQueue ?? ""} ${r.state} ${r.reason ?? ""} ${r.message ?? ""}`.toLowerCase()),
    );
  return text;
}

export function Jobs({ query }: { query: URLSearchParams }) {
  const live = useList<Answer, JobRow>("jobs", nameOf);
  const [filter, set] = useFilter("jobs", query);
  const text = filter("text"),
    namespace = filter("namespace"),
    reason = filter("reason"),
    queue = filter("queue"),
    state = filter("state"),
    kind = filter("kind");
  const [sort, setSort] = useState<Sort>({ key: "", down: false });
  const narrow = useNarrow();
  const rows = live.value?.rows;
  const found = useMemo(() => {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const list = (rows ?? []).filter(
      (r) =>
        (!state || (state === "waiting" ? isWaiting(r) : r.state === state)) &&
        (!namespace || r.job.startsWith(`${namespace}/`)) &&
        (!reason || r.reason === reason) &&
        (!queue || r.queue === queue) &&
        (!kind || r.kind === kind) &&
        words.every((w) => haystack(r).includes(w)),
    );
    if (sort.key) return sorted(list, columns, sort);
    return list.sort(
      (a, b) =>
        Number(isWaiting(b)) - Number(isWaiting(a)) ||
        order[a.state] - order[b.state] ||
        a.created.localeCompare(b.created) ||
        byName(a.name, b.name),
    );
  }, [rows, text, namespace, reason, queue, state, kind, sort]);
  const reasons = useMemo(() => [...new Set((rows ?? []).flatMap((r) => r.reason ?? []))].sort(), [rows]);
  const queues = useMemo(() => [...new Set((rows ?? []).map((r) => r.queue))].sort(byName), [rows]);
  const namespaces = useMemo(() => [...new Set((rows ?? []).map((r) => r.job.split("/")[0]!))].sort(byName), [rows]);
  const counts = useMemo(() => {
    const c: Record<string, number> = {};
    for (const r of rows ?? []) c[r.state] = (c[r.state] ?? 0) + 1;
    return c;
  }, [rows]);
  return (
    <div class="full">
      <h1>Jobs</h1>
      <Loaded live={live}>
        {(answer) => (
          <>
            <div class="filters" role="search" aria-label="Jobs">
              <label>
                Filter{" "}
                <input
                  data-filter
                  type="search"
                  value={text}
                  placeholder="name, queue, reason …"
                  onInput={(e) => set("text", e.currentTarget.value)}
                />
              </label>
              <NamespaceFilter all={namespaces} value={namespace} onChange={(value) => set("namespace", value)} />
              <label>
                Reason{" "}
                <select value={reason} onChange={(e) => set("reason", e.currentTarget.value)}>
                  <option value="">all</option>
                  {reasons.map((r) => (
                    <option key={r}>{r}</option>
                  ))}
                </select>
              </label>
              <label>
                Queue{" "}
                <select value={queue} onChange={(e) => set("queue", e.currentTarget.value)}>
                  <option value="">all</option>
                  {queues.map((q) => (
                    <option key={q}>{q}</option>
                  ))}
                </select>
              </label>
              <label>
                Kind{" "}
                <select value={kind} onChange={(e) => set("kind", e.currentTarget.value)}>
                  <option value="">all</option>
                  <option>PodGroup</option>
                  <option>Workload</option>
                </select>
              </label>
              <div class="chips" role="group" aria-label="State">
                {["", "waiting", ...states.filter((s) => s !== "Foreign" || counts.Foreign || state === s)].map((s) => (
                  <button key={s} type="button" aria-pressed={state === s} onClick={() => set("state", s)}>
                    {s === ""
                      ? "All"
                      : s === "waiting"
                        ? `Waiting ${(counts.Pending ?? 0) + (counts.Admitted ?? 0)}`
                        : `${s} ${counts[s] ?? 0}`}
                  </button>
                ))}
              </div>
              <Export name="jobs" rows={found} columns={exported(answer.resources)} />
            </div>
            <p class="count" role="status">
              {plural(found.length, "job")}
              {found.length < answer.rows.length ? ` of ${answer.rows.length.toLocaleString("en")}` : ""}
              {answer.otherNamespaces > 0 &&
                `; in ${plural(answer.otherNamespaces, "namespace")} that you may not see: ${plural(answer.others.pending + answer.others.admitted, "waiting job")}, ${answer.others.running} running, ${answer.others.finished} finished`}
            </p>
            <Grid
              label="Jobs"
              rows={found}
              columns={columns}
              name={nameOf}
              sort={sort}
              rowHeight={narrow ? 84 : 36}
              open={(r) => {
                location.hash = jobAddress(r.job);
              }}
              onSort={setSort}
            />
          </>
        )}
      </Loaded>
    </div>
  );
}
