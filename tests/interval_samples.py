"""One small, faithful file of each format of intervals, with the intervals that are in it."""

from __future__ import annotations

import json
from typing import Any

LONG = '''File type = "ooTextFile"
Object class = "TextGrid"

xmin = 0
xmax = 9.5
tiers? <exists>
size = 3
item []:
    item [1]:
        class = "IntervalTier"
        name = "calls"
        xmin = 0
        xmax = 9.5
        intervals: size = 3
        intervals [1]:
            xmin = 0
            xmax = 1.25
            text = ""
        intervals [2]:
            xmin = 1.25
            xmax = 2.5
            text = "long ""whistle"""
        intervals [3]:
            xmin = 2.5
            xmax = 9.5
            text = "noise"
    item [2]:
        class = "TextTier"
        name = "clicks"
        xmin = 0
        xmax = 9.5
        points: size = 1
        points [1]:
            number = 3.5
            mark = "click"
    item [3]:
        class = "IntervalTier"
        name = "empty"
        xmin = 0
        xmax = 9.5
        intervals: size = 0
'''
SHORT = '''File type = "ooTextFile"
Object class = "TextGrid"

0
9.5 ! seconds
<exists>
1
"IntervalTier"
"calls"
0
9.5
3
0
1.25
""
1.25
2.5
"long ""whistle"""
2.5
9.5
"noise"
'''
BOTH = [(1.25, 2.5, 'long "whistle"'), (2.5, 9.5, "noise")]
CONLL = """# newdoc id = news
Barack\tNNP\tB-PER
Obama\tNNP\tI-PER
visited\tVBD\tO
Paris\tNNP\tB-LOC
.\t.\tO

Nobody\tNN\tO
"""
ELAN = """<?xml version="1.0" encoding="UTF-8"?>
<ANNOTATION_DOCUMENT AUTHOR="" DATE="2024-01-01" FORMAT="3.0" VERSION="3.0">
  <HEADER MEDIA_FILE="" TIME_UNITS="milliseconds"/>
  <TIME_ORDER>
    <TIME_SLOT TIME_SLOT_ID="ts1" TIME_VALUE="1250"/>
    <TIME_SLOT TIME_SLOT_ID="ts2" TIME_VALUE="2500"/>
    <TIME_SLOT TIME_SLOT_ID="ts3" TIME_VALUE="1300"/>
  </TIME_ORDER>
  <TIER ANNOTATOR="ann" LINGUISTIC_TYPE_REF="x" TIER_ID="calls">
    <ANNOTATION>
      <ALIGNABLE_ANNOTATION ANNOTATION_ID="a1" TIME_SLOT_REF1="ts1" TIME_SLOT_REF2="ts2">
        <ANNOTATION_VALUE>song &amp; trill</ANNOTATION_VALUE>
      </ALIGNABLE_ANNOTATION>
    </ANNOTATION>
    <ANNOTATION>
      <REF_ANNOTATION ANNOTATION_ID="a2" ANNOTATION_REF="a1">
        <ANNOTATION_VALUE>loud</ANNOTATION_VALUE>
      </REF_ANNOTATION>
    </ANNOTATION>
  </TIER>
  <TIER ANNOTATOR="bob" LINGUISTIC_TYPE_REF="x" TIER_ID="bob's calls">
    <ANNOTATION>
      <ALIGNABLE_ANNOTATION ANNOTATION_ID="a3" TIME_SLOT_REF1="ts3" TIME_SLOT_REF2="ts2">
        <ANNOTATION_VALUE>song</ANNOTATION_VALUE>
      </ALIGNABLE_ANNOTATION>
    </ANNOTATION>
  </TIER>
</ANNOTATION_DOCUMENT>
"""


def studio(*results: dict[str, Any], who: Any = 1, **task: Any) -> bytes:
    annotation = {"completed_by": who, "result": list(results)}
    return json.dumps([{"id": 5, "annotations": [annotation], **task}]).encode()


AUDIO = {"type": "labels", "value": {"start": 0.5, "end": 2.0, "labels": ["call"], "channel": 0}}
SAMPLES: dict[str, tuple[str, bytes, list[tuple[float, float, str]]]] = {
    "Audacity": (
        "a.txt",
        b"1.250000\t2.500000\tcall\n\\\t100.0\t900.0\n3.0\t3.0\tclick\n4.0\t9.5\ta b\n",
        [(1.25, 2.5, "call"), (4.0, 9.5, "a b")],
    ),
    "TextGrid, long": ("a.TextGrid", LONG.encode(), BOTH),
    "TextGrid, short": ("b.TextGrid", SHORT.encode(), BOTH),
    "TextGrid, UTF-16": ("c.TextGrid", LONG.replace("noise", "Geräusch").encode("utf-16"),
                         [BOTH[0], (2.5, 9.5, "Geräusch")]),
    "TextGrid, UTF-16 big": ("d.TextGrid", b"\xfe\xff" + SHORT.encode("utf-16-be"), BOTH),
    "doccano, lists": (
        "e.jsonl",
        b'{"id": 1, "text": "Ann met Bob", "label": [[0, 3, "PER"], [8, 11, "PER"]]}\n'
        b'{"id": 2, "text": "x", "label": []}\n',
        [(0, 3, "PER"), (8, 11, "PER")],
    ),
    "doccano, entities": (
        "f.jsonl",
        b'{"id": 1, "text": "Ann", "entities": [{"id": 7, "label": "PER", "start_offset": 0,'
        b' "end_offset": 3}], "relations": []}\n',
        [(0, 3, "PER")],
    ),
    "ELAN": ("l.eaf", ELAN.encode(), [(1.25, 2.5, "song & trill"), (1.3, 2.5, "song")]),
    "CoNLL": ("g.conll", CONLL.encode(), [(0, 2, "PER"), (3, 4, "LOC")]),
    "Label Studio, audio": ("h.json", studio(AUDIO, data={"audio": "/d/a.wav"}),
                            [(0.5, 2.0, "call")]),
    "Label Studio, text": (
        "i.json",
        studio(
            {"type": "labels", "value": {"start": 0, "end": 3, "text": "Ann", "labels": ["PER"]}},
            {"type": "choices", "value": {"choices": ["good"]}},
            data={"text": "Ann met Bob."},
        ),
        [(0, 3, "PER")],
    ),
    "Label Studio, HTML": (
        "j.json",
        studio({"type": "hypertextlabels", "value": {
            "start": "/div[1]/text()[1]", "end": "/div[1]/text()[1]", "startOffset": 4,
            "globalOffsets": {"start": 4, "end": 9}, "hypertextlabels": ["LOC"]}}),
        [(4, 9, "LOC")],
    ),
    "Label Studio, video": (
        "k.json",
        studio({"type": "timelinelabels", "value": {
            "ranges": [{"start": 3, "end": 8}, {"start": 10, "end": 12}],
            "timelinelabels": ["run"]}}),
        [(3, 8, "run"), (10, 12, "run")],
    ),
}  # fmt: skip
