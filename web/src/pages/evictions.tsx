import { useMemo } from "preact/hooks";
import { useAnswer } from "../api";
import { byName, plural } from "../format";
import type { Entry, Evictions as Answer } from "../types";
import { Clock, Export, KnownSince, JobLink, Loaded, NamespaceFilter, useFilter } from "../ui";

/** Group is the evictions of one plan, or of Workloads that were told to stop at once for the same. */
interface Group {
  key: string;
  first: Entry;
  victims: Entry[];
}

/** ruleOf says by what an eviction was decided. */
const ruleOf = (e: Entry) => (e.kind === "SentBack" ? `admit because of ${e.reason}` : `${e.action} under rule ${e.rule}`);

/** namespacesOf are those of the victim and of the job for which it was evicted. */
const namespacesOf = (e: Entry) => [e.job, e.for].flatMap((name) => (name && !name.startsWith("(") ? name.split("/")[0]! : []));

function groupsOf(rows: Entry[]): Group[] {
  const groups = new Map<string, Group>();
  for (const e of rows) {
    const key = e.plan || `${e.cycle} ${e.for ?? ""} ${e.reason ?? ""}`;
    const known = groups.get(key);
    if (known) known.victims.push(e);
    else groups.set(key, { key, first: e, victims: [e] });
  }
  return [...groups.values()];
}

/** columns are those of an exported table. */
const columns: [string, (e: Entry) => string | number | undefined][] = [
  ["time", (e) => e.time],
  ["cycle", (e) => e.cycle],
  ["plan", (e) => e.plan],
  ["pod", (e) => e.pod],
  ["job", (e) => e.job],
  ["queue", (e) => e.queue],
  ["node", (e) => e.node],
  ["for", (e) => e.for],
  ["action", (e) => (e.kind === "SentBack" ? "admit" : e.action)],
  ["rule", (e) => e.rule],
  ["reason", (e) => e.reason],
  ["message", (e) => e.message],
];

/** mostGroups and mostVictims bound what is drawn of plans, and of the victims of one. */
const mostGroups = 300,
  mostVictims = 50;

export function Evictions({ query }: { query: URLSearchParams }) {
  const live = useAnswer<Answer>("overviews/evictions");
  const [filter, set] = useFilter("evictions", query);
  const text = filter("text"),
    namespace = filter("namespace");
  const all = live.value?.rows;
  const rows = useMemo(() => {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    return (all ?? []).filter(
      (e) => (!namespace || namespacesOf(e).includes(namespace)) && words.every((w) => JSON.stringify(e).toLowerCase().includes(w)),
    );
  }, [all, text, namespace]);
  const groups = useMemo(() => groupsOf(rows), [rows]);
  const namespaces = useMemo(() => [...new Set((all ?? []).flatMap(namespacesOf))].sort(byName), [all]);
  return (
    <>
      <h1>Evictions</h1>
      <Loaded live={live}>
        {(answer) => {
          const rules = new Map<string, number>();
          for (const e of rows) rules.set(ruleOf(e), (rules.get(ruleOf(e)) ?? 0) + 1);
          return (
            <>
              <div class="filters" role="search" aria-label="Evictions">
                <label>
                  Filter{" "}
                  <input
                    data-filter
                    type="search"
                    value={text}
                    placeholder="job, rule, node …"
                    onInput={(e) => set("text", e.currentTarget.value)}
                  />
                </label>
                <NamespaceFilter all={namespaces} value={namespace} onChange={(value) => set("namespace", value)} />
                <Export name="evictions" rows={rows} columns={columns} />
              </div>
              <p class="count" role="status">
                {plural(rows.length, "eviction")} in {plural(groups.length, "decision")}, the newest first
                {answer.others > 0 && `; ${answer.others} between jobs that you may not see`}.
                <KnownSince time={answer.since} />
                {rules.size > 0 && ` By ${[...rules].map(([rule, count]) => `${rule}: ${count}`).join(", ")}.`}
              </p>
              <ol class="evictions" aria-label="Evictions">
                {groups.slice(0, mostGroups).map((g) => (
                  <Decided key={g.key} group={g} />
                ))}
              </ol>
              {groups.length > mostGroups && <p class="muted">The newest {mostGroups} are listed: filter them.</p>}
              {answer.rows.length === 0 && <p class="muted">The scheduler has evicted no pod or Workload that you may see since then.</p>}
            </>
          );
        }}
      </Loaded>
    </>
  );
}

/** Decided is one plan: for which job, by which rule, and who had to leave. */
function Decided({ group: { first: e, victims } }: { group: Group }) {
  // The pods of a job that leave for the same reason are listed together.
  const jobs = new Map<string, Entry[]>();
  for (const v of victims.slice(0, mostVictims)) {
    const key = `${v.job ?? ""}\n${v.message ?? ""}`;
    jobs.set(key, [...(jobs.get(key) ?? []), v]);
  }
  const isOfWorkloads = e.kind === "SentBack";
  return (
    <li>
      <p class="decided">
        <Clock time={e.time} /> <span class="muted">cycle {e.cycle}</span>{" "}
        <b>
          {isOfWorkloads ? plural(victims.length, "Workload") : plural(victims.length, "pod")}
          {e.for && (
            <>
              {" "}
              for <JobLink job={e.for} />
            </>
          )}
        </b>{" "}
        by {isOfWorkloads ? "admit" : e.action}
        {e.rule ? (
          <>
            {" "}
            under <span class="rule">rule {e.rule}</span>
          </>
        ) : (
          <>
            {" "}
            because of <span class="rule">{e.reason}</span>
          </>
        )}
        {e.plan && <span class="muted"> plan {e.plan}</span>}
      </p>
      <ul>
        {[...jobs.values()].map((of) => (
          <li key={of[0]!.pod ?? of[0]!.job}>
            <JobLink job={of[0]!.job} />
            {!isOfWorkloads && (
              <span class="pods">
                {of.map((v) => (
                  <span key={v.pod}>
                    {v.pod?.split("/").pop()}
                    {v.node && <span class="muted"> on {v.node}</span>}
                  </span>
                ))}
              </span>
            )}
            {of[0]!.message && <span class="said">{of[0]!.message}</span>}
          </li>
        ))}
      </ul>
      {victims.length > mostVictims && <p class="muted">And {plural(victims.length - mostVictims, "other")}.</p>}
    </li>
  );
}
