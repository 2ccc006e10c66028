"""DRIP between real hosts: brokers come forward, and an event crosses their regions."""

import asyncio

from desk import Desk, acquainted, taken, until

SETTINGS = {
    "brokers": 3,
    "nearest": 1,
    "copies": 1,
    "bootstrap_s": 0.4,
    "abilities_gather_s": 0.05,
    "announce_interval_s": 0.2,
    "replace_after_s": 2.0,
    "bridge_interval_s": 0.2,
    "contact_interval_s": 0.05,
    "exchange_interval_s": 0.2,
    "register_interval_s": 0.5,
    "jitter_s": 0.002,
}


def test_an_event_crosses_regions_between_real_hosts() -> None:
    async def run() -> None:
        desk = Desk(protocol="drip", emulate_range_m=150.0, settings=SETTINGS)
        places = {"a": 0.0, "b": 100.0, "c": 200.0, "d": 300.0}
        async with (
            desk.node("a", places["a"]) as a,
            desk.node("b", places["b"]) as b,
            desk.node("c", places["c"]) as c,
            desk.node("d", places["d"]) as d,
        ):
            nodes = (a, b, c, d)
            for one, other in ((a, b), (b, c), (c, d)):
                await acquainted(one, other)
            wanted = d.subscribe("Siren", where="speed > 10")
            siren = await a.announce("Siren")
            machines = [node.host.machine for node in nodes]
            await until(lambda: all(machine.local_broker for machine in machines))  # type: ignore[attr-defined]
            arrived = asyncio.create_task(taken(wanted, 1))
            published = []
            # An event is lost where no broker knows the subscription yet: on a busy machine that takes longer.
            while not arrived.done():
                published += [await siren.publish(speed=5.0), await siren.publish(speed=30.0)]
                await asyncio.wait([arrived], timeout=2.0)
            (event,) = await arrived
            assert event in published
            assert event.content["speed"] == 30.0
            assert all(node.drops["machine-failure"] == 0 for node in nodes)

    asyncio.run(run())
