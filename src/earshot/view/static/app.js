// The clock, the selection, the keys, and what is shown; everything else asks here.

const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60, 120, 300];
const LAYERS = [
  ["links", "Links"], ["proximities", "Proximities"], ["cells", "Cells"], ["regions", "Regions"],
];
const LINK_WORDS = { tree: "Tree", mesh: "Mesh", ways: "Ways used", brokers: "Brokers" };
const MOST_PANES = 4;

class App {
  constructor() {
    this.shelf = new Shelf();
    this.view = new View();
    this.panes = [];
    this.plays = new Map();
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
    document.title = `${this.shelf.title} · Earshot`;
    this.timeline = new Timeline(this, part("histogram"), part("scrub"));
    this.panel = new Panel(this);
    this.theme();
    this.controls();
    listenToKeys(this);
    const wanted = new URLSearchParams(location.hash.slice(1));
    const entry = this.shelf.scenes.find((one) => one.key === wanted.get("scene"))
      ?? this.shelf.scenes.find((one) => one.plays.some((play) => play.key === wanted.get("run")))
      ?? this.shelf.scenes[0];
    fill(part("scene"), this.shelf.scenes.map((one) => make("option", { value: one.key }, one.title)));
    part("scene").hidden = this.shelf.scenes.length < 2;
    await this.openScene(entry.key, wanted);
    new ResizeObserver(() => this.layout()).observe(part("panes"));
    window.addEventListener("hashchange", () => this.fromHash());
    if (this.shelf.served) this.follow();
    document.body.dataset.ready = "true";
    requestAnimationFrame((now) => this.frame(now));
  }

  async openScene(key, wanted = new URLSearchParams()) {
    const entry = this.shelf.scenes.find((one) => one.key === key);
    const runs = (wanted.get("run") ?? "").split(",").filter((run) => entry.plays.some((play) => play.key === run));
    const keys = runs.length ? runs : [entry.plays[0].key];
    const { scene, plays } = await this.fetched(key, keys);
    this.entry = entry;
    part("scene").value = key;
    const { title, scenes } = this.shelf;
    part("name").textContent = scenes.length > 1 ? title : entry.title.startsWith(title) ? entry.title : `${title}: ${entry.title}`;
    this.chosen = { event: -1, node: -1 };
    this.hop = Infinity;
    this.view.fitted = true;
    this.t = Math.min(scene.counted_from, scene.end);
    if (wanted.has("t")) this.t = Math.max(0, Math.min(scene.end, Number(wanted.get("t")) || 0));
    this.show(scene, plays, keys);
    this.panel.open(this.panel.tab);
    const event = scene.events.findIndex((one) => one.id === wanted.get("event"));
    this.choose(event, scene.nodes.indexOf(wanted.get("node")));
    if (event >= 0 && !wanted.has("t")) this.goTo(scene.events[event]);
  }

  // A scene and some of its plays; nothing is shown before all of it is there.
  async fetched(key, keys) {
    const scene = new Scene(await this.shelf.scene(key));
    const plays = new Map();
    for (const one of keys) plays.set(one, new Play(await this.shelf.play(key, one), scene));
    return { scene, plays };
  }

  async showPlays(keys) {
    const { scene, plays } = this;
    this.wanted = keys;
    for (const key of keys) {
      if (!plays.has(key)) plays.set(key, new Play(await this.shelf.play(scene.key, key), scene));
    }
    if (this.wanted === keys && this.scene === scene) this.show(scene, plays, keys);   // else others were asked for
  }

  show(scene, plays, keys) {
    Object.assign(this, { scene, plays, wanted: keys });
    epoch.start = scene.start;
    this.panes = keys.map((key) => new Pane(this, plays.get(key)));
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
    const here = this.wanted;
    fill(part("plays"), this.entry.plays.map(({ key, title }) => make("button", {
      class: "choice", "aria-pressed": String(here.includes(key)), "data-play": key,
      onclick: () => {
        const now = this.wanted;
        const next = now.includes(key) ? now.filter((one) => one !== key) : [...now, key].slice(-MOST_PANES);
        if (next.length) this.guard(this.showPlays(next));
      },
    }, title)));
    part("plays").hidden = this.entry.plays.length < 2;
  }

  layers() {
    const has = {
      links: this.panes.some(({ play }) => play.links.a.length > 0),
      proximities: this.scene.announced.some((one) => one.proximity),
      cells: this.panes.some(({ play }) => play.overlays.cells),
      regions: this.panes.some(({ play }) => play.brokers.node.length > 0),
    };
    // A protocol's own picture is there from the start; what it has in common with the others, on demand.
    const own = {
      links: this.panes.some(({ play }) => play.links.kind !== "ways"),
      proximities: this.panes.some(({ play }) => play.protocol === "steam"),
    };
    for (const name of Object.keys(own)) if (!this.touched.has(name)) this.shown[name] = own[name];
    const kinds = [...new Set(this.panes.map(({ play }) => LINK_WORDS[play.links.kind] ?? "Links"))];
    const buttons = LAYERS.filter(([name]) => has[name]).map(([name, word]) => make("button", {
      class: "layer", "aria-pressed": String(Boolean(this.shown[name])), "data-layer": name, onclick: () => this.toggle(name),
    }, name === "links" ? kinds.join(" / ") : word));
    const range = { chosen: "Range: chosen", all: "Range: all", "": "Range: off" }[this.shown.range];
    if (this.scene.range_m && this.panes.some(({ play }) => play.radio)) buttons.push(make("button", { class: "layer", "aria-pressed": String(Boolean(this.shown.range)), "data-layer": "range", onclick: () => this.toggle("range") }, range));
    buttons.push(make("button", { class: "layer", "aria-pressed": String(this.shown.names), "data-layer": "names", onclick: () => this.toggle("names") }, "Names"));
    const trees = this.panes.find(({ play }) => play.trees.length > 1)?.play.trees;
    if (trees && this.shown.links) {
      const names = [["", "Tree of the chosen event"], ["*", `all ${trees.length} trees`], ...trees.map(({ name, links }) => [name, `${name} (${links})`])];
      buttons.push(make("select", { id: "tree", "aria-label": "Which tree", onchange: (change) => { this.tree = change.target.value; this.dirty = true; } },
        names.map(([value, words]) => make("option", { value, selected: value === this.tree }, words))));
    }
    fill(part("layers"), buttons);
    this.offered = LAYERS.filter(([name]) => has[name]).map(([name]) => name);
  }

  // The trees to draw, by their groups; null for whatever links there are.
  treesOf(play) {
    if (!play.trees.length || this.tree === "*") return null;
    const named = play.trees.filter(({ name }) => name === this.tree);
    const event = this.scene.events[this.chosen.event];
    const source = event ? this.scene.nodes[event.source] : null;
    const own = play.trees.filter(({ name }) => source !== null && (name === source || name.startsWith(`${source}#`)));
    const trees = this.tree ? named : event ? own : play.trees.slice(0, 1);
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
    const [west, south, east, north] = this.scene.bounds;
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
    if (first && this.view.fitted) this.view.fit(this.scene.bounds, first.width, first.height);
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
      if (this.t >= this.scene.end) { this.t = this.scene.end; this.setPlaying(false); }
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
    this.scene.move(this.t);
    for (const pane of this.panes) {
      pane.draw(this.t);
      const { wanted, met } = pane.play.soFar(this.t);
      const words = wanted ? `${met.toLocaleString("en")} of ${wanted.toLocaleString("en")} delivered, ${((100 * met) / wanted).toFixed(1)} %` : "nothing expected yet";
      if (pane.words !== words) { pane.words = words; pane.figure.textContent = words; pane.canvas.setAttribute("aria-label", `Map of ${pane.play.title}: ${words}`); }
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
    this.t = Math.max(0, Math.min(this.scene.end, t));
    if (this.following) this.setFollowing(false);
    this.dirty = true;
  }

  setPlaying(playing) {
    if (playing && this.t >= this.scene.end) this.t = 0;
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
    if (event >= 0) this.goTo(this.scene.events[event]);
  }

  chooseNode(node) {
    this.choose(this.chosen.event, node);
  }

  goTo(event) {
    this.seek(event.time);
  }

  setHop(hop) {
    this.hop = hop;
    const deepest = Math.max(0, ...this.panes.map(({ play }) => play.deepest[this.chosen.event] ?? 0));
    if (part("hopped")) part("hopped").textContent = hop === Infinity ? "all" : `${hop} of ${deepest}`;
    if (part("hop")) part("hop").value = String(hop === Infinity ? deepest + 1 : hop);
    this.dirty = true;
  }

  nextHop() {
    if (this.chosen.event < 0) return;
    const deepest = Math.max(0, ...this.panes.map(({ play }) => play.deepest[this.chosen.event]));
    this.setHop(this.hop === Infinity ? 0 : this.hop >= deepest ? Infinity : this.hop + 1);
  }

  nextEvent(step) {
    const count = this.scene.events.length;
    if (!count) return;
    const from = this.chosen.event >= 0 ? this.chosen.event : countUpTo(this.scene.eventTimes, this.t) - (step > 0 ? 1 : 0);
    this.chooseEvent(Math.max(0, Math.min(count - 1, from + step)));
  }

  nextMissed() {
    const play = this.panes[0].play;
    const rows = play.missed.event.length;
    if (!rows) return this.say(`${play.title} missed nothing.`);
    let k = 0;
    for (let i = 0; i < rows; i++) if (play.missed.event[i] === this.chosen.event && play.missed.node[i] === this.chosen.node) k = i + 1;
    if (k === 0) k = countUpTo(play.missed.time, this.t - 1e-9) % rows;
    k %= rows;
    this.choose(play.missed.event[k], play.missed.node[k]);
    this.goTo(this.scene.events[play.missed.event[k]]);
  }

  remember() {
    const words = new URLSearchParams({ scene: this.scene.key, run: this.panes.map((pane) => pane.play.key).join(",") });
    if (this.chosen.event >= 0) words.set("event", this.scene.events[this.chosen.event].id);
    if (this.chosen.node >= 0) words.set("node", this.scene.nodes[this.chosen.node]);
    this.written = `#${words}`;
    history.replaceState(null, "", this.written);
  }

  fromHash() {
    if (location.hash === this.written) return;
    const wanted = new URLSearchParams(location.hash.slice(1));
    const key = wanted.get("scene") ?? this.shelf.scenes.find((one) => one.plays.some((play) => play.key === wanted.get("run")))?.key;
    if (this.shelf.scenes.some((one) => one.key === key)) this.guard(this.openScene(key, wanted));
  }

  // What people do.

  controls() {
    part("play").addEventListener("click", () => this.setPlaying(!this.playing));
    fill(part("speed"), SPEEDS.map((speed) => make("option", { value: speed }, `${speed}×`)));
    this.setSpeed(1);
    part("speed").addEventListener("change", () => this.setSpeed(Number(part("speed").value)));
    part("scene").addEventListener("change", () => this.guard(this.openScene(part("scene").value)));
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
    if (this.scene) { this.timeline.draw(); this.dirty = true; }
  }

  // A network that is being watched: look for news, and move on with it.
  async follow() {
    let news = null;
    try {
      news = await this.shelf.news();
    } catch (error) {
      this.say(`The server does not answer: ${error.message}`);
    }
    if (news) await this.take(news);
    else if (!this.watching) return;
    setTimeout(() => this.follow(), 2000);
  }

  async take(news) {
    const first = !this.watching;
    this.watching = true;
    part("live").hidden = false;
    part("figures").hidden = false;
    if (first) this.setFollowing(true);
    fill(part("figures"), news.figures.map(({ name, value }) => make("span", {}, [make("b", {}, value), ` ${name}`])));
    if (news.batch === this.batch) return;
    this.batch = news.batch;
    this.shelf.scenes = news.scenes;
    if (!first) await this.renew();
  }

  async renew() {
    const entry = this.shelf.scenes.find((one) => one.key === this.scene.key) ?? this.shelf.scenes[0];
    const own = this.wanted.filter((key) => entry.plays.some((play) => play.key === key));
    const keys = own.length ? own : [entry.plays[0].key];
    const { scene, plays } = await this.fetched(entry.key, keys);
    const event = this.scene.events[this.chosen.event]?.id, node = this.scene.nodes[this.chosen.node];
    this.entry = entry;
    this.chosen = { event: scene.events.findIndex((one) => one.id === event), node: scene.nodes.indexOf(node) };
    this.t = this.following ? scene.end : Math.max(0, this.t + this.scene.start - scene.start);
    this.show(scene, plays, keys);
  }

  setFollowing(following) {
    this.following = following;
    part("live").setAttribute("aria-pressed", String(following));
    if (following) { this.setPlaying(false); this.t = this.scene.end; this.dirty = true; }
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
