import { useMemo, useState } from "preact/hooks";
import { useList } from "../api";
import { amount, byName, main, plural, short, since } from "../format";
import type { FlavorQuota, LocalQueueRow, LocalQueues, QuotaRow, Quotas as Answer } from "../types";
import type { Columns } from "../export";
import { Bar, Column, countColumns, demandColumn, Export, Loaded, QuotaLink, Sheet, Sort, sorted } from "../ui";

const keyOf = (q: QuotaRow) => `${q.kind}/${q.name}`;

function FlavorBar({ flavor: f }: { flavor: FlavorQuota }) {
  const borrowed = f.borrowed ?? 0,
    lent = f.lent ?? 0,
    write = (v: number) => amount(f.resource, v);
  return (
    <div class="queuebar">
      <span class="resource" title={f.flavor}>
        {f.flavor}/{short(f.resource)}
      </span>
      <Bar
        label={`${f.flavor}/${short(f.resource)}: quota ${write(f.quota)}; used ${write(f.used)}, of which ${write(borrowed)} is borrowed; lent ${write(lent)}; available ${write(f.available)}`}
        whole={Math.max(1, f.quota, f.used)}
        parts={[
          { class: "used", value: f.used - borrowed, title: "used" },
          { class: "borrowed", value: borrowed, title: "borrowed" },
          { class: "asked", value: Math.min(lent, Math.max(0, f.quota - f.used)), title: "lent" },
        ]}
        marks={[{ class: "share", value: f.quota, title: "quota" }]}
      />
      <span class="figures" aria-hidden="true">
        {write(f.used)} / {write(f.quota)}
        {borrowed > 0 && <b> +{write(borrowed)} borrowed</b>}
        {lent > 0 && <b> {write(lent)} lent</b>}
      </span>
    </div>
  );
}

/** Branch is a ClusterQueue or Cohort in its tree. Its numbers of Workloads include those below it. */
interface Branch {
  row: QuotaRow;
  children: Branch[];
  depth: number;
  waiting: number;
  running: number;
  oldest: string | undefined;
  demand: number[];
}

function treeOf(rows: QuotaRow[]): Branch[] {
  const all = new Map(
    rows.map((row) => [
      keyOf(row),
      {
        row,
        children: [],
        depth: 0,
        waiting: row.pending + row.admitted,
        running: row.running,
        oldest: row.oldest,
        demand: [...(row.waiting ?? [])],
      } as Branch,
    ]),
  );
  const roots: Branch[] = [];
  for (const b of all.values()) ((b.row.parent && all.get(`Cohort/${b.row.parent}`)?.children) || roots).push(b);
  const flat: Branch[] = [];
  const visit = (b: Branch, depth: number) => {
    b.depth = depth;
    flat.push(b);
    b.children.sort((x, y) => y.row.kind.localeCompare(x.row.kind) || byName(x.row.name, y.row.name));
    for (const below of b.children) {
      visit(below, depth + 1);
      b.waiting += below.waiting;
      b.running += below.running;
      below.demand.forEach((value, d) => (b.demand[d] = (b.demand[d] ?? 0) + value));
      if (below.oldest && (!b.oldest || below.oldest < b.oldest)) b.oldest = below.oldest;
    }
  };
  roots.sort((x, y) => byName(x.row.name, y.row.name));
  for (const b of roots) visit(b, 0);
  return flat;
}

/** fullness is how much of its quota is used, of the flavor and resource of which the greatest part is. */
function fullness(q: QuotaRow): number {
  return Math.max(0, ...(q.flavors ?? []).map((f) => f.used / Math.max(1, f.quota)));
}

/** shareOf is the weighted share as a number that sorts; -1 stands for an infinite one. */
const shareOf = (q: QuotaRow) => (q.share === undefined ? -1 : q.share < 0 ? Infinity : q.share);

/** exported are the columns of an exported list: a row for each resource of a flavor. */
const exported: Columns<FlavorQuota & { of: Branch }> = [
  ["kind", (f) => f.of.row.kind],
  ["name", (f) => f.of.row.name],
  ["parent", (f) => f.of.row.parent],
  ["inactive", (f) => f.of.row.inactive],
  ["waiting", (f) => f.of.waiting],
  ["running", (f) => f.of.running],
  ["oldest", (f) => f.of.oldest],
  ["flavor", (f) => f.flavor],
  ["resource", (f) => f.resource],
  ...(["quota", "used", "borrowed", "lent", "available"] as const).map((name): Columns<FlavorQuota>[number] => [
    name,
    (f) => (f.resource === "cpu" ? (f[name] ?? 0) / 1000 : (f[name] ?? 0)),
  ]),
];

function columnsOf(resources: string[], isTree: boolean): Column<Branch>[] {
  return [
    {
      key: "name",
      title: "Name",
      class: "queuename",
      sort: (a, b) => byName(a.row.name, b.row.name),
      cell: ({ row: q, depth }) => (
        <span style={{ paddingLeft: isTree ? `${Math.min(depth, 6) * 0.9}rem` : "0" }}>
          <QuotaLink kind={q.kind} name={q.name} /> <span class="muted">{q.kind}</span>
          {q.inactive && <span class="problem"> {q.inactive}</span>}
        </span>
      ),
    },
    {
      key: "quota",
      title: "Quotas",
      class: "quotacell",
      sort: (a, b) => fullness(a.row) - fullness(b.row),
      cell: ({ row }) => (
        <div class="flavors">
          {(row.flavors ?? []).map((f) => (
            <FlavorBar key={`${f.flavor}/${f.resource}`} flavor={f} />
          ))}
        </div>
      ),
    },
    demandColumn(resources, main(resources, [resources.map(() => 1)]), (b) => b.demand),
    {
      key: "share",
      title: "Weighted share",
      class: "number",
      sort: (a, b) => shareOf(a.row) - shareOf(b.row),
      cell: ({ row: q }) => (q.share === undefined ? "" : q.share < 0 ? "infinite" : q.share / 1000),
    },
    ...countColumns<Branch>(({ row: q }) =>
      q.kind === "ClusterQueue" ? `#/jobs?kind=Workload&state=waiting&queue=${encodeURIComponent(q.name)}` : undefined,
    ),
  ];
}

/** Quotas shows the trees of Cohorts and ClusterQueues, and the LocalQueues, if there are any. */
export function Quotas({ selected }: { selected: string | undefined }) {
  const live = useList<Answer, QuotaRow>("quotas", keyOf);
  const [text, setText] = useState("");
  const tree = useMemo(() => treeOf(live.value?.rows ?? []), [live.value]);
  const known = tree.some((b) => keyOf(b.row) === selected);
  if (live.value && !tree.length && !selected) return null;
  const [sort, setSort] = useState<Sort>({ key: "", down: false });
  const columns = columnsOf(live.value?.resources ?? [], sort.key === "");
  const shown = tree.filter((b) => !text || b.row.name.toLowerCase().includes(text.toLowerCase()));
  return (
    <section aria-labelledby="quotas">
      <h2 id="quotas">ClusterQueues and Cohorts</h2>
      <Loaded live={live}>
        {() => (
          <>
            <div class="filters" role="search" aria-label="ClusterQueues">
              <label>
                Filter ClusterQueues <input type="search" value={text} onInput={(e) => setText(e.currentTarget.value)} />
              </label>
              <Export
                name="clusterqueues"
                rows={shown.flatMap((b) => (b.row.flavors ?? []).map((f) => ({ ...f, of: b })))}
                columns={exported}
              />
              <ul class="legend" aria-label="Legend of quotas">
                <li class="used">used</li>
                <li class="borrowed">borrowed</li>
                <li class="asked">lent</li>
                <li class="share">quota</li>
              </ul>
            </div>
            {selected && !known && (
              <p class="problem" role="alert">
                There is no {selected.replace("/", " ")}.
              </p>
            )}
            <Sheet
              label="Tree of quotas"
              rows={sorted(shown, columns, sort)}
              columns={columns}
              name={(b) => keyOf(b.row)}
              selected={selected}
              sort={sort}
              onSort={setSort}
            />
            <Locals />
          </>
        )}
      </Loaded>
    </section>
  );
}

function Locals() {
  const live = useList<LocalQueues, LocalQueueRow>("localqueues", (l) => l.localQueue);
  return (
    <Loaded live={live}>
      {(answer) => (
        <details open={answer.rows.length <= 50}>
          <summary>
            {plural(answer.rows.length, "LocalQueue")}
            {answer.others > 0 && `, and ${answer.others} in namespaces that you may not see`}
          </summary>
          <div class="scroll" tabIndex={0} role="region" aria-label="LocalQueues">
            <table>
              <thead>
                <tr>
                  <th scope="col">LocalQueue</th>
                  <th scope="col">ClusterQueue</th>
                  <th scope="col">Waiting</th>
                  <th scope="col">Running</th>
                  <th scope="col">Oldest</th>
                  <th scope="col">Problem</th>
                </tr>
              </thead>
              <tbody>
                {[...answer.rows]
                  .sort((a, b) => byName(a.localQueue, b.localQueue))
                  .slice(0, 1000)
                  .map((l) => (
                    <tr key={l.localQueue}>
                      <th scope="row">{l.localQueue}</th>
                      <td>
                        <QuotaLink kind="ClusterQueue" name={l.clusterQueue} />
                      </td>
                      <td class="number">{l.pending + l.admitted}</td>
                      <td class="number">{l.running}</td>
                      <td>{l.oldest ? since(l.oldest) : ""}</td>
                      <td>{l.problem}</td>
                    </tr>
                  ))}
              </tbody>
            </table>
          </div>
        </details>
      )}
    </Loaded>
  );
}
