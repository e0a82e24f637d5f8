import type { ComponentChildren } from "preact";
import { useAnswer } from "../api";
import { plural, since } from "../format";
import type { Amounts, ETA, JobAnswer, NodeReason } from "../types";
import { Card, Clock, Code, Further, JobLink, Loaded, Timeline } from "../ui";
import { HeldBy } from "./holders";

const written = (a: Amounts) =>
  Object.entries(a)
    .map(([name, value]) => `${name} ${value}`)
    .join(", ") || "nothing";

/** Histogram counts nodes by the reason for which they refuse. */
function Histogram({ reasons, label }: { reasons: NodeReason[]; label: string }) {
  const most = Math.max(...reasons.map((r) => r.nodes));
  return (
    <table class="histogram">
      <caption>{label}</caption>
      <thead>
        <tr>
          <th scope="col">Nodes</th>
          <th scope="col">Reason</th>
          <th scope="col">Such as</th>
        </tr>
      </thead>
      <tbody>
        {reasons.map((r) => (
          <tr key={r.reason}>
            <td class="number">
              {r.nodes.toLocaleString("en")}
              <span class="meter" aria-hidden="true">
                <span style={{ width: `${(r.nodes / most) * 100}%` }} />
              </span>
            </td>
            <td>{r.reason}</td>
            <td>
              <a href={`#/nodes/${encodeURIComponent(r.example)}`}>{r.example}</a>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Starts says when a job will start, and what that follows from. */
export function Starts({ eta }: { eta: ETA }) {
  if (!eta.earliest || !eta.latest) return <p>{eta.never ? "Never, as things are." : `Not known, because ${eta.unknownBecause}.`}</p>;
  return (
    <>
      <p>
        Between{" "}
        <b>
          <Clock time={eta.earliest} />
        </b>{" "}
        and{" "}
        <b>
          <Clock time={eta.latest} />
        </b>
        .
      </p>
      <ul>
        {(eta.grounds ?? []).map((g) => (
          <li key={g.kind}>{g.message}</li>
        ))}
      </ul>
      <p class="muted">If {eta.assumes}.</p>
    </>
  );
}

/** Helps lists changes with which a job would start, and what they take for granted. */
export function Helps({ answer: a }: { answer: JobAnswer }) {
  const assumes = a.proposals?.[0]?.assumes;
  return (
    <Card title="What would make it start now">
      {a.proposals && a.proposals.length > 0 ? (
        <>
          <ul>
            {a.proposals.map((p, i) => (
              <li key={i}>
                {p.message}
                {p.nodes && p.nodes.length > 0 && ` (on ${p.nodes.join(", ")})`}
              </li>
            ))}
          </ul>
          {assumes && <p class="muted">If {assumes}.</p>}
        </>
      ) : (
        <p class="muted">{a.noProposals || "No smaller change was found with which it would start now."}</p>
      )}
    </Card>
  );
}

export function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

export function Job({ namespace, name }: { namespace: string; name: string }) {
  const live = useAnswer<JobAnswer>(`namespaces/${encodeURIComponent(namespace)}/jobs/${encodeURIComponent(name)}`);
  return (
    <>
      <p class="crumbs">
        <a href="#/jobs">Jobs</a> / {namespace}
      </p>
      <h1>{live.value ? live.value.job.workload.split("/").pop() : name}</h1>
      <Loaded live={live}>{(answer) => <Story answer={answer} namespace={namespace} />}</Loaded>
    </>
  );
}

function Story({ answer, namespace }: { answer: JobAnswer; namespace: string }) {
  const { job: j, cause: c } = answer;
  const story = [...(answer.story ?? [])].reverse();
  const evictions = story.filter((e) => e.kind === "Evicted");
  const name = j.workload.split("/").pop()!;
  return (
    <div class="cards">
      <section class={`card wide why ${c.never ? "bad" : c.waits ? "wait" : "good"}`}>
        <h2>
          {c.waits ? "Why it waits" : "How it stands"} <Code code={c.code} never={c.never} />
        </h2>
        <p class="sentence" data-cause={c.code}>
          {c.message}
        </p>
        {c.never && (
          <p>
            <b>It cannot start as things are</b>, however long it waits.
          </p>
        )}
        <Further answer={answer} />
        {c.short && c.short.length > 0 && (
          <table>
            <caption>What is short</caption>
            <thead>
              <tr>
                <th scope="col">Resource</th>
                <th scope="col">Needed</th>
                <th scope="col">Available</th>
                <th scope="col">Short by</th>
              </tr>
            </thead>
            <tbody>
              {c.short.map((s) => (
                <tr key={s.resource}>
                  <th scope="row">{s.resource}</th>
                  <td>{s.needed}</td>
                  <td>{s.available}</td>
                  <td>
                    <b>{s.missing}</b>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
        {j.bounds && j.bounds.length > 0 && (
          <table>
            <caption>Limits of queues in the way</caption>
            <thead>
              <tr>
                <th scope="col">Queue</th>
                <th scope="col">Limit</th>
                <th scope="col">May hold</th>
                <th scope="col">Holds</th>
                <th scope="col">The job needs</th>
                <th scope="col">Too much by</th>
              </tr>
            </thead>
            <tbody>
              {j.bounds.map((b) => (
                <tr key={b.queue + b.limit + b.resource}>
                  <th scope="row">
                    <a href={`#/queues/${encodeURIComponent(b.queue)}`}>{b.queue}</a>
                  </th>
                  <td>
                    {b.limit} of {b.resource}
                  </td>
                  <td>{b.may}</td>
                  <td>{b.holds}</td>
                  <td>{b.needed}</td>
                  <td>
                    <b>{b.exceeds}</b>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
        {c.nodes && c.nodes.length > 0 && <Histogram reasons={c.nodes} label={`Why nodes refuse pod ${c.pod ?? ""}`} />}
        {c.promised && c.promised.length > 0 && <Histogram reasons={c.promised} label="Nodes with room that is promised" />}
        {c.protected && c.protected.length > 0 && (
          <table>
            <caption>Pods that may not be evicted for it</caption>
            <thead>
              <tr>
                <th scope="col">Pods</th>
                <th scope="col">Rule</th>
              </tr>
            </thead>
            <tbody>
              {c.protected.map((p) => (
                <tr key={p.rule}>
                  <td class="number">{p.pods}</td>
                  <td>{p.rule}</td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
        {c.code === "FailedCreate" && (
          <p>
            What its quotas allow, a shell says: <code>kubectl -n {namespace} describe resourcequota</code>
          </p>
        )}
        {c.waits && (
          <p class="muted">
            The same in a shell:{" "}
            <code>
              hekla why job {name} -n {namespace}
            </code>
          </p>
        )}
      </section>
      {c.waits && <Helps answer={answer} />}
      {answer.holders && (
        <Card title="Who holds it">
          <HeldBy holders={answer.holders} />
        </Card>
      )}
      {answer.eta && (
        <Card title="When it starts">
          <Starts eta={answer.eta} />
        </Card>
      )}
      {(j.order || (answer.ahead && answer.ahead.length > 0)) && (
        <Card title="Its place">
          {j.order && (
            <p>
              Place {j.order.place} of {j.order.of} in queue <a href={`#/queues/${encodeURIComponent(j.queue)}`}>{j.queue}</a>, which is
              served as number {j.order.queuePlace} of {plural(j.order.queues, "queue")}.
            </p>
          )}
          {answer.ahead && answer.ahead.length > 0 && (
            <table>
              <caption>Before it</caption>
              <thead>
                <tr>
                  <th scope="col">Job</th>
                  <th scope="col">Because</th>
                  <th scope="col">Waits for</th>
                </tr>
              </thead>
              <tbody>
                {answer.ahead.map((a, i) => (
                  <tr key={i}>
                    <td>
                      <JobLink job={a.job} />
                    </td>
                    <td>{a.because}</td>
                    <td>{a.reason && <Code code={a.reason} />}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          )}
        </Card>
      )}
      <Card title="The job">
        <dl class="facts">
          <Fact name="Queue">
            <a href={`#/queues/${encodeURIComponent(j.queue)}`}>{j.queue}</a>
          </Fact>
          <Fact name="PodGroup">{j.job}</Fact>
          <Fact name="Phase">{j.phase || "none yet"}</Fact>
          <Fact name="Priority">{j.priority}</Fact>
          <Fact name="Made">
            <Clock time={j.created} />, {since(j.created)} ago
          </Fact>
          <Fact name="Must start together">
            {plural(j.minAvailable, "pod")}, of which {Math.max(j.lacks, 0)} {j.lacks === 1 ? "has" : "have"} no node
          </Fact>
          <Fact name="Requests">{written(j.requests)}</Fact>
          <Fact name="Holds">{written(j.holds)}</Fact>
          {j.attempts > 0 && <Fact name="Tried">{plural(j.attempts, "time")} without success</Fact>}
          {(j.backOffs ?? []).map((b) => (
            <Fact key={b.until} name="Not before">
              <Clock time={b.until} />: {b.reason}
            </Fact>
          ))}
        </dl>
      </Card>
      <Card
        title="Pods"
        note={Object.entries(j.pods)
          .map(([status, count]) => `${count} ${status}`)
          .join(", ")}
      >
        {j.tasks && j.tasks.length > 0 ? (
          <div class="scroll" tabIndex={0} role="region" aria-label="Pods">
            <table>
              <thead>
                <tr>
                  <th scope="col">Pod</th>
                  <th scope="col">Status</th>
                  <th scope="col">Node</th>
                  <th scope="col">Requests</th>
                </tr>
              </thead>
              <tbody>
                {j.tasks.map((t) => (
                  <tr key={t.pod}>
                    <td>{t.pod.split("/").pop()}</td>
                    <td>{t.status}</td>
                    <td>{t.node && <a href={`#/nodes/${encodeURIComponent(t.node)}`}>{t.node}</a>}</td>
                    <td>{written(t.requests ?? {})}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        ) : (
          <p class="muted">{Object.keys(j.pods).length ? "Their names are not listed." : "It has no pods yet."}</p>
        )}
      </Card>
      {j.plan && (
        <Card title="The plan for it" note={j.plan.action + (j.plan.rule ? ` under rule ${j.plan.rule}` : "")}>
          <p>
            {j.plan.left} of {plural(j.plan.evictions, "victim")} have left. It was made {since(j.plan.since)} ago, and is cancelled if it
            is not fulfilled at <Clock time={j.plan.deadline} />.
          </p>
          {j.plan.leaving && j.plan.leaving.length > 0 && <p>Still leaving: {j.plan.leaving.join(", ")}</p>}
          {j.plan.promised && j.plan.promised.length > 0 && (
            <table>
              <caption>Promised nodes</caption>
              <thead>
                <tr>
                  <th scope="col">Pod</th>
                  <th scope="col">Node</th>
                </tr>
              </thead>
              <tbody>
                {j.plan.promised.map((p) => (
                  <tr key={p.pod}>
                    <td>{p.pod}</td>
                    <td>
                      <a href={`#/nodes/${encodeURIComponent(p.node)}`}>{p.node}</a>
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          )}
        </Card>
      )}
      {j.candidates && j.candidates.length > 0 && (
        <Card title="What it could preempt">
          <table>
            <thead>
              <tr>
                <th scope="col">Action</th>
                <th scope="col">Looks</th>
                <th scope="col">May leave</th>
                <th scope="col">Protected</th>
              </tr>
            </thead>
            <tbody>
              {j.candidates.map((k) => (
                <tr key={k.action}>
                  <th scope="row">{k.action}</th>
                  <td>{k.scope}</td>
                  <td>{k.notLookedAt ? "too many pods to look at" : plural(k.mayLeave, "pod")}</td>
                  <td>
                    {(k.protected ?? []).map((p) => (
                      <div key={p.rule}>
                        {p.pods}: {p.rule}
                      </div>
                    ))}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </Card>
      )}
      {evictions.length > 0 && (
        <Card title="Evictions" note="of its pods, and for it" wide>
          <Timeline entries={evictions} of={j.job} empty="" />
        </Card>
      )}
      <Card title="What happened" note="the newest first" wide>
        <Timeline entries={story} of={j.job} empty="The scheduler has decided nothing about it lately." />
      </Card>
    </div>
  );
}
