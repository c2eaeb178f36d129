"""LaTeX taken apart, as a reader sees it."""

from __future__ import annotations

import re

__all__ = ["Parts", "is_name", "number", "read"]

BACK = {
    r"\textbackslash{}": "\\", r"\textbraceleft{}": "{", r"\textbraceright{}": "}", r"\$": "$", r"\&": "&", r"\%": "%",
    r"\#": "#", r"\_": "_", r"\textasciitilde{}": "~", r"\textasciicircum{}": "^", r"\textless{}": "<",
    r"\textgreater{}": ">", r"\textbar{}": "|", r"\textquotedbl{}": '"', r"\textasciigrave{}": "`",
    "{[}": "[", "{]}": "]", "{*}": "*", "{}": "", r"\allowbreak{}": "", "---": "—", "--": "–", "$-$": "-",
    r"\ldots{}": "…",
}  # fmt: skip
PIECE = re.compile("|".join(re.escape(code) for code in sorted(BACK, key=len, reverse=True)))


def read(code: str) -> str:
    """Return the visible form of escaped text."""
    return PIECE.sub(lambda found: BACK[found[0]], code)


def number(code: str) -> str:
    """A cell of a number as a reader sees it, marks behind it."""
    code = re.sub(r"\\cellcolor\[gray\]\{[0-9.]+\}", "", code)
    code = re.sub(r"\\makebox\[[0-9.]+em\]\[l\]\{(.*)\}$", r"\1", code)
    code = code.replace(r"$^{", "").replace(r"\times", "×").replace(r"\ddagger", "‡").replace(r"\dagger", "†")
    code = re.sub(r"\^\{(.*?)\}", r"^\1", code).replace("{[}", "[").replace("{]}", "]")
    return code.replace("--", "–").replace("$", "").replace("}", "")


def is_name(shown: str, name: str) -> bool:
    """Whether a name is shown, whole or with its two ends."""
    first, cut, last = shown.partition("…")
    return shown == name if not cut else len(shown) < len(name) and name.startswith(first) and name.endswith(last)


class Parts:
    """The tables of a file taken apart; braces and environments must be balanced, and all lines be of one width."""

    def __init__(self, text: str) -> None:
        code = "\n".join(line for line in text.splitlines() if not line.startswith("%"))
        bare = re.sub(r"\\[\\{}]", "", code)
        depth = 0
        for character in bare:
            depth += (character == "{") - (character == "}")
            assert depth >= 0
        assert depth == 0
        assert bare.count("$") - bare.count(r"\$") == 2 * ((bare.count("$") - bare.count(r"\$")) // 2)
        open_: list[str] = []
        for kind, name in re.findall(r"\\(begin|end)\{([a-z*]+)\}", code):
            if kind == "begin":
                open_.append(name)
            else:
                assert open_.pop() == name
        assert open_ == []
        self.environments = re.findall(r"\\begin\{(table\*?|tabular)\}", code)
        self.labels = re.findall(r"\\label\{(.*?)\}", code)
        self.tables = [
            self.rows(body, spec)
            for spec, body in re.findall(r"\\begin\{tabular\}\{([^\n]*)\}\n(.*?)\\end\{tabular\}", code, re.DOTALL)
        ]

    @staticmethod
    def rows(body: str, spec: str) -> list[list[str]]:
        bare = re.sub(r"@\{\}|>\{.*?\}(?=[pb]\{)", "", spec)
        width = len(re.sub(r"p\{.*?\}", "p", bare))
        rows = []
        for line in body.splitlines():
            if not line.endswith((r" \\", r" \\*")) or line.startswith(r"\caption"):
                continue
            cells = re.split(r"(?<!\\) & ", re.sub(r" \\\\\*?$", "", line))
            spans = [re.match(r"\\multicolumn\{([0-9]+)\}", cell) for cell in cells]
            assert sum(int(span[1]) if span else 1 for span in spans) == width
            rows.append(cells)
        return rows
