"""From rows to what a page shows: one module per part, plain values out, no question asked twice."""
