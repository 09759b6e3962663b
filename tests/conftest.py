"""Settings of the test processes."""

import os

# Tests call single kernels; the cache of these is apart from the users' own.
os.environ["DFCRP_OPEN_KERNELS"] = "1"
