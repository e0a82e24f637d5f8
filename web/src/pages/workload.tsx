import { useAnswer } from "../api";
import { plural } from "../format";
import type { JobAnswer, Neighbor } from "../types";
import { Card, Code, Further, JobLink, Loaded, QuotaLink, Timeline, workloadID } from "../ui";
import { HeldBy } from "./holders";
import { Fact, Helps, Starts } from "./job";

/** Workload is the story of a Workload of kueue.x-k8s.io. */
export function Workload({ namespace, name }: { namespace: string; name: string }) {
  const live = useAnswer<JobAnswer>(`namespaces/${encodeURIComponent(namespace)}/workloads/${encodeURIComponent(name)}`);
  return (
    <>
      <p class="crumbs">
        <a href="#/jobs">Jobs</a> / {namespace}
      </p>
      <h1>{name}</h1>
      <Loaded live={live}>{(answer) => <Story answer={answer} namespace={namespace} name={name} />}</Loaded>
    </>
  );
}

function Neighbors({ title, list, total }: { title: string; list: Neighbor[]; total?: number }) {
  return (
    <Card title={title} note={plural(total ?? list.length, "Workload")}>
      <table>
        <thead>
          <tr>
            <th scope="col">Workload</th>
            <th scope="col">ClusterQueue</th>
            <th scope="col">Priority</th>
          </tr>
        </thead>
        <tbody>
          {list.slice(0, 20).map((n, i) => (
            <tr key={i}>
              <td>
                <JobLink job={workloadID(n.workload)} />
              </td>
              <td>{n.clusterQueue && <QuotaLink kind="ClusterQueue" name={n.clusterQueue} />}</td>
              <td class="number">{n.priority}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {list.length > 20 && <p class="muted">The first 20 are listed.</p>}
    </Card>
  );
}

function Story({ answer, namespace, name }: { answer: JobAnswer; namespace: string; name: string }) {
  const { queued: q, cause: c } = answer;
  if (!q) return <p class="problem">The scheduler says nothing of it.</p>;
  const story = [...(answer.story ?? [])].reverse();
  const queue = q.clusterQueue ?? q.wants;
  return (
    <div class="cards">
      <section class={`card wide why ${c.never ? "bad" : c.waits ? "wait" : "good"}`}>
        <h2>
          {c.waits ? "Why it waits" : "How it stands"} <Code code={c.code} never={c.never} />
        </h2>
        <p class="sentence" data-cause={c.code}>
          {c.message || q.state}
        </p>
        {c.never && (
          <p>
            <b>It cannot start as things are</b>, however long it waits.
          </p>
        )}
        <Further answer={answer} />
        {q.short && q.short.length > 0 && (
          <table>
            <caption>Quotas that are short</caption>
            <thead>
              <tr>
                <th scope="col">Pod set</th>
                <th scope="col">Flavor</th>
                <th scope="col">Resource</th>
                <th scope="col">Requested</th>
                <th scope="col">Available</th>
                <th scope="col">At most</th>
                <th scope="col">Short by</th>
              </tr>
            </thead>
            <tbody>
              {q.short.slice(0, 50).map((s, i) => (
                <tr key={i}>
                  <th scope="row">{s.podSet}</th>
                  <td>{s.flavor}</td>
                  <td>{s.resource}</td>
                  <td>{s.requested}</td>
                  <td>{s.available}</td>
                  <td>{s.most}</td>
                  <td>
                    <b>{s.missing}</b>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
        {c.waits && (
          <p class="muted">
            The same in a shell:{" "}
            <code>
              hekla why workload {name} -n {namespace}
            </code>
          </p>
        )}
      </section>
      {c.waits && answer.proposals && answer.proposals.length > 0 && <Helps answer={answer} />}
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
      <Card title="The Workload">
        <dl class="facts">
          <Fact name="State">{q.state}</Fact>
          <Fact name="LocalQueue">{q.localQueue || "none"}</Fact>
          <Fact name="ClusterQueue">{queue ? <QuotaLink kind="ClusterQueue" name={queue} /> : "none"}</Fact>
          {q.path && <Fact name="Path">{q.path}</Fact>}
          <Fact name="Priority">{q.priority}</Fact>
          {q.place ? (
            <Fact name="Place">
              {q.place} of {q.of} that wait in its ClusterQueue
            </Fact>
          ) : null}
          {(q.checks ?? []).map((check) => (
            <Fact key={check} name="Check">
              {check}
            </Fact>
          ))}
        </dl>
      </Card>
      {q.podSets && q.podSets.length > 0 && (
        <Card title="What it holds">
          <table>
            <thead>
              <tr>
                <th scope="col">Pod set</th>
                <th scope="col">Pods</th>
                <th scope="col">Flavors</th>
                <th scope="col">Nodes</th>
              </tr>
            </thead>
            <tbody>
              {q.podSets.map((p) => (
                <tr key={p.name}>
                  <th scope="row">{p.name}</th>
                  <td class="number">{p.count}</td>
                  <td>{(p.flavors ?? []).join(", ")}</td>
                  <td>
                    {(p.nodes ?? []).slice(0, 20).map((n) => (
                      <div key={n.node}>
                        {n.count} on <a href={`#/nodes/${encodeURIComponent(n.node)}`}>{n.node}</a>
                      </div>
                    ))}
                    {(p.nodes ?? []).length > 20 && `and ${p.nodes!.length - 20} more nodes`}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </Card>
      )}
      {q.waitsFor && q.waitsFor.length > 0 && <Neighbors title="It starts when these have left" list={q.waitsFor} />}
      {q.ahead && q.ahead.length > 0 && <Neighbors title="Before it" list={q.ahead} total={(q.place ?? 1) - 1} />}
      {q.candidates && q.candidates.length > 0 && <Neighbors title="What it could preempt" list={q.candidates} total={q.candidateCount} />}
      {q.spared && q.spared.length > 0 && <Neighbors title="It was evicted for these, which are spared" list={q.spared} />}
      <Card title="What happened" note="the newest first" wide>
        <Timeline entries={story} of={`${namespace}/workload/${name}`} empty="The scheduler has decided nothing about it lately." />
      </Card>
    </div>
  );
}
