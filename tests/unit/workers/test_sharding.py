"""Parts of a sweep: each run in exactly one, searches whole."""

import pytest

import composcope as cs
from composcope.papers.forced_rendering import STUDY
from composcope.study.request import left_to_do, make_request, search_groups
from composcope.workers.limits import Shard


@pytest.mark.parametrize("count", [1, 2, 7])
def test_every_run_is_in_exactly_one_shard(count, tiny_spec):
    specs = cs.Sweep(tiny_spec.to_dict(), {"seed": list(range(50))}).specs()
    parts = [Shard(index + 1, count).select(specs) for index in range(count)]
    assert sorted(spec.seed for part in parts for spec in part) == list(range(50))
    assert all(parts)


@pytest.mark.parametrize("text", ["0/2", "3/2", "1", "1/", "/2", "a/b", "1/2/3", "-1/2", "1/0", "½/2"])
def test_bad_shards_are_told(text):
    with pytest.raises(cs.BadInput, match="--shard"):
        Shard.parse(text)


def test_a_shard_reads_as_it_is_written():
    assert Shard.parse("2/8") == Shard(2, 8)
    assert str(Shard(2, 8)) == "2/8"


def test_a_search_belongs_to_one_shard():
    request = make_request(STUDY, ["4c"], "quick", seeds=6)
    groups = search_groups(request)
    (panel,) = request.panels
    specs = [spec for specs in request.plan(panel).values() for spec in specs]
    assert groups.keys() == {spec.run_id for spec in specs}
    shards = {}
    for index in (1, 2, 3):
        for spec in Shard(index, 3).select(specs, groups):
            key = (spec.task, type(spec.sampling), spec.seed)
            assert shards.setdefault(key, index) == index
    assert set(shards.values()) == {1, 2, 3}


def test_failed_runs_are_not_left_to_do(store):
    request = make_request(STUDY, ["1b"], "quick", seeds=1)
    left = left_to_do(request, store)
    (panel,) = request.panels
    spec = next(spec for specs in request.plan(panel).values() for spec in specs)
    store.save_failure(spec, "diverged", {})
    assert set(left) - set(left_to_do(request, store)) == {spec.run_id}
