// The timeline: when events were published, how many of the expected receivers got them, and a handle to drag.

class Timeline {
  constructor(app, canvas, input) {
    this.app = app;
    this.canvas = canvas;
    this.input = input;
    input.addEventListener("input", () => app.seek(Number(input.value)));
  }

  show(t) {
    this.input.value = String(t);
    this.input.setAttribute("aria-valuetext", clock(t));
  }

  draw() {
    const { app, canvas } = this;
    const { world, colours } = app;
    const box = canvas.getBoundingClientRect();
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    canvas.width = Math.round(box.width * ratio);
    canvas.height = Math.round(box.height * ratio);
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const width = box.width, height = box.height;
    context.clearRect(0, 0, width, height);
    this.input.min = "0";
    this.input.max = String(world.end);
    this.input.step = String(Math.max(world.end / 20000, 1e-4));
    const run = app.panes[0]?.run;
    if (!run) return;
    const bins = Math.max(20, Math.floor(width / 5));
    const met = new Float64Array(bins), missed = new Float64Array(bins);
    world.events.forEach((event, e) => {
      const k = Math.min(bins - 1, Math.max(0, Math.floor((event.time / world.end) * bins)));
      met[k] += run.met[e];
      missed[k] += run.wanted[e] - run.met[e];
    });
    let most = 1;
    for (let k = 0; k < bins; k++) most = Math.max(most, met[k] + missed[k]);
    const bar = width / bins, tall = height - 16;
    const warm = (world.counted_from / world.end) * width;
    if (warm > 0) {
      context.fillStyle = colours.tint;
      context.fillRect(0, 0, warm, tall);
    }
    for (let k = 0; k < bins; k++) {
      const low = (met[k] / most) * tall, high = (missed[k] / most) * tall;
      context.fillStyle = colours.met;
      context.fillRect(k * bar + 0.5, tall - low, Math.max(1, bar - 1), low);
      context.fillStyle = colours.missed;
      context.fillRect(k * bar + 0.5, tall - low - high, Math.max(1, bar - 1), high);
    }
    context.strokeStyle = colours.line;
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(0, tall + 0.5);
    context.lineTo(width, tall + 0.5);
    context.stroke();
    context.font = "11px system-ui, sans-serif";
    context.fillStyle = colours.soft;
    const step = tickStep(world.end, width);
    for (let t = 0; t <= world.end; t += step) {
      const x = (t / world.end) * width;
      context.fillRect(x, tall, 1, 4);
      const text = clock(t);
      context.textAlign = x < 20 ? "left" : x > width - 20 ? "right" : "center";
      context.fillText(text, x, height - 2);
    }
    context.textAlign = "left";
  }
}

function tickStep(lasting, width) {
  const wanted = lasting / Math.max(2, width / 90);
  return [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400].find((s) => s >= wanted) ?? Math.ceil(wanted / 86400) * 86400;
}

// Live networks count from the epoch: their times are times of day.
const epoch = { start: 0 };

function clock(t) {
  if (epoch.start > 1e8) return new Date(1000 * (epoch.start + t)).toTimeString().slice(0, 8);
  const s = Math.max(0, t), hours = Math.floor(s / 3600), minutes = Math.floor(s / 60) % 60;
  const seconds = Math.floor(s % 60), two = (n) => String(n).padStart(2, "0");
  return hours ? `${hours}:${two(minutes)}:${two(seconds)}` : `${minutes}:${two(seconds)}`;
}

function exactly(t) {
  const tenths = Math.floor((Math.max(0, t) % 1) * 10);
  return `${clock(t)}.${tenths}`;
}

function lasting(s) {
  if (s < 1) return `${(s * 1000).toFixed(s < 0.01 ? 1 : 0)} ms`;
  return s < 60 ? `${s.toFixed(1)} s` : `${(s / 60).toFixed(1)} min`;
}
