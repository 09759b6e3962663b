"""XML of annotation tools, read element by element."""

from __future__ import annotations

from typing import Protocol
from xml.parsers import expat

from dfcrp.errors import InputError
from dfcrp.io.format import GivenFile


class ElementReader(Protocol):
    """What is told of elements as they come, with the row on which they begin."""

    def start(self, tag: str, found: dict[str, str], row: int) -> None:
        """An element begins."""

    def end(self, tag: str) -> None:
        """An element ends."""

    def text(self, text: str) -> None:
        """Text of an element, in pieces."""


def read_elements(file: GivenFile, reader: ElementReader, program: str) -> None:
    """Tell a reader all elements of a file that a program wrote."""

    def refuse_doctype(*_: object) -> None:
        raise InputError(
            f"{file.name}: the XML has a document type, which {program}'s files do not have; "
            "remove it"
        )

    parser = expat.ParserCreate()
    # A document type is the door for entities that unfold without end or fetch other files.
    parser.StartDoctypeDeclHandler = refuse_doctype
    parser.StartElementHandler = lambda tag, found: reader.start(
        tag, found, parser.CurrentLineNumber
    )
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.text
    try:
        parser.Parse(file.data, True)
    except expat.ExpatError as error:
        raise InputError(
            f"{file.name}, row {error.lineno}: not XML ({expat.errors.messages[error.code]}); "
            f"is the file whole? Export it again from {program}"
        ) from None
    except (ValueError, LookupError):  # an encoding that nobody knows
        raise InputError(
            f"{file.name}: not XML in UTF-8; export the file again from {program}"
        ) from None
