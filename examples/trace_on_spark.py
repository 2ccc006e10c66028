"""From a mobility trace to contacts and expected receivers, cell by cell as in a notebook.

Spark runs on this machine, started by Earshot; nothing else needs to be installed.
"""

import csv
import json

from earshot.pipeline import contacts_within, expected_receivers, read_trace, spark_session

# %% A small trace: two vehicles that meet, and one that stays far away.
with open("street.csv", "w", newline="") as file:
    rows = csv.writer(file)
    rows.writerow(["node", "time", "x_m", "y_m"])
    for second in range(11):
        rows.writerow(["ann", second, 10 * second, 0])
        rows.writerow(["bob", second, 100 - 10 * second, 0])
        rows.writerow(["eve", second, 5_000, 0])

# %% The trace as a DataFrame. Every known format is recognised: SUMO, ns-2, BonnMotion, The ONE, GPX, CSV.
spark = spark_session()
positions = read_trace(spark, "street.csv").cache()
positions.show(4)

# %% Who was within 30 m of whom, and when?
contacts = positions.transform(contacts_within(range_m=30)).collect()
print(contacts)
assert [(row.a, row.b, row.start, row.end) for row in contacts] == [("ann", "bob", 4.0, 6.0)]

# %% Ann publishes at 5 s. Who should receive it, by type, content and place?
events = spark.createDataFrame(
    [("w", "e1", "Siren", "ann", 5.0, 50.0, 0.0, 10.0, 0.0, None, None, 0, "json", json.dumps({"speed": 18}))],
    "workload string, event string, type string, source string, time double, x_m double, y_m double, "
    "x_m_s double, y_m_s double, area string, lifespan_s double, priority int, format string, content string",
)
subscriptions = spark.createDataFrame(
    [
        ("w", "near", "bob", "Siren: speed > 10 and within 200 m", None, 0.0, None),
        ("w", "near", "eve", "Siren: speed > 10 and within 200 m", None, 0.0, None),
    ],
    "workload string, subscription string, node string, filter string, region string, start double, end double",
)
places = positions.selectExpr("'w' as trace", "node", "time", "x_m", "y_m")
receivers = events.transform(expected_receivers(subscriptions, places)).collect()
print(receivers)
assert [(row.event, row.node) for row in receivers] == [("e1", "bob")]
