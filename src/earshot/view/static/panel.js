// The panel: lists of events and nodes, what is chosen, what it got and missed, and why.

const MOST_ROWS = 250;
const WORDS = { met: "delivered", missed: "missed", unasked: "delivered, not expected", none: "not expected" };

class Panel {
  constructor(app) {
    this.app = app;
    this.tab = "events";
    this.asked = 0;
    part("search").addEventListener("input", () => this.list());
    part("which").addEventListener("change", () => this.list());
    for (const tab of document.querySelectorAll("[role=tab]")) {
      tab.addEventListener("click", () => this.open(tab.dataset.tab));
      tab.addEventListener("keydown", (press) => this.arrow(press));
    }
  }

  arrow(press) {
    const tabs = [...document.querySelectorAll("[role=tab]")];
    const step = { ArrowRight: 1, ArrowLeft: -1 }[press.key];
    if (!step) return;
    press.preventDefault();
    press.stopPropagation();
    const next = tabs[(tabs.indexOf(press.target) + step + tabs.length) % tabs.length];
    next.focus();
    this.open(next.dataset.tab);
  }

  open(tab) {
    this.tab = tab;
    for (const one of document.querySelectorAll("[role=tab]")) {
      const here = one.dataset.tab === tab;
      one.setAttribute("aria-selected", String(here));
      one.tabIndex = here ? 0 : -1;
    }
    part("finder").hidden = tab === "about";
    part("which").hidden = tab !== "events";
    this.list();
  }

  list() {
    if (this.tab === "events") this.listEvents();
    else if (this.tab === "nodes") this.listNodes();
    else this.about();
  }

  listEvents() {
    const { world, panes, chosen } = this.app;
    const text = part("search").value.trim().toLowerCase(), which = part("which").value;
    const found = world.events.filter((event, e) => {
      if (which === "missed" && !panes.some(({ run }) => run.met[e] < run.wanted[e])) return false;
      if (which === "unasked" && !panes.some(({ run }) => run.unasked[e] > 0)) return false;
      return !text || `${event.type} ${event.id} ${event.content}`.toLowerCase().includes(text);
    });
    if (this.app.watching) found.reverse();   // of a network that goes on, the newest first
    const rows = found.slice(0, MOST_ROWS).map((event) => make("li", {}, make("button", {
      class: "row", "aria-pressed": String(chosen.event === event.number), "data-event": event.number,
      onclick: () => this.app.chooseEvent(event.number),
    }, [
      make("span", { class: "when" }, clock(event.time)),
      make("span", { class: "what" }, [make("b", {}, event.type), ` ${event.id}`]),
      make("span", { class: "bars" }, panes.map(({ run }) => this.bar(run, event.number))),
    ])));
    fill(part("list"), rows.length ? rows : make("li", { class: "soft empty" }, "No event is like that."));
    this.rest(found.length);
  }

  bar(run, e) {
    const wanted = run.wanted[e], met = run.met[e];
    const words = wanted ? `${met} of ${wanted}` : "nobody";
    return make("span", { class: met < wanted ? "share lacking" : "share", title: `${run.title}: ${words} expected receivers` }, wanted ? `${met}/${wanted}` : "–");
  }

  listNodes() {
    const { world, panes, chosen } = this.app;
    const text = part("search").value.trim().toLowerCase();
    const found = [];
    for (let i = 0; i < world.count; i++) if (!text || world.nodes[i].toLowerCase().includes(text)) found.push(i);
    const rows = found.slice(0, MOST_ROWS).map((i) => make("li", {}, make("button", {
      class: "row", "aria-pressed": String(chosen.node === i), "data-node": i, onclick: () => this.app.chooseNode(i),
    }, [
      make("span", { class: "what" }, make("b", {}, world.nodes[i])),
      make("span", { class: "bars" }, panes.map(({ run }) => {
        const wanted = world.expectedAt.of(i).length, missed = run.missedAt.of(i).length;
        return make("span", { class: missed ? "share lacking" : "share", title: `${run.title}: ${wanted - missed} of ${wanted} expected events` }, wanted ? `${wanted - missed}/${wanted}` : "–");
      })),
    ])));
    fill(part("list"), rows.length ? rows : make("li", { class: "soft empty" }, "No node has that name."));
    this.rest(found.length);
  }

  rest(count) {
    part("rest").textContent = count > MOST_ROWS ? `${count - MOST_ROWS} more; search to narrow them down` : "";
  }

  about() {
    const { world, panes } = this.app;
    const keys = [
      ["Space", "play or pause"], ["← →", "a second back or on; with Shift ten"], ["↑ ↓", "faster, slower"],
      [", .", "previous or next event"], ["M", "next missed delivery, and why"], ["H", "the chosen event hop by hop"],
      ["+ − 0", "zoom in, out, fit"], ["R", "radio range: of the chosen, of all, off"], ["N", "names"],
      ["1 … 4", "layers"], ["T", "light or dark"], ["F", "frames a second"], ["/", "search"], ["Esc", "clear the choice"],
    ];
    fill(part("list"), [
      make("li", { class: "card" }, [
        make("h3", {}, "What is to be seen"),
        make("ul", { class: "legend" }, [
          ["dot node", "a node"], ["dot gone", "a node that is down"], ["flag", "an event being published"],
          ["stroke", "a hop: the first time a node hears an event"], ["dot met", "delivered, as expected"],
          ["x", "missed: expected, never delivered"], ["lozenge", "delivered, but not expected"],
        ].map(([shape, words]) => make("li", {}, [make("i", { class: shape, "aria-hidden": "true" }), words]))),
        make("p", { class: "soft" }, "Hops follow each other within milliseconds. Here each is shown a moment after the one before it, so that the route can be seen; the times in words are the true ones."),
        ...world.notes.map((note) => make("p", { class: "soft" }, note)),
      ]),
      make("li", { class: "card" }, [make("h3", {}, "Keys"), make("dl", { class: "keys" }, keys.flatMap(([key, words]) => [make("dt", {}, key), make("dd", {}, words)]))]),
      ...panes.map(({ run }) => make("li", { class: "card" }, [
        make("h3", {}, run.title),
        make("dl", { class: "facts" }, Object.entries(run.settings).flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)])),
      ])),
    ]);
    part("rest").textContent = "";
  }

  // What is chosen: an event, a node, or both and why.
  detail() {
    const { chosen } = this.app;
    const cards = [];
    if (chosen.event >= 0 && chosen.node >= 0) cards.push(this.whyCard(chosen.event, chosen.node));
    if (chosen.event >= 0) cards.push(this.eventCard(chosen.event));
    if (chosen.node >= 0) cards.push(this.nodeCard(chosen.node));
    fill(part("detail"), cards);
    this.list();
  }

  card(kind, title, close, content) {
    return make("article", { class: `card ${kind}` }, [
      make("header", {}, [make("h3", {}, title), make("button", { class: "close", "aria-label": `close ${title}`, onclick: close }, "×")]),
      ...content.filter((one) => one !== null),
    ]);
  }

  eventCard(e) {
    const { world, panes } = this.app;
    const event = world.events[e];
    const deepest = Math.max(0, ...panes.map(({ run }) => run.deepest[e]));
    const hop = this.app.hop;
    return this.card("event", `${event.type} ${event.id}`, () => this.app.chooseEvent(-1), [
      make("p", {}, [
        `published at ${exactly(event.time)} by `,
        event.source >= 0 ? this.nodeLink(event.source) : "somebody unknown",
        event.area ? ` for ${event.area.text}` : "", ". ",
        make("button", { class: "link", onclick: () => this.app.goTo(event) }, "Go there"),
      ]),
      event.content ? make("pre", {}, event.content) : null,
      deepest > 0 ? make("label", { class: "hop" }, [
        "Hop ",
        make("input", {
          id: "hop", type: "range", min: 0, max: deepest + 1, step: 1, value: hop === Infinity ? deepest + 1 : hop,
          oninput: (change) => this.app.setHop(Number(change.target.value) > deepest ? Infinity : Number(change.target.value)),
        }),
        make("output", { id: "hopped" }, hop === Infinity ? "all" : `${hop} of ${deepest}`),
      ]) : null,
      ...panes.map(({ run }) => this.receivers(run, e)),
    ]);
  }

  receivers(run, e) {
    const groups = [["missed", [...run.missedOf.of(e)].map((row) => run.missed.node[row])], ["met", []], ["unasked", []]];
    for (const row of run.gotOf.of(e)) {
      const node = run.got.node[row];
      groups[run.expected.has(run.pair(e, node)) ? 1 : 2][1].push(node);
    }
    const hops = run.hopsOf.of(e).length;
    const kept = !run.events_with_hops || run.events_with_hops.includes(e);
    return make("section", {}, [
      make("h4", {}, [run.title, make("span", { class: "soft" }, ` ${run.met[e]} of ${run.wanted[e]}; ${kept ? `${hops} nodes heard it` : "its hops are not in this page"}`)]),
      ...groups.filter(([, nodes]) => nodes.length).map(([kind, nodes]) => make("p", { class: `chips ${kind}` }, [
        make("span", { class: "kind" }, `${WORDS[kind]} (${nodes.length})`),
        ...nodes.slice(0, 40).map((node) => make("button", { class: "chip", "data-pair": `${e}:${node}`, onclick: () => this.app.chooseNode(node) }, this.app.world.nodes[node])),
        nodes.length > 40 ? make("span", { class: "soft" }, ` and ${nodes.length - 40} more`) : null,
      ])),
    ]);
  }

  nodeCard(i) {
    const { world, panes } = this.app;
    const subscriptions = [...world.subscriptionsOf.of(i)].map((k) => world.subscriptions[k]);
    const announced = [...world.announcementsBy.of(i)].map((k) => world.announcements[k]);
    const published = [...world.publishedBy.of(i)].filter((e) => world.events[e].source === i);
    return this.card("node", world.nodes[i], () => this.app.chooseNode(-1), [
      make("p", { class: "soft", id: "where" }, this.where(i)),
      make("h4", {}, `Wants (${subscriptions.length})`),
      make("ul", { class: "plain" }, subscriptions.slice(0, 30).map((subscription) => make("li", {}, [
        make("code", {}, subscription.filter),
        subscription.region ? make("span", { class: "soft" }, ` in ${subscription.region.text}`) : null,
        subscription.start > 1 || subscription.end < Infinity ? make("span", { class: "soft" }, ` from ${clock(subscription.start)}${subscription.end < Infinity ? ` until ${clock(subscription.end)}` : ""}`) : null,
      ]))),
      announced.length ? make("h4", {}, "Announces") : null,
      announced.length ? make("ul", { class: "plain" }, announced.slice(0, 10).map((one) => make("li", {}, [
        one.type, make("span", { class: "soft" }, one.proximity ? ` within ${one.proximity.text}${one.proximity.mobile ? ", moving with it" : ""}` : " everywhere"),
      ]))) : null,
      published.length ? make("h4", {}, `Published (${published.length})`) : null,
      published.length ? make("p", { class: "chips" }, published.slice(0, 30).map((e) => this.eventChip(e))) : null,
      ...panes.map(({ run }) => {
        const missed = [...run.missedAt.of(i)].map((row) => run.missed.event[row]);
        const got = [...run.gotAt.of(i)].map((row) => run.got.event[row]);
        return make("section", {}, [
          make("h4", {}, [run.title, make("span", { class: "soft" }, ` got ${got.length}, missed ${missed.length}`)]),
          missed.length ? make("p", { class: "chips missed" }, [make("span", { class: "kind" }, "missed"), ...missed.slice(0, 30).map((e) => this.eventChip(e, i))]) : null,
          got.length ? make("p", { class: "chips met" }, [make("span", { class: "kind" }, "got"), ...got.slice(0, 30).map((e) => this.eventChip(e, i))]) : null,
        ]);
      }),
    ]);
  }

  where(i) {
    const { world } = this.app;
    if (!world.placed[i]) return "Nobody knows where it is.";
    const down = this.app.panes.some(({ run }) => !run.up[i]) ? "; it is down" : "";
    return `at ${world.x[i].toFixed(0)} m east, ${world.y[i].toFixed(0)} m north, ${world.speed(i).toFixed(1)} m/s${down}`;
  }

  eventChip(e, node = -1) {
    const event = this.app.world.events[e];
    return make("button", {
      class: "chip", "data-pair": `${e}:${node}`, title: `${event.id} at ${exactly(event.time)}`,
      onclick: () => { if (node < 0) this.app.chooseEvent(e); else this.app.choose(e, node); },
    }, `${event.type} ${clock(event.time)}`);
  }

  nodeLink(i) {
    return make("button", { class: "link", onclick: () => this.app.chooseNode(i) }, this.app.world.nodes[i]);
  }

  // The oracle's answer for the chosen event and node, under each protocol.
  whyCard(e, i) {
    const { world, panes } = this.app;
    const asked = ++this.asked;
    const sections = panes.map(({ run }) => {
      const outcome = run.outcome(e, i);
      const body = make("div", { class: "answer" }, make("p", { class: "soft" }, "asking the oracle …"));
      this.answer(run, e, i).then((answer) => { if (asked === this.asked) fill(body, this.answerText(run, e, i, answer)); })
        .catch((error) => { if (asked === this.asked) fill(body, make("p", { class: "soft" }, `No answer: ${error.message}`)); });
      return make("section", { "data-outcome": outcome }, [
        make("h4", {}, [run.title, " ", make("span", { class: `verdict ${outcome}` }, outcome === "missed" ? "expected, not delivered" : outcome === "met" ? "expected and delivered" : WORDS[outcome])]),
        body,
      ]);
    });
    const source = world.events[e].source === i;
    return this.card("why", source ? `${world.nodes[i]} published it` : `Why ${world.nodes[i]}?`, () => this.app.choose(e, -1), sections);
  }

  async answer(run, e, i) {
    const { world, catalogue } = this.app;
    if (run.answers && catalogue.served) return catalogue.why(world.key, run.key, world.events[e].id, world.nodes[i]);
    return run.answered.get(run.pair(e, i)) ?? null;
  }

  answerText(run, e, i, answer) {
    const { world } = this.app;
    const event = world.events[e];
    const route = run.routeTo(e, i);
    const content = [];
    if (answer) {
      content.push(make("ul", { class: "plain reasons" }, answer.reasons.map((reason) => make("li", {}, reason))));
      if (answer.losses.length) content.push(make("ul", { class: "plain losses" }, answer.losses.map((loss) => make("li", {}, loss))));
    } else {
      const inForce = [...world.subscriptionsOf.of(i)].map((k) => world.subscriptions[k]).filter((subscription) => subscription.start <= event.time && event.time < subscription.end);
      const words = event.source === i ? "It published the event itself."
        : run.expected.has(run.pair(e, i)) ? "One of its subscriptions accepts the event. This page does not carry the answer in full; `earshot view` serves it:"
        : inForce.length ? `None of its ${inForce.length} subscriptions in force then accepts the event:` : "It had no subscription then.";
      content.push(make("p", {}, words));
      if (event.source !== i) content.push(make("ul", { class: "plain reasons" }, inForce.map((subscription) => make("li", {}, make("code", {}, subscription.filter)))));
    }
    if (route.length) {
      content.push(make("ol", { class: "route" }, route.map((hop) => make("li", {}, [
        `${world.nodes[run.hops.sender[hop]]} → ${world.nodes[run.hops.node[hop]]}`,
        make("span", { class: "soft" }, ` +${lasting(run.hops.time[hop] - event.time)}`),
      ]))));
    }
    return content;
  }

  tick() {
    const where = part("where");
    if (where && this.app.chosen.node >= 0) where.textContent = this.where(this.app.chosen.node);
  }
}
