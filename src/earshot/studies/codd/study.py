"""The CoDD study: figures 7 to 12 and 14 to 16; how much they depend on what the paper leaves open; and, beyond the
paper, churn, ten thousand nodes and a network that loses messages.

Each claim states what "rapidly", "minor", "substantially" or "gradual" are taken to mean.
"""

from __future__ import annotations

from earshot.studies.codd import claims as judged
from earshot.studies.codd.beyond import churning, large, losing
from earshot.studies.codd.claims import ALL, BOTH, DTDS
from earshot.studies.codd.runs import AS_READ, READINGS, SIENA_READINGS, synthetic, xml
from earshot.studies.study import Claim, Experiment, Study, cases

STUDY = Study(
    name="codd",
    paper="Chawathe, Anand: Interimistic Data Dissemination (CoDD)",
    # The longest cases come first, so that both cores stay busy to the end.
    experiments=(
        Experiment(
            "large",
            large,
            cases(nodes=[1000, 10_000], documents=[100], seed=[0]),
            cases(nodes=[300], documents=[20], seed=[0]),
        ),
        Experiment(
            "default",
            synthetic,
            cases(systems=[ALL], nodes=[400], fan_out=[6], documents=[10_000], reading=[AS_READ], seed=range(2)),
            cases(systems=[ALL], nodes=[80], fan_out=[6], documents=[1000], reading=[AS_READ], seed=range(1)),
        ),
        Experiment(
            "fan-outs",
            synthetic,
            cases(systems=[ALL], nodes=[400], fan_out=[2, 3, 4, 8], documents=[10_000], reading=[AS_READ], seed=[0]),
            cases(systems=[ALL], nodes=[80], fan_out=[2, 4, 10], documents=[400], reading=[AS_READ], seed=[0]),
        ),
        Experiment(
            "sizes",
            synthetic,
            cases(
                systems=[ALL], nodes=[100, 200, 600], fan_out=[4, 6], documents=[10_000], reading=[AS_READ], seed=[0]
            ),
            cases(systems=[ALL], nodes=[40, 120], fan_out=[4, 6], documents=[400], reading=[AS_READ], seed=[0]),
        ),
        Experiment(
            "readings",
            synthetic,
            cases(systems=[BOTH], nodes=[400], fan_out=[6], documents=[2000], reading=READINGS, seed=[0]),
            cases(
                systems=[BOTH],
                nodes=[80],
                fan_out=[6],
                documents=[400],
                reading=[AS_READ, "subscriptions follow the shuffle"],
                seed=[0],
            ),
        ),
        Experiment(
            "brokers",
            synthetic,
            cases(
                systems=[["siena"]],
                nodes=[400],
                fan_out=[2, 4, 6, 8],
                documents=[2000],
                reading=SIENA_READINGS,
                seed=[0],
            ),
            cases(systems=[["siena"]], nodes=[80], fan_out=[2, 6], documents=[400], reading=SIENA_READINGS, seed=[0]),
        ),
        Experiment(
            "xml",
            xml,
            cases(dtd=DTDS, nodes=[400], documents=[1000], fan_outs=[[2, 4, 6]], seed=[0]),
            cases(dtd=DTDS, nodes=[30], documents=[100], fan_outs=[[2, 6]], seed=[0]),
        ),
        Experiment(
            "churn",
            churning,
            cases(nodes=[400], documents=[1200], rate_per_min=[0.01, 0.05, 0.1, 0.2], seed=range(2)),
            cases(nodes=[60], documents=[200], rate_per_min=[0.2], seed=[0]),
        ),
        Experiment(
            "loss",
            losing,
            cases(nodes=[400], documents=[400], loss=[0.0, 0.01, 0.05, 0.1, 0.2], seed=[0]),
            cases(nodes=[60], documents=[100], loss=[0.0, 0.1], seed=[0]),
        ),
    ),
    claims=(
        Claim(
            "Reorganisation lowers the average overhead of interior nodes by over half",
            "section 4, figure 7",
            "over 50 % less",
            judged.halved,
            "rank of the node",
            "overhead",
        ),
        Claim(
            "CoDD's overhead is below Siena's",
            "section 4, figure 8",
            "performs well because topologies are data-aware",
            judged.below_siena,
            "rank of the node",
            "overhead",
        ),
        Claim(
            "Only Siena's interior brokers have overhead: it drops at the 29th",
            "section 4, figure 8",
            "sharp decrease at x = 29",
            judged.interior_brokers,
        ),
        Claim(
            "The overhead drops rapidly from fan-out 2 to 4, and little beyond (by less than half of that)",
            "section 4, figure 9",
            "drops rapidly from 2 to 4, minor improvements beyond",
            judged.steep_then_flat,
            "fan-out",
            "mean overhead of interior nodes",
        ),
        Claim(
            "Siena's overhead rises with the fan-out", "section 4, figure 9", "gradually increases", judged.siena_rises
        ),
        Claim(
            "At every size reorganisation lowers the overhead, and its rise with the size is slower",
            "section 4, figure 10",
            "substantially lowered; rate of increase lower",
            judged.size_lowered,
            "nodes",
            "mean overhead of interior nodes",
            log_x=True,
        ),
        Claim(
            "Reorganisation lowers weighted average depths (by a tenth or more) and the greatest of them",
            "section 4.1, figure 11",
            "reduced significantly; maximum substantially lower",
            judged.depth_lowered,
            "rank of the node",
            "weighted average depth",
        ),
        Claim(
            "With reorganisation the depth grows like log n, without it linearly",
            "section 4.1, figure 12",
            "roughly a log x curve; linear without",
            judged.depth_grows,
            "nodes",
            "mean weighted average depth",
        ),
        Claim(
            "With reorganisation the overhead of the three XML sets is below 10 %, at low fan-outs too",
            "section 4.2, figure 14",
            "less than 10 %",
            judged.xml_overhead,
            "fan-out",
            "system overhead",
        ),
        Claim(
            "The overhead falls appreciably over time (from the first fifth of the run to the last)",
            "section 4.3, figure 15",
            "drops appreciably near the end",
            judged.over_time,
            "documents",
            "mean overhead of nodes that have any",
        ),
        Claim(
            "Late reorganisations help the node that asks more often than early ones",
            "section 4.3, figure 16",
            "early ones often do not benefit the requesting node; later ones are much more successful",
            judged.ratios,
            "documents",
            "overhead after / before",
        ),
        Claim(
            "Every connected subscriber receives every matching document, exactly once",
            "section 3",
            "each host gets the requested data",
            judged.exact,
        ),
        Claim(
            "Beyond the paper: crashes of 1 to 20 % of the nodes a minute cost less than 1 % of the deliveries",
            "beyond section 3.2",
            "no figure given",
            judged.under_churn,
            "share of nodes that crash in a minute",
            "delivery ratio",
        ),
        Claim(
            "Beyond the paper: ten thousand nodes in one tree, nothing missing",
            "beyond section 4.1",
            "scales well with a large number of participants",
            judged.at_size,
        ),
        Claim(
            "Beyond the paper: up to 10 % of all messages lost, at most 5 % of the deliveries missing",
            "beyond section 1",
            "the network is likely to be unreliable",
            judged.under_loss,
            "share of messages lost",
            "delivery ratio",
        ),
    ),
    notes="Every reading of an open passage is a named setting, chosen before any result was known; the experiment "
    "`readings` changes them one at a time. Systems are compared on the same stream of documents. "
    "docs/papers/codd.md has all of them.",
)
