"""Every likelihood, by name; one line each. One of your own is named ``module:NAME``."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING

from dfcrp.errors import SettingsError, did_you_mean

if TYPE_CHECKING:
    from dfcrp.likelihoods.base import Likelihood

#: Name and home. They are loaded when first asked for, so that listing them costs nothing.
HOMES = {
    "circles": "dfcrp.likelihoods.circle.likelihood:CIRCLES",
    "points": "dfcrp.likelihoods.normal.likelihood:POINTS",
    "boxes": "dfcrp.likelihoods.normal.likelihood:BOXES",
    "ellipses": "dfcrp.likelihoods.normal.likelihood:ELLIPSES",
    "diagonal": "dfcrp.likelihoods.normal.likelihood:DIAGONAL",
    "normal": "dfcrp.likelihoods.normal.likelihood:NORMAL",
    "intervals": "dfcrp.likelihoods.interval.likelihood:INTERVALS",
    "records": "dfcrp.likelihoods.record.likelihood:RECORDS",
}

#: Their names, for those who choose one.
KINDS = ", ".join(HOMES)


def is_own(name: str) -> bool:
    """Whether a name is that of code which is not dfcrp's.

    Such a name may come from who calls dfcrp, never from a file: it would make data run code.
    """
    return name not in HOMES and ":" in name


@lru_cache(maxsize=64)
def likelihood_named(name: str) -> Likelihood:
    """The likelihood that ``run.likelihood`` names.

    ``module:NAME`` is an object of your own in a module that can be imported.
    """
    home = HOMES.get(name, name)
    module, colon, attribute = home.partition(":")
    if not (module and colon and attribute):
        raise SettingsError(
            f"run.likelihood is {name!r}{did_you_mean(name, HOMES) or ';'} it must be one of "
            f"{', '.join(HOMES)}, or module:NAME of one of your own"
        )
    try:
        found = getattr(import_module(module), attribute)
    except Exception as error:  # the module is somebody's own, and may raise anything
        said = str(error) if isinstance(error, ImportError) else f"{type(error).__name__}: {error}"
        raise SettingsError(
            f"run.likelihood is {name!r}, which cannot be loaded ({said}); the module must be "
            "importable where the run is read, as it was where it began"
        ) from error
    from dfcrp.likelihoods.base import Likelihood

    if not isinstance(found, Likelihood):
        raise SettingsError(f"run.likelihood is {name!r}, which is not a dfcrp Likelihood")
    return found
