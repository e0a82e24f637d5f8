// Drives a browser for the tests in Go: reads a step with its arguments from each line of the input, and writes the result as a line.
// CHROMIUM is the browser's executable.
import { chromium } from "playwright-core";
import { createInterface } from "node:readline";
import { World } from "./steps.mjs";

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM,
  args: ["--no-sandbox", "--disable-dev-shm-usage", "--force-prefers-reduced-motion"],
});
const world = new World(browser);
for await (const line of createInterface({ input: process.stdin })) {
  const { step, args } = JSON.parse(line);
  let reply;
  try {
    reply = { result: (await world[step](args)) ?? null };
  } catch (problem) {
    reply = { error: String(problem.stack ?? problem) };
  }
  process.stdout.write(JSON.stringify(reply) + "\n");
}
await browser.close();
