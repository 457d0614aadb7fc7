"""Receipts complete once, when the last holder lets go."""

from gossamer.engine.gate import Receipt, joint


def test_a_receipt_completes_with_its_last_holder() -> None:
    done: list[str] = []
    receipt = Receipt(lambda: done.append("done"))
    receipt.hold(2)
    receipt.release(2)
    assert not done
    receipt.release()
    assert done == ["done"]


def test_holding_a_completed_receipt_again_completes_nothing_twice() -> None:
    done: list[str] = []
    receipt = Receipt(lambda: done.append("done"))
    receipt.release()
    receipt.hold()
    receipt.release()
    assert done == ["done"]


def test_a_joint_receipt_releases_each_of_its_parents_once() -> None:
    done: list[str] = []
    parents = [Receipt(lambda: done.append("a")), Receipt(lambda: done.append("b"))]
    whole = joint([parents[0], None, parents[1]])
    assert whole is not None
    whole.hold()
    whole.release()
    assert not done
    whole.release()
    assert done == ["a", "b"]


def test_without_receipts_there_is_no_joint_one() -> None:
    assert joint([None, None]) is None


def test_a_receipt_says_how_often_it_is_held() -> None:
    receipt = Receipt(lambda: None)
    receipt.hold()
    assert repr(receipt) == "<Receipt held 2 times>"
