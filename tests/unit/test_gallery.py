"""The gallery of the documentation shows what the registry of figures holds."""

from PIL import Image

from dfcrp.plots import FIGURES
from docs_site.gallery import OPTIONS, PAGE, PICTURES, with_gallery


def test_the_page_is_what_the_registry_says():
    """`./run python -m docs_site.gallery` renews it."""
    page = PAGE.read_text(encoding="utf-8")
    assert with_gallery(page) == page
    assert all(f"### {name}\n" in page for name in FIGURES)


def test_every_figure_has_its_picture():
    assert {path.stem for path in PICTURES.glob("*.png")} == set(FIGURES)
    for path in PICTURES.glob("*.png"):
        with Image.open(path) as image:
            assert min(image.size) > 150
    assert set(OPTIONS) <= set(FIGURES)
