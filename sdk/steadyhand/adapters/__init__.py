"""One module per agent framework; each needs its framework installed, and this package needs none of them."""
