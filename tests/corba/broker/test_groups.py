"""The local group manager: properties, references, members."""

from typing import Any

import pytest

from inga.corba.broker.dispatch import NotAGroupObject, group_key
from inga.corba.broker.groups import (
    CREATE_ADDRESS_DEFERED,
    CREATE_ADDRESS_SUPPLIED,
    NO_ADDRESS,
    GroupManager,
    InvalidProperty,
    MemberAlreadyPresent,
    MemberNotFound,
    NoFactory,
    ObjectGroupNotFound,
    is_reliable,
)
from inga.corba.wire.reference import Iiop, Reference, Uipmc, read
from inga.model.errors import UsageError

TYPE = "IDL:test/Forum:1.0"
MEMBER = read("corbaloc::127.0.0.1:9/member")


@pytest.fixture
def manager() -> GroupManager:
    return GroupManager()


def profile(reference: Reference) -> Uipmc:
    return next(reference.multicast())


def test_groups_get_numbers_and_addresses_of_their_own(manager: GroupManager) -> None:
    first, one = manager.create_object(TYPE)
    second, two = manager.create_object(TYPE)
    assert (one, two) == (1, 2)
    assert first.type_id == TYPE
    assert (group_key(first), group_key(second)) == (("inga", 1, 0), ("inga", 2, 0))
    assert (profile(first).address, profile(second).address) == ("239.255.0.1", "239.255.0.2")
    assert manager.get_object_group_id(second) == 2


def test_the_address_may_be_supplied_or_come_later(manager: GroupManager) -> None:
    with pytest.raises(InvalidProperty, match="needs the property address"):
        manager.create_object(TYPE, {"creation_mode": CREATE_ADDRESS_SUPPLIED})
    given, _ = manager.create_object(
        TYPE, {"creation_mode": CREATE_ADDRESS_SUPPLIED, "address": "239.9.9.9", "port": 99}
    )
    assert (profile(given).address, profile(given).port) == ("239.9.9.9", 99)
    later, _ = manager.create_object(TYPE, {"creation_mode": CREATE_ADDRESS_DEFERED})
    assert profile(later).address == NO_ADDRESS
    now = manager.set_properties_dynamically(later, {"address": "239.8.8.8"})
    assert (profile(now).address, profile(now).port) == ("239.8.8.8", 7400)
    assert group_key(now)[2] == 1  # old references lead nowhere
    assert manager.get_object_group_ref(later) == now
    assert manager.get_properties(later)["address"] == "239.8.8.8"


@pytest.mark.parametrize("address", ["rubbish", "", "10.1.2.3", "239.1.2", "239.1.2.3:7", "::1", NO_ADDRESS])
def test_an_address_is_one_of_multicast(manager: GroupManager, address: str) -> None:
    group, _ = manager.create_object(TYPE)
    before = manager.get_properties(group)
    for deed in (
        lambda: manager.create_object(TYPE, {"creation_mode": CREATE_ADDRESS_SUPPLIED, "address": address}),
        lambda: manager.set_properties_dynamically(group, {"address": address}),
        lambda: manager.set_default_properties({"address": address}),
        lambda: manager.set_type_properties(TYPE, {"address": address}),
    ):
        with pytest.raises(InvalidProperty, match=f"address .* not {address!r}"):
            deed()
    assert manager.get_properties(group) == before
    given, _ = manager.create_object(TYPE, {"creation_mode": CREATE_ADDRESS_SUPPLIED, "address": "ff15::7"})
    assert profile(given).address == "ff15::7"


def test_the_narrower_property_holds(manager: GroupManager) -> None:
    manager.set_default_properties({"domain": "all", "port": 1})
    manager.set_type_properties(TYPE, {"port": 2})
    assert manager.get_type_properties(TYPE)["port"] == 2
    assert manager.get_default_properties()["port"] == 1
    of_type, _ = manager.create_object(TYPE)
    other, _ = manager.create_object("IDL:test/Other:1.0")
    special, _ = manager.create_object(TYPE, {"port": 3})
    assert [profile(each).port for each in (of_type, other, special)] == [2, 1, 3]
    assert group_key(of_type)[0] == "all"
    manager.remove_type_properties(TYPE, ["port"])
    manager.remove_default_properties(["port", "domain"])
    assert manager.get_type_properties(TYPE)["port"] == 7400
    assert group_key(manager.create_object(TYPE)[0])[0] == "inga"


def test_who_answers_and_who_passes_on(manager: GroupManager) -> None:
    answering, gateway = Iiop("127.0.0.1", 1, b"a"), Iiop("127.0.0.1", 2, b"g")
    group, _ = manager.create_object(TYPE, {"group_iiop": answering, "gateway": gateway})
    assert profile(group).group_iiop == answering
    (through,) = group.iiop()
    assert (through.port, through.group) == (2, profile(group).group)


def test_a_reference_says_whether_losses_are_repaired(manager: GroupManager) -> None:
    plain, _ = manager.create_object(TYPE)
    repaired, _ = manager.create_object(TYPE, {"reliable": True})
    assert not is_reliable(profile(plain).components)
    assert is_reliable(profile(repaired).components)
    assert profile(repaired).group is not None


def test_members_by_location(manager: GroupManager) -> None:
    group, number = manager.create_object(TYPE)
    assert manager.add_member(group, "here", MEMBER) == group
    with pytest.raises(MemberAlreadyPresent):
        manager.add_member(group, "here", MEMBER)
    assert manager.locations_of_members(group) == ["here"]
    assert manager.get_member_ref(group, "here") == MEMBER
    assert manager.groups_at_location("here") == [group]
    assert manager.groups_at_location("there") == []
    assert manager.remove_member(group, "here") == group
    for ask in (manager.remove_member, manager.get_member_ref):
        with pytest.raises(MemberNotFound):
            ask(group, "here")
    manager.delete_object(number)
    with pytest.raises(ObjectGroupNotFound):
        manager.locations_of_members(group)
    with pytest.raises(ObjectGroupNotFound):
        manager.delete_object(number)


def test_factories_make_members() -> None:
    asked: list[Any] = []

    def make(type_id: str, criteria: Any) -> Reference:
        asked.append((type_id, criteria))
        return MEMBER

    manager = GroupManager(factories={"here": make})
    group, _ = manager.create_object(TYPE)
    manager.create_member(group, "here", TYPE, {"port": 5})
    assert asked == [(TYPE, {"port": 5})]
    assert manager.get_member_ref(group, "here") == MEMBER
    with pytest.raises(NoFactory):
        manager.create_member(group, "there", TYPE)
    with pytest.raises(MemberAlreadyPresent):
        manager.create_member(group, "here", TYPE)


def test_what_the_manager_refuses(manager: GroupManager) -> None:
    for wrong in (
        {"colour": 1},
        {"port": 0},
        {"port": "x"},
        {"port": True},
        {"creation_mode": 3},
        {"domain": 1},
    ):
        with pytest.raises(InvalidProperty):
            manager.create_object(TYPE, wrong)
    with pytest.raises(InvalidProperty):
        manager.remove_default_properties(["colour"])
    group, _ = manager.create_object(TYPE)
    with pytest.raises(InvalidProperty, match="cannot be changed"):
        manager.set_properties_dynamically(group, {"domain": "x"})
    with pytest.raises(NotAGroupObject):
        manager.get_object_group_id(MEMBER)
    foreign, _ = GroupManager().create_object(TYPE, {"domain": "elsewhere"})
    with pytest.raises(ObjectGroupNotFound):
        manager.get_object_group_id(foreign)
    with pytest.raises(UsageError, match="no network of multicast"):
        GroupManager("10.0.0.0/8")
