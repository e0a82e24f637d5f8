import { useMemo } from "preact/hooks";
import { useAnswer } from "../api";
import { amount, byName, clock, hour, main, plural, short } from "../format";
import { Curve, Plot } from "../plot";
import type { ChartLine, Charts as Answer } from "../types";
import { Card, Clock, Export, Loaded, useFilter } from "../ui";

const spans: [key: string, title: string][] = [
  ["hours", "two hours, by the minute"],
  ["day", "a day, by ten minutes"],
  ["weeks", "two weeks, by two hours"],
];

/** measures are the curves of a resource. */
const measures: { key: ChartLine["measure"]; title: string; color: string; style: string; dash?: number[] }[] = [
  { key: "used", title: "used", color: "--used", style: "used" },
  { key: "borrowed", title: "borrowed", color: "--borrowed", style: "borrowed", dash: [8, 4] },
  { key: "waiting", title: "demand that waits for admission", color: "--promised", style: "promised", dash: [3, 3] },
  { key: "size", title: "share", color: "--share", style: "share", dash: [12, 4] },
];

/** Row is one time in the table and in an exported file. */
interface Row {
  time: string;
  values: (number | null)[];
}

export function Charts({ query }: { query: URLSearchParams }) {
  const [filter, set] = useFilter("charts", query);
  const of = filter("of"),
    span = filter("span") || "hours";
  const live = useAnswer<Answer>(`overviews/charts?of=${encodeURIComponent(of)}&span=${encodeURIComponent(span)}`);
  return (
    <>
      <h1>Charts</h1>
      <Loaded live={live}>{(answer) => <Drawn answer={answer} of={of} span={span} resource={filter("resource")} set={set} />}</Loaded>
    </>
  );
}

function Drawn({
  answer,
  of,
  span,
  resource,
  set,
}: {
  answer: Answer;
  of: string;
  span: string;
  resource: string;
  set: (key: string, value: string) => void;
}) {
  const names = [...new Set(answer.lines.flatMap((l) => l.resource ?? []))],
    resources = main(names, [names.map(() => 1)]).map((d) => names[d]!);
  const shown = resources.includes(resource) ? resource : (resources[0] ?? "");
  const count = answer.lines[0]?.points.length ?? 0,
    begin = Date.parse(answer.from) / 1000;
  const times = useMemo(() => Array.from({ length: count }, (_, i) => begin + i * answer.stepSeconds), [count, begin, answer.stepSeconds]);
  const title = (m: (typeof measures)[number]) => (m.key === "size" && !of ? "what nodes offer" : m.title);
  const curves = useMemo(
    () =>
      measures.flatMap((m): (Curve & { style: string })[] => {
        const line = answer.lines.find((l) => l.measure === m.key && l.resource === shown);
        return line ? [{ title: title(m), color: m.color, style: m.style, points: line.points, ...(m.dash ? { dash: m.dash } : {}) }] : [];
      }),
    [answer, shown],
  );
  const evictions = useMemo(
    () =>
      answer.lines.find((l) => l.measure === "evictions")?.points ?? (answer.lines[0]?.points ?? []).map((p) => (p === null ? null : 0)),
    [answer],
  );
  const rows = times
    .map((t, i): Row => ({
      time: new Date(t * 1000).toISOString(),
      values: [...curves.map((c) => c.points[i] ?? null), evictions[i] ?? null],
    }))
    .filter((r) => r.values.some((v) => v !== null));
  const write = (value: number) => amount(shown, value);
  const time = (t: number) => (span === "hours" ? hour(t * 1000) : clock(new Date(t * 1000).toISOString()).slice(5, 16));
  const utilisation = curves.length > 0 && ratio(rows, curves);
  const subjects = [...new Set(["", ...answer.subjects, of])].sort(byName);
  return (
    <>
      <div class="filters">
        <label>
          Of{" "}
          <select value={of} onChange={(e) => set("of", e.currentTarget.value)}>
            {subjects.map((s) => (
              <option key={s} value={s}>
                {s || "the cluster"}
              </option>
            ))}
          </select>
        </label>
        <label>
          Resource{" "}
          <select value={shown} onChange={(e) => set("resource", e.currentTarget.value)}>
            {resources.map((r) => (
              <option key={r} value={r}>
                {short(r)}
              </option>
            ))}
          </select>
        </label>
        <label>
          Over{" "}
          <select value={span} onChange={(e) => set("span", e.currentTarget.value)}>
            {spans.map(([key, words]) => (
              <option key={key} value={key}>
                {words}
              </option>
            ))}
          </select>
        </label>
        <Export
          name="charts"
          rows={rows}
          columns={[
            ["time", (r) => r.time],
            ...[...curves.map((c) => c.title), "evictions"].map((name, i): [string, (r: Row) => number | undefined] => [
              name,
              (r) => (i < curves.length && shown === "cpu" ? (r.values[i] ?? 0) / 1000 : (r.values[i] ?? undefined)),
            ]),
          ]}
        />
      </div>
      {answer.changes?.length ? (
        <p class="note">
          Another process began to lead at{" "}
          {answer.changes.map((at, i) => (
            <>
              {i > 0 && ", "}
              <Clock time={at} />
            </>
          ))}
          . It took over what the one before had saved; what that had measured since is missing.
        </p>
      ) : null}
      {answer.problem && (
        <p class="note">The charts are not handed over when another process begins to lead, and begin again then: {answer.problem}</p>
      )}
      {(answer.left ?? 0) > 0 && <p class="note">There are too many queues: {plural(answer.left!, "queue")} have no charts.</p>}
      <div class="cards">
        <Card title={short(shown) || "Nothing was measured yet"} note={utilisation ? `${utilisation} used on average` : undefined} wide>
          <figure class="chart">
            <ul class="legend">
              {curves.map((c) => (
                <li key={c.title} class={c.style}>
                  {c.title} {write([...c.points].reverse().find((p) => p !== null) ?? 0)}
                </li>
              ))}
            </ul>
            <Plot
              times={times}
              curves={curves}
              write={write}
              time={time}
              least={shown === "cpu" ? 1000 : 1}
              label={`${short(shown)} of ${of || "the cluster"}: ${curves.map((c) => `${c.title} ${write(Math.max(0, ...c.points.map((p) => p ?? 0)))} at most`).join(", ")}`}
            />
          </figure>
        </Card>
        <Card title="Evictions" note={plural(Math.round(evictions.reduce<number>((sum, n) => sum + (n ?? 0), 0)), "eviction")} wide>
          <figure class="chart">
            <Plot
              times={times}
              curves={[{ title: "evictions", color: "--borrowed", points: evictions }]}
              write={(v) => v.toLocaleString("en")}
              time={time}
              least={4}
              label={`Evictions of ${of || "the cluster"}: ${Math.max(0, ...evictions.map((n) => n ?? 0))} at most in one step`}
            />
          </figure>
        </Card>
        <Card title="As a table" wide>
          <details>
            <summary>{plural(rows.length, "row")}</summary>
            <div class="scroll" tabIndex={0} role="region" aria-label="Table of the charts">
              <table>
                <thead>
                  <tr>
                    <th scope="col">From</th>
                    {curves.map((c) => (
                      <th scope="col" key={c.title}>
                        {c.title}
                      </th>
                    ))}
                    <th scope="col">evictions</th>
                  </tr>
                </thead>
                <tbody>
                  {[...rows].reverse().map((r) => (
                    <tr key={r.time}>
                      <th scope="row">
                        <Clock time={r.time} />
                      </th>
                      {r.values.map((v, i) => (
                        <td key={i}>{v === null ? "–" : i < curves.length ? write(v) : Math.round(v).toLocaleString("en")}</td>
                      ))}
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          </details>
        </Card>
      </div>
    </>
  );
}

/** ratio is what part was used on average of what there was, "" if that is not known. */
function ratio(rows: Row[], curves: Curve[]): string {
  const at = (color: string) => curves.findIndex((c) => c.color === color),
    used = at("--used"),
    size = at("--share");
  const sum = (i: number) => rows.reduce((s, r) => s + (r.values[i] ?? 0), 0);
  return used >= 0 && size >= 0 && sum(size) > 0 ? `${Math.round((sum(used) / sum(size)) * 100)} %` : "";
}
