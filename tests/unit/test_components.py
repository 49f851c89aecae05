"""The registry of components."""

import pytest
from pydantic import ValidationError

import composcope as cs
from composcope.components import nearest

pytestmark = pytest.mark.usefixtures("no_new_kinds")


def diagonal(module="mine"):
    class Diagonal(cs.Holdout):
        width: float = 1.0

        def contains(self, latents, factors=None):
            return (latents[:, 0] - latents[:, 1]).abs() <= self.width

    Diagonal.__module__ = module
    return Diagonal


def test_a_registered_component_can_be_part_of_a_spec(tiny_spec):
    kind = cs.register("diagonal")(diagonal())
    data = {**tiny_spec.to_dict(), "holdout": {"kind": "diagonal", "width": 0}}
    spec = cs.Spec.from_dict(data)
    assert spec.holdout == kind(0.0)
    assert cs.run(spec).measures["error"]["heldout_mse"] > 0


def test_a_registered_component_is_validated_and_frozen():
    kind = cs.register("diagonal")(diagonal())
    with pytest.raises(ValidationError, match="width"):
        kind(width="wide")
    with pytest.raises(AttributeError):
        kind().width = 2


def test_two_components_cannot_share_a_name():
    cs.register("diagonal")(diagonal())
    with pytest.raises(ValueError, match="'diagonal' is already registered"):
        cs.register("diagonal")(diagonal(module="another"))


def test_the_same_component_may_be_registered_again():
    cs.register("diagonal")(diagonal())
    kind = cs.register("diagonal")(diagonal())
    assert cs.Holdout.kinds["diagonal"] is kind


def test_the_same_name_may_be_used_in_two_roles():
    assert cs.Encoding.from_dict({"kind": "bump"}) == cs.Bump()
    assert cs.Task.from_dict({"kind": "bump", "size": 8}) == cs.BumpTask(8)


def test_a_role_itself_cannot_be_registered():
    with pytest.raises(TypeError, match="must derive from a role"):
        cs.register("thing")(cs.Holdout)


def test_unknown_kind_suggests_the_nearest():
    with pytest.raises(ValueError, match=r"'squre' is unknown, did you mean 'square'\?; choose from: nothing, square"):
        cs.Holdout.from_dict({"kind": "squre"})


def test_missing_kind_lists_all():
    with pytest.raises(ValueError, match=r"needs a kind, one of: .*cnn"):
        cs.Decoder.from_dict({"depth": 2})


def test_a_component_class_reads_only_its_own_kind():
    assert cs.Square.from_dict({"kind": "square", "lo": 1, "hi": 2}) == cs.Square(1, 2)
    with pytest.raises(ValueError, match="not a Square"):
        cs.Square.from_dict({"kind": "corner", "lo": 1})


def test_equal_components_have_equal_hashes_whatever_the_order_of_names():
    boxes = cs.Box({"x": (1, 2), "y": (3, 4)}), cs.Box({"y": (3, 4), "x": (1, 2)})
    encodings = cs.PerFactor({"x": cs.Bump(), "y": cs.Rate()}), cs.PerFactor({"y": cs.Rate(), "x": cs.Bump()})
    for first, second in (boxes, encodings):
        assert first == second
        assert hash(first) == hash(second)


def test_nearest_is_empty_when_nothing_is_similar():
    assert nearest("zebra", ["depth", "width"]) == ""
    assert nearest("dept", ["depth", "width"]) == ", did you mean 'depth'?"
