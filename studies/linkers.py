"""Other programs that link records, set up as their own documentation of such data advises.

Each takes two lists with the same columns, as pandas frames with unique indices, and returns the
pairs of indices that it takes for one person.
"""

from __future__ import annotations

import importlib.util
import logging
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas

Pairs = set[tuple[str, str]]


@dataclass(frozen=True)
class Plan:
    """What an expert user would say of a data set."""

    #: Sets of fields that bring two records together as candidates if they agree.
    blocks: tuple[tuple[str, ...], ...]
    #: Splink: fields that are sure to be of one person if they agree, and blocks of its training.
    sure: tuple[tuple[str, ...], ...]
    training: tuple[tuple[str, ...], ...]
    #: Names; other text; fields that are right or wrong.
    names: tuple[str, ...]
    texts: tuple[str, ...]
    exact: tuple[str, ...]
    #: Of Splink's comparisons, those of codes and dates, which are exact ones for recordlinkage.
    codes: tuple[str, ...] = ()
    dates: tuple[str, ...] = ()


FEBRL = Plan(
    blocks=(("given_name",), ("surname",), ("postcode",), ("date_of_birth",), ("soc_sec_id",)),
    sure=(("soc_sec_id",), ("given_name", "surname", "date_of_birth")),
    training=(("date_of_birth",), ("postcode",)),
    names=("given_name", "surname"),
    texts=("address_1", "suburb"),
    exact=("street_number",),
    codes=("soc_sec_id", "postcode"),
    dates=("date_of_birth",),
)
#: German persons: first and last names, and the year, month and day of birth.
RLDATA = Plan(
    blocks=(
        *(("fname_c1",), ("lname_c1",), ("birth_year", "birth_month")),
        *(("birth_year", "birth_day"), ("birth_month", "birth_day")),
    ),
    sure=(
        ("fname_c1", "lname_c1", "birth_year"),
        ("lname_c1", "birth_year", "birth_month", "birth_day"),
    ),
    training=(("birth_year", "birth_month"), ("lname_c1",)),
    names=("fname_c1", "lname_c1"),
    texts=(),
    exact=("birth_year", "birth_month", "birth_day"),
)


@dataclass(frozen=True)
class Linker:
    """A method, the package it comes from, and its answer."""

    name: str
    package: str
    link: Callable[[pandas.DataFrame, pandas.DataFrame, Plan], Pairs]

    @property
    def installed(self) -> bool:
        """Whether it can be run here."""
        return importlib.util.find_spec(self.package) is not None


def _comparisons(plan: Plan) -> list[Any]:
    """As Splink's documentation has them for each kind of field."""
    import splink.comparison_library as compare

    frequent = {"term_frequency_adjustments": True}
    found = [compare.NameComparison(name).configure(**frequent) for name in plan.names]
    for name in plan.dates:
        date = compare.DateOfBirthComparison(name, input_is_string=True, datetime_format="%Y%m%d")
        found.append(date)
    found += [compare.DamerauLevenshteinAtThresholds(name, [1, 2]) for name in plan.codes]
    found += [compare.ExactMatch(name).configure(**frequent) for name in plan.exact]
    return found + [compare.JaroWinklerAtThresholds(name, [0.9, 0.7]) for name in plan.texts]


def _splink(first: pandas.DataFrame, second: pandas.DataFrame, plan: Plan) -> Pairs:
    """Fellegi and Sunter's model with term frequencies, trained by EM, at probability one half."""
    from splink import DuckDBAPI, SettingsCreator, block_on
    from splink import Linker as Splink

    logging.getLogger("splink").setLevel(logging.ERROR)
    settings = SettingsCreator(
        unique_id_column_name="rec_id",
        link_type="link_only",
        blocking_rules_to_generate_predictions=[block_on(*names) for names in plan.blocks],
        comparisons=_comparisons(plan),
    )
    database = DuckDBAPI()
    tables = [
        database.register(frame.rename_axis("rec_id").reset_index(), dataset_display_name=name)
        for name, frame in (("first", first), ("second", second))
    ]
    linker = Splink(tables, settings, log_level=logging.ERROR)
    training = linker.training
    training.estimate_probability_two_random_records_match(
        [block_on(*names) for names in plan.sure], recall=0.9
    )
    training.estimate_u_using_random_sampling(max_pairs=1e6, seed=1)
    for names in plan.training:
        training.estimate_parameters_using_expectation_maximisation(
            block_on(*names), record_sample_proportion=1.0
        )
    found = linker.inference.predict(threshold_match_probability=0.5).as_pandas_dataframe()
    return set(zip(found["rec_id_l"], found["rec_id_r"], strict=True))


def _comparison_vectors(
    first: pandas.DataFrame, second: pandas.DataFrame, plan: Plan
) -> pandas.DataFrame:
    """Agreement of each candidate pair, field by field: 0 or 1."""
    import recordlinkage

    index = recordlinkage.Index()
    for names in plan.blocks:
        index.block(list(names))
    compare = recordlinkage.Compare()
    for name in plan.names:
        compare.string(name, name, method="jarowinkler", threshold=0.85, label=name)
    for name in plan.texts:
        compare.string(name, name, method="levenshtein", threshold=0.85, label=name)
    for name in (*plan.dates, *plan.codes, *plan.exact):
        compare.exact(name, name, label=name)
    return compare.compute(index.index(first, second), first, second)


def _ecm(first: pandas.DataFrame, second: pandas.DataFrame, plan: Plan) -> Pairs:
    from recordlinkage import ECMClassifier

    return set(ECMClassifier().fit_predict(_comparison_vectors(first, second, plan)))


def _k_means(first: pandas.DataFrame, second: pandas.DataFrame, plan: Plan) -> Pairs:
    from recordlinkage import KMeansClassifier

    return set(KMeansClassifier().fit_predict(_comparison_vectors(first, second, plan)))


LINKERS = (
    Linker("Splink", "splink", _splink),
    Linker("recordlinkage, ECM", "recordlinkage", _ecm),
    Linker("recordlinkage, k-means", "recordlinkage", _k_means),
)


def link_quietly(
    linker: Linker, first: pandas.DataFrame, second: pandas.DataFrame, plan: Plan
) -> Pairs:
    """The linker's answer without its remarks."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return linker.link(first, second, plan)
