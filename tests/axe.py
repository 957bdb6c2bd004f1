"""axe-core, which tests a page against WCAG 2.1, levels A and AA, in a real browser."""

import importlib.resources
from collections.abc import Sequence

from tests.browser import Browser

RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]
# all that a dark scheme can break in a page that holds in a light one
OF_COLOURS = ["color-contrast"]
SCHEMES = ("light", "dark")


def accessibility_violations(
    browser: Browser, scheme: str, excluded: Sequence[str] = ()
) -> list[str]:
    """What axe finds on the page that is open, in a light or dark scheme: the rule, and the first
    elements that break it.

    In the dark scheme its colours alone are looked at: the rest is the same page.

    excluded: selectors of what is somebody else's.
    """
    browser.ask(
        "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}]
    )
    browser.js(
        importlib.resources.files("axe_core_python")
        .joinpath("axe.min.js")
        .read_text(encoding="utf-8")
    )
    only = (
        {"type": "rule", "values": OF_COLOURS}
        if scheme == "dark"
        else {"type": "tag", "values": RULES}
    )
    broken_rules = browser.js(
        f"axe.run({{exclude: {[[css] for css in excluded]}}}, {{runOnly: {only}}}).then(r => "
        "r.violations.map(v => v.id + ': ' + v.help + ' ' + v.nodes.slice(0, 3).map(n => "
        "n.html.slice(0, 120)).join(' | ')))"
    )
    assert isinstance(broken_rules, list)
    return broken_rules
