"""Compiled code: random numbers, how values cross, units and what they are made from."""

import math
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import pytest
from scipy import stats

from dfcrp.compiled import library
from dfcrp.compiled.abi import F8, I4, F8x2, Frame, description_of, frame, name_of
from dfcrp.compiled.jit import ANYTHING, INTERPRETED, by_type, implements, kernel, lean_kernel
from dfcrp.compiled.random import stream
from dfcrp.likelihoods.circle.plane import CircleHyper
from dfcrp.moves.assignment import refresh_spares

compiled_only = pytest.mark.skipif(INTERPRETED, reason="nothing is compiled")
#: A test of a distribution that is right raises an alarm this often.
FALSE_ALARMS = 1e-6


@lean_kernel
def draw(rng, which, a, b, out):
    for place in range(out.shape[0]):
        if which == 0:
            out[place] = rng.random()
        elif which == 1:
            out[place] = rng.standard_normal()
        elif which == 2:
            out[place] = rng.standard_exponential()
        elif which == 3:
            out[place] = rng.standard_gamma(a)
        else:
            out[place] = rng.beta(a, b)


LAWS = [
    (0, 0.0, 0.0, stats.uniform()),
    (1, 0.0, 0.0, stats.norm()),
    (2, 0.0, 0.0, stats.expon()),
    (3, 0.3, 0.0, stats.gamma(0.3)),
    (3, 1.0, 0.0, stats.gamma(1.0)),
    (3, 40.5, 0.0, stats.gamma(40.5)),
    (4, 0.4, 0.7, stats.beta(0.4, 0.7)),
    (4, 3.0, 0.5, stats.beta(3.0, 0.5)),
    (4, 30.0, 8.0, stats.beta(30.0, 8.0)),
]


def alarms(out, law):
    """The smallest p-value: of the whole law, and of how many numbers lie in either tail."""
    found = [stats.kstest(out, law.cdf).pvalue]
    for share in (law.cdf(out), law.sf(out)):
        far = int((share < 5e-4).sum())
        found.append(stats.binomtest(far, len(out), 5e-4).pvalue)
    return min(found)


@pytest.mark.parametrize(("which", "a", "b", "law"), LAWS)
def test_random_numbers_have_their_law(which, a, b, law):
    n = 2_000 if INTERPRETED else 400_000
    out = np.empty(n)
    draw(stream(7), which, a, b, out)
    assert alarms(out, law) > FALSE_ALARMS
    # Successive numbers are not related.
    ranks = law.cdf(out)
    assert abs(np.corrcoef(ranks[:-1], ranks[1:])[0, 1]) < 5.0 / math.sqrt(n)


@compiled_only
def test_planted_faults_are_caught():
    """A tail that is 5 % too wide; a normal that is 2 % too wide; one off by 0.01."""
    out = np.empty(400_000)
    draw(stream(7), 1, 0.0, 0.0, out)
    for wrong in (np.where(abs(out) > 2.5, out * 1.05, out), 1.02 * out, out + 0.01):
        assert alarms(wrong, stats.norm()) < FALSE_ALARMS


@compiled_only
@pytest.mark.parametrize(("which", "a", "b", "law"), LAWS)
def test_compiled_numbers_are_those_of_plain_python(which, a, b, law):
    compiled, plain = np.empty(3_000), np.empty(3_000)
    first, second = stream(11), stream(11)
    draw(first, which, a, b, compiled)
    draw.py_func(second, which, a, b, plain)
    np.testing.assert_array_equal(compiled, plain)
    np.testing.assert_array_equal(first.words, second.words)


def test_streams_of_a_generator_differ():
    rng = np.random.default_rng(3)
    assert (stream(rng).words != stream(rng).words).any()
    assert (stream(5).words == stream(5).words).all()


@frame
class Inner(NamedTuple):
    scale: F8  # (2,)
    on: bool


@frame
class Outer(NamedTuple):
    table: F8x2  # (n, 3)
    names: I4  # (n,)
    inner: Inner
    factor: float
    count: int


class Pair(NamedTuple):
    total: float
    most: int


@lean_kernel
def sums(outer, row):
    total, most = 0.0, 0
    for column in range(outer.table.shape[1]):
        total += outer.table[row, column] * outer.factor * outer.inner.scale[1]
    for name in outer.names:
        most = max(most, name)
    outer.table[row, 0] = -1.0
    return Pair(total, most + outer.count) if outer.inner.on else Pair(0.0, 0)


def outer(**changes):
    given = Outer(
        np.arange(12.0).reshape(4, 3), np.array([3, 9, 4], np.int32),
        Inner(np.array([2.0, 0.5]), True), 10.0, 7,
    )  # fmt: skip
    return given._replace(**changes)


def test_frames_cross():
    given = outer()
    assert sums(given, 2) == Pair(105.0, 16)
    assert given.table[2, 0] == -1.0  # written where it is
    assert sums(outer(inner=Inner(np.ones(2), False)), 2) == Pair(0.0, 0)


@compiled_only
def test_a_frame_made_once_serves_again():
    given = outer()
    block = Frame(given)
    assert sums(block, 1) == Pair(60.0, 16)
    given.table[1] = 1.0
    assert sums(block, 1) == Pair(15.0, 16)


@compiled_only
@pytest.mark.parametrize(
    "changes",
    [
        {"names": np.array([1, 2])},
        {"table": np.zeros((4, 3), np.float32)},
        {"table": np.zeros((3, 4)).T},
        {"names": np.zeros((2, 2), np.int32)},
    ],
)
def test_other_types_than_declared_are_refused(changes):
    with pytest.raises(TypeError, match=f"{next(iter(changes))}: an array"):
        sums(outer(**changes), 0)


@kernel
def split(values, n):
    low, high = np.zeros(n), np.empty((n, 2), np.int32)
    for i in range(n):
        low[i] = 0.5 * values[i]
        high[i, 0], high[i, 1] = i, 2 * i
    return low, high[1:, :]


def test_arrays_come_back():
    for n in (3, 5, 5):
        low, high = split(np.arange(6.0), n)
        np.testing.assert_array_equal(low, 0.5 * np.arange(n))
        np.testing.assert_array_equal(high, [[i, 2 * i] for i in range(1, n)])


@by_type
def worth(of, k): ...


@implements(worth, Inner)
@lean_kernel
def worth_of_inner(of, k):
    return of.scale[k]


@implements(worth, ANYTHING)
@lean_kernel
def worth_of_others(of, k):
    return -1.0


def test_the_usual_code_serves_who_has_none():
    assert worth(Inner(np.array([4.0, 5.0]), True), 1) == 5.0
    assert worth(outer(), 1) == -1.0


@compiled_only
def test_a_contract_that_is_not_kept_is_told():
    from dfcrp.compiled import backend

    export = library.Export("dfcrp_x", worth_of_inner, (description_of(outer().inner), "i8"), "b1")
    with pytest.raises(TypeError, match="worth_of_inner returns f8; its contract says b1"):
        backend.compile_unit(library.Unit("x", (export,)))


@compiled_only
def test_code_without_a_linker(tmp_path, monkeypatch):
    """LLVM loads what nothing has linked."""
    from dfcrp.compiled import backend

    monkeypatch.setenv("CC", "no-such-compiler")
    monkeypatch.setenv("DFCRP_CACHE_DIR", str(tmp_path))
    kinds = (description_of(np.zeros(2)), "i8")
    unit = library.door(worth_of_plain, kinds)
    backend.write_unit(unit, library.cache_directory())
    assert not list(tmp_path.rglob("*.so"))
    loaded = library.load(unit)
    monkeypatch.setattr(library, "load", lambda _: loaded)
    bound = library._Bound(worth_of_plain, kinds, unit, "dfcrp_door")
    assert bound((np.array([3.0, 4.0]), 1)) == 4.0


@compiled_only
def test_a_kernel_of_a_table_is_not_compiled_again():
    """A likelihood's own kernel is called where it is, if the types are those of its contract."""
    from dfcrp.likelihoods.circle.kernel import log_density

    hyper = ["frame", name_of(CircleHyper)]
    table, numbers = ["array", "f8", 2], ["array", "i8", 1]
    unit, export = library._compiled_already(log_density, (hyper, table, "i8", table, "i8"))
    assert unit.name.startswith("table:likelihood:")
    assert export.kernel is log_density
    for kinds in (
        (hyper, table, "f8", table, "i8"),
        (hyper, table, "i8", [*table, "A"], "i8"),
        (hyper, table, "i8", numbers, "i8"),
        (["frame", name_of(Outer)], table, "i8", table, "i8"),
    ):
        assert library._compiled_already(log_density, kinds) is None
    assert library._compiled_already(worth_of_plain, (["array", "f8", 1], "i8")) is None


@lean_kernel
def worth_of_plain(values, k):
    return values[k]


@compiled_only
def test_a_run_needs_no_numba(tmp_path):
    """Where code is compiled, as in a wheel, Numba is not even loaded."""
    program = (
        "import sys, dfcrp; dfcrp.fit(dfcrp.simulate.paper_design(1), chains=1, scans=4).summary();"
        "print('numba' in sys.modules)"
    )
    for _ in range(2):  # the first may have to compile, in processes of their own
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == "False"


@compiled_only
def test_threads_share_one_table_of_functions(monkeypatch):
    """An address that one thread was given stays good when another asks at the same time."""
    from dfcrp.likelihoods.circle.plane import CircleHyper
    from dfcrp.likelihoods.contract import LIKELIHOOD

    library.function_table(LIKELIHOOD, CircleHyper)
    monkeypatch.setattr(library, "_TABLES", {})
    slow = library.table_unit

    def late(contract, kind):
        time.sleep(0.1)
        return slow(contract, kind)

    monkeypatch.setattr(library, "table_unit", late)
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(library.function_table, LIKELIHOOD, CircleHyper) for _ in range(8)]
    assert len({one.result() for one in asked}) == 1


def test_what_a_kernel_is_handed_counts_for_its_code(monkeypatch):
    """A kernel called on its own holds code of the likelihood, which its module never imports."""
    kinds = (["frame", name_of(CircleHyper)],)
    before = library.door(refresh_spares, kinds).digest
    entries = library.entries_of("dfcrp.moves.scan").digest
    assert library.door(refresh_spares, kinds).digest == before
    parsed = library._parsed

    def changed(path):
        code, imported = parsed(path)
        return ("another" if path.endswith("circle/kernel.py") else code), imported

    monkeypatch.setattr(library, "_parsed", changed)
    assert library.door(refresh_spares, kinds).digest != before
    assert library.entries_of("dfcrp.moves.scan").digest == entries
