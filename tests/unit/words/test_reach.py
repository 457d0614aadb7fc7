"""What models may reach."""

import asyncio
from typing import Any

import pytest

from gossamer.values.errors import UsageError
from gossamer.words.commands import guarded
from gossamer.words.tools import Budget, ModelReach, read_reach


@pytest.mark.parametrize(
    "url",
    [
        *(
            "file:///etc/passwd",
            "ftp://a.test/",
            "gopher://a.test/",
            "javascript:alert(1)",
            "http://b.test/",
            "http://xa.test/",
        ),
        *("http://a.test.evil/", "http://127.0.0.1/", "http://[::1]/", "http://2130706433/", "http://localhost/", ""),
        *("http://169.254.169.254/", "http://[::ffff:10.0.0.1]/", "http://x.localhost/", "http://0/"),
    ],
)
def test_what_is_out_of_reach_is_refused_in_one_line(url: str) -> None:
    reach = read_reach(["a.test", "127.0.0.1", "localhost", "169.254.169.254"], [])
    for one in (reach, ModelReach(), read_reach(["*"], []) if "test" not in url else reach):
        with pytest.raises(UsageError) as caught:
            one.checked(url)
        assert "\n" not in str(caught.value)


def test_hosts_of_the_list_and_below_are_in_reach() -> None:
    reach = read_reach(["a.test", "*.B.test"], [])
    assert reach.checked("A.test/x") == "https://a.test/x"
    assert reach.checked("http://docs.b.test/") == "http://docs.b.test/"
    assert read_reach(["*"], []).checked("http://anything.example/") == "http://anything.example/"
    assert read_reach(["*"], ["10.0.0.0/8"]).checked("http://10.1.2.3/") == "http://10.1.2.3/"


def test_a_budget_is_reserved_and_what_is_left_comes_back() -> None:
    budget = Budget(10, 1_000, 100.0)
    assert budget.reserve(8, 60.0) == (1_000, 60.0)
    with pytest.raises(UsageError, match=r"3 pages are more .* which is 2"):
        budget.reserve(3, 1.0)
    budget.give_back(5, 50.0, 1_000)
    assert (budget.pages, budget.bytes, budget.seconds) == (7, 0, 90.0)
    with pytest.raises(UsageError, match="spent its bytes"):
        budget.reserve(1, 1.0)
    with pytest.raises(UsageError, match="1 page at least"):
        budget.reserve(0, 1.0)


@pytest.mark.parametrize(("field", "status"), [(b"Bearer right", 200), (b"Bearer wrong", 401), (b"", 401)])
def test_over_http_a_client_needs_the_token(field: bytes, status: int) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200})

    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    asyncio.run(guarded(app, "right")({"type": "http", "headers": [(b"authorization", field)]}, None, send))
    assert sent[0]["status"] == status
