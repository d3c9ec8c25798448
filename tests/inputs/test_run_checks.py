"""Rules between the keys of `run`, and that every metric that may be named is one with an interval."""

import pytest

from sim.analysis.fields import FIELDS, Merge, Ratio
from sim.inputs.errors import InputError
from sim.inputs.load import load_scenario
from sim.inputs.run_checks import HEADLINES, PRECISION_METRICS, most_replications, wanted_precision

POISSON = "workload.arrivals={kind: poisson, rate: 2}"


def loaded(*sets):
    return load_scenario(None, sets).scenario.run


def problems(*sets):
    with pytest.raises(InputError) as caught:
        load_scenario(None, sets)
    return [(problem.field, str(problem)) for problem in caught.value.problems]


def test_without_precision_nothing_is_added():
    assert most_replications(loaded("run.replications=7")) == 7
    assert wanted_precision(loaded("run.replications=7")) == {}
    assert loaded().intervals == "replications"


def test_one_number_is_for_the_headlines_and_a_mapping_for_its_metrics():
    run = loaded("run={replications: 5, precision: 0.02}")
    assert wanted_precision(run) == dict.fromkeys(HEADLINES, 0.02)
    assert most_replications(run) == 50
    run = loaded("run={replications: 60, precision: {p99_ttft_ms: 0.1}}")
    assert wanted_precision(run) == {"p99_ttft_ms": 0.1}
    assert most_replications(run) == 60
    assert most_replications(loaded("run={replications: 5, precision: 0.1, max_replications: 9}")) == 9


def test_every_metric_is_a_mean_or_a_ratio():
    assert set(HEADLINES) <= set(PRECISION_METRICS)
    for name in PRECISION_METRICS:
        assert FIELDS[name] is Merge.MEAN or isinstance(FIELDS[name], Ratio)


@pytest.mark.parametrize(
    ("sets", "field", "words"),
    [
        (["run={replications: 1, precision: 0.05}"], "run.precision", "at least 2 replications"),
        (["run={replications: 5, precision: 0.05, max_replications: 3}"], "run.max_replications", "3 is below"),
        (["run={replications: 5, max_replications: 9}"], "run.max_replications", "no replications are added"),
        (["run={replications: 5, precision: 0}"], "run.precision", "above 0"),
        (["run={replications: 5, precision: 5}"], "run.precision", "below 1"),
        (["run={replications: 5, precision: true}"], "run.precision", "boolean"),
        (["run={replications: 5, precision: {}}"], "run.precision", "at least 1"),
        (["run={replications: 5, precision: {tpot: 0.1}}"], "run.precision.tpot", "unknown metric"),
        (["run={replications: 5, precision: {mean_tpot: 0.1}}"], "run.precision.mean_tpot", "mean_tpot_ms"),
        (["run={replications: 5, precision: {mean_tpot_ms: 5}}"], "run.precision.mean_tpot_ms", "below 1"),
        (["run={replications: 1, intervals: batch_means}"], "run.intervals", "steady state"),
        ([POISSON, "run={replications: 3, intervals: batch_means}"], "run.intervals", "3 replications"),
        ([POISSON, "run={replications: 3, precision: 0.1, intervals: batch_means}"], "run.intervals", "precision adds"),
        (["run={intervals: batches}"], "run.intervals", "batch_means"),
    ],
)
def test_mistakes_are_told_where_they_stand(sets, field, words):
    found = problems(*sets)
    assert any(where == field and words in text for where, text in found), found


def test_batches_of_open_traffic_are_allowed():
    assert loaded(POISSON, "run={replications: 1, intervals: batch_means}").intervals == "batch_means"
