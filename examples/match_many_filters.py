"""Match a stream of events against thousands of filters, XPath and `where` together."""

from random import Random

from earshot import Event, Filter, FilterIndex

random = Random(1)
index = FilterIndex()
for number in range(5_000):
    low = random.randrange(100)
    index.add(f"range-{number}", Filter.where(f"price in {low}..{low + 2}", type="CD"))
index.add("jazz", Filter.xpath('/CD[category="jazz"]'))
index.add("anything", Filter.where("true"))

matched = 0
for _ in range(1_000):
    event = Event(type="CD", content={"category": random.choice(["jazz", "pop"]), "price": random.randrange(100)})
    keys = index.match(event)
    assert "anything" in keys
    assert ("jazz" in keys) == (event.fields["category"] == ("jazz",))
    matched += len(keys)
print(f"{matched / 1_000:.1f} of {len(index):,} filters matched an event on average")
