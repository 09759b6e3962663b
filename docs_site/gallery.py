"""The gallery of figures, from their registry: a picture of each, and the code that makes it.

    ./run python -m docs_site.gallery      # writes docs/images/gallery, and its part of the page

A test compares the page with the registry.
"""

from __future__ import annotations

import inspect
import io
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dfcrp.items.items import Items
from dfcrp.plots import FIGURES
from dfcrp.plots.figure import COMPARED, Figure
from dfcrp.posterior.posterior import Posterior
from dfcrp.simulate import HighlandsDesign

ROOT = Path(__file__).resolve().parents[1]
PAGE, PICTURES = ROOT / "docs" / "figures.md", ROOT / "docs" / "images" / "gallery"
BEGIN, END = "<!-- gallery: written by docs_site.gallery -->\n", "<!-- end of the gallery -->\n"
DPI, COLOURS = 110, 64
DESIGN = HighlandsDesign().scaled(0.1)
#: What a figure is drawn with besides the posterior, as it is typed; the names are those of
#: ``given``.
OPTIONS = {
    "counts_by_size": "dbscan=labels",
    "evaluation": "truth=truth",
    "neighbourhood": "item=item",
    "radius": "timed=[10, 20, 40], seconds=[20, 22, 31], chosen=20",
    "reality": "real=real",
    "size_relative": "dbscan=labels",
}


def main() -> int:
    """Draw all pictures and write the page."""
    posterior, records = example(), records_example()
    values = given(posterior)
    PICTURES.mkdir(parents=True, exist_ok=True)
    for name, figure in FIGURES.items():
        options = eval(f"dict({OPTIONS.get(name, '')})", {}, dict(values))
        table = figure.prepare(records if COMPARED in figure.needs else posterior, **options)
        (PICTURES / f"{name}.png").write_bytes(picture(figure, table))
    for spare in {path.stem for path in PICTURES.glob("*.png")} - set(FIGURES):
        (PICTURES / f"{spare}.png").unlink()
    PAGE.write_text(with_gallery(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


def example() -> Posterior:
    """Simulated circles by eleven experts, with scores, under the detection prior."""
    import dfcrp

    items = DESIGN.draw(1)
    rng = np.random.default_rng(1)
    likely = np.where(
        real_of(items), rng.beta(4.0, 2.0, len(items)), rng.beta(2.0, 4.0, len(items))
    )
    items = replace(items, score=np.round(likely, 2).astype(np.float64))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dfcrp.fit(items, prior="detection", radius=None, chains=4, scans=600, seed=1)


def records_example() -> Posterior:
    """The registers of people of the tutorial."""
    import dfcrp
    from dfcrp import examples

    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        items = dfcrp.read_items(examples.registers(Path(folder)), "records")
        return dfcrp.fit(items, chains=2, scans=300, seed=1)


def real_of(items: Items) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which items are of an object: objects are numbered before false markings."""
    assert items.truth is not None
    return items.truth < DESIGN.n_objects


def given(posterior: Posterior) -> Mapping[str, object]:
    """What OPTIONS name."""
    from dfcrp.baselines.without_model import dbscan_r14

    items, real = posterior.items, real_of(posterior.items)
    assert items.truth is not None
    _, first = np.unique(np.where(real, items.truth, -1), return_index=True)
    rows = first[1:]
    columns = {name: values[rows] for name, values in items.columns.items()}
    return {
        "labels": dbscan_r14(items, min_points=posterior.min_experts),
        "truth": Items.from_columns(columns, np.repeat("truth", len(rows))),
        "item": int(np.argmin(posterior.membership.p_member)),
        "real": real,
    }


def picture(figure: Figure[Any, Any], table: object) -> bytes:
    """The figure as a small PNG with few colours."""
    from PIL import Image

    from dfcrp.plots.style import figure_of, laid_out, styled

    drawn, out, small = figure_of(figure.draw(table)), io.BytesIO(), io.BytesIO()
    with styled(), laid_out(drawn) as box:
        drawn.savefig(out, format="png", dpi=DPI, bbox_inches=box)
    with Image.open(out) as image:
        image.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(
            small, "PNG", optimize=True
        )
    return small.getvalue()


def with_gallery(page: str) -> str:
    """The page with its gallery as the registry has it."""
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{''.join(sections())}{END}{tail}"


def sections() -> Iterator[str]:
    """A heading, what is shown, the picture, the code and the options of each figure."""
    for name, figure in FIGURES.items():
        shows = figure.shows[0].upper() + figure.shows[1:]
        options = OPTIONS.get(name, "")
        code = f"plots.plot_{name}(posterior{', ' if options else ''}{options})"
        yield f"### {name}\n\n{shows}.\n\n![{name}](images/gallery/{name}.png)\n\n"
        yield f"```python\ntable, axes = {code}\n```\n\n{about(figure)}"


def about(figure: Figure[Any, Any]) -> str:
    """What the figure needs, and its options, in a line; nothing if there is nothing to say."""
    parameters = list(inspect.signature(figure.preparing).parameters.values())[1:]
    options = [f"`{p.name}`" for p in parameters if p.name not in ("options", "kind")]
    parts = [f"Needs {' and '.join(need.what for need in figure.needs)}."] * bool(figure.needs)
    parts += [f"Options: {', '.join(options)}."] * bool(options)
    return f"{' '.join(parts)}\n\n" if parts else ""


if __name__ == "__main__":
    sys.exit(main())
