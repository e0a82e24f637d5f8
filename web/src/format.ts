// Numbers and times for people.

/** amount writes a number of the base unit of a resource: CPU in thousandths of a core, memory in bytes. */
export function amount(resource: string, value: number): string {
  if (resource === "cpu") return String(Math.round(value / 10) / 100);
  if (!inBytes(resource)) return value.toLocaleString("en");
  const units = ["", "Ki", "Mi", "Gi", "Ti", "Pi"];
  let unit = 0;
  while (Math.abs(value) >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${value >= 100 ? Math.round(value) : Math.round(value * 10) / 10}${units[unit]}`;
}

export function inBytes(resource: string): boolean {
  return /(^|\.)(memory|storage|ephemeral-storage)$/.test(resource) || resource.startsWith("hugepages-");
}

/** parse reads what amount writes, and other quantities of Kubernetes. It returns NaN for what is none. */
export function parse(resource: string, text: string): number {
  const m = /^\s*(\d+(?:\.\d+)?)\s*([mkKMGTP]?i?)\s*$/.exec(text);
  if (!m) return NaN;
  const factors: Record<string, number> = {
    "": 1,
    m: 1e-3,
    k: 1e3,
    M: 1e6,
    G: 1e9,
    T: 1e12,
    P: 1e15,
    Ki: 2 ** 10,
    Mi: 2 ** 20,
    Gi: 2 ** 30,
    Ti: 2 ** 40,
    Pi: 2 ** 50,
  };
  const factor = factors[m[2]!];
  return factor === undefined ? NaN : Number(m[1]) * factor * (resource === "cpu" ? 1000 : 1);
}

/** short is the name of a resource without its domain. */
export function short(resource: string): string {
  return resource.replace(/^.*\//, "");
}

/** main are the resources that are shown first: those that nodes have, CPU and memory in front. */
export function main(resources: string[], present: (number[] | null | undefined)[]): number[] {
  const rank = (r: string) => (r === "cpu" ? 0 : r === "memory" ? 1 : r.includes("/") ? 2 : 3);
  return resources
    .map((_, i) => i)
    .filter((i) => !["pods", "ephemeral-storage"].includes(resources[i]!) && present.some((p) => (p?.[i] ?? 0) > 0))
    .sort((a, b) => rank(resources[a]!) - rank(resources[b]!) || resources[a]!.localeCompare(resources[b]!));
}

export function percent(part: number, whole: number): string {
  return whole > 0 ? `${Math.round((part / whole) * 100)} %` : "–";
}

/** since writes how long ago a time is. */
export function since(time: string | undefined, now = Date.now()): string {
  if (!time) return "–";
  return span((now - Date.parse(time)) / 1000);
}

export function span(seconds: number): string {
  seconds = Math.max(0, Math.floor(seconds));
  const parts: [number, string][] = [
    [86400, "d"],
    [3600, "h"],
    [60, "m"],
    [1, "s"],
  ];
  const first = parts.findIndex(([length]) => seconds >= length);
  if (first < 0) return "0s";
  const [length, unit] = parts[first]!,
    rest = parts[first + 1];
  const more = rest ? Math.floor((seconds % length) / rest[0]) : 0;
  return `${Math.floor(seconds / length)}${unit}${more && rest ? ` ${more}${rest[1]}` : ""}`;
}

const two = (n: number) => String(n).padStart(2, "0");

/** clock writes a time, in the reader's time zone. All pages write times so. */
export function clock(time: string): string {
  const t = new Date(time);
  return `${t.getFullYear()}-${two(t.getMonth() + 1)}-${two(t.getDate())} ${hour(time)}:${two(t.getSeconds())}`;
}

/** hour writes the hour and minute of a time, as clock does. */
export function hour(time: string | number): string {
  const t = new Date(time);
  return `${two(t.getHours())}:${two(t.getMinutes())}`;
}

/** tail splits a sentence before its last words, which are not cut off: they may be the number that it is about. */
export function tail(sentence: string): [head: string, end: string] {
  const most = 24,
    isShort = 40;
  if (sentence.length <= isShort) return ["", sentence];
  const at = sentence.indexOf(" ", sentence.length - most);
  return at < 0 ? ["", sentence] : [sentence.slice(0, at), sentence.slice(at)];
}

/** plural writes a number with a noun. */
export function plural(count: number, noun: string, many = noun + "s"): string {
  return `${count.toLocaleString("en")} ${count === 1 ? noun : many}`;
}

export const byName = new Intl.Collator("en", { numeric: true }).compare;
