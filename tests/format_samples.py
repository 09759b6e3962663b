"""One small, faithful file of each format, with the circles that are in it."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import shapefile

from dfcrp.io.shapes import ring, ring_on_sphere

ROUND = ring(60.0, 40.0, 10.0, 24)
SQUARE = [(0.0, 0.0), (8.0, 0.0), (8.0, 8.0), (0.0, 8.0)]


def zooniverse(rows: list[dict[str, Any]]) -> bytes:
    """A classification export with the columns that matter here."""
    import csv

    titles = (
        "classification_id,user_name,user_id,user_ip,created_at,metadata,annotations,"
        "subject_data,subject_ids"
    )
    out = io.StringIO()
    writer = csv.DictWriter(out, titles.split(","), lineterminator="\n")
    writer.writeheader()
    for number, row in enumerate(rows, 1):
        sizes = [{"naturalWidth": 100, "naturalHeight": 80}, None]
        filled = {
            "classification_id": number,
            "user_name": "ann",
            "user_ip": "beef",
            "created_at": f"2020-01-01 00:00:{number:02d} UTC",
            "metadata": json.dumps({"subject_dimensions": sizes}),
            "subject_data": "{}",
            "subject_ids": "7",
            **row,
        }
        filled["annotations"] = json.dumps(filled["annotations"])
        writer.writerow(filled)
    return out.getvalue().encode()


def drawing(*marks: dict[str, Any], task: str = "T0") -> dict[str, Any]:
    return {"task": task, "value": [{"tool": 0, "frame": 0, "details": [], **m} for m in marks]}


ZOONIVERSE = zooniverse(
    [
        {"annotations": [drawing({"x": 1, "y": 2, "r": 3, "tool_label": "Crater"})]},
        {
            "annotations": [
                drawing(
                    {"x": 10.5, "y": 20, "r": 4, "tool_label": "Crater"},
                    {"x": 30, "y": 40, "rx": 8, "ry": 2, "angle": 5, "tool_label": "Ellipse"},
                    {"x": 50, "y": 60},
                    {"x": 500, "y": 60, "r": 5},
                    {"x1": 1, "x2": 2, "y1": 3, "y2": 4},
                    {"x": 9, "y": 9, "width": 3, "height": 4},
                    {"closed": True, "points": [{"x": x, "y": y} for x, y in SQUARE]},
                ),
                {"task": "T1", "value": "Yes"},
                {"task": "T3", "value": None},
                {"task": "T4", "value": [drawing({"x": 5, "y": 6, "r": 7}, task="T5")]},
            ]
        },
        {"user_name": "", "annotations": [drawing({"x": 11, "y": 21, "r": 4, "frame": 1})]},
    ]
)

#: As panoptes_aggregation 5.3 writes them, and Caesar's exports.
EXTRACTS = (
    b"classification_id,user_name,user_id,workflow_id,task,created_at,subject_id,extractor,"
    b"data.aggregation_version,data.frame0.T0_tool0_x,data.frame0.T0_tool0_y,"
    b"data.frame0.T0_tool0_r,data.frame0.T0_tool0_details,data.frame1.T0_tool1_x,"
    b"data.frame1.T0_tool1_y,data.frame1.T0_tool1_r\n"
    b'1,ann,7.0,3149,T0,2016-12-16 08:24:05 UTC,26,shape_extractor,5.3.1,"[375.5, 261.0]",'
    b'"[182.5, 259.0]","[28.5, 34.0]","[[{\'0\': 1}], [{\'1\': 1}]]",[4.5],[5.5],[6.5]\n'
    b"2,,,3149,T0,2016-12-16 08:25:05 UTC,26,shape_extractor,5.3.1,,,,,,,\n"
    b"3,bob,8.0,3149,T0,2016-12-16 08:26:05 UTC,26,shape_extractor,5.3.1,[9.0],[9.0],[2.0],,,,\n"
    b'4,bob,8.0,3149,T0,2016-12-16 08:27:05 UTC,26,shape_extractor,5.3.1,"[375.0, nan]",'
    b'"[183.0, 1.0]","[28.0, 1.0]",,,,\n'
)
REDUCTIONS = (
    b"subject_id,workflow_id,task,reducer,data.aggregation_version,data.frame0.T0_tool0_circle_x,"
    b"data.frame0.T0_tool0_cluster_labels,data.frame0.T0_tool0_clusters_count,"
    b"data.frame0.T0_tool0_clusters_x,data.frame0.T0_tool0_clusters_y,"
    b"data.frame0.T0_tool0_clusters_r\n"
    b'26,3149,T0,shape_reducer_dbscan,5.3.1,"[1.0, 2.0]","[0, 0]","[2, 3]","[375.25, 10.0]",'
    b'"[182.75, 11.0]","[28.25, 5.0]"\n27,3149,T0,shape_reducer_dbscan,5.3.1,,,,,,\n'
)
CAESAR = (
    b"id,extractor_key,subject_id,classification_id,user_id,workflow_id,created_at,data.frame0\n"
    b'1,circles,26,1,7,3149,2020-01-01,"{""T0_tool0_x"":[5.0],""T0_tool0_y"":[6.0],'
    b'""T0_tool0_r"":[7.0]}"\n2,circles,26,2,8,3149,2020-01-01,"{}"\n'
)

COCO = json.dumps(
    {
        "images": [{"id": 1, "file_name": "a.png", "width": 100, "height": 100}],
        "categories": [{"id": 3, "name": "crater"}],
        "annotations": [
            {
                "id": 1,
                "image_id": 1,
                "category_id": 3,
                "segmentation": [[value for point in ROUND for value in point]],
                "bbox": [50, 30, 20, 20],
            },
            {"id": 2, "image_id": 1, "category_id": 3, "segmentation": [], "bbox": [0, 0, 8, 2]},
            {"id": 3, "image_id": 1, "category_id": 3, "segmentation": {"counts": "", "size": []}},
            {
                "id": 4,
                "image_id": 1,
                "category_id": 3,
                "segmentation": [[value for point in SQUARE for value in point]],
            },
        ],
    }
).encode()

VIA = (
    b"filename,file_size,file_attributes,region_count,region_id,region_shape_attributes,"
    b"region_attributes\n"
    b'a.png,9,"{}",4,0,"{""name"":""circle"",""cx"":60,""cy"":40,""r"":10}","{""t"":""crater""}"\n'
    b'a.png,9,"{}",4,1,"{""name"":""ellipse"",""cx"":5,""cy"":6,""rx"":8,""ry"":2}","{}"\n'
    b'a.png,9,"{}",4,2,"{""name"":""rect"",""x"":0,""y"":0,""width"":8,""height"":2}","{}"\n'
    b'a.png,9,"{}",4,3,"{""name"":""polyline"",""all_points_x"":[1],""all_points_y"":[1]}","{}"\n'
    b'b.png,9,"{}",0,0,"{}","{}"\n'
)

VIA_JSON = json.dumps(
    {
        "_via_settings": {"ui": {}},
        "_via_img_metadata": {
            "a.png9": {
                "filename": "a.png",
                "size": 9,
                "regions": [
                    {
                        "shape_attributes": {"name": "circle", "cx": 60, "cy": 40, "r": 10},
                        "region_attributes": {"t": "crater"},
                    },
                    {
                        "shape_attributes": {"name": "ellipse", "cx": 5, "cy": 6, "rx": 8, "ry": 2},
                        "region_attributes": {},
                    },
                    {
                        "shape_attributes": {
                            "name": "rect",
                            "x": 0,
                            "y": 0,
                            "width": 8,
                            "height": 2,
                        },
                        "region_attributes": {},
                    },
                    {
                        "shape_attributes": {
                            "name": "polyline",
                            "all_points_x": [1],
                            "all_points_y": [1],
                        },
                        "region_attributes": {},
                    },
                ],
                "file_attributes": {},
            },
            "b.png9": {"filename": "b.png", "size": 9, "regions": [], "file_attributes": {}},
        },
    }
).encode()

LABELME = json.dumps(
    {
        "version": "5.4.1",
        "flags": {},
        "shapes": [
            {"label": "crater", "points": [[60, 40], [66, 48]], "shape_type": "circle"},
            {"label": "crater", "points": ROUND, "shape_type": "polygon"},
            {"label": "crater", "points": [[0, 0], [8, 2]], "shape_type": "rectangle"},
            {"label": "crater", "points": [[0, 0]], "shape_type": "point"},
            {"label": "rille", "points": [[0, 0], [8, 2]], "shape_type": "line"},
        ],
        "imagePath": "..\\images\\a.png",
        "imageData": None,
        "imageHeight": 100,
        "imageWidth": 100,
    }
).encode()

CVAT = f"""<?xml version="1.0" encoding="utf-8"?>
<annotations>
  <version>1.1</version>
  <image id="0" name="a.png" width="100" height="100">
    <ellipse label="crater" source="manual" cx="60" cy="40" rx="10" ry="10" z_order="0">
      <attribute name="kind">fresh</attribute>
    </ellipse>
    <polygon label="crater" points="{";".join(f"{x},{y}" for x, y in ROUND)}" z_order="0"/>
    <box label="crater" xtl="0" ytl="0" xbr="8" ybr="2" z_order="0"/>
    <points label="crater" points="1,2;3,4" z_order="0"/>
    <polyline label="rille" points="1,2;3,4" z_order="0"/>
  </image>
</annotations>
""".encode()


def studio_result(kind: str, **value: Any) -> dict[str, Any]:
    return {
        "type": f"{kind}labels",
        "original_width": 200,
        "original_height": 100,
        "value": {**value, f"{kind}labels": ["crater"]},
    }


LABEL_STUDIO = json.dumps(
    [
        {
            "id": 5,
            "data": {"image": "/data/upload/a.png"},
            "annotations": [
                {
                    "completed_by": {"id": 1, "email": "ann@example.org"},
                    "updated_at": "2024-01-01T00:00:00Z",
                    "result": [studio_result("ellipse", x=1, y=1, radiusX=1, radiusY=1)],
                },
                {
                    "completed_by": {"id": 1, "email": "ann@example.org"},
                    "updated_at": "2024-01-02T00:00:00Z",
                    "result": [
                        studio_result("ellipse", x=30, y=40, radiusX=5, radiusY=10, rotation=0),
                        studio_result("rectangle", x=0, y=0, width=4, height=2),
                        {"type": "choices", "value": {"choices": ["good"]}},
                    ],
                },
                {
                    "completed_by": 2,
                    "result": [
                        studio_result("polygon", points=[[x / 2, y] for x, y in ROUND]),
                        studio_result("keypoint", x=1, y=1, width=0.3),
                    ],
                },
                {"completed_by": 3, "was_cancelled": True, "result": []},
            ],
        }
    ]
).encode()

SCC = b"""# Spatial crater count
a-axis radius = 1737.4 <km>
a_axis_radius = 1737.4 <km>
unit_boundary = {vertex, sub_area, tag, lon, lat
#
#Area_name1 = A
1	1	ext	10.0	5.0
2	1	ext	10.0	5.33
3	1	ext	10.33	5.33
4	1	ext	10.0	5.0
5	2	int	10.1	5.1
6	2	int	10.1	5.2
7	2	int	10.2	5.2
}
Total_area = 99.7 <km^2>
crater = {diam, fraction, lon, lat, topo_scale_factor
1.1	1	10.1	5.1	1
0.9	0.5	10.11	5.1	1
}
"""

DIAM = b"""# a list
area = 100.
crater = {diameter, fraction, lon, lat
1.1\t1\t10.1\t5.1
0.9\t0.5\t10.11\t5.1
}
"""

GEOJSON = json.dumps(
    {
        "type": "FeatureCollection",
        "features": [
            {
                "type": "Feature",
                "geometry": {"type": "Point", "coordinates": [10.1, 5.1]},
                "properties": {"Diam_km": 1.1, "name": "A", "who": [1, 2]},
            },
            {
                "type": "Feature",
                "geometry": {
                    "type": "Polygon",
                    "coordinates": [ring_on_sphere(10.11, 5.1, 0.02)],
                },
                "properties": {"Diam_km": 0.9, "name": None},
            },
            {
                "type": "Feature",
                "geometry": {"type": "Polygon", "coordinates": [[*SQUARE, SQUARE[0]]]},
                "properties": {"Diam_km": 5},
            },
            {"type": "Feature", "geometry": None, "properties": {}},
            {
                "type": "Feature",
                "geometry": {"type": "LineString", "coordinates": [[1, 2], [3, 4]]},
                "properties": {},
            },
        ],
    }
).encode()

ROBBINS = b"""CRATER_ID,LAT_CIRC_IMG,LON_CIRC_IMG,LAT_ELLI_IMG,DIAM_CIRC_IMG,DIAM_CIRC_SD_IMG
00-1-000000,-19.8304,264.757,-19.8905,940.96,21.3179
00-1-000001,44.7763,328.602,44.4083,249.84,5.99621
"""

MOON = (
    'GEOGCS["Spherical_GCS_1737400", DATUM["Sphere_1737400", SPHEROID["Sphere_1737400", '
    '1737400, 0]], PRIMEM["Greenwich", 0], UNIT["Degree", 0.0174532925199433]]'
)


def parquet_bytes() -> bytes:
    buffer = io.BytesIO()
    table = pyarrow.table(
        {"x": [1.0, 4.0], "y": [2.0, 5.5], "diameter": [3.0, 6.0], "expert": ["Ann", "Bob"]}
    )
    pyarrow.parquet.write_table(table, buffer)
    return buffer.getvalue()


def shapefile_parts(*, attributes: bool = True) -> dict[str, bytes]:
    """Two craters as CraterTools writes them; without attributes the outlines must be measured."""
    shp, shx, dbf = io.BytesIO(), io.BytesIO(), io.BytesIO()
    writer = shapefile.Writer(shp=shp, shx=shx, dbf=dbf, shapeType=shapefile.POLYGON)
    if attributes:
        writer.field("Diam_km", "F", 12, 6)
        writer.field("x_coord", "F", 20, 15)
        writer.field("y_coord", "F", 20, 15)
    writer.field("tag", "C", 20)
    for lon, lat, diameter in ((10.1, 5.1, 1.1), (179.99, -89.9, 0.9)):
        angle = diameter / 2 / 1737.4 * 57.29577951308232
        writer.poly([ring_on_sphere(lon, lat, angle, 36)[::-1]])
        writer.record(*([diameter, lon, lat] if attributes else []), "standard")
    if not attributes:
        writer.poly([SQUARE])
        writer.record("standard")
    writer.close()
    return {
        ".shp": shp.getvalue(),
        ".shx": shx.getvalue(),
        ".dbf": dbf.getvalue(),
        ".prj": MOON.encode(),
    }


SINGLE_FILES: dict[str, tuple[str, bytes]] = {
    "Zooniverse extracts and reductions": ("shape_extractor.csv", EXTRACTS),
    "Zooniverse": ("export.csv", ZOONIVERSE),
    "COCO": ("coco.json", COCO),
    "VIA CSV": ("via.csv", VIA),
    "VIA JSON": ("via.json", VIA_JSON),
    "LabelMe": ("a.json", LABELME),
    "CVAT XML": ("annotations.xml", CVAT),
    "Label Studio": ("project.json", LABEL_STUDIO),
    "CraterStats .scc": ("a.scc", SCC),
    "CraterStats .diam": ("a.diam", DIAM),
    "GeoJSON": ("a.geojson", GEOJSON),
    "Parquet": ("a.parquet", parquet_bytes()),
    "Robbins": ("robbins.csv", ROBBINS),
}
"""A file name and contents for each format that is one file."""


def write_shapefile_parts(folder: Path, parts: dict[str, bytes], stem: str = "a_CRATER") -> Path:
    for suffix, content in parts.items():
        (folder / f"{stem}{suffix}").write_bytes(content)
    return folder / f"{stem}.shp"
