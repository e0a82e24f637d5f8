import { useState } from "preact/hooks";
import { useAnswer } from "../api";
import { clock, plural } from "../format";
import type { Evictions as Answer } from "../types";
import { JobLink, Loaded } from "../ui";

export function Evictions() {
  const live = useAnswer<Answer>("overviews/evictions");
  const [text, set] = useState("");
  return (
    <>
      <h1>Evictions</h1>
      <Loaded live={live}>
        {(answer) => {
          const words = text.toLowerCase().split(/\s+/).filter(Boolean);
          const rows = answer.rows.filter((e) => words.every((w) => JSON.stringify(e).toLowerCase().includes(w)));
          const rules = new Map<string, number>();
          for (const e of answer.rows) {
            const rule = e.kind === "SentBack" ? `admit because of ${e.reason}` : `${e.action} under rule ${e.rule}`;
            rules.set(rule, (rules.get(rule) ?? 0) + 1);
          }
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
                    onInput={(e) => set(e.currentTarget.value)}
                  />
                </label>
              </div>
              <p class="count" role="status">
                {plural(rows.length, "eviction")}, the newest first
                {answer.others > 0 && `; ${answer.others} between jobs that you may not see`}.
                {rules.size > 0 && ` By ${[...rules].map(([rule, count]) => `${rule}: ${count}`).join(", ")}.`}
              </p>
              {rows.length > 0 && (
                <div class="scroll" tabIndex={0} role="region" aria-label="Evictions">
                  <table class="evictions">
                    <thead>
                      <tr>
                        <th scope="col">When</th>
                        <th scope="col">Victim</th>
                        <th scope="col">For</th>
                        <th scope="col">By</th>
                        <th scope="col">Rule</th>
                        <th scope="col">Why, with the numbers</th>
                      </tr>
                    </thead>
                    <tbody>
                      {rows.slice(0, 500).map((e, i) => (
                        <tr key={`${e.cycle}-${e.pod}-${i}`}>
                          <td>
                            <time dateTime={e.time}>{clock(e.time)}</time>
                            <br />
                            <span class="muted">cycle {e.cycle}</span>
                          </td>
                          <td>
                            {e.pod ? e.pod.split("/").pop() : "Workload"}
                            <br />
                            <JobLink job={e.job} />
                            <br />
                            <span class="muted">{e.node}</span>
                          </td>
                          <td>
                            <JobLink job={e.for} />
                          </td>
                          <td>{e.kind === "SentBack" ? "admit" : e.action}</td>
                          <td>
                            <span class="rule">{e.rule ?? e.reason}</span>
                          </td>
                          <td>{e.message}</td>
                        </tr>
                      ))}
                    </tbody>
                  </table>
                </div>
              )}
              {answer.rows.length === 0 && (
                <p class="muted">The scheduler has evicted no pod or Workload that you may see, as far as it remembers.</p>
              )}
            </>
          );
        }}
      </Loaded>
    </>
  );
}
