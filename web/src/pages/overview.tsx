import { useAnswer } from "../api";
import { amount, main, percent, plural, short, since } from "../format";
import { Plot } from "../plot";
import type { Holders, Minute, NodeTotals, Summary } from "../types";
import { Bar, Card, Clock, Code, Loaded } from "../ui";
import { HeldBy } from "./holders";

export function Overview() {
  const live = useAnswer<Summary>("overviews/summary");
  return (
    <>
      <h1>Overview</h1>
      <Loaded live={live}>
        {(s) => (
          <>
            {!s.everything && (
              <p class="note">
                You see the jobs of {plural(s.namespaces?.length ?? 0, "namespace")}
                {s.namespaces?.length ? `: ${s.namespaces.slice(0, 10).join(", ")}${s.namespaces.length > 10 ? " …" : ""}` : ""}. All other
                namespaces are in the sums.
              </p>
            )}
            {s.jobs.foreign > 0 && (
              <p class="note">
                <a href="#/jobs?state=Foreign">{plural(s.jobs.foreign, "job")}</a> of queues of this scheduler{" "}
                {s.jobs.foreign === 1 ? "names" : "name"} another scheduler in <code>schedulerName</code>, and{" "}
                {s.jobs.foreign === 1 ? "has" : "have"} no nodes.
              </p>
            )}
            <div class="tiles">
              <Tile
                href="#/jobs?state=waiting"
                title="Waiting jobs"
                value={s.jobs.pending + s.jobs.admitted}
                note={s.oldest ? `the oldest for ${since(s.oldest)}` : "none waits"}
              />
              <Tile
                href="#/jobs?state=Running"
                title="Running jobs"
                value={s.jobs.running}
                note={`${s.jobs.finished.toLocaleString("en")} finished`}
              />
              <Tile
                href="#/nodes"
                title="Nodes"
                value={s.nodes.nodes}
                note={
                  s.nodes.notReady + s.nodes.unschedulable
                    ? `${s.nodes.notReady} not ready, ${s.nodes.unschedulable} cordoned`
                    : "all usable"
                }
              />
              <Tile
                href="#/queues"
                title="Queues"
                value={s.queues}
                note={s.clusterQueues ? `and ${plural(s.clusterQueues, "ClusterQueue")}` : ""}
              />
              <Tile href="#/evictions" title="Evictions" value={s.evictions} note="in the last hour" />
              <Tile href="#/cycles" title="Last cycle" value={s.cycle} note="" />
            </div>
            <div class="cards">
              <Card title="Why jobs wait">
                {s.waiting.length ? (
                  <ul class="reasons">
                    {s.waiting.map((w) => (
                      <li key={w.reason}>
                        <a href={`#/jobs?${w.reason ? `reason=${encodeURIComponent(w.reason)}` : "state=waiting"}`}>
                          <Code code={w.reason || "NotTriedYet"} />
                        </a>
                        <Bar
                          label={`${w.reason || "not tried yet"}: ${plural(w.jobs, "job")}`}
                          whole={s.waiting[0]!.jobs}
                          parts={[{ class: "asked", value: w.jobs, title: "" }]}
                        />
                        <span class="number">{w.jobs.toLocaleString("en")}</span>
                      </li>
                    ))}
                  </ul>
                ) : (
                  <p class="muted">No job waits.</p>
                )}
              </Card>
              <Card title="Room">
                <Room totals={s.nodes} resources={s.resources} />
              </Card>
              <HoldsTheRoom />
              <Card
                title="Decisions"
                note={
                  <>
                    for each minute of the last hour; <a href="#/charts">hours and days</a>
                  </>
                }
                wide
              >
                <Decisions minutes={s.decisions} />
              </Card>
            </div>
          </>
        )}
      </Loaded>
    </>
  );
}

/** HoldsTheRoom says who holds the resources of which least is free on the nodes. */
function HoldsTheRoom() {
  const live = useAnswer<Holders[]>("overviews/holders");
  return (
    <Card title="Who holds the room" note="of the scarcest resources" wide>
      <Loaded live={live}>
        {(all) => <>{all.length ? all.map((h) => <HeldBy key={h.resource} holders={h} />) : <p class="muted">Nothing is held.</p>}</>}
      </Loaded>
    </Card>
  );
}

function Tile({ href, title, value, note }: { href: string; title: string; value: number; note: string }) {
  return (
    <a class="tile" href={href}>
      <span>{title}</span>
      <b>{value.toLocaleString("en")}</b>
      <small>{note}</small>
    </a>
  );
}

export function Room({ totals: t, resources }: { totals: NodeTotals; resources: string[] }) {
  const dims = main(resources, [t.allocatable]);
  if (!dims.length) return <p class="muted">No node is usable.</p>;
  return (
    <div>
      {dims.map((d) => {
        const name = resources[d]!,
          of = (list: number[] | null) => list?.[d] ?? 0,
          whole = of(t.allocatable),
          stays = of(t.used) - of(t.leaving);
        return (
          <div class="queuebar" key={d}>
            <span class="resource">{short(name)}</span>
            <Bar
              whole={whole}
              label={`${short(name)}: ${amount(name, of(t.used))} of ${amount(name, whole)} used, of which ${amount(name, of(t.leaving))} is leaving; ${amount(name, of(t.promised))} promised`}
              parts={[
                { class: "used", value: stays, title: "used" },
                { class: "leaving", value: of(t.leaving), title: "leaving" },
                { class: "promised", value: Math.max(0, of(t.promised) - of(t.leaving)), title: "promised" },
              ]}
            />
            <span class="figures">
              {amount(name, of(t.used))} of {amount(name, whole)} ({percent(of(t.used), whole)})
            </span>
          </div>
        );
      })}
    </div>
  );
}

const series: { key: "bound" | "evicted" | "admitted"; title: string; color: string }[] = [
  { key: "bound", title: "pods bound", color: "--used" },
  { key: "admitted", title: "jobs admitted", color: "--share" },
  { key: "evicted", title: "pods evicted", color: "--borrowed" },
];

/** dense has one entry for each minute of the last hour. */
function dense(minutes: Minute[]): { time: number; of?: Minute }[] {
  const now = Math.floor(Date.now() / 60000),
    known = new Map(minutes.map((m) => [Math.floor(Date.parse(m.minute) / 60000), m]));
  return Array.from({ length: 60 }, (_, i) => {
    const time = now - 59 + i,
      of = known.get(time);
    return of ? { time: time * 60, of } : { time: time * 60 };
  });
}

function Decisions({ minutes }: { minutes: Minute[] }) {
  const data = dense(minutes);
  const of = (key: "bound" | "evicted" | "admitted") => data.map((m) => m.of?.[key] ?? 0);
  return (
    <figure class="chart">
      <ul class="legend">
        {series.map((s) => (
          <li key={s.key} class={s.key === "bound" ? "used" : s.key === "evicted" ? "borrowed" : "share"}>
            {s.title} {data.reduce((sum, m) => sum + (m.of?.[s.key] ?? 0), 0).toLocaleString("en")}
          </li>
        ))}
      </ul>
      <Plot
        times={data.map((m) => m.time)}
        curves={series.map((s) => ({ title: s.title, color: s.color, points: of(s.key) }))}
        write={(v) => v.toLocaleString("en")}
        least={4}
        label={`Decisions for each minute: ${series.map((s) => `${of(s.key).reduce((sum, n) => sum + n, 0)} ${s.title}`).join(", ")}`}
      />
      <details>
        <summary>As a table</summary>
        <table>
          <thead>
            <tr>
              <th scope="col">Minute</th>
              {series.map((s) => (
                <th scope="col" key={s.key}>
                  {s.title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {minutes.length ? (
              [...minutes].reverse().map((m) => (
                <tr key={m.minute}>
                  <th scope="row">
                    <Clock time={m.minute} />
                  </th>
                  {series.map((s) => (
                    <td key={s.key}>{m[s.key]}</td>
                  ))}
                </tr>
              ))
            ) : (
              <tr>
                <td colSpan={4}>Nothing was decided.</td>
              </tr>
            )}
          </tbody>
        </table>
      </details>
    </figure>
  );
}
