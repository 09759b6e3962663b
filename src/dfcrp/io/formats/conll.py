"""Tags of tokens, as in CoNLL: a token in each line, and in its last column BIO, IOB or BIOES.

A span goes from its first token to behind its last, counted from 0 in its document. Sentences end
at empty lines, and so does a span; documents begin with ``-DOCSTART-``, ``# newdoc id = NAME`` or
``# id NAME``. A tag that goes on where nothing began begins a span, as in IOB. The expert is the
file.
"""

from __future__ import annotations

import re
from pathlib import Path

from dfcrp.errors import InputError
from dfcrp.io.format import Format, GivenFile
from dfcrp.io.spans import Spans, in_whole_numbers, spans_by
from dfcrp.io.tables import RawTable, ReadOptions, ReadTable
from dfcrp.io.text import lines_of
from dfcrp.items.checks import quoted

ENDINGS = (".conll", ".bio", ".iob", ".iob2", ".bioes")
OUTSIDE = "O"
#: A letter for where in a span the token is, and the type of the span.
_TAG = re.compile(r"([BIESULM])(?:[-_](.+))?")
_DOCUMENT = re.compile(r"#\s*(?:newdoc\s+id\s*=|id\b\s*=?)\s*(\S+)")
BEGINS, ENDS = "BSU", "ESUL"
DOCSTART = "-DOCSTART-"


def looks_like_conll(file: GivenFile) -> bool:
    """By the ending."""
    return file.path.suffix.lower() in ENDINGS


class _TagReader:
    """Follows the tokens of one file."""

    def __init__(self, spans: Spans) -> None:
        self.spans = spans
        self.document = spans.recording
        self.documents = self.tokens = 0
        #: Row, first token and type of the span that is going on.
        self.open: tuple[int, int, str] | None = None

    def begin_document(self, name: str | None) -> None:
        """Count tokens from 0 again."""
        self.close()
        self.documents += 1
        self.document, self.tokens = name or str(self.documents), 0

    def close(self) -> None:
        """The span that is going on ends before the next token."""
        if self.open is not None:
            row, first, kind = self.open
            self.spans.add(row, first, self.tokens, image=self.document, category=kind)
            self.open = None

    def take(self, row: int, tag: str) -> None:
        """The next token."""
        self.spans.look(self.document)
        where, kind = (tag[0], tag[2:].strip() or "span") if tag != OUTSIDE else (OUTSIDE, "")
        if self.open is not None and (where in BEGINS or where == OUTSIDE or kind != self.open[2]):
            self.close()
        if where != OUTSIDE and self.open is None:
            self.open = row, self.tokens, kind
        self.tokens += 1
        if where in ENDS:
            self.close()


def read_conll(file: GivenFile, options: ReadOptions) -> RawTable:
    """Read spans of tokens."""
    reader = _TagReader(Spans(file.name, "row", options))
    for number, line in enumerate(lines_of(file.name, file.data), 1):
        cells = line.split("\t") if "\t" in line else line.split()
        cells[-1:] = cells[-1].split()[:1] if cells else []
        named = _DOCUMENT.match(line)
        if not cells:
            reader.close()
        elif named is not None or cells[0] == DOCSTART:
            reader.begin_document(named and named[1])
        elif len(cells) > 1:
            tag = cells[-1]
            if tag != OUTSIDE and _TAG.fullmatch(tag) is None:
                raise InputError(
                    f"{file.name}, row {number}: {quoted(tag)} is not a tag; the last column must "
                    "be O, or B-, I-, E- or S- and the type of the span"
                )
            reader.take(number, tag)
        elif not line.startswith("#"):
            raise InputError(
                f"{file.name}, row {number}: a token without a tag; write O where there is no span"
            )
    reader.close()
    return reader.spans.table()


def write_conll(table: ReadTable, path: Path) -> dict[Path, bytes]:
    """Write one list as BIO; tokens are not known, so they are numbered."""
    lines = []
    for name, spans in spans_by(table, "image", path):
        if name:
            lines += [f"# newdoc id = {'_'.join(name.split())}"]
        ends = in_whole_numbers(spans, path, "token")
        tags = [OUTSIDE] * max(end for _, end in ends)
        for (start, end), span in zip(ends, spans, strict=True):
            if any(tag != OUTSIDE for tag in tags[start:end]):
                raise InputError(
                    f"{path}: a token has one tag, and intervals overlap at token {start}; "
                    "write .jsonl, or choose a list or a category with --expert or --label"
                )
            kind = "_".join(span.category.split())
            tags[start:end] = [f"B-{kind}", *[f"I-{kind}"] * (end - start - 1)]
        lines += [f"t{at}\t{tag}" for at, tag in enumerate(tags)] + [""]
    return {path: ("\n".join(lines) + "\n").encode()}


FORMAT = Format(
    "CoNLL",
    looks_like_conll,
    read_conll,
    kinds=("intervals",),
    writers=((".conll", write_conll), (".bio", write_conll)),
)
