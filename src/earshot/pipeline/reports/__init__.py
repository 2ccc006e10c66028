"""Reports and replays of what lies in a lake. Start with `report`; `page` is its HTML, `charts` its drawings."""
