// What is shown, as a file: for a spreadsheet, or for a program.

/** Columns are the columns of a file: the name of each, and its value in a row. */
export type Columns<R> = [name: string, value: (row: R) => string | number | undefined][];

/** amountColumns has a column for each resource. CPU is in cores, memory in bytes, others by number. */
export function amountColumns<R>(name: string, resources: string[], of: (row: R) => number[] | undefined): Columns<R> {
  return resources.map((resource, d) => [
    `${name}.${resource}`,
    (row) => {
      const value = of(row)?.[d];
      return value === undefined || value < 0 ? undefined : resource === "cpu" ? value / 1000 : value;
    },
  ]);
}

/** cell writes a value as RFC 4180 says. What a spreadsheet would take for a formula is marked as text. */
function cell(value: string | number | undefined): string {
  if (value === undefined) return "";
  if (typeof value === "number") return String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function toCSV<R>(rows: R[], columns: Columns<R>): string {
  const lines = [columns.map(([name]) => cell(name)), ...rows.map((row) => columns.map(([, value]) => cell(value(row))))];
  return lines.map((line) => line.join(",") + "\r\n").join("");
}

/** toJSON writes a list of objects with the same names. A value that a row lacks is left out. */
export function toJSON<R>(rows: R[], columns: Columns<R>): string {
  return (
    JSON.stringify(
      rows.map((row) => Object.fromEntries(columns.map(([name, value]) => [name, value(row)]).filter(([, v]) => v !== undefined))),
      null,
      1,
    ) + "\n"
  );
}

/** save offers a file to the reader. */
export function save(name: string, type: string, text: string): void {
  const address = URL.createObjectURL(new Blob([text], { type })),
    link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  // The browser has to begin with the file before its address ends.
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
