// One pane: the map of one run. All panes share the clock, the view and the selection.

const HOP_STAGGER_S = 0.12;   // of the reader's time: a hop is shown this long after the one before it
const HOP_GROW_S = 0.22;      // and grows from sender to receiver for this long
const FADE_S = 0.9;           // and fades for this long
const MOST_HOPS = 3000;       // drawn in one frame, the latest first; fewer where the machine is slow
const FEWEST_HOPS = 200;

class View {
  constructor() { this.x = 0; this.y = 0; this.scale = 1; this.fitted = true; }

  fit([west, south, east, north], width, height) {
    const side = 24, above = 18, below = 26;   // room for the scale below
    this.scale = Math.min((width - 2 * side) / (east - west), (height - above - below) / (north - south));
    if (!Number.isFinite(this.scale) || this.scale <= 0) this.scale = 1;
    this.x = (west + east) / 2;
    this.y = (south + north) / 2 + (above - below) / 2 / this.scale;
    this.fitted = true;
  }

  zoom(factor, px, py, width, height) {
    const wx = this.x + (px - width / 2) / this.scale, wy = this.y - (py - height / 2) / this.scale;
    this.scale = Math.min(200, Math.max(1e-5, this.scale * factor));
    this.x = wx - (px - width / 2) / this.scale;
    this.y = wy + (py - height / 2) / this.scale;
    this.fitted = false;
  }

  pan(dx, dy) {
    this.x -= dx / this.scale;
    this.y += dy / this.scale;
    this.fitted = false;
  }
}

class Pane {
  constructor(app, run) {
    this.app = app;
    this.run = run;
    this.element = make("section", { class: "pane" });
    this.title = make("h2", {}, run.title);
    this.figure = make("span", { class: "figure" });
    this.element.append(make("header", {}, [this.title, this.figure]));
    this.canvas = make("canvas", { tabindex: "0", role: "img" });
    this.element.append(this.canvas);
    this.context = this.canvas.getContext("2d");
    this.hover = -1;
    this.marks = [];
    this.width = this.height = 0;
  }

  resize() {
    const box = this.canvas.getBoundingClientRect();
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    this.width = Math.max(1, Math.round(box.width));
    this.height = Math.max(1, Math.round(box.height));
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
  }

  // The node nearest to a place in the pane, within reach; -1 where there is none.
  nodeAt(px, py, reach = 14) {
    const brush = new Brush(this.context, this.app.view, this.app.colours, this.width, this.height);
    const { x, y, count, placed } = this.app.world;
    let best = -1, least = reach * reach;
    for (let i = 0; i < count; i++) {
      if (!placed[i]) continue;
      const dx = brush.x(x[i]) - px, dy = brush.y(y[i]) - py, far = dx * dx + dy * dy;
      if (far < least) { least = far; best = i; }
    }
    return best;
  }

  eventAt(px, py) {
    let best = -1, least = 12 * 12;
    for (const [x, y, event] of this.marks) {
      const far = (x - px) ** 2 + (y - py) ** 2;
      if (far < least) { least = far; best = event; }
    }
    return best;
  }

  draw(t) {
    const { app, run, context } = this;
    const { colours, chosen, shown } = app;
    const brush = new Brush(context, app.view, colours, this.width, this.height);
    run.live(t);
    context.fillStyle = colours.paper;
    context.fillRect(0, 0, this.width, this.height);
    drawGround(brush, run.world);
    const event = chosen.event >= 0 ? run.world.events[chosen.event] : null;
    if (shown.cells) drawCells(brush, run, event ? event.type : null);
    if (shown.regions) drawRegions(brush, run, t);
    if (shown.proximities && (app.touched.has("proximities") || run.protocol === "steam")) drawProximities(brush, run, t, chosen.node);
    if (shown.links && (app.touched.has("links") || run.links.kind !== "routes")) drawLinks(brush, run, t, app.treesOf(run), event !== null);
    if (shown.range === "all") drawRanges(brush, run, Array.from({ length: run.world.count }, (_, i) => i));
    else if (shown.range) drawRanges(brush, run, [chosen.node, this.hover].filter((i) => i >= 0));
    if (event?.area) drawArea(brush, event.area, colours.event, colours.eventTint);
    if (chosen.node >= 0) for (const w of run.world.subscriptionsOf.of(chosen.node)) {
      const subscription = run.world.subscriptions[w];
      if (subscription.region && subscription.start <= t && t < subscription.end) drawArea(brush, subscription.region, colours.met, colours.regionTint);
    }
    if (chosen.event >= 0) this.drawSpread(brush, t, chosen.event);
    else this.drawHops(brush, t);
    this.drawNodes(brush, t);
    if (chosen.event >= 0) this.drawOutcomes(brush, t, chosen.event);
    else this.drawPulses(brush, t);
    this.drawMarks(brush, t);
    this.drawNames(brush);
    drawScaleBar(brush);
  }

  // When a hop is shown: when it happened, put off a little for every hop before it, so that people see
  // the wave. At speed k a wave takes k times as much of the run's time.
  shownAt(hop) {
    return this.run.hops.time[hop] + (this.run.hops.depth[hop] - 1) * HOP_STAGGER_S * this.app.speed;
  }

  // Events under way, recently published.
  drawHops(brush, t) {
    const { hops } = this.run;
    const { context, colours } = brush;
    const speed = this.app.speed;
    const window = (FADE_S + 12 * HOP_STAGGER_S) * speed;
    const last = countUpTo(hops.time, t) - 1;
    const bins = [[], [], [], []];
    let left = this.app.budget;
    for (let hop = last; hop >= 0 && left > 0 && hops.time[hop] > t - window; hop--) {
      const age = (t - this.shownAt(hop)) / speed;
      if (age < 0 || age >= FADE_S) continue;
      bins[Math.min(3, Math.floor((age / FADE_S) * 4))].push(hop);
      left--;
    }
    context.strokeStyle = colours.spread;
    context.lineWidth = 1.4;
    bins.forEach((some, k) => {
      if (!some.length) return;
      context.globalAlpha = [0.9, 0.6, 0.35, 0.15][k];
      context.beginPath();
      for (const hop of some) this.stroke(brush, hop, (t - this.shownAt(hop)) / speed);
      context.stroke();
    });
    context.globalAlpha = 1;
  }

  stroke(brush, hop, age) {
    const { hops, world } = this.run;
    const a = hops.sender[hop], b = hops.node[hop];
    const grown = Math.min(1, age / HOP_GROW_S);
    const ax = brush.x(world.x[a]), ay = brush.y(world.y[a]);
    brush.context.moveTo(ax, ay);
    brush.context.lineTo(ax + (brush.x(world.x[b]) - ax) * grown, ay + (brush.y(world.y[b]) - ay) * grown);
  }

  // The chosen event's route: as it runs, or whole while the clock is stopped, up to the chosen hop.
  drawSpread(brush, t, event) {
    const { hops } = this.run;
    const { context, colours } = brush;
    const limit = this.app.hop;
    context.strokeStyle = colours.spread;
    context.lineWidth = 1.6;
    context.globalAlpha = 0.85;
    context.beginPath();
    for (const hop of this.run.hopsOf.of(event)) {
      if (hops.depth[hop] > limit) continue;
      const age = this.app.playing && limit === Infinity ? (t - this.shownAt(hop)) / this.app.speed : 1;
      if (age >= 0) this.stroke(brush, hop, age);
    }
    context.stroke();
    context.globalAlpha = 1;
    const node = this.app.chosen.node;
    if (node < 0) return;
    context.strokeStyle = colours.event;
    context.lineWidth = 3;
    context.beginPath();
    for (const hop of this.run.routeTo(event, node)) this.stroke(brush, hop, 1);
    context.stroke();
  }

  drawNodes(brush) {
    const { context, colours, width, height } = brush;
    const { world, up } = this.run;
    const { x, y, count, placed } = world;
    const r = count > 400 ? 2.4 : 3.4;
    context.fillStyle = colours.node;
    context.beginPath();
    for (let i = 0; i < count; i++) {
      if (!up[i] || !placed[i]) continue;
      const px = brush.x(x[i]), py = brush.y(y[i]);
      if (px < -4 || py < -4 || px > width + 4 || py > height + 4) continue;
      context.moveTo(px + r, py);
      context.arc(px, py, r, 0, 6.2832);
    }
    context.fill();
    context.strokeStyle = colours.gone;
    context.lineWidth = 1;
    context.beginPath();
    for (let i = 0; i < count; i++) {
      if (up[i] || !placed[i]) continue;
      const px = brush.x(x[i]), py = brush.y(y[i]);
      context.moveTo(px + r, py);
      context.arc(px, py, r, 0, 6.2832);
    }
    context.stroke();
    for (const [node, colour] of [[this.hover, colours.soft], [this.app.chosen.node, colours.ink]]) {
      if (node < 0) continue;
      context.strokeStyle = colour;
      context.lineWidth = 2;
      context.beginPath();
      context.arc(brush.x(x[node]), brush.y(y[node]), 9, 0, 6.2832);
      context.stroke();
    }
  }

  // Where the chosen event arrived, should have arrived, and came unasked.
  drawOutcomes(brush, t, event) {
    const { run } = this;
    const { context, colours } = brush;
    const { x, y } = run.world;
    const until = (row) => !this.app.playing || this.app.hop < Infinity || run.got.time[row] + this.delayOf(event, run.got.node[row]) <= t;
    const reached = this.app.hop < Infinity ? this.reachedBy(event) : null;
    const published = !this.app.playing || t >= run.world.events[event].time;
    context.lineWidth = 2.5;
    for (const row of run.missedOf.of(event)) {
      const node = run.missed.node[row];
      if (published) cross(context, brush.x(x[node]), brush.y(y[node]), 5.5, colours.missed);
    }
    for (const row of run.world.expectedOf.of(event)) {
      const node = run.world.arrays.expected_node[row];
      if (!published || run.delivered.has(run.pair(event, node))) continue;
      context.strokeStyle = colours.missed;
      context.lineWidth = 1.5;
      context.beginPath();
      context.arc(brush.x(x[node]), brush.y(y[node]), 9, 0, 6.2832);
      context.stroke();
    }
    for (const row of run.gotOf.of(event)) {
      const node = run.got.node[row];
      if (!until(row) || (reached && !reached.has(node))) continue;
      const px = brush.x(x[node]), py = brush.y(y[node]);
      if (run.expected.has(run.pair(event, node))) {
        context.fillStyle = colours.met;
        context.beginPath();
        context.arc(px, py, 6, 0, 6.2832);
        context.fill();
      } else {
        context.fillStyle = colours.unasked;
        diamond(context, px, py, 7);
        context.fill();
      }
    }
  }

  reachedBy(event) {
    const found = new Set();
    for (const hop of this.run.hopsOf.of(event)) {
      if (this.run.hops.depth[hop] <= this.app.hop) found.add(this.run.hops.node[hop]);
    }
    return found;
  }

  // How much later than it happened an arrival is shown: with the last hop of its route.
  delayOf(event, node) {
    if (this.delaysOf !== event) {
      this.delaysOf = event;
      this.delays = new Map();
      for (const hop of this.run.hopsOf.of(event)) this.delays.set(this.run.hops.node[hop], this.run.hops.depth[hop]);
    }
    return (this.delays.get(node) ?? 0) * HOP_STAGGER_S * this.app.speed;
  }

  // Recent deliveries and misses.
  drawPulses(brush, t) {
    const { run } = this;
    const { context, colours } = brush;
    const { x, y } = run.world;
    const speed = this.app.speed;
    const late = 4 * HOP_STAGGER_S * speed;
    const pulse = (rows, each) => {
      const last = countUpTo(rows.time, t - late) - 1;
      const least = Math.max(0, last - 800);
      for (let i = last; i >= least && rows.time[i] > t - late - FADE_S * speed; i--) {
        each(rows.node[i], (t - late - rows.time[i]) / speed / FADE_S, rows.event[i]);
      }
    };
    pulse(run.got, (node, age, event) => {
      const asked = run.expected.has(run.pair(event, node));
      context.globalAlpha = 1 - age;
      context.strokeStyle = asked ? colours.met : colours.unasked;
      context.lineWidth = 2;
      context.beginPath();
      context.arc(brush.x(x[node]), brush.y(y[node]), 4 + 7 * age, 0, 6.2832);
      context.stroke();
    });
    pulse(run.missed, (node, age) => {
      context.globalAlpha = 1 - age;
      context.lineWidth = 2;
      cross(context, brush.x(x[node]), brush.y(y[node]), 5, colours.missed);
    });
    context.globalAlpha = 1;
  }

  // Events just published: a small flag above the publisher, which can be clicked.
  drawMarks(brush, t) {
    const { context, colours } = brush;
    const world = this.run.world;
    this.marks = [];
    const stay = 1.6 * this.app.speed;
    const last = countUpTo(world.eventTimes, t) - 1;
    const chosen = this.app.chosen.event;
    const drawn = [];
    for (let e = last; e >= 0 && e > last - 60 && world.eventTimes[e] > t - stay; e--) drawn.push(e);
    if (chosen >= 0 && !drawn.includes(chosen)) drawn.push(chosen);
    for (const e of drawn) {
      const event = world.events[e];
      if (event.source < 0) continue;
      const x = brush.x(world.x[event.source]), y = brush.y(world.y[event.source]);
      context.fillStyle = colours.event;
      context.globalAlpha = chosen >= 0 && chosen !== e ? 0.35 : 1;
      context.beginPath();
      context.moveTo(x, y - 5); context.lineTo(x - 6, y - 16); context.lineTo(x + 6, y - 16);
      context.closePath();
      context.fill();
      context.globalAlpha = 1;
      this.marks.push([x, y - 13, e]);
      if (e === chosen) label(brush, `${event.type} ${event.id}`, x + 4, y - 22, colours.event, "12px", "600");
    }
  }

  drawNames(brush) {
    const { colours } = brush;
    const world = this.run.world;
    const named = new Set([this.hover, this.app.chosen.node].filter((i) => i >= 0));
    if (this.app.shown.names) {
      const inside = [];
      for (let i = 0; i < world.count && inside.length <= 120; i++) {
        if (world.placed[i] && brush.sees(brush.x(world.x[i]), brush.y(world.y[i]))) inside.push(i);
      }
      if (inside.length <= 120) for (const i of inside) named.add(i);
    }
    for (const i of named) {
      const strong = i === this.app.chosen.node;
      label(brush, world.nodes[i], brush.x(world.x[i]) + 11, brush.y(world.y[i]) + 4, strong ? colours.ink : colours.soft, "12px", strong ? "600" : "400");
    }
  }
}

function cross(context, x, y, r, colour) {
  context.strokeStyle = colour;
  context.beginPath();
  context.moveTo(x - r, y - r); context.lineTo(x + r, y + r);
  context.moveTo(x + r, y - r); context.lineTo(x - r, y + r);
  context.stroke();
}
