"""What each page shows: plain values that a view fills in and a template prints, with no decision left to either."""
