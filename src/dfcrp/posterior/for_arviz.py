"""Draws in the form that the installed ArviZ takes: a DataTree, or before 1.0 its InferenceData."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any


def for_arviz(groups: Mapping[str, Any], *, coords: Any, dims: Any) -> Any:
    """Groups of variables, each an array with the axes ``dims``.

    ArviZ 1 (or none) takes xarray's DataTree. The versions before it, which are those that Python
    3.11 has, take an InferenceData and cannot convert a tree.
    """
    from arviz_base import from_dict

    tree = from_dict(dict(groups), coords=coords, dims=dims)
    if not _is_old():
        return tree
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # that there is a newer one
        import arviz
    return arviz.InferenceData(**{name: tree[name].to_dataset() for name in groups})


def _is_old() -> bool:
    """Whether there is an ArviZ before 1.0."""
    try:
        return version("arviz").startswith("0.")
    except PackageNotFoundError:
        return False
