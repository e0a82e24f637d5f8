import { useMemo, useRef, useState } from "preact/hooks";
import { useAnswer, useList } from "../api";
import { amount, byName, main, parse, percent, plural, short } from "../format";
import type { NodeAnswer, NodeRow, Nodes as Answer } from "../types";
import { Card, JobLink, Loaded } from "../ui";
import { Room } from "./overview";

const nameOf = (n: NodeRow) => n.node;
const isUsable = (n: NodeRow) => n.ready && !n.unschedulable;
/** steps is how many shades the map has. */
const steps = 6;

/** used is the part of a resource of a node that is used, 0 of what the node has not. */
function used(n: NodeRow, d: number): number {
  const whole = n.allocatable?.[d] ?? 0;
  return whole > 0 ? (n.used?.[d] ?? 0) / whole : 0;
}

/** fullest is the resource of a node of which the greatest part is used, undefined if the node has none. Pods are one, too. */
function fullest(n: NodeRow): number | undefined {
  return (n.allocatable ?? []).reduce<number | undefined>(
    (most, whole, d) => (whole > 0 && (most === undefined || used(n, d) > used(n, most)) ? d : most),
    undefined,
  );
}

/** fits is how many pods of a shape have room on a node next to all others. */
function fits(n: NodeRow, shape: [number, number][], podsDim: number): number {
  if (!isUsable(n)) return 0;
  let count = podsDim >= 0 ? (n.idle?.[podsDim] ?? 0) : Infinity;
  for (const [d, need] of shape) if (need > 0) count = Math.min(count, Math.floor((n.idle?.[d] ?? 0) / need));
  return count === Infinity ? 0 : count;
}

export function Nodes({ selected }: { selected: string | undefined }) {
  const live = useList<Answer, NodeRow>("nodes", nameOf);
  const rows = useMemo(
    () => [...(live.value?.rows ?? [])].sort((a, b) => (a.hyperNode ?? "").localeCompare(b.hyperNode ?? "") || byName(a.node, b.node)),
    [live.value],
  );
  return (
    <>
      <h1>Nodes</h1>
      <Loaded live={live}>
        {(answer) =>
          answer.hidden ? (
            <div class="cards">
              <Card title={plural(answer.totals.nodes, "node")} wide>
                <p class="note">
                  You may not see single nodes: that needs the right to get nodes of answers.hekla.sh in the cluster. These are the sums.
                </p>
                <Room totals={answer.totals} resources={answer.resources} />
              </Card>
            </div>
          ) : (
            <HeatMap answer={answer} rows={rows} selected={selected} />
          )
        }
      </Loaded>
    </>
  );
}

function HeatMap({ answer, rows, selected }: { answer: Answer; rows: NodeRow[]; selected: string | undefined }) {
  const { resources, totals } = answer;
  const dims = main(
    resources,
    rows.map((n) => n.allocatable),
  );
  const [by, setBy] = useState("");
  const [shape, setShape] = useState<Record<string, string>>({});
  const [size, setSize] = useState("8");
  const [at, setAt] = useState(0);
  const box = useRef<HTMLDivElement>(null);
  const podsDim = resources.indexOf("pods");
  const wanted = dims.map((d): [number, number] => [d, parse(resources[d]!, shape[resources[d]!] ?? "")]).filter(([, need]) => need > 0);
  const counts = useMemo(() => rows.map((n) => (wanted.length ? fits(n, wanted, podsDim) : 0)), [rows, JSON.stringify(wanted)]);
  const room = counts.reduce((sum, c) => sum + c, 0),
    most = Math.max(1, ...counts),
    members = Math.max(1, Math.floor(Number(size)) || 1);
  /** shadedBy is the resource whose use shades a node. */
  const shadedBy = (n: NodeRow) => (by ? resources.indexOf(by) : fullest(n));
  const level = (n: NodeRow, i: number) => {
    if (!isUsable(n)) return "off";
    if (by === "fit") return `l${steps - 1 - Math.min(steps - 1, Math.ceil((counts[i]! / most) * (steps - 1)))}`;
    const d = shadedBy(n);
    return d !== undefined && (n.allocatable?.[d] ?? 0) > 0 ? `l${Math.min(steps - 1, Math.floor(used(n, d) * steps))}` : "none";
  };
  const part = (n: NodeRow, d: number | undefined) =>
    d === undefined
      ? "has no resources"
      : `${percent(n.used?.[d] ?? 0, n.allocatable?.[d] ?? 0)} of ${short(resources[d]!)} used${by ? "" : ", its fullest resource"}`;
  const say = (n: NodeRow, i: number) =>
    `${n.node}: ${
      !n.ready
        ? "not ready"
        : n.unschedulable
          ? "cordoned"
          : by === "fit"
            ? `${plural(counts[i]!, "pod")} of the shape fit`
            : part(n, shadedBy(n))
    }; ${plural(n.pods, "pod")}`;
  /** tightest says of how many nodes which resource is the fullest, the most frequent first. */
  const tightest = () => {
    const nodes = new Map<number, number>();
    for (const n of rows) {
      const d = isUsable(n) ? fullest(n) : undefined;
      if (d !== undefined && used(n, d) > 0) nodes.set(d, (nodes.get(d) ?? 0) + 1);
    }
    return [...nodes].sort((a, b) => b[1] - a[1]).map(([d, count]) => `${short(resources[d]!)} on ${count.toLocaleString("en")}`);
  };
  const chosen = rows.find((n) => n.node === selected);
  const keys = (e: KeyboardEvent) => {
    const cells = box.current!.children,
      width = Math.max(1, Math.floor(box.current!.clientWidth / ((cells[0] as HTMLElement | undefined)?.offsetWidth || 1)));
    const to: Record<string, number> = {
      ArrowRight: at + 1,
      ArrowLeft: at - 1,
      ArrowDown: at + width,
      ArrowUp: at - width,
      Home: 0,
      End: rows.length - 1,
    };
    if (e.key === "Enter" || e.key === " ") location.hash = `#/nodes/${encodeURIComponent(rows[at]!.node)}`;
    else if (e.key in to) {
      const next = Math.max(0, Math.min(rows.length - 1, to[e.key]!));
      setAt(next);
      cells[next]?.scrollIntoView({ block: "nearest" });
    } else return;
    e.preventDefault();
  };
  return (
    <div class="cards">
      <Card
        title={plural(totals.nodes, "node")}
        note={totals.notReady + totals.unschedulable ? `${totals.notReady} not ready, ${totals.unschedulable} cordoned` : ""}
        wide
      >
        <div class="filters">
          <label>
            Shade by{" "}
            <select value={by} onChange={(e) => setBy(e.currentTarget.value)}>
              <option value="">the fullest resource of each</option>
              {dims.map((d) => (
                <option key={d} value={resources[d]!}>
                  {short(resources[d]!)} used
                </option>
              ))}
              <option value="fit">room for the shape below</option>
            </select>
          </label>
          <ul class="legend scale" aria-label="Legend">
            {Array.from({ length: steps }, (_, i) => (
              <li key={i} class={`l${i}`}>
                {i === 0 ? "free" : i === steps - 1 ? "full" : <span class="hidden">{i}</span>}
              </li>
            ))}
            <li class="off">not usable</li>
          </ul>
        </div>
        <div
          class="map"
          role="listbox"
          aria-label="Nodes"
          tabIndex={0}
          ref={box}
          onKeyDown={keys}
          {...(rows.length ? { "aria-activedescendant": `node-${at}` } : {})}
        >
          {rows.map((n, i) => (
            <div
              key={n.node}
              id={`node-${i}`}
              role="option"
              aria-selected={n.node === selected}
              aria-label={say(n, i)}
              title={say(n, i)}
              class={`cell ${level(n, i)}${i === at ? " at" : ""}${n.node === selected ? " chosen" : ""}`}
              onClick={() => {
                setAt(i);
                location.hash = `#/nodes/${encodeURIComponent(n.node)}`;
              }}
            />
          ))}
        </div>
        <p class="count" role="status">
          {rows[at] && say(rows[at]!, at)}
        </p>
        {!by && tightest().length > 0 && <p class="count">The fullest resource is {tightest().join(", ")}.</p>}
      </Card>
      {selected &&
        (chosen ? (
          <Node row={chosen} resources={resources} />
        ) : (
          <p class="problem" role="alert">
            There is no node {selected}.
          </p>
        ))}
      <Card title="Fragmentation" note="what fits in addition to all that is there">
        <div class="filters shape">
          {dims.map((d) => (
            <label key={d}>
              {short(resources[d]!)} of a pod{" "}
              <input
                value={shape[resources[d]!] ?? ""}
                placeholder={resources[d] === "cpu" ? "500m" : resources[d] === "memory" ? "4Gi" : "1"}
                aria-invalid={!!shape[resources[d]!] && Number.isNaN(parse(resources[d]!, shape[resources[d]!]!))}
                onInput={(e) => setShape({ ...shape, [resources[d]!]: e.currentTarget.value })}
              />
            </label>
          ))}
          <label>
            pods of a gang <input type="number" min="1" value={size} onInput={(e) => setSize(e.currentTarget.value)} />
          </label>
        </div>
        {wanted.length ? (
          <div role="status" data-fit={room}>
            <p>
              <b>{plural(Math.floor(room / members), "gang")}</b> of {plural(members, "pod")} would have room now: {plural(room, "pod")} on{" "}
              {plural(counts.filter((c) => c > 0).length, "node")}.
            </p>
            <table>
              <caption>Idle, and stranded on nodes with no room for one such pod</caption>
              <thead>
                <tr>
                  <th scope="col">Resource</th>
                  <th scope="col">Idle</th>
                  <th scope="col">Stranded</th>
                </tr>
              </thead>
              <tbody>
                {wanted.map(([d]) => {
                  const idle = rows.filter(isUsable).reduce((s, n) => s + (n.idle?.[d] ?? 0), 0),
                    lost = rows.reduce((s, n, i) => s + (isUsable(n) && counts[i] === 0 ? (n.idle?.[d] ?? 0) : 0), 0);
                  return (
                    <tr key={d}>
                      <th scope="row">{short(resources[d]!)}</th>
                      <td>{amount(resources[d]!, idle)}</td>
                      <td>
                        {amount(resources[d]!, lost)} ({percent(lost, idle)})
                      </td>
                    </tr>
                  );
                })}
              </tbody>
            </table>
            <p class="muted">
              By room alone. Taints, affinities, volumes and queues may say otherwise: hekla try says what would happen to a job.
            </p>
          </div>
        ) : (
          <p class="muted">Say what one pod requests, to see how many fit and where.</p>
        )}
      </Card>
      <Card title="Room">
        <Room totals={totals} resources={resources} />
      </Card>
    </div>
  );
}

function Node({ row: n, resources }: { row: NodeRow; resources: string[] }) {
  const live = useAnswer<NodeAnswer>(`nodes/${encodeURIComponent(n.node)}`);
  const dims = main(resources, [n.allocatable]);
  return (
    <Card
      title={n.node}
      note={`${n.ready ? (n.unschedulable ? "cordoned" : "ready") : "not ready"}${n.hyperNode ? `, in ${n.hyperNode}` : ""}`}
      wide
    >
      <table>
        <thead>
          <tr>
            <th scope="col">Resource</th>
            <th scope="col">Allocatable</th>
            <th scope="col">Used</th>
            <th scope="col">Leaving</th>
            <th scope="col">Promised</th>
            <th scope="col">Idle</th>
          </tr>
        </thead>
        <tbody>
          {dims.map((d) => {
            const r = resources[d]!;
            return (
              <tr key={d}>
                <th scope="row">{r}</th>
                {[n.allocatable, n.used, n.leaving, n.promised, n.idle].map((list, i) => (
                  <td key={i}>{amount(r, list?.[d] ?? 0)}</td>
                ))}
              </tr>
            );
          })}
        </tbody>
      </table>
      <Loaded live={live}>
        {(a) =>
          a.podCount ? (
            <div class="scroll" tabIndex={0} role="region" aria-label="Pods">
              <table>
                <caption>
                  {plural(a.podCount, "pod")}
                  {(a.pods?.length ?? 0) < a.podCount && `, of which ${a.pods?.length ?? 0} are shown`}
                </caption>
                <thead>
                  <tr>
                    <th scope="col">Pod</th>
                    <th scope="col">Job</th>
                    <th scope="col">Queue</th>
                    <th scope="col">Status</th>
                    <th scope="col">Requests</th>
                  </tr>
                </thead>
                <tbody>
                  {(a.pods ?? []).map((p) => (
                    <tr key={p.pod}>
                      <td>{p.pod}</td>
                      <td>
                        <JobLink job={p.job} />
                      </td>
                      <td>{p.queue}</td>
                      <td>{p.status}</td>
                      <td>
                        {Object.entries(p.requests)
                          .map(([k, v]) => `${k} ${v}`)
                          .join(", ")}
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          ) : (
            <p class="muted">No pod is on it.</p>
          )
        }
      </Loaded>
    </Card>
  );
}
