"""A tabletop of CoDD nodes that come and go, each pair with its own delay, and the truth about its trees."""

from random import Random

from earshot.events import Event, EventType
from earshot.filters import Filter, Subscription
from earshot.protocols.codd.dissemination_tree import DisseminationTree
from earshot.protocols.codd.machine import Codd
from earshot.protocols.codd.packets import NEW, AddResult, Answer, Document, Registered, SeedSet, Source
from earshot.protocols.codd.settings import CoddSettings
from earshot.protocols.machine import Announcement, FixedLocation, Send
from earshot.protocols.tabletop import Tabletop
from earshot.wire import Packet, decode, encode

SMALL = CoddSettings(
    agents=("source-0",),
    fan_out=2,
    reorganise_every=10,
    rest_documents=10,
    window_documents=40,
    enough_documents=4,
    overhead_threshold=0.1,
)
CATEGORIES = "abcdef"
TREE = "source-0#0"
A, B, C = ('Document: category = "a"', 'Document: category = "b"', 'Document: category = "c"')


def sent(effects, kind=None):
    """The packets sent, with their receivers."""
    found = [(effect.peer, effect.packet) for effect in effects if isinstance(effect, Send)]
    return [one for one in found if kind is None or isinstance(one[1], kind)]


def document(category, number, link, complete=None):
    event = Event("Document", {"category": category}, f"d{number}", "source-0", time=1.0)
    return Document(event, 1, TREE, number, link, number if complete is None else complete)


def member(settings=SMALL, wants="a"):
    """A node below the source, on its own, which hears only the packets of the test."""
    node = Codd("n", settings, FixedLocation(), Random(1))
    for category in wants:
        wanted = Filter.where(f'category = "{category}"', type="Document")
        node.subscribe(Subscription(f"n/{category}", "n", wanted), 0.0)
    node.hear(SeedSet((Source(TREE, ("Document",), ("source-0",)),)), "source-0", 0.1)
    node.hear(AddResult(TREE, 1, spare=True), "source-0", 0.2)
    node.hear(Answer(TREE, 2, accepted=True, ancestors=("source-0",), link=100), "source-0", 0.3)
    node.hear(Registered(TREE, ("n",), -1), "source-0", 0.4)
    return node


class CoddTable(Tabletop):
    """Sources are called source-0, source-1 and so on; the first is the agent."""

    def __init__(self, sources: int = 1, settings: CoddSettings = SMALL, seed: int = 0) -> None:
        self.settings = settings
        self.seed = seed
        self.lives = 0
        self.published: list[tuple[Event, float, set[str]]] = []
        "Each event, when, and who was in the tree and wanted it."
        self.wants: dict[str, str] = {}
        super().__init__([], [])
        self.sources = [f"source-{i}" for i in range(sources)]
        for name in self.sources:
            self.come(name)
            self.do(name, "announce", Announcement(EventType("Document")))

    def come(self, name: str) -> Codd:
        self.lives += 1
        machine = Codd(name, self.settings, FixedLocation(), Random(f"{self.seed}:{name}:{self.lives}"))
        self.machines[name] = machine
        self._timers = {key: value for key, value in self._timers.items() if key[0] != name}
        self.do(name, "start")
        return machine

    def join(self, name: str, categories: str) -> None:
        """A subscriber comes up, wanting documents of any of these categories."""
        self.come(name)
        self.subscribe(name, categories)

    def subscribe(self, name: str, categories: str) -> None:
        """It wants these from now on, and nothing else."""
        self.wants[name] = categories
        for category in CATEGORIES:
            id = f"{name}/{category}"
            has = id in self.machine(name).local.by_id
            if category in categories and not has:
                wanted = Filter.where(f'category = "{category}"', type="Document")
                self.do(name, "subscribe", Subscription(id, name, wanted))
            elif has and category not in categories:
                self.do(name, "unsubscribe", id)

    def leave(self, name: str) -> None:
        self.do(name, "stop")
        self.crash(name)

    def crash(self, name: str) -> None:
        del self.machines[name]
        self.wants.pop(name, None)

    def publish(self, category: str, source: str = "source-0") -> Event:
        machine = self.machine(source)
        number = machine.own_tree.number + 1 if machine.own_tree else 0
        event = Event("Document", {"category": category}, f"{source}/{self.lives}/{number}", source, time=self.now)
        there = {
            name
            for name, wanted in self.wants.items()
            if category in wanted and (tree := self.tree(name, source)) is not None and tree.complete > NEW
        }
        self.published.append((event, self.now, there))
        self.do(source, "publish", event)
        return event

    def machine(self, name: str) -> Codd:
        machine = self.machines[name]
        assert isinstance(machine, Codd)
        return machine

    def tree(self, name: str, source: str = "source-0") -> DisseminationTree | None:
        for id, tree in self.machine(name).trees.items():
            if id.startswith(f"{source}#"):
                return tree
        return None

    def got(self, name: str) -> list[str]:
        """The events delivered to a node, in order."""
        return [event for node, event, _ in self.delivered if node == name]

    def parents(self, source: str = "source-0") -> dict[str, str]:
        """Every member's parent."""
        found = {}
        for name in self.machines:
            tree = self.tree(name, source)
            if tree is not None and not tree.is_root:
                found[name] = tree.parent
        return found

    def check_tree(self, source: str = "source-0") -> None:
        """All live subscribers are below the source, both ends of each bond agree, nobody has too many."""
        parents = self.parents(source)
        assert set(parents) >= set(self.wants), "a subscriber is in no tree"
        for name in parents:
            path = [name]
            while path[-1] != source:
                parent = parents.get(path[-1], "")
                assert parent, f"{path[-1]} is an orphan"
                assert parent not in path, f"a cycle: {[*path, parent]}"
                path.append(parent)
            tree = self.tree(name, source)
            assert tree is not None
            assert tree.ancestors == tuple(reversed(path[1:])), name
        for name in (source, *parents):
            tree = self.tree(name, source)
            assert tree is not None
            assert {child for child, parent in parents.items() if parent == name} == set(tree.children)
            assert len(tree.children) <= self.settings.fan_out
            for child, known in tree.children.items():
                below = self.tree(child, source)
                assert below is not None
                assert set(known.wants) == set(below.wants.holders), (name, child)
            own = {f'Document: category = "{category}"' for category in self.wants.get(name, "")}
            held = own.union(*(known.wants for known in tree.children.values()))
            assert set(tree.wants.holders) == (held if name != source else held - own)

    def _transmit(self, node: str, peer: str, packet: Packet) -> None:
        """Each pair has its own delay; a peer that has gone by then cannot be reached."""
        heard = decode(encode(packet))
        delay_s = 0.01 + 0.09 * Random(f"{self.seed}:{min(node, peer)}:{max(node, peer)}").random()

        def arrive() -> None:
            if peer in self.machines:
                self.do(peer, "hear", heard, node)
            elif node in self.machines:
                self._later(self.now + delay_s, lambda: self._do(node, "unreachable", packet, peer))

        self._later(self.now + delay_s, arrive)
