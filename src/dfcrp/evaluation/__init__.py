"""How right an answer is, beside a truth: matching, counts, calibration, and what is said of it."""
