"""Other programs that link records, set up as their own documentation of these data advises.

Each takes two lists with the same columns, as pandas frames with unique indices, and returns the
pairs of indices that it takes for one person.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas

Pairs = set[tuple[str, str]]
#: Fields that bring two records together as candidates if they agree.
BLOCKS = ("given_name", "surname", "postcode", "date_of_birth", "soc_sec_id")


@dataclass(frozen=True)
class Linker:
    """A method, the package it comes from, and its answer."""

    name: str
    package: str
    link: Callable[[pandas.DataFrame, pandas.DataFrame], Pairs]


def _splink(first: pandas.DataFrame, second: pandas.DataFrame) -> Pairs:
    """Fellegi and Sunter's model with term frequencies, trained by EM, at probability one half."""
    import splink.comparison_library as compare
    from splink import DuckDBAPI, SettingsCreator, block_on
    from splink import Linker as Splink

    logging.getLogger("splink").setLevel(logging.ERROR)
    settings = SettingsCreator(
        unique_id_column_name="rec_id",
        link_type="link_only",
        blocking_rules_to_generate_predictions=[block_on(name) for name in BLOCKS],
        comparisons=[
            compare.NameComparison("given_name").configure(term_frequency_adjustments=True),
            compare.NameComparison("surname").configure(term_frequency_adjustments=True),
            compare.DateOfBirthComparison(
                "date_of_birth", input_is_string=True, datetime_format="%Y%m%d"
            ),
            compare.DamerauLevenshteinAtThresholds("soc_sec_id", [1, 2]),
            compare.ExactMatch("street_number").configure(term_frequency_adjustments=True),
            compare.DamerauLevenshteinAtThresholds("postcode", [1, 2]),
            compare.JaroWinklerAtThresholds("address_1", [0.9, 0.7]),
            compare.JaroWinklerAtThresholds("suburb", [0.9, 0.7]),
        ],
    )
    database = DuckDBAPI()
    tables = [
        database.register(frame.reset_index(), dataset_display_name=name)
        for name, frame in (("first", first), ("second", second))
    ]
    linker = Splink(tables, settings, log_level=logging.ERROR)
    training = linker.training
    training.estimate_probability_two_random_records_match(
        [block_on("soc_sec_id"), block_on("given_name", "surname", "date_of_birth")], recall=0.9
    )
    training.estimate_u_using_random_sampling(max_pairs=1e6, seed=1)
    for name in ("date_of_birth", "postcode"):
        training.estimate_parameters_using_expectation_maximisation(
            block_on(name), record_sample_proportion=1.0
        )
    found = linker.inference.predict(threshold_match_probability=0.5).as_pandas_dataframe()
    return set(zip(found["rec_id_l"], found["rec_id_r"], strict=True))


def _comparison_vectors(first: pandas.DataFrame, second: pandas.DataFrame) -> pandas.DataFrame:
    """Agreement of each candidate pair, field by field: 0 or 1."""
    import recordlinkage

    index = recordlinkage.Index()
    for name in BLOCKS:
        index.block(name)
    compare = recordlinkage.Compare()
    for name in ("given_name", "surname"):
        compare.string(name, name, method="jarowinkler", threshold=0.85, label=name)
    for name in ("address_1", "suburb"):
        compare.string(name, name, method="levenshtein", threshold=0.85, label=name)
    for name in ("date_of_birth", "soc_sec_id", "postcode", "state", "street_number"):
        compare.exact(name, name, label=name)
    return compare.compute(index.index(first, second), first, second)


def _ecm(first: pandas.DataFrame, second: pandas.DataFrame) -> Pairs:
    from recordlinkage import ECMClassifier

    return set(ECMClassifier().fit_predict(_comparison_vectors(first, second)))


def _k_means(first: pandas.DataFrame, second: pandas.DataFrame) -> Pairs:
    from recordlinkage import KMeansClassifier

    return set(KMeansClassifier().fit_predict(_comparison_vectors(first, second)))


LINKERS = (
    Linker("Splink", "splink", _splink),
    Linker("recordlinkage, ECM", "recordlinkage", _ecm),
    Linker("recordlinkage, k-means", "recordlinkage", _k_means),
)


def link_quietly(linker: Linker, first: pandas.DataFrame, second: pandas.DataFrame) -> Pairs:
    """The linker's answer without its remarks."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return linker.link(first, second)
