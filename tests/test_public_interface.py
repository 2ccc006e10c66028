"""What `earshot` exports: a promise to users."""

import earshot


def test_the_exported_names_are_these_and_all_of_them_exist() -> None:
    assert earshot.__all__ == [
        "Area",
        "Circle",
        "DataSummary",
        "Element",
        "Ellipse",
        "Event",
        "EventType",
        "Filter",
        "FilterIndex",
        "LocalPlane",
        "Node",
        "Polygon",
        "Position",
        "Proximity",
        "Rectangle",
        "Velocity",
        "Viewer",
        "__version__",
    ]
    assert all(getattr(earshot, name) is not None for name in earshot.__all__)
