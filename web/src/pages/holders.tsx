import { plural, span } from "../format";
import type { Ends, HeldGroup, Holders } from "../types";
import { JobLink } from "../ui";

const because: Record<string, string> = {
  Declared: "it declares how long it runs",
  Measured: "so long it ran before",
  SameQueue: "so long others of its queue ran",
};

/** expected says in words when a job is expected to end. */
function expected(e: Ends): string {
  if (e.never) return "is a service, which does not end by itself";
  if (!e.earliest || !e.latest) return "not known";
  if (e.basis === "Room") return "it is leaving";
  const of = (time: string, least: number) => span(Math.max((Date.parse(time) - Date.now()) / 1000, least)),
    from = of(e.earliest, 0),
    to = of(e.latest, 1);
  const range = Date.parse(e.earliest) - Date.now() < 1000 ? `within ${to}` : `in ${from} to ${to}`;
  return because[e.basis ?? ""] ? `${range} (${because[e.basis!]})` : range;
}

function Groups({ of, list }: { of: string; list: HeldGroup[] | undefined }) {
  if (!list || list.length < 2) return null; // the jobs say it
  return (
    <p class="muted">
      By {of}: {list.map((g) => `${g.name} ${g.held}`).join(", ")}
    </p>
  );
}

/** HeldBy says who holds a resource: the jobs that hold most of it, with their expected ends. */
export function HeldBy({ holders: h }: { holders: Holders }) {
  const caption = h.total
    ? `${h.held} of ${h.total} ${h.resource} of ${h.where} are held`
    : `${h.held} ${h.resource} of ${h.where} are held`;
  return (
    <>
      {h.jobs && h.jobs.length > 0 ? (
        <div class="scroll" tabIndex={0} role="region" aria-label={caption}>
          <table>
            <caption>{caption}</caption>
            <thead>
              <tr>
                <th scope="col">Holds</th>
                <th scope="col">Job</th>
                <th scope="col">Queue</th>
                <th scope="col">Priority</th>
                <th scope="col">Is expected to end</th>
              </tr>
            </thead>
            <tbody>
              {h.jobs.map((j, i) => (
                <tr key={i}>
                  <td class="number">{j.held}</td>
                  <td>
                    <JobLink job={j.job} />
                  </td>
                  <td>{j.queue}</td>
                  <td class="number">{j.priority}</td>
                  <td>{expected(j.ends)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ) : (
        <p>
          {caption}, by{" "}
          {plural(
            (h.queues ?? []).reduce((sum, q) => sum + q.jobs, 0),
            "job",
          )}{" "}
          whose names you may not see.
        </p>
      )}
      <Groups of="queue" list={h.queues} />
      <Groups of="namespace" list={h.namespaces} />
    </>
  );
}
