"""What the content-based ODMRP paper claims, and how each claim is judged from the rows of the experiments.

Each claim states how it reads words such as "about", "the same" or "constant".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from statistics import fmean

from earshot.studies.study import (
    Claims,
    Curve,
    Finding,
    Line,
    Row,
    Rows,
    Series,
    curve,
    estimate,
    fit_line,
    grouped,
    rows_at,
    verdict,
)

CLAIMS = Claims()
claim = CLAIMS.claim
figure_7 = partial(CLAIMS.claim, where="figure 7")
speed_claim = partial(CLAIMS.claim, x_label="seconds per move", log_x=True)

THREE = ("extended", "one channel", "N channels")
RECEIVERS = ("R1", "R2", "R3", "R4", "R5")


def _lines(rows: Sequence[Row], by: str, x: str, y: str) -> dict[str, Curve]:
    return {str(key[0]): curve(group, x, y) for key, group in grouped(rows, by).items()}


# Section IV.A.


@claim("Brokers 1, 2 and 4 get exactly their messages, 3 and 5 none", "section IV.A", "3 matching brokers among 5")
def exactly(rows: Rows) -> Finding:
    counts, holds = [], True
    for (system,), group in grouped(rows["traffic"], "system").items():
        got = {row["broker"]: row["delivered"] for row in group if row["broker"] in RECEIVERS}
        wanted = {row["broker"]: row["expected"] for row in group if row["broker"] in RECEIVERS}
        holds &= got == wanted and all(row["precision"] == 1.0 for row in group)
        counts.append(f"{system}: {', '.join(f'{name} {count}' for name, count in got.items())}")
    return Finding("; ".join(counts), holds)


def _bytes_in(rows: Rows, system: str) -> list[float]:
    """What came in at each of the five receiving brokers."""
    return [row["bytes_in"] for row in rows_at(rows["traffic"], system=system) if row["broker"] in RECEIVERS]


@figure_7(
    "One channel costs twice what the others cost",
    paper="ODMRP with one channel causes twice more network traffic than the others (taken as 1.5 to 2.5)",
    x_label="broker",
    y_label="bytes in",
)
def twice(rows: Rows) -> Finding:
    one, extended, many = (sum(_bytes_in(rows, system)) for system in ("one channel", "extended", "N channels"))
    everywhere = {system: sum(row["bytes_in"] for row in rows_at(rows["traffic"], system=system)) for system in THREE}
    by_broker = [Series(system, list(range(1, 6)), _bytes_in(rows, system)) for system in THREE]
    return Finding(
        f"at brokers 1 to 5, one channel over extended {one / extended:.2f}, over N channels {one / many:.2f} "
        f"(at all 11 nodes {everywhere['one channel'] / everywhere['extended']:.2f} and "
        f"{everywhere['one channel'] / everywhere['N channels']:.2f})",
        1.5 <= one / extended <= 2.5 and 1.5 <= one / many <= 2.5,
        series=by_broker,
    )


@figure_7(
    "The extension costs what predefined channels cost",
    paper="comparable to the predefined channels (taken as within a quarter)",
)
def comparable(rows: Rows) -> Finding:
    ratio = sum(_bytes_in(rows, "extended")) / sum(_bytes_in(rows, "N channels"))
    return Finding(f"bytes in at brokers 1 to 5, extended over N channels: {ratio:.3f}", abs(ratio - 1) <= 0.25)


@figure_7(
    "Brokers that want nothing still take in a high volume of control packets",
    paper="in words (taken as at least a fifth of a matched broker's)",
)
def unmatched(rows: Rows) -> Finding:
    found = {row["broker"]: row["bytes_in"] for row in rows_at(rows["traffic"], system="extended")}
    matched = (found["R1"] + found["R2"] + found["R4"]) / 3
    share = {name: found[name] / matched for name in ("R3", "R5")}
    return Finding(
        f"of a matched broker's bytes, broker 3 takes in {share['R3']:.0%} (requests and what its router passes on), "
        f"broker 5 {share['R5']:.0%} (it shares a router with broker 4)",
        min(share.values()) >= 0.2,
    )


@claim(
    "Beyond the conversion overhead the extension improves throughput over one channel",
    "figure 6",
    "in words and a figure without numbers",
    x_label="interval, s",
    y_label="messages per second",
    log_x=True,
)
def keeps_up(rows: Rows) -> Finding:
    """Better means: over the same seeds significantly more messages per second than one channel for at least one
    interval, and significantly fewer for none."""
    five = rows_at(rows["throughput"], subscribers=5)
    lines = _lines(five, "system", "interval_s", "throughput_per_s")
    gains = {}
    for (interval_s,), group in grouped(five, "interval_s").items():
        one = {row["seed"]: row["throughput_per_s"] for row in rows_at(group, system="one channel")}
        ours = rows_at(group, system="extended")
        gains[interval_s] = estimate(row["throughput_per_s"] - one[row["seed"]] for row in ours)
    better = [interval_s for interval_s, gain in gains.items() if gain.low > 0]
    worse = [interval_s for interval_s, gain in gains.items() if gain.high < 0]
    return Finding(
        f"messages per second by interval in s: "
        f"{'; '.join(f'{system} {line:.3g}' for system, line in lines.items())}; more than one channel: "
        f"{', '.join(f'{interval_s:g}: {gain}' for interval_s, gain in gains.items())}",
        bool(better) and not worse,
        reason="the gain is airtime, some of it by acknowledged Join Tables: the simulator does not bill the "
        "processor's time in which the paper's brokers convert and match",
        series=[line.series(system) for system, line in lines.items()],
    )


@claim(
    "Throughput stays the same over the number of subscribers, in spite of more traffic",
    "figure 8",
    "in words (taken as within 5 %)",
    x_label="subscribers",
    y_label="messages per second",
)
def same_throughput(rows: Rows) -> Finding:
    many = rows_at(rows["throughput"], system="extended", interval_s=0.5)
    line, bytes_in = curve(many, "subscribers", "throughput_per_s"), curve(many, "subscribers", "bytes_in")
    means = list(line.means.values())
    traffic_grows = bytes_in.estimates[-1].mean / bytes_in.estimates[0].mean
    return Finding(
        f"messages per second by subscribers: {line:.3g}; bytes in grow {traffic_grows:.1f} times",
        max(means) - min(means) <= 0.05 * max(means) and traffic_grows > 1.2,
        series=[line.series("extended")],
    )


def _conversion(rows: Rows, what: str) -> Finding:
    line = curve(rows["conversion"], "elements", what)
    fit = fit_line([row["elements"] for row in rows["conversion"]], [float(row[what]) for row in rows["conversion"]])
    growth = line.means[200] / line.means[10]
    return verdict(
        f"microseconds by nested elements: {line:.3g}; 200 over 10: {growth:.2f}; each element adds {fit:.2f}",
        growth <= 1.5,
        "an event's digest reads every element once, so its time grows with their number; "
        "the paper may have measured a fixed overhead that hides this growth",
        [line.series(what)],
    )


for _what, _column in (("an event", "event_us"), ("a subscription", "subscription_us")):
    claim(
        f"Converting {_what} takes constant time up to 200 nested elements",
        "section IV.A",
        "constant within the range of 200 nesting elements (taken as at most half more than at 10)",
        x_label="nested elements",
        y_label="microseconds",
    )(partial(_conversion, what=_column))


@claim(
    "Comparing an event with the aggregated subscriptions is a fraction of converting them",
    "section IV.A",
    "a fraction, since it compares simple bit sets (taken as a quarter)",
)
def fraction(rows: Rows) -> Finding:
    share = estimate(row["comparison_us"] / (row["event_us"] + row["subscription_us"]) for row in rows["conversion"])
    return Finding(f"comparing a digest with a summary takes {share} of converting both", share.high < 0.25)


# Section IV.B.


def _extended(rows: Rows, world: str) -> list[Row]:
    return rows_at(rows["moving"], world=world, system="extended")


def _over_speed(rows: Sequence[Row], what: str) -> Line:
    """How much it changes when a move takes ten times as long."""
    known = [row for row in rows if row[what] is not None]
    return fit_line([math.log10(row["step_s"]) for row in known], [float(row[what]) for row in known])


@speed_claim(
    "Links 1 and 2 alternating: messages are lost when the receiver moves fast",
    "figure 10",
    "in words and a figure without numbers",
    y_label="delivery ratio",
)
def falls_with_speed(rows: Rows) -> Finding:
    lines = _lines(rows_at(rows["moving"], world="alternating"), "system", "step_s", "delivery_ratio")
    fit = _over_speed(_extended(rows, "alternating"), "delivery_ratio")
    return Finding(
        f"delivery ratio by seconds per move: {lines['extended']:.3g}; ten times slower: {fit:+.3f}",
        fit.low > 0,
        reason="most losses come before both forwarding nodes have carried a Join Table once; then either link works",
        series=[line.series(system) for system, line in lines.items()],
    )


@speed_claim("Link 3 flapping: the mesh delivers 100 % at every speed", "figure 12", "100 %", y_label="delivery ratio")
def mesh(rows: Rows) -> Finding:
    both = curve(_extended(rows, "flapping mesh"), "step_s", "delivery_ratio")
    alone = curve(_extended(rows, "flapping"), "step_s", "delivery_ratio")
    worst = min(both.means.values())
    return verdict(
        f"with both nodes forwarding from the start, delivery ratio at least {worst:.3f} at every speed; "
        f"where the other route must first be found, by seconds per move: {alone:.3g}",
        worst == 1.0,
        "what is sent between a break and the first request by the other route is lost",
        [both.series("both forward"), alone.series("the other route must be found")],
    )


@speed_claim(
    "Link 3 flapping: the faster, the more often the mesh's other route is used",
    "figure 12",
    "in words and a figure without numbers (taken as a tenth more at 0.1 s per move than at 10 s)",
    y_label="share by the longer route",
)
def mesh_used(rows: Rows) -> Finding:
    line = curve(_extended(rows, "flapping mesh"), "step_s", "share_of_detours")
    fast, slow = line.means[min(line.x)], line.means[10.0]
    return verdict(
        f"share of messages that came by the longer route, by seconds per move: {line:.3g}",
        fast > 1.1 * slow,
        "the other route carries what the shortest cannot, but the link is down half of the time at every speed: "
        "how fast it flaps does not change how often the mesh is used",
        [line.series("by the longer route")],
    )


@speed_claim(
    "Walking past nodes 1 to 9: the faster, the more messages come on Join Requests",
    "figure 11",
    "in words and a figure without numbers",
    y_label="share on Join Requests",
)
def on_requests(rows: Rows) -> Finding:
    walk = _extended(rows, "walking")
    line = curve(walk, "step_s", "share_on_requests")
    fit = _over_speed(walk, "share_on_requests")
    return Finding(
        f"share of delivered messages that came on Join Requests, by seconds per move: {line:.3g}; ten times "
        f"slower: {fit:+.3f}",
        fit.high < 0,
        series=[line.series("on Join Requests")],
    )


@speed_claim(
    "Walking past nodes 1 to 9: delivery ratios", "figure 11", "0.82 (11A) and 0.93 (11B)", y_label="delivery ratio"
)
def two_ratios(rows: Rows) -> Finding:
    line = curve(_extended(rows, "walking"), "step_s", "delivery_ratio")
    means = list(line.means.values())
    within = min(means) <= 0.82 and max(means) >= 0.93
    return Finding(
        f"delivery ratio by seconds per move: {line:.3g}",
        None if within else False,
        reason="the paper does not state at which speeds it measured; "
        + ("both figures occur among the speeds tried" if within else "the speeds tried do not reach both figures"),
        series=[line.series("extended")],
    )


# Beyond the paper.


@claim("Many moving brokers: fewer bytes than flooding and plain ODMRP", "beyond the paper", "not measured there")
def less_traffic(rows: Rows) -> Finding:
    listed, holds = [], True
    for over in ("flooding", "one channel"):
        by_size = []
        for (brokers, each), group in grouped(rows["growing"], "brokers", "subscriptions").items():
            ours, theirs = (fmean(row["bytes"] for row in rows_at(group, system=one)) for one in ("extended", over))
            by_size.append(f"{brokers} x {each}: {ours / theirs:.2f}")
            holds &= ours < theirs
        listed.append(f"over {over} {', '.join(by_size)}")
    return verdict(
        f"bytes sent, by brokers x subscriptions each, {'; '.join(listed)}",
        holds,
        "with many subscriptions a broker, nearly every event is wanted nearly everywhere: "
        "then summaries and Join Tables are all the extension adds",
    )


@claim("Many moving brokers: only matching brokers deliver", "beyond the paper", "not measured there")
def exact_at_scale(rows: Rows) -> Finding:
    ours = rows_at(rows["growing"], system="extended")
    precise = {row["precision"] for row in ours if row["precision"] is not None}
    ratios = {
        f"{brokers} x {each}": estimate(row["delivery_ratio"] for row in group).mean
        for (brokers, each), group in grouped(ours, "brokers", "subscriptions").items()
    }
    flooded = estimate(row["delivery_ratio"] for row in rows_at(rows["growing"], system="flooding"))
    return Finding(
        f"precision {', '.join(f'{one:g}' for one in sorted(precise))}; delivery ratio "
        f"{', '.join(f'{name}: {ratio:.3f}' for name, ratio in ratios.items())} (flooding {flooded})",
        precise == {1.0},
    )


@claim(
    "A summary that is too small costs airtime, never an event",
    "beyond the paper",
    "false positive rates are named as future work",
    x_label="bytes of a summary",
    y_label="bytes",
    log_x=True,
)
def false_positives(rows: Rows) -> Finding:
    line, control = (curve(rows["budgets"], "summary_bytes", what) for what in ("mesh_bytes", "control_bytes"))
    mesh = line.means
    least = min(mesh.values())
    extra = ", ".join(f"{x:g} B: {value / least - 1:+.0%}" for x, value in mesh.items())
    delivered = curve(rows["budgets"], "summary_bytes", "delivery_ratio")
    ratios = list(delivered.means.values())
    return Finding(
        f"bytes of data in the mesh, against the least, by a summary's budget: {extra}; control bytes "
        f"{control:.3g}; delivery ratio {delivered:.3g}",
        mesh[min(mesh)] > mesh[max(mesh)] and max(ratios) - min(ratios) < 0.01,
        series=[line.series("data in the mesh"), control.series("control")],
    )


@claim(
    "Refreshing by predicted link lifetime delivers at least as much",
    "section III.E",
    "named as possible, not part of the paper's implementation",
)
def prediction(rows: Rows) -> Finding:
    ratio, megabytes = (
        {
            bool(predict): estimate(row[column] / unit for row in group)
            for (predict,), group in grouped(rows["prediction"], "predict").items()
        }
        for column, unit in (("delivery_ratio", 1), ("bytes", 1e6))
    )
    return verdict(
        f"refreshing by predicted link lifetime: delivery ratio {ratio[True]} at {megabytes[True]} MB; "
        f"every 5 s: {ratio[False]} at {megabytes[False]} MB",
        ratio[True].mean >= ratio[False].mean,
        "links that last are refreshed less often than every 5 s",
    )
