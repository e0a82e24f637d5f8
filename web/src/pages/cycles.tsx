import { useState } from "preact/hooks";
import { useAnswer } from "../api";
import { plural } from "../format";
import type { Counts, Cycles as Answer } from "../types";
import { Clock, Decision, KnownSince, Loaded } from "../ui";

const parts: [keyof Counts, string][] = [
  ["bound", "bound"],
  ["evicted", "evicted"],
  ["plans", "plans begun"],
  ["fulfilled", "plans fulfilled"],
  ["cancelled", "plans cancelled"],
  ["admitted", "admitted"],
  ["sentBack", "sent back"],
  ["verdicts", "reasons changed"],
];

export function Cycles() {
  const live = useAnswer<Answer>("overviews/cycles");
  const [quiet, setQuiet] = useState(true);
  return (
    <>
      <h1>Cycles</h1>
      <Loaded live={live}>
        {(answer) => {
          const rows = answer.rows.filter(
            (c) => quiet || c.bound + c.evicted + c.plans + c.fulfilled + c.cancelled + c.admitted + c.sentBack > 0,
          );
          return (
            <>
              <div class="filters">
                <label class="check">
                  <input type="checkbox" checked={!quiet} onChange={(e) => setQuiet(!e.currentTarget.checked)} /> only cycles that placed,
                  admitted or evicted
                </label>
              </div>
              <p class="count" role="status">
                {plural(rows.length, "cycle")} that decided something, the newest first. Cycles that changed nothing are not listed.
                <KnownSince time={answer.since} />
              </p>
              <ol class="cycles">
                {rows.map((c) => (
                  <li key={c.cycle}>
                    <details>
                      <summary>
                        <b>Cycle {c.cycle}</b> <Clock time={c.time} />{" "}
                        {parts
                          .filter(([k]) => c[k] > 0)
                          .map(([k, word]) => (
                            <span key={k} class={`tally ${k}`}>
                              {c[k]} {word}
                            </span>
                          ))}
                      </summary>
                      <ol class="timeline">
                        {(c.decisions ?? []).map((e, i) => (
                          <li key={i}>
                            <div>
                              <Decision entry={e} />
                            </div>
                          </li>
                        ))}
                      </ol>
                      {(c.more ?? 0) > 0 && <p class="muted">{plural(c.more!, "decision")} more, or about jobs that you may not see.</p>}
                    </details>
                  </li>
                ))}
              </ol>
            </>
          );
        }}
      </Loaded>
    </>
  );
}
