"""Compile the scan with the detection prior, once for all test processes.

``./run test`` starts this beside ``dfcrp.sampling.warm``, which leaves a core idle for as long as
this takes; without it the test processes would have to do it.
"""

from __future__ import annotations

import numpy as np

import dfcrp

if __name__ == "__main__":
    circles = dfcrp.simulate.paper_design(1).take(np.arange(30))
    dfcrp.fit(circles, prior="detection", chains=1, scans=4, burn_in=2)
