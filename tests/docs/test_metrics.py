"""The dashboard, the alert rules and the document name metrics that a server really has, and the labels of these.

A metric that is new has to be on the dashboard and in the document; one that is gone may be in neither.
"""

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from tests.support import agents
from tests.support.documents import ROOT, read
from tests.support.markdown import blocks, codes, rows, sections
from tests.support.server import collect, serving

DASHBOARD = "deploy/grafana/limelight.json"
ALERTS = "deploy/prometheus/alerts.yml"
OF_PROMETHEUS = {"up"}
"""Metrics of Prometheus itself."""
EVERYWHERE = {"job", "instance", "le"}
"""Labels of Prometheus itself, and of histograms."""
OPERATORS = {"and", "or", "unless", "bool", "offset", "on", "ignoring", "group_left", "group_right"}
Json = dict[str, Any]


class Exported(NamedTuple):
    """The metrics of a server: families, and the labels of each series by the name that queries use."""

    families: list[Metric]
    labels: dict[str, set[str]]

    @property
    def names(self) -> set[str]:
        """The names that the document uses: one for a histogram, and counters with their suffix."""
        return {f"{f.name}_total" if f.type == "counter" else f.name for f in self.families}


@pytest.fixture
async def exported(tmp_path: Path) -> Exported:
    async with serving(agents.talker, agents.crasher, data=tmp_path) as served:
        for name in ("talker", "crasher"):
            await collect(served.ask("go", agent=name))
        families = list(text_string_to_metric_families((await served.http.get("/metrics")).text))
    labels: dict[str, set[str]] = {}
    for family in families:
        for sample in family.samples:
            labels.setdefault(sample.name, set()).update(sample.labels)
    return Exported(families, labels)


class Query(NamedTuple):
    """A parsed expression. `metrics` are all names in it that are not functions, operators or labels."""

    metrics: set[str]
    matched: list[tuple[str, set[str]]]
    """Each metric with the labels in its selector."""
    grouped: set[str]


def parsed(expression: str) -> Query:
    """Parse the subset of PromQL that our expressions use: no subqueries, no quoted names."""
    plain = re.sub(r'"(?:[^"\\]|\\.)*"', '""', expression)
    matched = [(name, set(re.findall(r"(\w+)\s*[=!]", inner))) for name, inner in re.findall(r"(\w+){([^}]*)}", plain)]
    groups = re.findall(r"\b(?:by|without)\s*\(([^)]*)\)", plain)
    bare = re.sub(r"{[^}]*}|\[[^\]]*\]|\b(?:by|without)\s*\([^)]*\)", " ", plain)
    names = set(re.findall(r"\b[a-zA-Z_]\w*\b(?!\s*\()", bare)) - OPERATORS
    return Query(names, matched, {label.strip() for group in groups for label in group.split(",")})


def panels() -> list[Json]:
    return json.loads(read(DASHBOARD))["panels"]


def dashboard_expressions() -> list[str]:
    return [target["expr"] for panel in panels() for target in panel.get("targets", ())]


def rules() -> list[Json]:
    return [rule for group in yaml.safe_load(read(ALERTS))["groups"] for rule in group["rules"]]


def alert_expressions() -> list[str]:
    return [rule["expr"] for rule in rules()]


def test_metric_names_in_expressions_are_found() -> None:
    query = parsed('60 * sum by (a, b) (rate(x_total{c=~"$d",e!="f{g}"}[5m])) / time() - y > 0.2 and up')
    assert query == Query({"x_total", "y", "up"}, [("x_total", {"c", "e"})], {"a", "b"})


def test_expressions_use_existing_metrics_and_labels(exported: Exported) -> None:
    for expression in (*dashboard_expressions(), *alert_expressions()):
        query = parsed(expression)
        assert query.metrics, expression
        assert query.metrics <= set(exported.labels) | OF_PROMETHEUS, expression
        labels_of = {metric: exported.labels.get(metric, set()) | EVERYWHERE for metric in query.metrics}
        for metric, labels in query.matched:
            assert labels <= labels_of[metric], expression
        for labels in labels_of.values():
            assert query.grouped <= labels, expression
        assert expression.count("(") == expression.count(")"), expression


def test_dashboard_shows_all_metrics(exported: Exported) -> None:
    shown = set[str]().union(*(parsed(expression).metrics for expression in dashboard_expressions()))
    histograms = {f"{family.name}_bucket": family.name for family in exported.families if family.type == "histogram"}
    assert {name for name in exported.names if name.startswith("limelight_")} <= {
        histograms.get(name, name) for name in shown
    }


def test_dashboard_names_no_data_source() -> None:
    objects: list[Json] = []

    def noted(one: Json) -> Json:
        objects.append(one)
        return one

    dashboard = json.loads(read(DASHBOARD), object_hook=noted)
    chosen = {variable["name"]: variable for variable in dashboard["templating"]["list"]}
    assert chosen["datasource"]["type"] == "datasource"
    assert chosen["datasource"]["query"] == "prometheus"
    assert "id" not in dashboard
    sources = [one["datasource"] for one in objects if "datasource" in one]
    assert len(sources) > len(panels())
    assert all(source == {"type": "prometheus", "uid": "${datasource}"} for source in sources)
    used = set(re.findall(r"\$(\w+)", " ".join(dashboard_expressions())))
    assert used - {"__rate_interval", "__range"} <= set(chosen)


def test_panels_of_the_dashboard_do_not_overlap() -> None:
    assert [panel["title"] for panel in panels() if panel["type"] == "row"] == [
        "Runs",
        "Latency",
        "Viewers and queues",
        "Limits and store errors",
        "Process",
    ]
    assert len({panel["id"] for panel in panels()}) == len(panels())
    taken: set[tuple[int, int]] = set()
    for panel in panels():
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert place["x"] + place["w"] <= 24
        assert not taken & cells, panel["title"]
        taken |= cells


def test_alerts_have_a_summary_with_labels_of_their_query() -> None:
    assert len({rule["alert"] for rule in rules()}) == len(rules()) > 4
    for rule in rules():
        assert rule["annotations"]["summary"]
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
        query = parsed(rule["expr"])
        named = set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]))
        assert named <= (query.grouped or EVERYWHERE), rule["alert"]


def test_document_lists_each_metric_with_its_type_and_labels(exported: Exported) -> None:
    listed = rows(sections(read("docs/metrics.md"), 2)["List of metrics"])
    documented = {(row[0].strip("`"), row[1], frozenset(codes(row[2]))) for row in listed}
    real = {
        (
            f"{family.name}_total" if family.type == "counter" else family.name,
            family.type,
            frozenset(label for sample in family.samples for label in sample.labels) - EVERYWHERE,
        )
        for family in exported.families
    }
    assert documented == real


def test_documents_name_existing_metrics_only(exported: Exported) -> None:
    for name in ("docs/metrics.md", "docs/operating.md", ALERTS):
        named = set(re.findall(r"\blimelight_\w+", read(name)))
        assert named <= exported.names | set(exported.labels), name


def test_prometheus_examples_are_valid() -> None:
    jobs = [job for block in blocks(read("docs/metrics.md"), "yaml") for job in yaml.safe_load(block)["scrape_configs"]]
    assert [job["job_name"] for job in jobs] == ["limelight"] * 2
    assert [job.get("authorization", {}).get("type") for job in jobs] == [None, "Bearer"]
    assert all(job["static_configs"][0]["targets"] for job in jobs)
    assert 'job="limelight"' in read(ALERTS)
    assert (ROOT / DASHBOARD).is_file()
