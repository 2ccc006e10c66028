"""CoDD: dissemination trees of nodes with similar queries. Start with `machine`, which follows the paper's figures."""
