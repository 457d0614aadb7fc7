"""A web's parameters are checked when they are given, and survive the log's first line."""

import msgspec
import pytest

from gossamer.cli.simweb import Quantity
from gossamer.simweb import SpecError, WebSpec
from gossamer.simweb.spec import spec_from_dict


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"pages": 0}, "pages"),
        ({"pages": 10, "hosts": 11}, "hosts"),
        ({"seed": -1}, "seed"),
        ({"duplicate_share": 0.9}, "duplicate_share"),
        ({"gone_share": -0.1}, "share"),
        ({"host_exponent": 1.0}, "host_exponent"),
        ({"time_scale": float("nan")}, "time_scale"),
    ],
)
def test_an_impossible_web_is_refused_in_one_line_that_names_the_parameter(wrong: dict[str, float], named: str) -> None:
    with pytest.raises(SpecError) as caught:
        WebSpec(**wrong)  # type: ignore[arg-type]
    assert named in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_spec_survives_being_written_down() -> None:
    spec = WebSpec(seed=7, pages=1234, hosts=12, trap_share=0.25, plain_robots=True)
    assert spec_from_dict(msgspec.structs.asdict(spec)) == spec


def test_a_spec_from_elsewhere_is_refused_in_one_line() -> None:
    with pytest.raises(SpecError) as caught:
        spec_from_dict({"pages": "many"})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "text", "number"),
    [
        *(("time", text, 0.5) for text in ("500ms", ".5s", "0.5", "500MS", " .5 s")),
        *(("size", text, 2_000_000) for text in ("2MB", "2mb", "2,000,000", ".002GB")),
        *(("count", text, 1_000) for text in ("1k", "1K", "1,000", ".001m")),
    ],
)
def test_quantities_are_read_in_either_case_and_from_their_point_on(kind: str, text: str, number: float) -> None:
    assert Quantity(kind).convert(text, None, None) == number
