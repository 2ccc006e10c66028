"""Beyond the paper: many moving brokers, small summaries, and the predicted refresh."""

from __future__ import annotations

from statistics import fmean

from earshot.studies.content_odmrp.claims.readings import OURS
from earshot.studies.study import (
    ClaimReading,
    Claims,
    Finding,
    Rows,
    curve,
    estimate,
    found,
    grouped,
    rows_at,
    seeds_of,
)

CLAIMS = Claims()
claim = CLAIMS.claim


@claim(
    "Many moving brokers: fewer bytes than flooding",
    "beyond the paper",
    "not measured there",
    fails_if="forwarding nodes do not examine events",
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
    by_size, holds = [], True
    for (brokers, each), group in grouped(rows["growing"], "brokers", "subscriptions").items():
        ours, theirs = (fmean(row["bytes"] for row in rows_at(group, system=one)) for one in ("ours", than))
        by_size.append(f"{brokers} x {each}: {ours / theirs:.2f}")
        holds &= ours < theirs
    why = (
        "with many subscriptions a broker, nearly every event is wanted nearly everywhere: "
        "then summaries and Join Tables are all the extension adds"
    )
    measured = f"ours over {than}, by brokers x subscriptions: {', '.join(by_size)}"
    return found(ClaimReading(OURS, measured, holds, seeds_of(rows["growing"]), reason="" if holds else why))


@claim(
    "Many moving brokers: only matching brokers deliver",
    "beyond the paper",
    "not measured there",
    fails_if="a broker delivers what its summary lets pass, without the exact filter",
)
def exact_at_scale(rows: Rows) -> Finding:
    ours = rows_at(rows["growing"], system="ours")
    precise = {row["precision"] for row in ours if row["precision"] is not None}
    ratio = estimate(row["delivery_ratio"] for row in ours)
    flooded = estimate(row["delivery_ratio"] for row in rows_at(rows["growing"], system="flooding"))
    return found(
        ClaimReading(
            OURS,
            f"precision {', '.join(f'{one:g}' for one in sorted(precise))}; delivery ratio {ratio}, flooding {flooded}",
            precise == {1.0},
            seeds_of(ours),
            ratio.interval,
        )
    )


@claim(
    "A summary that is too small costs airtime, never an event",
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
    ratios = list(delivered.means.values())
    return found(
        ClaimReading(
            OURS,
            f"bytes of data in the mesh, against the least, by a summary's budget: {extra}; control bytes "
            f"{control:.3g}; delivery ratio {delivered:.3g}",
            in_mesh[min(in_mesh)] > in_mesh[max(in_mesh)] and max(ratios) - min(ratios) < 0.01,
            delivered.estimates[0].count,
            delivered.estimates[0].interval,
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
    delivers, saves = ratio[True].mean >= ratio[False].mean, megabytes[True].mean <= megabytes[False].mean
    delivered, sent = (
        f"{ratio[True]}; every 5 s: {ratio[False]}",
        f"{megabytes[True]} MB; every 5 s: {megabytes[False]} MB",
    )
    why = "some link of some route is always about to break, so requests come more often than every 5 s"
    return found(
        ClaimReading(
            "both",
            f"delivers {'at least as much' if delivers else 'less'}, sends {'no more' if saves else 'more'}",
            delivers and saves,
            ratio[True].count,
            reason="" if delivers and saves else "see each",
        ),
        ClaimReading("delivery ratio", delivered, delivers, ratio[True].count, ratio[True].interval),
        ClaimReading("bytes", sent, saves, megabytes[True].count, megabytes[True].interval, "" if saves else why),
    )
