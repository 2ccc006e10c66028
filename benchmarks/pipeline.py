"""How fast the pipeline is on Spark local[2], each stage beside one plain process that gives the same rows.

    python benchmarks/pipeline.py [--quick] [contacts] [sweep] [oracle] [ceiling] [scale]
    python benchmarks/pipeline.py scale --millions 10 --stages contacts oracle     some of `scale` alone

Session start is not counted; each stage runs once beforehand, so that Spark's workers are there.
"""

from __future__ import annotations

import argparse
from functools import partial

import pipeline_ceiling
import pipeline_contacts
import pipeline_oracle
import pipeline_scale
import pipeline_sweep

from earshot.pipeline.session import spark_session

PARTS = {
    "contacts": pipeline_contacts.measure,
    "ceiling": pipeline_ceiling.measure,
    "sweep": pipeline_sweep.measure,
    "oracle": pipeline_oracle.measure,
    "scale": pipeline_scale.measure,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="all where none is named")
    parser.add_argument("--quick", action="store_true", help="smaller sizes")
    parser.add_argument("--millions", type=float, nargs="+", help="scale: how many million rows (default: 10 and 100)")
    parser.add_argument("--stages", nargs="+", choices=pipeline_scale.STAGES, help="scale: which (default: all)")
    asked = parser.parse_args()
    parts = PARTS | {"scale": partial(pipeline_scale.measure, millions=asked.millions, only=asked.stages)}
    spark = spark_session("local[2]")
    for part in asked.parts or parts:
        parts[part](spark, asked.quick)


if __name__ == "__main__":
    main()
