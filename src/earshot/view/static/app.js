// The clock, the selection, the keys, and what is shown; everything else asks here.

const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60, 120, 300];
const LAYERS = [
  ["links", "Links"], ["proximities", "Proximities"], ["cells", "Cells"], ["regions", "Regions"],
];
const LINK_WORDS = { tree: "Tree", mesh: "Mesh", routes: "Routes used", brokers: "Brokers" };
const MOST_PANES = 4;

class App {
  constructor() {
    this.catalogue = new Catalogue();
    this.view = new View();
    this.panes = [];
    this.runs = new Map();
    this.t = 0;
    this.speed = 1;
    this.playing = false;
    this.hop = Infinity;
    this.budget = MOST_HOPS;
    this.gap = 1 / 60;
    this.tree = "";
    this.chosen = { event: -1, node: -1 };
    this.shown = { links: false, proximities: false, cells: true, regions: true, range: "chosen", names: false };
    this.touched = new Set();
    this.frames = { count: 0, since: 0, shown: false, spent: [] };
    this.following = false;
  }

  async start() {
    document.title = `${this.catalogue.title} · Earshot`;
    this.timeline = new Timeline(this, part("histogram"), part("scrub"));
    this.panel = new Panel(this);
    this.theme();
    this.controls();
    listenToKeys(this);
    const wanted = new URLSearchParams(location.hash.slice(1));
    const entry = this.catalogue.worlds.find((one) => one.key === wanted.get("world"))
      ?? this.catalogue.worlds.find((one) => one.runs.some((run) => run.key === wanted.get("run")))
      ?? this.catalogue.worlds[0];
    fill(part("world"), this.catalogue.worlds.map((one) => make("option", { value: one.key }, one.title)));
    part("world").hidden = this.catalogue.worlds.length < 2;
    await this.openWorld(entry.key, wanted);
    new ResizeObserver(() => this.layout()).observe(part("panes"));
    window.addEventListener("hashchange", () => this.fromHash());
    if (this.catalogue.served) this.follow();
    document.body.dataset.ready = "true";
    requestAnimationFrame((now) => this.frame(now));
  }

  async openWorld(key, wanted = new URLSearchParams()) {
    const entry = this.catalogue.worlds.find((one) => one.key === key);
    const asked = (wanted.get("run") ?? "").split(",").filter((key) => entry.runs.some((run) => run.key === key));
    const keys = asked.length ? asked : [entry.runs[0].key];
    const { world, runs } = await this.fetched(key, keys);
    this.entry = entry;
    part("world").value = key;
    const { title, worlds } = this.catalogue;
    part("name").textContent = worlds.length > 1 ? title : entry.title.startsWith(title) ? entry.title : `${title}: ${entry.title}`;
    this.chosen = { event: -1, node: -1 };
    this.hop = Infinity;
    this.view.fitted = true;
    this.t = Math.min(world.counted_from, world.end);
    if (wanted.has("t")) this.t = Math.max(0, Math.min(world.end, Number(wanted.get("t")) || 0));
    this.show(world, runs, keys);
    this.panel.open(this.panel.tab);
    const event = world.events.findIndex((one) => one.id === wanted.get("event"));
    this.choose(event, world.nodes.indexOf(wanted.get("node")));
    if (event >= 0 && !wanted.has("t")) this.goTo(world.events[event]);
  }

  // A world and some of its runs; nothing is shown before all of it is there.
  async fetched(key, keys) {
    const world = new World(await this.catalogue.world(key));
    const runs = new Map();
    for (const one of keys) runs.set(one, new Run(await this.catalogue.run(key, one), world));
    return { world, runs };
  }

  async showPlays(keys) {
    const { world, runs } = this;
    this.wanted = keys;
    for (const key of keys) {
      if (!runs.has(key)) runs.set(key, new Run(await this.catalogue.run(world.key, key), world));
    }
    if (this.wanted === keys && this.world === world) this.show(world, runs, keys);   // else others were asked for
  }

  show(world, runs, keys) {
    Object.assign(this, { world, runs, wanted: keys });
    epoch.start = world.start;
    this.panes = keys.map((key) => new Pane(this, runs.get(key)));
    for (const pane of this.panes) listenTo(this, pane);
    fill(part("panes"), this.panes.map((pane) => pane.element));
    part("panes").dataset.count = String(this.panes.length);
    this.choices();
    this.layers();
    this.layout();
    this.panel.detail();
  }

  // Which protocols are looked at, side by side.
  choices() {
    const bar = part("runs"), { runs } = this.entry;
    const same = runs.length === bar.children.length
      && runs.every(({ key, title }, i) => bar.children[i].dataset.run === key && bar.children[i].textContent === title);
    // Buttons that are there stay: a button that is replaced while it is pressed loses the click.
    if (!same) {
      fill(bar, runs.map(({ key, title }) => make("button", { class: "choice", "data-run": key, onclick: () => {
        const now = this.wanted;
        const next = now.includes(key) ? now.filter((one) => one !== key) : [...now, key].slice(-MOST_PANES);
        if (next.length) this.guard(this.showPlays(next));
      } }, title)));
    }
    for (const button of bar.children) button.setAttribute("aria-pressed", String(this.wanted.includes(button.dataset.run)));
    bar.hidden = runs.length < 2;
  }

  layers() {
    const has = {
      links: this.panes.some(({ run }) => run.links.a.length > 0),
      proximities: this.world.announcements.some((one) => one.proximity),
      cells: this.panes.some(({ run }) => run.overlays.cells),
      regions: this.panes.some(({ run }) => run.brokers.node.length > 0),
    };
    // A protocol's own picture is there from the start; what it has in common with the others, on demand.
    const own = {
      links: this.panes.some(({ run }) => run.links.kind !== "routes"),
      proximities: this.panes.some(({ run }) => run.protocol === "steam"),
    };
    for (const name of Object.keys(own)) if (!this.touched.has(name)) this.shown[name] = own[name];
    const kinds = [...new Set(this.panes.map(({ run }) => LINK_WORDS[run.links.kind] ?? "Links"))];
    const buttons = LAYERS.filter(([name]) => has[name]).map(([name, word]) => make("button", {
      class: "layer", "aria-pressed": String(Boolean(this.shown[name])), "data-layer": name, onclick: () => this.toggle(name),
    }, name === "links" ? kinds.join(" / ") : word));
    const range = { chosen: "Range: chosen", all: "Range: all", "": "Range: off" }[this.shown.range];
    if (this.world.range_m && this.panes.some(({ run }) => run.radio)) buttons.push(make("button", { class: "layer", "aria-pressed": String(Boolean(this.shown.range)), "data-layer": "range", onclick: () => this.toggle("range") }, range));
    buttons.push(make("button", { class: "layer", "aria-pressed": String(this.shown.names), "data-layer": "names", onclick: () => this.toggle("names") }, "Names"));
    const trees = this.panes.find(({ run }) => run.trees.length > 1)?.run.trees;
    if (trees && this.shown.links) {
      const names = [["", "Tree of the chosen event"], ["*", `all ${trees.length} trees`], ...trees.map(({ name, links }) => [name, `${name} (${links})`])];
      buttons.push(make("select", { id: "tree", "aria-label": "Which tree", onchange: (change) => { this.tree = change.target.value; this.dirty = true; } },
        names.map(([value, words]) => make("option", { value, selected: value === this.tree }, words))));
    }
    fill(part("layers"), buttons);
    this.offered = LAYERS.filter(([name]) => has[name]).map(([name]) => name);
  }

  // The trees to draw, by their groups; null for whatever links there are.
  treesOf(run) {
    if (!run.trees.length || this.tree === "*") return null;
    const named = run.trees.filter(({ name }) => name === this.tree);
    const event = this.world.events[this.chosen.event];
    const source = event ? this.world.nodes[event.source] : null;
    const own = run.trees.filter(({ name }) => source !== null && (name === source || name.startsWith(`${source}#`)));
    const trees = this.tree ? named : event ? own : run.trees.slice(0, 1);
    return new Set(trees.map(({ group }) => group));
  }

  toggle(name) {
    if (name === "range") this.shown.range = { chosen: "all", all: "", "": "chosen" }[this.shown.range];
    else this.shown[name] = !this.shown[name];
    this.touched.add(name);
    this.layers();
    this.dirty = true;
  }

  // As many columns as show the ground largest; on a phone one.
  columns() {
    const box = part("panes").getBoundingClientRect(), count = this.panes.length;
    const [west, south, east, north] = this.world.bounds;
    let best = 1, largest = 0;
    for (let columns = 1; columns <= count; columns++) {
      const tall = box.height / Math.ceil(count / columns) - 76;
      const scale = Math.min((box.width / columns - 48) / (east - west), tall / (north - south));
      if (scale > largest) { largest = scale; best = columns; }
    }
    const narrow = window.matchMedia("(max-width: 60rem)").matches;
    part("panes").style.gridTemplateColumns = narrow ? "" : `repeat(${best}, minmax(0, 1fr))`;
  }

  layout() {
    this.columns();
    for (const pane of this.panes) pane.resize();
    const first = this.panes[0];
    if (first && this.view.fitted) this.view.fit(this.world.bounds, first.width, first.height);
    this.timeline.draw();
    this.dirty = true;
  }

  // Time.

  frame(now) {
    requestAnimationFrame((next) => this.frame(next));
    const passed = Math.min(0.25, (now - (this.last ?? now)) / 1000);
    this.last = now;
    this.pace(passed);
    if (this.playing) {
      this.t += passed * this.speed;
      if (this.t >= this.world.end) { this.t = this.world.end; this.setPlaying(false); }
    }
    if (!this.playing && !this.dirty) return;
    this.dirty = false;
    const began = performance.now();
    this.draw();
    this.count(now, performance.now() - began);
  }

  // Thirty frames a second matter more than the last of a thousand hops.
  pace(passed) {
    if (!this.playing || passed === 0) { this.gap = 1 / 60; return; }
    this.gap += 0.15 * (passed - this.gap);
    if (this.gap > 0.028) this.budget = Math.max(FEWEST_HOPS, this.budget * 0.93);
    else if (this.gap < 0.02) this.budget = Math.min(MOST_HOPS, this.budget * 1.02 + 1);
  }

  draw() {
    this.world.move(this.t);
    for (const pane of this.panes) {
      pane.draw(this.t);
      const { wanted, met } = pane.run.soFar(this.t);
      const words = wanted ? `${met.toLocaleString("en")} of ${wanted.toLocaleString("en")} delivered, ${((100 * met) / wanted).toFixed(1)} %` : "nothing expected yet";
      if (pane.words !== words) { pane.words = words; pane.figure.textContent = words; pane.canvas.setAttribute("aria-label", `Map of ${pane.run.title}: ${words}`); }
    }
    this.timeline.show(this.t);
    part("now").textContent = exactly(this.t);
    this.panel.tick();
  }

  count(now, spent) {
    this.frames.spent.push(spent);
    if (this.frames.spent.length > 600) this.frames.spent.shift();
    this.frames.count++;
    if (now - this.frames.since >= 500) {
      const rate = (this.frames.count * 1000) / (now - this.frames.since);
      if (this.frames.shown) part("rate").textContent = `${rate.toFixed(0)} frames/s, ${spent.toFixed(1)} ms`;
      this.frames.count = 0;
      this.frames.since = now;
    }
  }

  seek(t) {
    this.t = Math.max(0, Math.min(this.world.end, t));
    if (this.following) this.setFollowing(false);
    this.dirty = true;
  }

  setPlaying(playing) {
    if (playing && this.t >= this.world.end) this.t = 0;
    this.playing = playing;
    part("play").setAttribute("aria-pressed", String(playing));
    part("play").setAttribute("aria-label", playing ? "Pause" : "Play");
    part("play").dataset.state = playing ? "playing" : "paused";
    this.dirty = true;
  }

  setSpeed(speed) {
    this.speed = speed;
    part("speed").value = String(speed);
    this.dirty = true;
  }

  faster(step) {
    const k = SPEEDS.indexOf(this.speed);
    this.setSpeed(SPEEDS[Math.max(0, Math.min(SPEEDS.length - 1, k + step))]);
  }

  // Selection.

  choose(event, node) {
    if (event !== this.chosen.event) this.hop = Infinity;
    this.chosen = { event, node };
    this.panel.detail();
    this.dirty = true;
    this.remember();
    document.body.dataset.chosen = String(event >= 0 || node >= 0);
  }

  chooseEvent(event) {
    this.choose(event, this.chosen.node);
    if (event >= 0) this.goTo(this.world.events[event]);
  }

  chooseNode(node) {
    this.choose(this.chosen.event, node);
  }

  goTo(event) {
    this.seek(event.time);
  }

  setHop(hop) {
    this.hop = hop;
    const deepest = Math.max(0, ...this.panes.map(({ run }) => run.deepest[this.chosen.event] ?? 0));
    if (part("hopped")) part("hopped").textContent = hop === Infinity ? "all" : `${hop} of ${deepest}`;
    if (part("hop")) part("hop").value = String(hop === Infinity ? deepest + 1 : hop);
    this.dirty = true;
  }

  nextHop() {
    if (this.chosen.event < 0) return;
    const deepest = Math.max(0, ...this.panes.map(({ run }) => run.deepest[this.chosen.event]));
    this.setHop(this.hop === Infinity ? 0 : this.hop >= deepest ? Infinity : this.hop + 1);
  }

  nextEvent(step) {
    const count = this.world.events.length;
    if (!count) return;
    const from = this.chosen.event >= 0 ? this.chosen.event : countUpTo(this.world.eventTimes, this.t) - (step > 0 ? 1 : 0);
    this.chooseEvent(Math.max(0, Math.min(count - 1, from + step)));
  }

  nextMissed() {
    const run = this.panes[0].run;
    const rows = run.missed.event.length;
    if (!rows) return this.say(`${run.title} missed nothing.`);
    let k = 0;
    for (let i = 0; i < rows; i++) if (run.missed.event[i] === this.chosen.event && run.missed.node[i] === this.chosen.node) k = i + 1;
    if (k === 0) k = countUpTo(run.missed.time, this.t - 1e-9) % rows;
    k %= rows;
    this.choose(run.missed.event[k], run.missed.node[k]);
    this.goTo(this.world.events[run.missed.event[k]]);
  }

  remember() {
    const words = new URLSearchParams({ world: this.world.key, run: this.panes.map((pane) => pane.run.key).join(",") });
    if (this.chosen.event >= 0) words.set("event", this.world.events[this.chosen.event].id);
    if (this.chosen.node >= 0) words.set("node", this.world.nodes[this.chosen.node]);
    this.written = `#${words}`;
    history.replaceState(null, "", this.written);
  }

  fromHash() {
    if (location.hash === this.written) return;
    const wanted = new URLSearchParams(location.hash.slice(1));
    const key = wanted.get("world") ?? this.catalogue.worlds.find((one) => one.runs.some((run) => run.key === wanted.get("run")))?.key;
    if (this.catalogue.worlds.some((one) => one.key === key)) this.guard(this.openWorld(key, wanted));
  }

  // What people do.

  controls() {
    part("play").addEventListener("click", () => this.setPlaying(!this.playing));
    fill(part("speed"), SPEEDS.map((speed) => make("option", { value: speed }, `${speed}×`)));
    this.setSpeed(1);
    part("speed").addEventListener("change", () => this.setSpeed(Number(part("speed").value)));
    part("world").addEventListener("change", () => this.guard(this.openWorld(part("world").value)));
    part("theme").addEventListener("click", () => this.turnTheme());
    part("live").addEventListener("click", () => this.setFollowing(!this.following));
    part("fold").addEventListener("click", () => {
      const folded = document.body.dataset.folded !== "true";
      document.body.dataset.folded = String(folded);
      part("fold").setAttribute("aria-expanded", String(!folded));
    });
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.theme());
  }

  fit() {
    this.view.fitted = true;
    this.layout();
  }

  zoom(factor) {
    const pane = this.panes[0];
    this.view.zoom(factor, pane.width / 2, pane.height / 2, pane.width, pane.height);
    this.dirty = true;
  }

  turnTheme() {
    const dark = this.isDark();
    document.documentElement.dataset.theme = dark ? "light" : "dark";
    this.theme();
  }

  isDark() {
    const said = document.documentElement.dataset.theme;
    return said ? said === "dark" : window.matchMedia("(prefers-color-scheme: dark)").matches;
  }

  theme() {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(`--${name}`).trim();
    const camel = (name) => name.replace(/-(.)/g, (_, letter) => letter.toUpperCase());
    this.colours = Object.fromEntries(COLOURS.map((name) => [camel(name), colour(name)]));
    this.colours.groups = [1, 2, 3, 4, 5, 6, 7].map((k) => colour(`group-${k}`));
    part("theme").setAttribute("aria-label", this.isDark() ? "Light" : "Dark");
    if (this.world) { this.timeline.draw(); this.dirty = true; }
  }

  // A network that is being watched: look for updates, and move on with it.
  async follow() {
    let updates = null;
    try {
      updates = await this.catalogue.updates();
    } catch (error) {
      this.say(`The server does not answer: ${error.message}`);
    }
    if (updates) await this.take(updates);
    else if (!this.watching) return;
    setTimeout(() => this.follow(), 2000);
  }

  async take(updates) {
    const first = !this.watching;
    this.watching = true;
    part("live").hidden = false;
    part("figures").hidden = false;
    if (first) { this.setFollowing(true); this.panel.list(); }
    fill(part("figures"), updates.figures.map(({ name, value }) => make("span", {}, [make("b", {}, value), ` ${name}`])));
    glance(part("glance"), updates);
    if (updates.batch === this.batch) return;
    this.batch = updates.batch;
    this.catalogue.worlds = updates.worlds;
    if (!first) await this.renew();
  }

  async renew() {
    const entry = this.catalogue.worlds.find((one) => one.key === this.world.key) ?? this.catalogue.worlds[0];
    const own = this.wanted.filter((key) => entry.runs.some((run) => run.key === key));
    const keys = own.length ? own : [entry.runs[0].key];
    const { world, runs } = await this.fetched(entry.key, keys);
    const event = this.world.events[this.chosen.event]?.id, node = this.world.nodes[this.chosen.node];
    this.entry = entry;
    this.chosen = { event: world.events.findIndex((one) => one.id === event), node: world.nodes.indexOf(node) };
    this.t = this.following ? world.end : Math.max(0, this.t + this.world.start - world.start);
    this.show(world, runs, keys);
  }

  setFollowing(following) {
    this.following = following;
    part("live").setAttribute("aria-pressed", String(following));
    if (following) { this.setPlaying(false); this.t = this.world.end; this.dirty = true; }
  }

  guard(promise) {
    promise.catch((error) => this.say(error.message));
  }

  say(text) {
    part("said").textContent = text;
    clearTimeout(this.saying);
    this.saying = setTimeout(() => { part("said").textContent = ""; }, 6000);
  }
}

const COLOURS = [
  "paper", "ground", "ink", "soft", "line", "tint", "node", "gone", "spread", "met", "missed", "unasked", "event", "event-tint",
  "range", "link", "grid", "cell", "rendezvous", "rendezvous-tint", "proximity", "proximity-mine", "region-tint", "region-edge",
];

const app = new App();
window.earshot = app;
app.start().catch((error) => { part("said").textContent = `This page cannot be shown: ${error.message}`; document.body.dataset.ready = "failed"; });
