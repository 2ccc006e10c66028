// What is drawn beneath and above the nodes. Every layer gets the brush: context, view, colours.

class Brush {
  constructor(context, view, colours, width, height) {
    Object.assign(this, { context, view, colours, width, height });
    this.scale = view.scale;
    this.left = width / 2 - view.x * view.scale;
    this.top = height / 2 + view.y * view.scale;
  }

  x(x) { return this.left + x * this.scale; }
  y(y) { return this.top - y * this.scale; }

  path(rings, dx = 0, dy = 0) {
    const context = this.context;
    for (const ring of rings) {
      for (let i = 0; i < ring.length; i += 2) {
        const x = this.x(ring[i] + dx), y = this.y(ring[i + 1] + dy);
        if (i) context.lineTo(x, y); else context.moveTo(x, y);
      }
      context.closePath();
    }
  }

  sees(x, y, margin = 0) {
    return x > -margin && x < this.width + margin && y > -margin && y < this.height + margin;
  }
}

function drawGround(brush, world) {
  const { context, colours } = brush;
  const [west, south, east, north] = world.extent ? [0, 0, ...world.extent] : world.bounds;
  context.fillStyle = colours.ground;
  context.fillRect(brush.x(west), brush.y(north), (east - west) * brush.scale, (north - south) * brush.scale);
  context.strokeStyle = colours.line;
  context.lineWidth = 1;
  context.strokeRect(brush.x(west), brush.y(north), (east - west) * brush.scale, (north - south) * brush.scale);
}

function drawScaleBar(brush) {
  const { context, colours } = brush;
  const wanted = 90 / brush.scale;
  const power = 10 ** Math.floor(Math.log10(wanted));
  const metres = [5, 2, 1].map((k) => k * power).find((m) => m <= wanted) ?? power;
  const length = metres * brush.scale;
  const text = metres >= 1000 ? `${metres / 1000} km` : `${metres} m`;
  const y = brush.height - 14;
  context.strokeStyle = colours.soft;
  context.lineWidth = 1.5;
  context.beginPath();
  context.moveTo(12, y - 4); context.lineTo(12, y); context.lineTo(12 + length, y); context.lineTo(12 + length, y - 4);
  context.stroke();
  label(brush, text, 16 + length, y + 1, colours.soft, "11px");
}

function label(brush, text, x, y, colour, size = "12px", weight = "400") {
  const { context, colours } = brush;
  context.font = `${weight} ${size} system-ui, sans-serif`;
  const wide = context.measureText(text).width;
  if (x < brush.width && x + wide > brush.width - 4) x = Math.max(4, x - wide - 22);   // the other side of what it names
  context.lineWidth = 3;
  context.lineJoin = "round";
  context.strokeStyle = colours.ground;
  context.strokeText(text, x, y);
  context.fillStyle = colour;
  context.fillText(text, x, y);
}

// GeoRendezvous: the grid, the cells somebody is in, and where the topics hash to.
function drawCells(brush, run, topic) {
  const cells = run.overlays.cells;
  if (!cells) return;
  const { context, colours } = brush;
  const { side_m: side, origin: [ox, oy] } = cells;
  const [west, south, east, north] = run.world.extent ? [0, 0, ...run.world.extent] : run.world.bounds;
  if (side * brush.scale >= 5) {
    const world = run.world;
    const populated = new Set();
    for (let i = 0; i < world.count; i++) {
      if (run.up[i] && world.placed[i]) {
        populated.add(`${Math.floor((world.x[i] - ox) / side)},${Math.floor((world.y[i] - oy) / side)}`);
      }
    }
    context.fillStyle = colours.cell;
    for (const name of populated) {
      const [column, row] = name.split(",").map(Number);
      context.fillRect(brush.x(ox + column * side), brush.y(oy + (row + 1) * side), side * brush.scale, side * brush.scale);
    }
    context.strokeStyle = colours.grid;
    context.lineWidth = 1;
    context.beginPath();
    for (let x = ox + Math.ceil((west - ox) / side) * side; x <= east; x += side) {
      context.moveTo(brush.x(x), brush.y(south)); context.lineTo(brush.x(x), brush.y(north));
    }
    for (let y = oy + Math.ceil((south - oy) / side) * side; y <= north; y += side) {
      context.moveTo(brush.x(west), brush.y(y)); context.lineTo(brush.x(east), brush.y(y));
    }
    context.stroke();
  }
  for (const [type, points] of cells.topics) {
    const name = run.world.types[type];
    const chosen = topic === name;
    if (topic && !chosen) continue;
    for (let i = 0; i < points.length; i += 2) {
      const x = brush.x(points[i]), y = brush.y(points[i + 1]);
      if (chosen) {
        const left = ox + Math.floor((points[i] - ox) / side) * side, below = oy + Math.floor((points[i + 1] - oy) / side) * side;
        context.fillStyle = colours.rendezvousTint;
        context.fillRect(brush.x(left), brush.y(below + side), side * brush.scale, side * brush.scale);
      }
      diamond(context, x, y, chosen ? 6 : 3.5);
      context.fillStyle = colours.rendezvous;
      context.globalAlpha = chosen ? 1 : 0.6;
      context.fill();
      context.globalAlpha = 1;
    }
    if (chosen) for (let i = 0; i < points.length; i += 2) {
      label(brush, `${name} ${i / 2}`, brush.x(points[i]) + 9, brush.y(points[i + 1]) + 4, colours.rendezvous, "11px");
    }
  }
}

function diamond(context, x, y, r) {
  context.beginPath();
  context.moveTo(x, y - r); context.lineTo(x + r, y); context.lineTo(x, y + r); context.lineTo(x - r, y);
  context.closePath();
}

// Publishers' proximities: fixed where they were announced, mobile around their publisher.
function drawProximities(brush, run, t, onlyNode) {
  const { context, colours } = brush;
  const world = run.world;
  context.lineWidth = 1;
  for (const one of world.announcements) {
    if (!one.proximity || t < one.start || t >= one.end || !run.up[one.node]) continue;
    const mine = one.node === onlyNode;
    const [dx, dy] = one.proximity.mobile ? [world.x[one.node], world.y[one.node]] : [0, 0];
    context.beginPath();
    brush.path(one.proximity.rings, dx, dy);
    if (mine) {
      context.fillStyle = colours.proximityMine;
      context.fill("evenodd");
    }
    context.strokeStyle = colours.proximity;
    context.globalAlpha = mine ? 1 : 0.6;
    context.setLineDash(one.proximity.mobile ? [] : [5, 4]);
    context.stroke();
    context.setLineDash([]);
    context.globalAlpha = 1;
  }
}

// Trees, a mesh, brokers and those they serve, or the routes that led to recent deliveries.
// Of trees only those that are asked for: there is one for each publisher. A node that is out of
// range by now has no link.
function drawLinks(brush, run, t, trees, faint) {
  const { context, colours } = brush;
  const { x, y, range_m: range } = run.world;
  const groups = new Map();
  const far = run.radio && range && run.links.kind !== "brokers" ? range * 1.1 : Infinity;
  run.eachLink(t, (a, b, group) => {
    if (trees && !trees.has(group)) return;
    if (Math.abs(x[a] - x[b]) > far || Math.abs(y[a] - y[b]) > far || Math.hypot(x[a] - x[b], y[a] - y[b]) > far) return;
    if (!groups.has(group)) groups.set(group, []);
    groups.get(group).push(a, b);
  });
  const alike = run.links.kind === "routes" || run.links.kind === "mesh";
  context.lineWidth = run.links.kind === "routes" || run.links.kind === "brokers" ? 1 : 1.5;
  context.globalAlpha = faint ? 0.3 : run.links.kind === "routes" ? 0.5 : 0.8;
  for (const [group, ends] of groups) {
    context.strokeStyle = alike ? colours.link : shadeOf(brush, run, group);
    context.beginPath();
    for (let i = 0; i < ends.length; i += 2) {
      context.moveTo(brush.x(x[ends[i]]), brush.y(y[ends[i]]));
      context.lineTo(brush.x(x[ends[i + 1]]), brush.y(y[ends[i + 1]]));
    }
    context.stroke();
  }
  context.globalAlpha = 1;
}

// A tree's or a broker's colour: the same for its region and for its links.
function shadeOf({ colours }, run, group) {
  return colours.groups[(run.shade.get(group) ?? group) % colours.groups.length];
}

// The ground divided among brokers: each point belongs to the nearest. (Cut the box by half-planes.)
function drawRegions(brush, run, t) {
  const brokers = run.brokersAt(t).filter((i) => run.world.placed[i]);
  if (!brokers.length) return;
  const { context, colours } = brush;
  const world = run.world;
  const [west, south, east, north] = world.extent ? [0, 0, ...world.extent] : world.bounds;
  for (const broker of brokers) {
    let cell = [[west, south], [east, south], [east, north], [west, north]];
    for (const other of brokers) {
      if (other === broker) continue;
      const ax = world.x[broker], ay = world.y[broker], bx = world.x[other], by = world.y[other];
      const nx = bx - ax, ny = by - ay, limit = (bx * bx + by * by - ax * ax - ay * ay) / 2;
      const cut = [];
      for (let i = 0; i < cell.length; i++) {
        const p = cell[i], q = cell[(i + 1) % cell.length];
        const dp = p[0] * nx + p[1] * ny - limit, dq = q[0] * nx + q[1] * ny - limit;
        if (dp <= 0) cut.push(p);
        if (dp < 0 !== dq < 0 && dp !== dq) {
          const share = dp / (dp - dq);
          cut.push([p[0] + share * (q[0] - p[0]), p[1] + share * (q[1] - p[1])]);
        }
      }
      cell = cut;
      if (!cell.length) break;
    }
    context.beginPath();
    brush.path([cell.flat()]);
    context.fillStyle = shadeOf(brush, run, broker);
    context.globalAlpha = 0.14;
    context.fill();
    context.globalAlpha = 1;
    context.strokeStyle = colours.regionEdge;
    context.lineWidth = 1.5;
    context.stroke();
  }
  context.strokeStyle = colours.ink;
  context.lineWidth = 2;
  for (const broker of brokers) {
    const x = brush.x(world.x[broker]), y = brush.y(world.y[broker]);
    context.strokeRect(x - 6, y - 6, 12, 12);
  }
}

function drawRanges(brush, run, nodes) {
  const { context, colours } = brush;
  const { x, y, range_m: range } = run.world;
  if (!range || !run.radio) return;
  const r = range * brush.scale;
  context.strokeStyle = colours.range;
  context.lineWidth = 1;
  context.beginPath();
  for (const i of nodes) {
    const cx = brush.x(x[i]), cy = brush.y(y[i]);
    if (!run.up[i] || !brush.sees(cx, cy, r)) continue;
    context.moveTo(cx + r, cy);
    context.arc(cx, cy, r, 0, 2 * Math.PI);
  }
  context.stroke();
}

function drawArea(brush, area, colour, tint) {
  const { context } = brush;
  context.beginPath();
  brush.path(area.rings);
  context.fillStyle = tint;
  context.fill("evenodd");
  context.strokeStyle = colour;
  context.lineWidth = 1.5;
  context.stroke();
}
