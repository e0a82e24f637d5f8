// What a reader does with the page, step by step. Each step returns what the reader sees.
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";

const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const patience = 30_000;

export class World {
  constructor(browser) {
    this.browser = browser;
  }

  /** open opens the page in a new window, with a token in the fragment if there is one. */
  async open({ address, token, dark, width = 1280, height = 800 }) {
    await this.context?.close();
    this.context = await this.browser.newContext({
      viewport: { width, height },
      colorScheme: dark ? "dark" : "light",
      reducedMotion: "reduce",
      bypassCSP: false,
    });
    this.page = await this.context.newPage();
    this.page.setDefaultTimeout(patience);
    this.problems = [];
    this.expected = undefined;
    this.address = address;
    this.page.on("pageerror", (e) => this.problems.push(`an error of the page: ${e}`));
    this.page.on("console", (m) => {
      if (m.type() === "error" && !/status of 40[134]/.test(m.text()) && !this.expected?.test(m.text()))
        this.problems.push(`the console: ${m.text()}`);
    });
    this.page.on("request", (r) => {
      if (!r.url().startsWith(address) && !/^(data|blob):/.test(r.url())) this.problems.push(`a request to another host: ${r.url()}`);
      if (token && r.url().includes(token)) this.problems.push(`the token is in the address of a request: ${r.url()}`);
    });
    await this.page.goto(`${address}/${token ? `#token=${encodeURIComponent(token)}` : ""}`);
    if (token) await this.page.locator(".live.is-live").waitFor();
    return { url: this.page.url(), title: await this.page.title() };
  }

  /** expect lets the browser complain of what a test brings about. */
  async expect({ pattern }) {
    this.expected = new RegExp(pattern);
  }

  /** fail answers requests whose address ends like this, before any parameters, with an error, until heal is called. */
  async fail({ path, status }) {
    this.failing = (url) => url.pathname.endsWith(path);
    await this.page.route(this.failing, (route) =>
      route.fulfill({ status, contentType: "application/json", body: JSON.stringify({ message: "the scheduler is busy" }) }),
    );
  }

  async heal() {
    await this.page.unroute(this.failing);
  }

  /** linked says what the page says of its connection, once it says so: in its head, and in its note. */
  async linked({ state }) {
    const head = this.page.locator(`.live.is-${state}`);
    await head.waitFor();
    const note = this.page.locator("main .stale");
    if (state === "live") await note.first().waitFor({ state: "detached" });
    else if (state !== "connecting") await note.first().waitFor();
    return { head: await head.innerText(), notes: await note.allInnerTexts() };
  }

  /** trouble is what has gone wrong since open. */
  async trouble() {
    return this.problems;
  }

  async login({ token }) {
    await this.page.getByLabel("Bearer token").fill(token);
    await this.page.keyboard.press("Enter");
    const result = this.page.locator(".problem, .live.is-live").first();
    await result.waitFor();
    return result.innerText();
  }

  /** go opens a part of the page by its address. */
  async go({ path, wait }) {
    await this.page.evaluate((p) => {
      location.hash = p;
    }, path);
    if (wait) await this.page.locator(wait).first().waitFor();
    return this.text();
  }

  async text() {
    return this.page.locator("main").innerText();
  }

  async wait({ text }) {
    await this.page.getByText(text).first().waitFor();
    return this.text();
  }

  /** findCause finds out why a job waits, from the first page, with two clicks. */
  async findCause({ job }) {
    await this.page.goto(`${this.address}/#/`);
    await this.page.locator("h1", { hasText: "Overview" }).waitFor();
    let clicks = 0;
    const click = async (what) => {
      await what.click();
      clicks++;
    };
    await click(this.page.getByRole("navigation").getByRole("link", { name: "Jobs" }));
    await click(
      this.page
        .getByRole("grid")
        .getByRole("row")
        .filter({ has: this.page.getByRole("link", { name: job, exact: true }) })
        .first(),
    );
    const cause = this.page.locator("[data-cause]");
    await cause
      .or(this.page.locator("main .problem"))
      .first()
      .waitFor({ timeout: 10_000 })
      .catch((e) => {
        throw new Error(`${e}\n${this.problems.join("\n")}`);
      });
    if (!(await cause.count())) throw new Error(`${this.page.url()} says ${await this.text()}`);
    return { clicks, code: await cause.getAttribute("data-cause"), text: await this.text() };
  }

  /** violations are what axe finds of WCAG 2.2 A and AA, and of the practices that it knows. */
  async violations() {
    // The page's own policy keeps scripts of others out, so axe is run by the debugger.
    const found = await this.page.evaluate(
      `(() => { ${axe}; return axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }); })()`,
    );
    if (found.passes.length < 10) throw new Error(`only ${found.passes.length} rules were tried`);
    return found.violations.map(
      (v) =>
        `${v.id}: ${v.help}: ${v.nodes
          .slice(0, 3)
          .map((n) => `${n.target} (${n.failureSummary?.replace(/\s+/g, " ")})`)
          .join("; ")}`,
    );
  }

  /** overflow is by how many pixels the page is wider than the window. */
  async overflow() {
    return this.page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  }

  async screenshot({ file }) {
    await this.page.screenshot({ path: file, animations: "disabled" });
  }

  /** press presses keys, and says where that leads. */
  async press({ keys }) {
    for (const key of keys) await this.page.keyboard.press(key);
    await this.page.waitForTimeout(150);
    return {
      hash: await this.page.evaluate(() => location.hash),
      focused: await this.page.evaluate(
        () => document.activeElement?.id || document.activeElement?.getAttribute("aria-label") || document.activeElement?.tagName,
      ),
      active: await this.page.evaluate(() => {
        const id = document.activeElement?.getAttribute("aria-activedescendant");
        return id ? (document.getElementById(id)?.innerText ?? document.getElementById(id)?.getAttribute("aria-label")) : "";
      }),
    };
  }

  async fill({ label, value }) {
    await this.page.getByLabel(label).first().fill(value);
    await this.page.waitForTimeout(200);
    return this.text();
  }

  async click({ role, name }) {
    await this.page.getByRole(role, { name }).first().click();
    await this.page.waitForTimeout(200);
    return this.text();
  }

  /** rows says how many rows the table has, and how many of them are in the document. */
  async rows() {
    const grid = this.page.getByRole("grid");
    return {
      all: Number(await grid.getAttribute("aria-rowcount")) - 1,
      drawn: await grid.locator(".body [role=row]").count(),
      first: await grid
        .locator(".body [role=row]")
        .first()
        .innerText()
        .catch(() => ""),
    };
  }

  /** sheet says which rows a table has, in their order, and how high it is. */
  async sheet({ label }) {
    const sheet = this.page.getByRole("region", { name: label });
    await sheet.locator("[data-row]").first().waitFor();
    return {
      rows: await sheet.locator("[data-row]").evaluateAll((all) => all.map((row) => row.dataset.row)),
      height: await sheet.evaluate((el) => el.offsetHeight),
    };
  }

  /** clocks are all times that the page shows. */
  async clocks() {
    return this.page.locator("time").allTextContents();
  }

  /** choose chooses an entry of a list. */
  async choose({ label, value }) {
    await this.page.getByRole("combobox", { name: label }).first().selectOption(value);
    await this.page.waitForTimeout(200);
    return this.text();
  }

  /** download takes a file that the page offers. */
  async download({ group, name }) {
    const [file] = await Promise.all([
      this.page.waitForEvent("download"),
      this.page.getByRole("group", { name: group, exact: true }).getByRole("button", { name }).click(),
    ]);
    return { name: file.suggestedFilename(), text: await readFile(await file.path(), "utf8") };
  }

  /** ends are the sentences in sight whose last letter is not, and how many are seen whole at their end. */
  async ends() {
    return this.page.evaluate(() => {
      const cut = [];
      let whole = 0;
      for (const sentence of document.querySelectorAll(".grid .body .ends")) {
        const walker = document.createTreeWalker(sentence, NodeFilter.SHOW_TEXT);
        let last;
        while (walker.nextNode()) last = walker.currentNode;
        const range = document.createRange(),
          cell = sentence.closest("[role=gridcell]").getBoundingClientRect();
        range.setStart(last, last.length - 1);
        range.setEnd(last, last.length);
        const box = range.getBoundingClientRect();
        if (box.width > 0 && box.right <= cell.right + 1 && box.left >= cell.left) whole++;
        else cut.push(sentence.title);
      }
      return { cut, whole };
    });
  }

  /** narrowest is the width in pixels of the narrowest of some elements. */
  async narrowest({ selector }) {
    const found = this.page.locator(selector);
    await found.first().waitFor();
    return found.evaluateAll((all) => Math.round(Math.min(...all.map((el) => el.getBoundingClientRect().width))));
  }

  /** listed loads the page anew at a list, and says after how many milliseconds its rows are drawn. */
  async listed({ path }) {
    await this.page.evaluate((p) => {
      location.hash = p;
    }, path);
    const began = Date.now();
    await this.page.reload({ waitUntil: "commit" });
    await this.page.locator("[role=grid] .body [role=row]").first().waitFor();
    return { took: Date.now() - began, ...(await this.rows()) };
  }

  /** scroll goes through the whole table, frame by frame, and says how long frames took in milliseconds. */
  async scroll() {
    return this.page.evaluate(
      () =>
        new Promise((done) => {
          const grid = document.querySelector("[role=grid]"),
            frames = [],
            step = (grid.scrollHeight - grid.clientHeight) / 240;
          let last = performance.now(),
            empty = 0;
          const frame = (now) => {
            frames.push(now - last);
            last = now;
            const box = grid.getBoundingClientRect(),
              middle = document.elementFromPoint(box.left + 40, box.top + box.height / 2);
            if (!middle?.closest("[role=row]")) empty++;
            if (frames.length > 240) {
              frames.sort((a, b) => a - b);
              return done({
                median: frames[120],
                slowest: frames.at(-1),
                late: frames.filter((f) => f > 50).length,
                empty,
                end: grid.scrollTop + grid.clientHeight >= grid.scrollHeight - 2,
              });
            }
            grid.scrollTop += step;
            requestAnimationFrame(frame);
          };
          requestAnimationFrame(frame);
        }),
    );
  }

  /** filter types into the filter, and says how long the table took for each letter in milliseconds. */
  async filter({ text }) {
    const box = this.page.locator("[data-filter]");
    await box.fill("");
    const times = [];
    for (const letter of text) {
      await box.press("End");
      times.push(
        await box.evaluate(
          (el, l) =>
            new Promise((done) => {
              const began = performance.now();
              el.value += l;
              el.dispatchEvent(new Event("input", { bubbles: true }));
              requestAnimationFrame(() => setTimeout(() => done(performance.now() - began)));
            }),
          letter,
        ),
      );
    }
    await this.page.waitForTimeout(100);
    return { times, ...(await this.rows()) };
  }
}
