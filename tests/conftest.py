"""What holds for all tests.

A test that fails now and then on a busy machine says nothing: Hypothesis tries the same examples
each time, however long one of them takes. ``fuzz/`` is where other examples are looked for.
"""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "dfcrp", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("dfcrp")
