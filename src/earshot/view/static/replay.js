// The world (who is where, what is published and wanted) and the run (what one protocol did).

// Rows grouped by a number: `rows.subarray(first[k], first[k + 1])` are those of group k, in their order.
function grouped(numbers, count) {
  const first = new Int32Array(count + 1);
  for (let i = 0; i < numbers.length; i++) first[numbers[i] + 1]++;
  for (let k = 0; k < count; k++) first[k + 1] += first[k];
  const place = first.slice(0, count);
  const rows = new Int32Array(numbers.length);
  for (let i = 0; i < numbers.length; i++) rows[place[numbers[i]]++] = i;
  return { of: (k) => rows.subarray(first[k], first[k + 1]) };
}

// How many values at the beginning are at most t.
function countUpTo(values, t) {
  let low = 0, high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= t) low = middle + 1; else high = middle;
  }
  return low;
}

class World {
  constructor({ meta, arrays }) {
    Object.assign(this, meta);
    this.arrays = arrays;
    this.count = this.nodes.length;
    this.events = meta.events.map(([id, type, source, time, at, area, content], number) => ({
      number, id, type: this.types[type], source, time, at, area, content,
    }));
    this.subscriptions = meta.subscriptions.map(([node, id, filter, region, start, end]) => ({
      node, id, filter, region, start, end: end ?? Infinity,
    }));
    this.announcements = meta.announcements.map(([node, type, proximity, start, end]) => ({
      node, type: this.types[type], proximity, start, end: end ?? Infinity,
    }));
    this.subscriptionsOf = grouped(this.subscriptions.map((subscription) => subscription.node), this.count);
    this.announcementsBy = grouped(this.announcements.map((one) => one.node), this.count);
    this.publishedBy = grouped(this.events.map((event) => Math.max(0, event.source)), Math.max(1, this.count));
    this.expectedOf = grouped(arrays.expected_event, this.events.length);
    this.expectedAt = grouped(arrays.expected_node, this.count);
    this.eventTimes = Float64Array.from(this.events, (event) => event.time);
    this.x = new Float32Array(this.count);
    this.y = new Float32Array(this.count);
    this.cursor = Int32Array.from({ length: this.count }, (_, i) => arrays.first[i]);
    this.placed = Uint8Array.from({ length: this.count }, (_, i) => (arrays.first[i + 1] > arrays.first[i] ? 1 : 0));
  }

  // Move every node to its position at t; each node's cursor moves on from where it was.
  move(t) {
    const { first, time, x, y } = this.arrays;
    for (let i = 0; i < this.count; i++) {
      const from = first[i], last = first[i + 1] - 1;
      if (last < from) continue;
      let k = this.cursor[i];
      if (time[k] > t || (k < last && time[k + 1] <= t)) {
        let steps = 0;
        if (time[k] <= t) while (k < last && time[k + 1] <= t && steps < 8) { k++; steps++; }
        if (time[k] > t || (k < last && time[k + 1] <= t)) {
          let low = from, high = last;
          while (low < high) {
            const middle = (low + high + 1) >> 1;
            if (time[middle] <= t) low = middle; else high = middle - 1;
          }
          k = low;
        }
        this.cursor[i] = k;
      }
      if (k >= last || time[k] > t) {
        this.x[i] = x[k]; this.y[i] = y[k];
      } else {
        const share = (t - time[k]) / (time[k + 1] - time[k]);
        this.x[i] = x[k] + share * (x[k + 1] - x[k]);
        this.y[i] = y[k] + share * (y[k + 1] - y[k]);
      }
    }
  }

  // Metres a second at the time of the last move.
  speed(i) {
    const { first, time, x, y } = this.arrays;
    const k = this.cursor[i];
    if (k + 1 >= first[i + 1]) return 0;
    const lasting = time[k + 1] - time[k];
    return lasting > 0 ? Math.hypot(x[k + 1] - x[k], y[k + 1] - y[k]) / lasting : 0;
  }
}

class Run {
  constructor({ meta, arrays }, world) {
    Object.assign(this, meta);
    this.world = world;
    this.hops = {
      event: arrays.hop_event, node: arrays.hop_node, sender: arrays.hop_sender,
      time: arrays.hop_time, depth: arrays.hop_depth,
    };
    this.got = { event: arrays.got_event, node: arrays.got_node, time: arrays.got_time };
    this.presence = { node: arrays.session_node, time: arrays.session_time, up: arrays.session_up };
    this.air = { data: arrays.air_data, control: arrays.air_control };
    const links = arrays.overlay_link_a ?? new Int32Array(0);
    this.links = {
      kind: meta.overlays.links, a: links, b: arrays.overlay_link_b, group: arrays.overlay_link_group,
      start: arrays.overlay_link_start, end: arrays.overlay_link_end,
    };
    this.brokers = {
      node: arrays.overlay_broker_node ?? [], start: arrays.overlay_broker_start, end: arrays.overlay_broker_end,
    };
    const everBroker = [...new Set(this.brokers.node)].sort((one, other) => one - other);
    this.shade = new Map(everBroker.map((node, k) => [node, k]));
    // Trees, those with most links first.
    this.trees = (meta.overlays.trees ?? []).map((name, group) => ({ name, group, links: 0 }));
    if (this.trees.length) for (const group of this.links.group) this.trees[group].links++;
    this.trees.sort((one, other) => other.links - one.links);
    this.hopsOf = grouped(this.hops.event, world.events.length);
    this.gotOf = grouped(this.got.event, world.events.length);
    this.gotAt = grouped(this.got.node, world.count);
    this.delivered = new Set();
    for (let i = 0; i < this.got.event.length; i++) this.delivered.add(this.pair(this.got.event[i], this.got.node[i]));
    this.expected = new Set();
    const wanted = world.arrays;
    for (let i = 0; i < wanted.expected_event.length; i++) {
      this.expected.add(this.pair(wanted.expected_event[i], wanted.expected_node[i]));
    }
    this.answered = new Map(meta.why.map(([event, node, reasons, losses]) => [
      this.pair(event, node), { reasons: reasons.map((i) => meta.texts[i]), losses: losses.map((i) => meta.texts[i]) },
    ]));
    this.deepest = world.events.map((_, e) => {
      let deepest = 0;
      for (const hop of this.hopsOf.of(e)) deepest = Math.max(deepest, this.hops.depth[hop]);
      return deepest;
    });
    this.count();
    this.up = new Uint8Array(world.count);
    this.presenceAt = -1;
    this.linkBuckets();
  }

  pair(event, node) {
    return event * this.world.count + node;
  }

  // Met, missed and unasked for each event; when what was missed is known to be; totals.
  count() {
    const events = this.world.events.length;
    this.met = new Int32Array(events);
    this.unasked = new Int32Array(events);
    this.wanted = new Int32Array(events);
    for (let e = 0; e < events; e++) {
      this.wanted[e] = this.world.expectedOf.of(e).length;
      for (const row of this.gotOf.of(e)) {
        if (this.expected.has(this.pair(e, this.got.node[row]))) this.met[e]++; else this.unasked[e]++;
      }
    }
    const missed = [];
    const { expected_event: event, expected_node: node } = this.world.arrays;
    const over = this.world.events.map((_, e) => this.overAt(e));
    for (let i = 0; i < event.length; i++) {
      if (!this.delivered.has(this.pair(event[i], node[i]))) missed.push([over[event[i]], event[i], node[i]]);
    }
    missed.sort((a, b) => a[0] - b[0]);
    this.missed = {
      time: Float32Array.from(missed, (one) => one[0]),
      event: Int32Array.from(missed, (one) => one[1]),
      node: Int32Array.from(missed, (one) => one[2]),
    };
    this.missedAt = grouped(this.missed.node, this.world.count);
    this.missedOf = grouped(this.missed.event, events);
    let wanted = 0, met = 0;
    for (let e = 0; e < events; e++) {
      if (this.world.events[e].time < this.world.counted_from) continue;
      wanted += this.wanted[e];
      met += this.met[e];
    }
    this.totals = { wanted, met };
  }

  overAt(e) {
    let last = this.world.events[e].time;
    const hops = this.hopsOf.of(e), got = this.gotOf.of(e);
    if (hops.length) last = Math.max(last, this.hops.time[hops[hops.length - 1]]);
    if (got.length) last = Math.max(last, this.got.time[got[got.length - 1]]);
    return last;
  }

  outcome(event, node) {
    const pair = this.pair(event, node);
    if (this.delivered.has(pair)) return this.expected.has(pair) ? "met" : "unasked";
    return this.expected.has(pair) ? "missed" : "none";
  }

  // Met and wanted of what was published so far.
  soFar(t) {
    let wanted = 0, met = 0;
    const until = countUpTo(this.world.eventTimes, t);
    for (let e = countUpTo(this.world.eventTimes, this.world.counted_from - 1e-6); e < until; e++) {
      wanted += this.wanted[e];
      met += this.met[e];
    }
    return { wanted, met };
  }

  // The first route by which the event came to the node: hops from the publisher on.
  routeTo(event, node) {
    const by = new Map();
    for (const hop of this.hopsOf.of(event)) by.set(this.hops.node[hop], hop);
    const route = [];
    let here = node;
    while (by.has(here) && route.length <= by.size) {
      const hop = by.get(here);
      route.push(hop);
      here = this.hops.sender[hop];
    }
    return route.reverse();
  }

  // Who is up at t.
  live(t) {
    const { node, time, up } = this.presence;
    if (t < this.presenceAt || this.presenceAt < 0) {
      this.up.fill(1);
      const seen = new Set();
      for (let i = 0; i < node.length; i++) {
        if (!seen.has(node[i])) { seen.add(node[i]); this.up[node[i]] = up[i] ? 0 : 1; }
      }
      this.nextChange = 0;
    }
    while (this.nextChange < time.length && time[this.nextChange] <= t) {
      this.up[node[this.nextChange]] = up[this.nextChange];
      this.nextChange++;
    }
    this.presenceAt = t;
    return this.up;
  }

  linkBuckets() {
    const { a, start, end } = this.links;
    this.bucketCount = 512;
    this.buckets = Array.from({ length: this.bucketCount }, () => []);
    for (let i = 0; i < a.length; i++) {
      const last = this.bucket(end[i]);
      for (let k = this.bucket(start[i]); k <= last; k++) this.buckets[k].push(i);
    }
  }

  bucket(t) {
    return Math.max(0, Math.min(this.bucketCount - 1, Math.floor((t / this.world.end) * this.bucketCount)));
  }

  // Calls back with each link that exists at t: from node, to node, group.
  eachLink(t, call) {
    const { a, b, group, start, end } = this.links;
    for (const i of this.buckets[this.bucket(t)]) if (start[i] <= t && t < end[i]) call(a[i], b[i], group[i]);
  }

  brokersAt(t) {
    const { node, start, end } = this.brokers;
    const found = [];
    for (let i = 0; i < node.length; i++) if (start[i] <= t && t < end[i] && this.up[node[i]]) found.push(node[i]);
    return found.sort((one, other) => one - other);
  }
}
