"""The statistics, readable: from settings and markings to the numbers the kernels take."""
