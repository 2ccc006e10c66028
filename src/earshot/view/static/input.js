// What people do with pointer and keys.

function listenTo(app, pane) {
  const { canvas } = pane;
  const at = (moved) => { const box = canvas.getBoundingClientRect(); return [moved.clientX - box.left, moved.clientY - box.top]; };
  const touches = new Map();
  let dragged = 0;
  canvas.addEventListener("pointerdown", (press) => { canvas.setPointerCapture(press.pointerId); touches.set(press.pointerId, at(press)); dragged = 0; });
  canvas.addEventListener("pointermove", (moved) => {
    const here = at(moved), before = touches.get(moved.pointerId);
    if (!before) {
      const hover = pane.nodeAt(...here);
      if (hover !== pane.hover) { for (const one of app.panes) one.hover = hover; canvas.style.cursor = hover >= 0 ? "pointer" : "grab"; app.dirty = true; }
      return;
    }
    const dx = here[0] - before[0], dy = here[1] - before[1];
    if (touches.size === 2) {
      const other = [...touches].find(([id]) => id !== moved.pointerId)[1];
      const far = (p) => Math.hypot(p[0] - other[0], p[1] - other[1]);
      if (far(before) > 0) app.view.zoom(far(here) / far(before), (here[0] + other[0]) / 2, (here[1] + other[1]) / 2, pane.width, pane.height);
    } else app.view.pan(dx, dy);
    dragged += Math.abs(dx) + Math.abs(dy);
    touches.set(moved.pointerId, here);
    app.dirty = true;
  });
  const release = (lifted) => touches.delete(lifted.pointerId);
  canvas.addEventListener("pointerup", (lifted) => {
    release(lifted);
    if (dragged > 6) return;
    const here = at(lifted), event = pane.eventAt(...here), node = pane.nodeAt(...here, 16);
    if (event >= 0) app.choose(event, app.chosen.node);
    else if (node >= 0) app.chooseNode(node);
  });
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("pointerleave", () => { for (const one of app.panes) one.hover = -1; app.dirty = true; });
  canvas.addEventListener("wheel", (turned) => {
    turned.preventDefault();
    app.view.zoom(Math.exp(-turned.deltaY * 0.0015), ...at(turned), pane.width, pane.height);
    app.dirty = true;
  }, { passive: false });
  canvas.addEventListener("dblclick", () => app.fit());
}

function listenToKeys(app) {
  const doing = {
    " ": () => app.setPlaying(!app.playing),
    ArrowRight: (press) => app.seek(app.t + (press.shiftKey ? 10 : 1)),
    ArrowLeft: (press) => app.seek(app.t - (press.shiftKey ? 10 : 1)),
    ArrowUp: () => app.faster(1), ArrowDown: () => app.faster(-1),
    Home: () => app.seek(0), End: () => app.seek(app.world.end),
    ".": () => app.nextEvent(1), ",": () => app.nextEvent(-1),
    m: () => app.nextMissed(), h: () => app.nextHop(), r: () => app.toggle("range"), n: () => app.toggle("names"),
    t: () => app.turnTheme(), 0: () => app.fit(), "+": () => app.zoom(1.4), "=": () => app.zoom(1.4), "-": () => app.zoom(1 / 1.4),
    f: () => { app.frames.shown = !app.frames.shown; part("rate").textContent = app.frames.shown ? "…" : ""; },
    "/": () => part("search").focus(), "?": () => app.panel.open("about"),
    Escape: () => { if (app.chosen.node >= 0) app.choose(app.chosen.event, -1); else app.choose(-1, -1); },
  };
  window.addEventListener("keydown", (press) => {
    if (press.ctrlKey || press.metaKey || press.altKey) return;
    const into = press.target;
    if (into instanceof HTMLInputElement && into.type === "search" && press.key !== "Escape") return;
    if (into instanceof HTMLInputElement && into.id === "hop" && press.key.startsWith("Arrow")) return;
    if (into instanceof HTMLSelectElement && press.key !== "Escape") return;
    if (into instanceof HTMLButtonElement && (press.key === " " || press.key === "Enter")) return;
    const layer = app.offered[Number(press.key) - 1];
    const what = /^[1-9]$/.test(press.key) ? layer && (() => app.toggle(layer)) : doing[press.key] ?? doing[press.key.toLowerCase()];
    if (!what) return;
    press.preventDefault();
    if (press.key === "Escape" && into instanceof HTMLElement) into.blur();
    what(press);
  });
}
