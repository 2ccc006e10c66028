// A network that is being watched, at a glance: each network's figures and last minutes, and the alerts.

// The page names no address, so the name space of drawings comes from an empty one.
function drawn(tag, attributes, content = []) {
  const empty = document.createElement("div");
  empty.innerHTML = "<svg></svg>";
  const element = document.createElementNS(empty.firstChild.namespaceURI, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...content);
  return element;
}

// A bar a minute: its height is what was expected, the lower part of it what was delivered.
function minuteBars(minutes) {
  const most = Math.max(1, ...minutes.map(({ expected }) => expected));
  const met = minutes.reduce((sum, one) => sum + one.met, 0), expected = minutes.reduce((sum, one) => sum + one.expected, 0);
  const words = expected ? `${met.toLocaleString("en")} of ${expected.toLocaleString("en")} delivered in the last ${minutes.length} minutes` : "nothing expected in the last minutes";
  const bars = minutes.flatMap((one, k) => {
    if (!one.expected) return [drawn("rect", { x: 4 * k, y: 27, width: 3, height: 1, class: "none" })];
    const high = Math.max(2, (28 * one.expected) / most), low = (high * one.met) / one.expected;
    const title = drawn("title", {}, [`${new Date(60000 * one.minute).toISOString().slice(11, 16)} UTC: ${one.met} of ${one.expected}`]);
    return [drawn("g", {}, [
      title,
      drawn("rect", { x: 4 * k, y: 28 - high, width: 3, height: high - low, class: "missed" }),
      drawn("rect", { x: 4 * k, y: 28 - low, width: 3, height: low, class: "met" }),
    ])];
  });
  return drawn("svg", { viewBox: `0 0 ${4 * minutes.length - 1} 28`, role: "img", "aria-label": words, preserveAspectRatio: "none" }, bars);
}

function glance(element, { networks, alerts }) {
  const cards = networks.map(({ name, figures, minutes, has_alert }) => make("li", { class: has_alert ? "network with-alert" : "network" }, [
    make("strong", { title: name }, name),
    make("span", { class: "figures" }, figures.map((one) => make("span", {}, [make("b", {}, one.value), ` ${one.name}`]))),
    minuteBars(minutes),
  ]));
  const lines = alerts.map(({ text, about, value, since }) => make("li", { class: "alert" }, [
    make("b", {}, text), ` ${about}: ${value}`, make("span", { class: "soft" }, ` since ${new Date(1000 * since).toISOString().slice(11, 19)} UTC`),
  ]));
  element.hidden = !cards.length && !lines.length;
  fill(element, [
    lines.length ? make("ul", { class: "alerts", role: "alert", "aria-label": "Alerts" }, lines) : null,
    make("ul", { class: "networks", "aria-label": "Networks" }, cards),
  ]);
}
