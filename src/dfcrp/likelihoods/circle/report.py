"""What the report says of circles: their diameters, and how far those of one object scatter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dfcrp.likelihoods.report import counted_items, estimates, learned_section
from dfcrp.likelihoods.tail_summary import CARELESS
from dfcrp.markup import Section, significant

if TYPE_CHECKING:
    from dfcrp.items.items import Items

#: Rows of the table of tolerances.
ROWS = {
    "position": "x and y",
    "position_growth": "x and y: growth of the variance",
    "diameter_percent": "diameter, %",
    "diameter_growth": "diameter: growth of the variance",
    **{name: f"careless markings, {words}" for name, words in CARELESS.items()},
}


def data_words(items: Items) -> list[str]:
    """The range of diameters, and what x and y are."""
    site = items.site
    smallest, largest = float(items.diameter.min()), float(items.diameter.max())
    unit = {"px": "the units of the data", "deg": "km"}.get(site.units, site.units)
    words = [
        f"{counted_items(items, 'marking')}, with diameters from {significant(smallest)} to "
        f"{significant(largest)}, in {unit}."
    ]
    if site.on_sphere:
        words.append(
            "x and y are longitude and latitude in degrees; distances are those on a sphere with a "
            f"radius of {site.body_radius_km:g} km."
        )
    return words


def law_words(posterior: Any) -> list[str]:
    """The paper's law, or learned."""
    if posterior.config.likelihood.tolerances == "learned":
        return [
            "How far apart markings of one object lie was learned from the data, relative to the "
            "median diameter, so the unit does not matter."
        ]
    site = posterior.items.site
    words = "How far apart markings of one object may lie followed the paper's law"
    if site.on_sphere:
        words += f", which is in pixels; one pixel was taken for {site.metres_per_pixel:g} m"
    return [f"{words}."]


def scatter(contents: Any) -> Section | None:
    """What was learned of the scatter of markings about their object."""
    posterior = contents.posterior
    found = posterior.tolerances
    if found is None:
        return None
    return learned_section(
        "How far do markings scatter?",
        posterior.likelihood.learned_words(found),
        estimates(found, ROWS),
        "Standard deviation of the markings of one object, at the median diameter. A growth of 2 "
        "means that it is proportional to the diameter, 0 that it is the same for all diameters.",
    )
