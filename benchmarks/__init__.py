"""Side-by-side benchmarks; run with `./run bench`."""
