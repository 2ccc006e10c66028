"""DRIP: brokers by ability, regions by delay. Start with `machine`; its parts are the election of brokers
(`election`), the nearest brokers and routes (`regions`), and a broker's work (`broker`, `subscribers`, `sharing`)."""
