"""What the theme leaves out of a page: levels of headings, code and tables for narrow screens, and
the keyboard's way to both.
"""

from __future__ import annotations

import re
from html import escape, unescape

_PRE = re.compile(r"<pre>(?:<span></span>)?(.*?)</pre>", re.DOTALL)
# A comment behind code, or on a line of its own that is so far in that it goes on with the one
# above.
_NOTE = re.compile(r'(|.*\S)((?:<span class="w">)? {2,}(?:</span>)?)((?:<span class="c1">)?# .*)')
_FAR = 12
_TAG = re.compile(r"<[^>]*>")
_PICTURE = re.compile(r'<img alt="[^"]*" src="(_images/[^"]*)" />')
_TABLE = re.compile(r"<table.*?</table>", re.DOTALL)


def finish_page(html: str) -> str:
    """Return the page as everybody can read it, on a phone and with a keyboard, too."""
    html = html.replace('role="heading"', 'role="heading" aria-level="2"')
    html = _PRE.sub(lambda match: _code(match[1]), html)
    html = _PICTURE.sub(r'<span class="picture"><a href="\1">\g<0></a></span>', html)
    return _TABLE.sub(lambda match: _table(match[0]), html).replace(
        '<div class="table-wrapper', '<div tabindex="0" class="table-wrapper'
    )


def _code(html: str) -> str:
    """Return a block of code whose lines wrap; one that is drawn with lines is scrolled."""
    if re.search(r"[\u2500-\u257f]", html):
        return f'<pre class="drawn" tabindex="0">{html}</pre>'
    return f"<pre>{''.join(map(_line, html.splitlines()))}</pre>"


def _line(html: str) -> str:
    """Return one line: where it is too long it goes on two columns further in, and in its comment
    below the comment.
    """
    match = _NOTE.fullmatch(html)
    if match and (match[1] or len(match[2]) > _FAR):
        code, gap, note = match.groups()
        html = f'{code}<span class="gap">{gap}</span><span class="note">{note}\n</span>'
        at = len(_words(code + gap))
    else:
        words = _words(html)
        html, at = f"{html}\n", len(words) - len(words.lstrip()) + 2
    return f'<span class="line" style="--at: {at}">{html}</span>'


def _table(html: str) -> str:
    """Return a table whose paths may wrap, and whose cells know their columns' names, if these are
    more than two.
    """
    html = re.sub(
        r'(?<=<span class="pre">)[^<]*', lambda match: match[0].replace("/", "/<wbr>"), html
    )
    names = [_words(name).strip() for name in re.findall(r"<th\b[^>]*>(.*?)</th>", html, re.DOTALL)]
    if len(names) < 3:
        return html

    def row(match: re.Match[str]) -> str:
        remaining = iter(["", *names[1:]])

        def cell(_: re.Match[str]) -> str:
            name = next(remaining)
            return f'<td data-column="{escape(name)}"' if name else "<td"

        return re.sub(r"<td\b", cell, match[0])

    return re.sub(r"<tr\b.*?</tr>", row, html, flags=re.DOTALL)


def _words(html: str) -> str:
    return unescape(_TAG.sub("", html))
