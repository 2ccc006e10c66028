"""What the content-based ODMRP paper claims, and how each claim is judged from the rows of the experiments.

Each claim states how it reads words such as "about", "the same" or "constant".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from earshot.studies.study import (
    Claim,
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
)

THREE = ("extended", "one channel", "N channels")
RECEIVERS = ("R1", "R2", "R3", "R4", "R5")


def _lines(rows: Sequence[Row], by: str, x: str, y: str) -> dict[str, Curve]:
    return {str(key[0]): curve(group, x, y) for key, group in grouped(rows, by).items()}


def _listed(line: Curve) -> str:
    return ", ".join(f"{x:g}: {point.mean:.3g}" for x, point in zip(line.x, line.estimates, strict=True))


# Section IV.A.


def exactly(rows: Rows) -> Finding:
    counts, holds = [], True
    for (system,), group in grouped(rows["traffic"], "system").items():
        got = {row["broker"]: row["delivered"] for row in group if row["broker"] in RECEIVERS}
        wanted = {row["broker"]: row["expected"] for row in group if row["broker"] in RECEIVERS}
        holds &= got == wanted and all(row["precision"] == 1.0 for row in group)
        counts.append(f"{system}: {', '.join(f'{name} {count}' for name, count in got.items())}")
    return Finding("; ".join(counts), holds)


def _bytes_in(rows: Rows, system: str) -> float:
    """What came in at the five receiving brokers."""
    return float(sum(row["bytes_in"] for row in rows_at(rows["traffic"], system=system) if row["broker"] in RECEIVERS))


def twice(rows: Rows) -> Finding:
    one, extended, many = (_bytes_in(rows, system) for system in ("one channel", "extended", "N channels"))
    everywhere = {system: sum(row["bytes_in"] for row in rows_at(rows["traffic"], system=system)) for system in THREE}
    by_broker = [
        Series(
            system,
            list(range(1, 6)),
            [row["bytes_in"] for row in rows_at(rows["traffic"], system=system) if row["broker"] in RECEIVERS],
        )
        for system in THREE
    ]
    return Finding(
        f"at brokers 1 to 5, one channel over extended {one / extended:.2f}, over N channels {one / many:.2f} "
        f"(at all 11 nodes {everywhere['one channel'] / everywhere['extended']:.2f} and "
        f"{everywhere['one channel'] / everywhere['N channels']:.2f})",
        1.5 <= one / extended <= 2.5 and 1.5 <= one / many <= 2.5,
        series=by_broker,
    )


def comparable(rows: Rows) -> Finding:
    ratio = _bytes_in(rows, "extended") / _bytes_in(rows, "N channels")
    return Finding(f"bytes in at brokers 1 to 5, extended over N channels: {ratio:.3f}", abs(ratio - 1) <= 0.25)


def unmatched(rows: Rows) -> Finding:
    found = {row["broker"]: row["bytes_in"] for row in rows_at(rows["traffic"], system="extended")}
    matched = (found["R1"] + found["R2"] + found["R4"]) / 3
    share = {name: found[name] / matched for name in ("R3", "R5")}
    return Finding(
        f"of a matched broker's bytes, broker 3 takes in {share['R3']:.0%} (requests and what its router passes on), "
        f"broker 5 {share['R5']:.0%} (it shares a router with broker 4)",
        min(share.values()) >= 0.2,
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
        f"{'; '.join(f'{system} {_listed(line)}' for system, line in lines.items())}; more than one channel: "
        f"{', '.join(f'{interval_s:g}: {gain}' for interval_s, gain in gains.items())}",
        bool(better) and not worse,
        reason="the gain is airtime, some of it by acknowledged Join Tables: the simulator does not bill the "
        "processor's time in which the paper's brokers convert and match",
        series=[line.series(system) for system, line in lines.items()],
    )


def same_throughput(rows: Rows) -> Finding:
    many = rows_at(rows["throughput"], system="extended", interval_s=0.5)
    line, bytes_in = curve(many, "subscribers", "throughput_per_s"), curve(many, "subscribers", "bytes_in")
    means = [point.mean for point in line.estimates]
    traffic_grows = bytes_in.estimates[-1].mean / bytes_in.estimates[0].mean
    return Finding(
        f"messages per second by subscribers: {_listed(line)}; bytes in grow {traffic_grows:.1f} times",
        max(means) - min(means) <= 0.05 * max(means) and traffic_grows > 1.2,
        series=[line.series("extended")],
    )


def conversion(rows: Rows, what: str) -> Finding:
    line = curve(rows["conversion"], "elements", what)
    fit = fit_line([row["elements"] for row in rows["conversion"]], [float(row[what]) for row in rows["conversion"]])
    growth = line.means[200] / line.means[10]
    return Finding(
        f"microseconds by nested elements: {_listed(line)}; 200 over 10: {growth:.2f}; each element adds "
        f"{fit.slope:.2f} [{fit.low:.2f}, {fit.high:.2f}]",
        growth <= 1.5,
        reason=""
        if growth <= 1.5
        else "an event's digest reads every element once, so its time grows with their number; "
        "the paper may have measured a fixed overhead that hides this growth",
        series=[line.series(what)],
    )


def fraction(rows: Rows) -> Finding:
    share = estimate(row["comparison_us"] / (row["event_us"] + row["subscription_us"]) for row in rows["conversion"])
    return Finding(f"comparing a digest with a summary takes {share} of converting both", share.high < 0.25)


# Section IV.B.


def _moving(rows: Rows, world: str) -> list[Row]:
    return rows_at(rows["moving"], world=world)


def _over_speed(rows: Sequence[Row], what: str) -> Line:
    """How much it changes when a move takes ten times as long."""
    known = [row for row in rows if row[what] is not None]
    return fit_line([math.log10(row["step_s"]) for row in known], [float(row[what]) for row in known])


def falls_with_speed(rows: Rows) -> Finding:
    lines = _lines(_moving(rows, "alternating"), "system", "step_s", "delivery_ratio")
    fit = _over_speed(rows_at(_moving(rows, "alternating"), system="extended"), "delivery_ratio")
    return Finding(
        f"delivery ratio by seconds per move: {_listed(lines['extended'])}; ten times slower: {fit.slope:+.3f} "
        f"[{fit.low:+.3f}, {fit.high:+.3f}]",
        fit.low > 0,
        reason="most losses come before both forwarding nodes have carried a Join Table once; then either link works",
        series=[line.series(system) for system, line in lines.items()],
    )


def mesh(rows: Rows) -> Finding:
    both = curve(rows_at(_moving(rows, "flapping mesh"), system="extended"), "step_s", "delivery_ratio")
    alone = curve(rows_at(_moving(rows, "flapping"), system="extended"), "step_s", "delivery_ratio")
    worst = min(point.mean for point in both.estimates)
    return Finding(
        f"with both nodes forwarding from the start, delivery ratio at least {worst:.3f} at every speed; "
        f"where the other route must first be found, by seconds per move: {_listed(alone)}",
        worst == 1.0,
        reason="" if worst == 1.0 else "what is sent between a break and the first request by the other route is lost",
        series=[both.series("both forward"), alone.series("the other route must be found")],
    )


def mesh_used(rows: Rows) -> Finding:
    line = curve(rows_at(_moving(rows, "flapping mesh"), system="extended"), "step_s", "share_of_detours")
    fast, slow = line.means[min(line.x)], line.means[10.0]
    return Finding(
        f"share of messages that came by the longer route, by seconds per move: {_listed(line)}",
        fast > 1.1 * slow,
        reason=""
        if fast > 1.1 * slow
        else "the other route carries what the shortest cannot, but the link is down half of the time at every speed: "
        "how fast it flaps does not change how often the mesh is used",
        series=[line.series("by the longer route")],
    )


def on_requests(rows: Rows) -> Finding:
    walk = rows_at(_moving(rows, "walking"), system="extended")
    line = curve(walk, "step_s", "share_on_requests")
    fit = _over_speed(walk, "share_on_requests")
    return Finding(
        f"share of delivered messages that came on Join Requests, by seconds per move: {_listed(line)}; ten times "
        f"slower: {fit.slope:+.3f} [{fit.low:+.3f}, {fit.high:+.3f}]",
        fit.high < 0,
        series=[line.series("on Join Requests")],
    )


def two_ratios(rows: Rows) -> Finding:
    line = curve(rows_at(_moving(rows, "walking"), system="extended"), "step_s", "delivery_ratio")
    means = [point.mean for point in line.estimates]
    within = min(means) <= 0.82 and max(means) >= 0.93
    return Finding(
        f"delivery ratio by seconds per move: {_listed(line)}",
        None if within else False,
        reason="the paper does not state at which speeds it measured; "
        + ("both figures occur among the speeds tried" if within else "the speeds tried do not reach both figures"),
        series=[line.series("extended")],
    )


# Beyond the paper.


def _grown(rows: Rows, what: str, over: str) -> dict[tuple[int, int], float]:
    """By brokers and subscriptions: the extension's mean, as a share of another system's."""
    found = {}
    for (brokers, subscriptions), group in grouped(rows["growing"], "brokers", "subscriptions").items():
        ours = [row[what] for row in group if row["system"] == "extended"]
        theirs = [row[what] for row in group if row["system"] == over]
        found[brokers, subscriptions] = (sum(ours) / len(ours)) / (sum(theirs) / len(theirs))
    return found


def less_traffic(rows: Rows) -> Finding:
    listed, holds = [], True
    for over in ("flooding", "one channel"):
        ratios = _grown(rows, "bytes", over)
        holds &= all(ratio < 1 for ratio in ratios.values())
        by_size = ", ".join(f"{brokers} x {each}: {ratio:.2f}" for (brokers, each), ratio in ratios.items())
        listed.append(f"over {over} {by_size}")
    return Finding(
        f"bytes sent, by brokers x subscriptions each, {'; '.join(listed)}",
        holds,
        reason=""
        if holds
        else "with many subscriptions a broker, nearly every event is wanted nearly everywhere: "
        "then summaries and Join Tables are all the extension adds",
    )


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


def false_positives(rows: Rows) -> Finding:
    line, control = (curve(rows["budgets"], "summary_bytes", what) for what in ("mesh_bytes", "control_bytes"))
    mesh = line.means
    least = min(mesh.values())
    extra = ", ".join(f"{x:g} B: {value / least - 1:+.0%}" for x, value in mesh.items())
    delivered = curve(rows["budgets"], "summary_bytes", "delivery_ratio")
    ratios = [point.mean for point in delivered.estimates]
    return Finding(
        f"bytes of data in the mesh, against the least, by a summary's budget: {extra}; control bytes "
        f"{_listed(control)}; delivery ratio {_listed(delivered)}",
        mesh[min(mesh)] > mesh[max(mesh)] and max(ratios) - min(ratios) < 0.01,
        series=[line.series("data in the mesh"), control.series("control")],
    )


def prediction(rows: Rows) -> Finding:
    ratio, megabytes = (
        {
            bool(predict): estimate(row[column] / unit for row in group)
            for (predict,), group in grouped(rows["prediction"], "predict").items()
        }
        for column, unit in (("delivery_ratio", 1), ("bytes", 1e6))
    )
    holds = ratio[True].mean >= ratio[False].mean
    return Finding(
        f"refreshing by predicted link lifetime: delivery ratio {ratio[True]} at {megabytes[True]} MB; "
        f"every 5 s: {ratio[False]} at {megabytes[False]} MB",
        holds,
        reason="" if holds else "links that last are refreshed less often than every 5 s",
    )


_SpeedClaim = partial(Claim, x_label="seconds per move", log_x=True)

CLAIMS = [
    Claim(
        "Brokers 1, 2 and 4 get exactly their messages, 3 and 5 none",
        "section IV.A",
        "3 matching brokers among 5",
        exactly,
    ),
    Claim(
        "One channel costs twice what the others cost",
        "figure 7",
        "ODMRP with one channel causes twice more network traffic than the others (taken as 1.5 to 2.5)",
        twice,
        x_label="broker",
        y_label="bytes in",
    ),
    Claim(
        "The extension costs what predefined channels cost",
        "figure 7",
        "comparable to the predefined channels (taken as within a quarter)",
        comparable,
    ),
    Claim(
        "Brokers that want nothing still take in a high volume of control packets",
        "figure 7",
        "in words (taken as at least a fifth of a matched broker's)",
        unmatched,
    ),
    Claim(
        "Beyond the conversion overhead the extension improves throughput over one channel",
        "figure 6",
        "in words and a figure without numbers",
        keeps_up,
        x_label="interval, s",
        y_label="messages per second",
        log_x=True,
    ),
    Claim(
        "Throughput stays the same over the number of subscribers, in spite of more traffic",
        "figure 8",
        "in words (taken as within 5 %)",
        same_throughput,
        x_label="subscribers",
        y_label="messages per second",
    ),
    Claim(
        "Converting an event takes constant time up to 200 nested elements",
        "section IV.A",
        "constant within the range of 200 nesting elements (taken as at most half more than at 10)",
        partial(conversion, what="event_us"),
        x_label="nested elements",
        y_label="microseconds",
    ),
    Claim(
        "Converting a subscription takes constant time up to 200 nested elements",
        "section IV.A",
        "constant within the range of 200 nesting elements (taken as at most half more than at 10)",
        partial(conversion, what="subscription_us"),
        x_label="nested elements",
        y_label="microseconds",
    ),
    Claim(
        "Comparing an event with the aggregated subscriptions is a fraction of converting them",
        "section IV.A",
        "a fraction, since it compares simple bit sets (taken as a quarter)",
        fraction,
    ),
    _SpeedClaim(
        "Links 1 and 2 alternating: messages are lost when the receiver moves fast",
        "figure 10",
        "in words and a figure without numbers",
        falls_with_speed,
        y_label="delivery ratio",
    ),
    _SpeedClaim(
        "Link 3 flapping: the mesh delivers 100 % at every speed",
        "figure 12",
        "100 %",
        mesh,
        y_label="delivery ratio",
    ),
    _SpeedClaim(
        "Link 3 flapping: the faster, the more often the mesh's other route is used",
        "figure 12",
        "in words and a figure without numbers (taken as a tenth more at 0.1 s per move than at 10 s)",
        mesh_used,
        y_label="share by the longer route",
    ),
    _SpeedClaim(
        "Walking past nodes 1 to 9: the faster, the more messages come on Join Requests",
        "figure 11",
        "in words and a figure without numbers",
        on_requests,
        y_label="share on Join Requests",
    ),
    _SpeedClaim(
        "Walking past nodes 1 to 9: delivery ratios",
        "figure 11",
        "0.82 (11A) and 0.93 (11B)",
        two_ratios,
        y_label="delivery ratio",
    ),
    Claim(
        "Many moving brokers: fewer bytes than flooding and plain ODMRP",
        "beyond the paper",
        "not measured there",
        less_traffic,
    ),
    Claim(
        "Many moving brokers: only matching brokers deliver", "beyond the paper", "not measured there", exact_at_scale
    ),
    Claim(
        "A summary that is too small costs airtime, never an event",
        "beyond the paper",
        "false positive rates are named as future work",
        false_positives,
        x_label="bytes of a summary",
        y_label="bytes",
        log_x=True,
    ),
    Claim(
        "Refreshing by predicted link lifetime delivers at least as much",
        "section III.E",
        "named as possible, not part of the paper's implementation",
        prediction,
    ),
]
