"""The gate lets work in: places, suspension, turnover, repair."""

import asyncio
from typing import Any

from gossamer.engine.gate import Gate


async def turns(count: int = 20) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def test_no_more_are_inside_than_there_are_places_and_who_asked_first_enters_first(run: Any) -> None:
    async def body() -> None:
        gate = Gate(1)
        entered: list[str] = []

        async def enter(name: str) -> int:
            number = gate.try_enter() or await gate.enter()
            entered.append(name)
            return number

        first = await enter("a")
        others = [asyncio.create_task(enter(name)) for name in "bc"]
        await turns()
        assert entered == ["a"]
        assert gate.inside == 1
        gate.leave(first)
        assert not gate.try_enter(), "nobody overtakes those who wait"
        gate.leave(await others[0])
        await others[1]
        assert entered == ["a", "b", "c"]

    run(body())


def test_who_gives_up_waiting_gives_the_place_on(run: Any) -> None:
    async def body() -> None:
        gate = Gate(1)
        first = gate.try_enter()
        waiting = [asyncio.create_task(gate.enter()) for _ in range(2)]
        await turns()
        gate.leave(first)
        waiting[0].cancel()
        assert await waiting[1]
        assert waiting[0].cancelled()

    run(body())


def test_who_gives_up_at_a_shut_gate_gives_the_place_on(run: Any) -> None:
    async def body() -> None:
        gate = Gate(1)
        await gate.suspend()
        waiting = asyncio.create_task(gate.enter())
        await turns()
        waiting.cancel()
        await turns()
        gate.resume()
        assert gate.try_enter()

    run(body())


def test_suspension_returns_when_those_inside_have_gone_and_lets_nobody_in(run: Any) -> None:
    async def body() -> None:
        gate = Gate()
        inside = [gate.try_enter(), gate.try_enter()]
        suspending = asyncio.create_task(gate.suspend())
        await turns()
        assert not gate.try_enter()
        gate.leave(inside[0])
        await turns()
        assert not suspending.done()
        gate.leave(inside[1])
        await suspending
        entering = asyncio.create_task(gate.enter())
        await turns()
        assert not entering.done()
        gate.resume()
        assert await entering

    run(body())


def test_a_turnover_waits_for_those_inside_and_not_for_those_after(run: Any) -> None:
    async def body() -> None:
        gate = Gate()
        before = gate.try_enter()
        turnover = asyncio.create_task(gate.turnover())
        await turns()
        assert gate.try_enter()
        gate.leave(before)
        await turnover
        assert gate.inside == 1

    run(body())


def test_a_turnover_of_an_empty_gate_is_immediate(run: Any) -> None:
    run(Gate().turnover())


def test_a_repair_waits_for_those_at_work_and_not_for_those_who_stand_aside(run: Any) -> None:
    async def body() -> None:
        gate = Gate()
        failed, at_work = gate.try_enter(), gate.try_enter()
        repaired = asyncio.Event()

        async def repair() -> None:
            with gate.awaiting_repair():
                async with gate.alone():
                    assert not gate.try_enter()
                    repaired.set()

        repairing = asyncio.create_task(repair())
        await turns()
        assert not repaired.is_set()
        gate.leave(at_work)
        await repairing
        assert gate.try_enter()
        gate.leave(failed)

    run(body())


def test_a_repair_does_not_open_a_suspended_gate(run: Any) -> None:
    async def body() -> None:
        gate = Gate()
        await gate.suspend()
        async with gate.alone():
            pass
        assert gate.shut
        gate.resume()
        assert not gate.shut

    run(body())


def test_a_gate_with_more_places_lets_in_those_who_wait_and_with_fewer_sends_nobody_away(run: Any) -> None:
    async def body() -> None:
        gate = Gate(1)
        numbers = [gate.try_enter()]
        waiting = [asyncio.create_task(gate.enter()) for _ in range(3)]
        await turns()
        gate.resize(3)
        await turns()
        assert [task.done() for task in waiting] == [True, True, False]
        gate.resize(1)
        numbers += [await task for task in waiting[:2]]
        for number in numbers[:2]:
            gate.leave(number)
            await turns()
            assert not waiting[2].done(), "two places were taken away while three were inside"
        gate.leave(numbers[2])
        assert gate.inside == 0
        await waiting[2]
        assert not gate.try_enter()

    run(body())
