"""The pixels of images of live turns are limited for each user, and for all users together."""

import pytest

from limelight.errors import TooManyBytes
from limelight.models import LOCAL_OWNER
from limelight.sources.image_budget import ImageBudget


@pytest.mark.requirement("images-bounded")
def test_turn_reserves_up_to_the_limit_of_its_user() -> None:
    lease = ImageBudget(pixels_per_user=100, pixels=1000).lease("ann")
    assert [lease.reserve(pixels) for pixels in (60, 41, 40, 1)] == [True, False, True, False]


@pytest.mark.requirement("images-bounded")
def test_turns_of_a_user_share_the_limit_until_they_are_closed() -> None:
    budget = ImageBudget(pixels_per_user=100, pixels=1000)
    one, other = budget.lease("ann"), budget.lease("ann")
    assert one.reserve(60)
    with pytest.raises(TooManyBytes, match="your live runs have more than 100 pixels"):
        other.reserve(60)
    assert budget.lease("bob").reserve(60)
    one.close()
    one.close()
    assert other.reserve(60)


@pytest.mark.requirement("images-bounded")
def test_all_users_share_the_limit_of_the_server() -> None:
    budget = ImageBudget(pixels_per_user=100, pixels=150)
    ann = budget.lease("ann")
    assert ann.reserve(100)
    with pytest.raises(TooManyBytes, match="all live runs have more than 150 pixels"):
        budget.lease("bob").reserve(60)
    assert budget.lease("bob").reserve(50)
    ann.close()
    assert budget.lease("cid").reserve(100)


def test_local_user_has_only_the_limit_of_the_server() -> None:
    lease = ImageBudget(pixels_per_user=100, pixels=150).lease(LOCAL_OWNER)
    assert lease.reserve(150)
    assert not lease.reserve(1)
