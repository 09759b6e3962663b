"""The rules of axe-core: no violation on the report and its explorer, in light and in dark."""

import pytest

from browser.conftest import violations

#: What is closed at first: an object, and all that folds.
OPENED = """() => {
  explorer.state.set({ selected: explorer.data.undecided[0] });
  document.querySelectorAll("details").forEach((box) => (box.open = true));
  return new Promise((then) => requestAnimationFrame(() => requestAnimationFrame(then)));
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("before", [None, OPENED], ids=["as it opens", "with everything open"])
def test_the_report(browser, run, scheme, before):
    ready = "#explorer-root[data-ready=yes]"
    assert violations(browser, run.address, scheme, ready, before) == []


def test_a_violation_is_found(browser, run):
    unnamed = """() => {
      const button = document.getElementById("explorer-in");
      button.replaceChildren();
      for (const name of ["aria-label", "title"]) button.removeAttribute(name);
    }"""
    found = violations(browser, run.address, "light", "#explorer-root[data-ready=yes]", unnamed)
    assert [line.split(":")[0] for line in found] == ["button-name"]
