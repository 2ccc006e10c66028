"""The watch: live nodes' records, judged as they come. Start with `stream`."""
