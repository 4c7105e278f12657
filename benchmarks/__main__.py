"""`python -m benchmarks` does what `python -m benchmarks.run` does."""

from benchmarks.run import main

main()
