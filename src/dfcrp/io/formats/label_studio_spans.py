"""Label Studio's JSON export of audio, text and time series: intervals of time or of text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dfcrp.io.format import Format, GivenFile
from dfcrp.io.formats.label_studio import UNKNOWN, annotator, looks_like_label_studio
from dfcrp.io.spans import Spans, SpanToWrite, only_intervals, spans_of_both
from dfcrp.io.tables import RawTable, ReadOptions, ReadTable
from dfcrp.io.text import as_list, as_object, load_json, text_or_none
from dfcrp.values import Json

#: Types of results that are intervals.
TYPES = ("labels", "hypertextlabels", "paragraphlabels", "timeserieslabels", "timelinelabels")
_TYPE = re.compile(rb'"type"\s*:\s*"(?:' + "|".join(TYPES).encode() + rb')"')


def looks_like_spans(file: GivenFile) -> bool:
    """An export with a result that is an interval."""
    return looks_like_label_studio(file) and _TYPE.search(file.data) is not None


def read_label_studio_spans(file: GivenFile, options: ReadOptions) -> RawTable:
    """Read the regions of every annotator; the last annotation of a task counts.

    Rows in messages are tasks, counted from 1.
    """
    spans = Spans(file.name, "task", options)
    for number, raw in enumerate(as_list(load_json(file.name, file.data), file.name), 1):
        where = f"{file.name}, task {number}"
        task = as_object(raw, where)
        if task.get("predictions"):
            spans.leave(number, "list of predictions")
        last: dict[str, Json] = {}
        for entry in as_list(task.get("annotations") or [], where):
            annotation = as_object(entry, f"{where}, annotations")
            if annotation.get("was_cancelled"):
                continue
            expert = annotator(annotation)
            earlier = last.get(expert, {})
            if earlier:
                spans.leave(number, "annotation repeated by the same annotator")
            if str(earlier.get("updated_at") or "") <= str(annotation.get("updated_at") or ""):
                last[expert] = annotation
        document = _document(task) or str(number)
        for expert, annotation in last.items():
            spans.look(document, expert)
            if expert == UNKNOWN:
                spans.say(f"annotations of nobody are a list of {UNKNOWN!r}")
            for found in as_list(annotation.get("result") or [], where):
                result = as_object(found, where)
                for start, end, label in _regions(result, where):
                    said = {"category": label, "score": result.get("score")}
                    spans.add(number, start, end, image=document, expert=expert, **said)
    return spans.table()


def _regions(result: Mapping[str, object], where: str) -> Iterator[tuple[Any, Any, str | None]]:
    """Starts, ends and labels of one result."""
    kind = str(result.get("type") or "")
    if kind not in TYPES:
        return
    value = as_object(result.get("value"), f"{where}, value")
    labels = value.get(kind)
    label = text_or_none(labels[0]) if isinstance(labels, list) and labels else None
    ranges = value.get("ranges") or [value.get("globalOffsets") or value]
    for one in as_list(ranges, where):
        ends = as_object(one, f"{where}, value")
        yield ends.get("start"), ends.get("end"), label


def _document(task: Mapping[str, object]) -> str | None:
    """The file of a task; of a text, which has none, the task's number."""
    data = task.get("data")
    names = data.values() if isinstance(data, dict) else ()
    files = (text for value in names if (text := text_or_none(value)) and _is_file(text))
    return next(files, None) or text_or_none(task.get("id"))


def _is_file(text: str) -> bool:
    """Whether a text is the place of a file: one word with an ending."""
    return re.fullmatch(r"\S+\.\w{1,5}(?:[?#]\S*)?", text) is not None and len(text) <= 200


def write_label_studio_spans(table: ReadTable, path: Path) -> dict[Path, bytes]:
    """Write tasks: lists as annotations by their experts, a catalogue as predictions."""
    only_intervals(table, path)
    tasks: list[Json] = []
    for number, (image, lists) in enumerate(spans_of_both(table).items(), 1):
        task: Json = {"id": number, "data": {"audio": image or f"{number}.wav"}}
        for expert, spans in lists.items():
            results = [_result(span, f"r{at}") for at, span in enumerate(spans, 1)]
            if expert:
                told = {"completed_by": {"email": expert}, "result": results}
                task.setdefault("annotations", []).append(told)
            else:
                task["predictions"] = [{"model_version": "dfcrp", "result": results}]
        tasks.append(task)
    return {path: (json.dumps(tasks, ensure_ascii=False, indent=1) + "\n").encode()}


def _result(span: SpanToWrite, name: str) -> Json:
    value = {"start": span.start, "end": span.end, "labels": [span.category]}
    score = {} if span.score is None else {"score": span.score}
    place = {"from_name": "label", "to_name": "audio", "type": "labels"}
    return {"id": name, **place, "value": value, **score}


FORMAT = Format(
    "Label Studio spans",
    looks_like_spans,
    read_label_studio_spans,
    kinds=("intervals",),
    writers=((".label-studio.json", write_label_studio_spans),),
)
