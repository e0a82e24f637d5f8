// Makes internal/web/dist of src. The same sources and packages give the same files, byte for byte.
import { build } from "esbuild";
import { cp, rm, mkdir, stat, readdir } from "node:fs/promises";

const out = new URL("../internal/web/dist/", import.meta.url).pathname;
const largest = 300 * 1024; // bytes, of all files together

await rm(out, { recursive: true, force: true });
await mkdir(out, { recursive: true });
await build({
  entryPoints: [{ in: "src/main.tsx", out: "page" }],
  outdir: out,
  bundle: true,
  minify: true,
  format: "esm",
  target: ["es2022"],
  legalComments: "eof",
  loader: { ".svg": "text" },
});
for (const name of ["index.html", "icon.svg"]) await cp(`src/${name}`, out + name);

let size = 0;
for (const name of await readdir(out)) size += (await stat(out + name)).size;
if (size > largest) throw new Error(`the page has ${size} bytes, and may have ${largest}`);
console.log(`internal/web/dist: ${size} bytes`);
