import { plural, span } from "../format";
import type { Ends, HeldGroup, Holders } from "../types";
import { JobLink } from "../ui";

const because: Record<string, string> = {
  Declared: "it declares how long it runs",
  Measured: "so long it ran before",
  SameQueue: "so long others of its queue ran",
};

/** keptFor says in words why something is kept for a job. */
const keptFor: Record<string, string> = {
  Admission: "it is admitted, and may still start that much",
  Plan: "a plan has promised it nodes",
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
      By {of}: {list.map((g) => `${g.name} ${g.held}${g.kept ? ` and ${g.kept} kept` : ""}`).join(", ")}
    </p>
  );
}

/** HeldBy says who holds a resource and for whom it is kept: the jobs that have most of it, with their expected ends. */
export function HeldBy({ holders: h }: { holders: Holders }) {
  const held = h.total ? `${h.held} of ${h.total} ${h.resource} of ${h.where} are held` : `${h.held} ${h.resource} of ${h.where} are held`;
  const caption = h.kept ? `${held}, and ${h.kept} more are kept for jobs` : held;
  return (
    <>
      {h.jobs && h.jobs.length > 0 ? (
        <div class="scroll" tabIndex={0} role="region" aria-label={caption}>
          <table>
            <caption>{caption}</caption>
            <thead>
              <tr>
                <th scope="col">Holds</th>
                {h.kept && <th scope="col">Kept</th>}
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
                  {h.kept && <td class="number">{j.kept}</td>}
                  <td>
                    <JobLink job={j.job} />
                  </td>
                  <td>{j.queue}</td>
                  <td class="number">{j.priority}</td>
                  <td>{[j.held === "0" ? "" : expected(j.ends), keptFor[j.keptFor ?? ""] ?? ""].filter(Boolean).join("; ")}</td>
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
