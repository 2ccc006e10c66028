"""The claims of sections III and V: summaries, aggregation, groups, and state that expires by itself; and, beyond the
paper, many moving brokers, small summaries and the predicted refresh."""

from __future__ import annotations

from earshot.studies.content_odmrp.claims import OURS, WRITTEN
from earshot.studies.figures import (
    Estimate,
    above,
    at_least,
    at_most,
    below,
    curve,
    difference_to,
    estimate,
    every,
    grouped,
    mean_of,
    ratio_of_means,
    rows_at,
    spread,
)
from earshot.studies.study import ClaimReading, Claims, Finding, Rows, all_hold, found, read_as

CLAIMS = Claims()
claim = CLAIMS.claim
COARSE, FINE = "least constrained", "finest"


@claim(
    "Errors of a summary are false positives, never false negatives",
    "section III",
    "always false positives",
    fails_if="an element's texts are written to the wrong one of the three vectors",
)
def only_false_positives(rows: Rows) -> Finding:
    def reading(form: str, words: str) -> ClaimReading:
        of = rows_at(rows["summaries"], form=form)
        missed, matching = sum(row["missed"] for row in of), sum(row["matching"] for row in of)
        line = curve(of, "subscriptions", "false_share")
        measured = f"{missed} of {matching:,} matches missed; unwanted events that pass, by subscriptions: {line:.2g}"
        return read_as(words, measured, missed == 0 and matching > 0, of)

    return found(
        reading("four structures", "the paper's four structures"),
        reading("with combinations", "with value combinations"),
    )


@claim(
    "Aggregation reduces the size of routing tables",
    "section V",
    "in words (taken as fewer bytes, or fewer entries at the source)",
    fails_if="a summary keeps every subscription's text",
)
def aggregation_shrinks(rows: Rows) -> Finding:
    of = rows_at(
        rows["summaries"], form="four structures", subscriptions=max(r["subscriptions"] for r in rows["summaries"])
    )
    ratio = estimate(row["summary_bytes"] / row["text_bytes"] for row in of)
    still = rows_at(rows["changes"], still=True, advertise=False)
    entries = {row["aggregate"]: row["reporters"] for row in still}
    return found(
        read_as(
            "a broker's 100 subscriptions in one summary",
            f"{ratio} of the bytes of their texts",
            below(ratio, 1.0, surely=True),
            ratio.count,
        ),
        ClaimReading(
            "a node next to the source reports for all below it (an option)",
            f"{entries[True]} reporters at the source instead of {entries[False]}",
            entries[True] < entries[False],
            seeds=0,
        ),
    )


@claim(
    "Subscriptions can be registered and cancelled at any time",
    "section V",
    "fully supported (taken as: everything from one refresh after registering, nothing after cancelling)",
    fails_if="a change of subscriptions waits until its source's state has expired",
)
def changes_take_effect(rows: Rows) -> Finding:
    (row,) = rows_at(rows["changes"], still=False)
    before = row["before_cancelling"]
    holds = row["registered_missed"] == 0 and row["cancelled_got"] == 0 and before[0] == before[1]
    return found(
        ClaimReading(
            WRITTEN,
            f"{row['registered_got']} of {row['registered_wanted']} after registering, {row['registered_missed']} "
            f"missed later than a refresh; {row['cancelled_got']} after cancelling",
            holds,
            seeds=0,
        )
    )


@claim(
    "Forwarding nodes demote themselves where no request comes within the timeout",
    "section III.E",
    "25 s (section IV)",
    fails_if="flags never expire",
)
def soft_state(rows: Rows) -> Finding:
    (row,) = rows_at(rows["changes"], still=False)
    during, after_15_s, after_31_s = row["forwarding"]
    return found(
        ClaimReading(
            WRITTEN,
            f"{during} forwarding nodes while events are sent, {after_15_s} 15 s later, {after_31_s} 31 s later",
            during == after_15_s > 0 and after_31_s == 0,
            seeds=0,
        )
    )


@claim(
    "Advertisement mode sets routes up before the first event",
    "section III.E",
    "an option for stable networks",
    fails_if="an announcement sends no Join Request",
)
def advertised(rows: Rows) -> Finding:
    first = {row["advertise"]: row["first_on_data"] for row in rows_at(rows["changes"], still=True, aggregate=False)}
    words = {True: "as data", False: "on a Join Request"}
    return found(
        ClaimReading(
            WRITTEN,
            f"the first event travels {words[first[True]]} after an announcement, {words[first[False]]} without",
            first[True] and not first[False],
            seeds=0,
        )
    )


def _by_grain(rows: Rows, column: str, speed: float | None = None) -> dict[str, Estimate]:
    chosen = rows["grain"] if speed is None else rows_at(rows["grain"], speed_m_s=speed)
    return {grain: mean_of(group, column) for (grain,), group in grouped(chosen, "grain").items()}


def _texts(of: dict[str, Estimate], spec: str) -> str:
    return ", ".join(f"{name} {value.mean:{spec}}" for name, value in of.items())


@claim(
    "Coarse groups bring noise, fine ones are many",
    "section III.D",
    "in words",
    fails_if="groups are chosen without regard to who wants the event",
)
def coarse_or_fine(rows: Rows) -> Finding:
    noise, groups = _by_grain(rows, "noise"), _by_grain(rows, "groups")
    in_mesh = _by_grain(rows, "mesh_bytes")
    coarse, fine = (rows_at(rows["grain"], grain=grain) for grain in (COARSE, FINE))
    noisier = difference_to(coarse, fine, "noise", "speed_m_s", "seed")
    fewer = difference_to(coarse, fine, "groups", "speed_m_s", "seed")
    return found(
        read_as(
            "members that do not want the event; groups made",
            f"noise {_texts(noise, '.0%')}; groups {_texts(groups, '.0f')}; data in the mesh "
            f"{_texts(in_mesh, ',.0f')} B",
            every([above(noisier, 0.0, surely=True), below(fewer, 0.0, surely=True)]),
            rows["grain"],
        )
    )


@claim(
    "Where nodes move fast, fine groups save the overhead of group maintenance",
    "section III.D",
    "may prevent it (taken as fewer control bytes than coarse groups at 20 m/s)",
    fails_if="each group has a refresh of its own",
)
def fine_groups_when_moving(rows: Rows) -> Finding:
    fast, slow = (_by_grain(rows, "control_bytes", speed) for speed in (20.0, 1.0))
    whole = _by_grain(rows, "bytes", 20.0)
    delivered = _by_grain(rows, "delivery_ratio", 20.0)
    moving = rows_at(rows["grain"], speed_m_s=20.0)
    coarse, fine = (rows_at(moving, grain=grain) for grain in (COARSE, FINE))
    fewer = {column: difference_to(fine, coarse, column, "seed") for column in ("control_bytes", "bytes")}
    reason = "every group that a source makes is offered by a Join Request, and each offer takes bytes of every request"
    return found(
        read_as(
            "control bytes",
            f"at 20 m/s {_texts(fast, ',.0f')}; at 1 m/s {_texts(slow, ',.0f')}; delivery ratio at 20 m/s "
            f"{_texts(delivered, '.3f')}",
            below(fewer["control_bytes"], 0.0),
            moving,
            reason,
        ),
        read_as("all bytes", f"at 20 m/s {_texts(whole, ',.0f')}", below(fewer["bytes"], 0.0), moving),
    )


@claim(
    "Brokers split and combine groups as subscriptions and events change",
    "section III.D",
    "in words, of subscriptions",
    fails_if="groups are kept as they were made: none expires, is split or combined with another",
)
def split_and_combined(rows: Rows) -> Finding:
    """As written, no noise is too much. A limit of noise is ours."""

    def reading(changing: str, words: str, noise_limit: float) -> ClaimReading:
        (row,) = rows_at(rows["regrouping"], changing=changing, noise_limit=noise_limit)
        combined = row["combined_later"] if changing == "subscriptions" else row["combined"]
        noise = ", ".join(f"{share:.0%}" for share in row["noise"])
        measured = (
            f"{row['combined']} combined for four kinds in three groups, then {row['split_later']} split and "
            f"{row['combined_later']} combined; noise {noise}; {row['delivered']} of {row['wanted']} delivered"
        )
        regrouped = combined > 0 and row["split_later"] > 0
        holds = regrouped and row["noise"][-1] == 0.0 and row["delivered"] == row["wanted"]
        why = "a group is split only where its noise exceeds a limit"
        return ClaimReading(f"{changing} change, {words}", measured, holds, seeds=0, reason=why)

    limits = {"as written: any noise": 1.0, "at most 40 % noise": 0.4}
    return found(*(reading(changing, *limit) for changing in ("subscriptions", "events") for limit in limits.items()))


@claim(
    "Many moving brokers: fewer bytes than flooding",
    "beyond the paper",
    "not measured there",
    fails_if="every node passes every event on, with or without a flag",
)
def below_flooding(rows: Rows) -> Finding:
    return _fewer_bytes(rows, "flooding")


@claim(
    "Many moving brokers: fewer bytes than ODMRP with one channel",
    "beyond the paper",
    "not measured there",
    fails_if="forwarding nodes do not examine events",
)
def below_one_channel(rows: Rows) -> Finding:
    return _fewer_bytes(rows, "one channel")


def _fewer_bytes(rows: Rows, than: str) -> Finding:
    """At every size."""
    ratios = {}
    for (brokers, each), group in grouped(rows["growing"], "brokers", "subscriptions").items():
        ours, theirs = (rows_at(group, system=system) for system in ("ours", than))
        ratios[f"{brokers} x {each}"] = ratio_of_means(ours, theirs, "bytes", "seed")
    why = (
        "with many subscriptions a broker, nearly every event is wanted nearly everywhere: "
        "then summaries and Join Tables are all the extension adds"
    )
    by_size = ", ".join(f"{size}: {ratio.mean:.2f}" for size, ratio in ratios.items())
    measured = f"ours over {than}, by brokers x subscriptions: {by_size}"
    fewer = every(below(ratio, 1.0) for ratio in ratios.values())
    return found(read_as(OURS, measured, fewer, rows["growing"], why))


@claim(
    "Many moving brokers: only matching brokers deliver",
    "beyond the paper",
    "not measured there",
    fails_if="a broker delivers what its summary lets pass, without the exact filter",
)
def exact_at_scale(rows: Rows) -> Finding:
    ours = rows_at(rows["growing"], system="ours")
    precise = {row["precision"] for row in ours if row["precision"] is not None}
    ratio, flooded = (mean_of(rows["growing"], "delivery_ratio", system=name) for name in ("ours", "flooding"))
    return found(
        read_as(
            OURS,
            f"precision {', '.join(f'{of:g}' for of in sorted(precise))}; delivery ratio {ratio}, flooding {flooded}",
            precise == {1.0},
            ours,
        )
    )


@claim(
    "A summary that is too small costs bytes of data, never an event",
    "beyond the paper",
    "false positive rates are named as future work",
    x_label="bytes of a summary",
    y_label="bytes",
    log_x=True,
    fails_if="a summary that exceeds its budget drops rows",
)
def false_positives(rows: Rows) -> Finding:
    line, control = (curve(rows["budgets"], "summary_bytes", what) for what in ("mesh_bytes", "control_bytes"))
    in_mesh = line.means
    least = min(in_mesh.values())
    extra = ", ".join(f"{x:g} B: {value / least - 1:+.0%}" for x, value in in_mesh.items())
    delivered = curve(rows["budgets"], "summary_bytes", "delivery_ratio")
    small, large = (rows_at(rows["budgets"], summary_bytes=x) for x in (line.x[0], line.x[-1]))
    costs = above(difference_to(small, large, "mesh_bytes", "seed"), 0.0)
    loses_nothing = below(spread(rows["budgets"], "summary_bytes", "delivery_ratio", "seed"), 0.01)
    return found(
        read_as(
            OURS,
            f"bytes of data in the mesh, against the least, by a summary's budget: {extra}; control bytes "
            f"{control:.3g}; delivery ratio {delivered:.3g}",
            every([costs, loses_nothing]),
            rows["budgets"],
        ),
        series=[line.series("data in the mesh"), control.series("control")],
    )


@claim(
    "Refreshing by predicted link lifetime adapts the refresh interval",
    "section III.E",
    "named as possible, not part of the paper's implementation (taken as: delivers at least as much; sends no more)",
    fails_if="the prediction takes the longest-lived link of a route",
)
def prediction(rows: Rows) -> Finding:
    ratio, megabytes = (
        {
            bool(predict): estimate(row[column] / unit for row in group)
            for (predict,), group in grouped(rows["prediction"], "predict").items()
        }
        for column, unit in (("delivery_ratio", 1), ("bytes", 1e6))
    )
    runs = [{**row, "megabytes": row["bytes"] / 1e6} for row in rows["prediction"]]
    with_, without = (rows_at(runs, predict=predict) for predict in (True, False))
    more = difference_to(with_, without, "delivery_ratio", "seed")
    dearer = difference_to(with_, without, "megabytes", "seed")
    why = "some link of some route is always about to break, so requests come more often than every 5 s"
    parts = (
        read_as("delivery ratio", f"{ratio[True]}; every 5 s: {ratio[False]}", at_least(more, 0.0), runs),
        read_as("bytes", f"{megabytes[True]} MB; every 5 s: {megabytes[False]} MB", at_most(dearer, 0.0), runs, why),
    )
    both = (
        f"delivers {'at least as much' if parts[0].holds else 'less'}, sends {'no more' if parts[1].holds else 'more'}"
    )
    return found(all_hold("both", parts, both), *parts)
