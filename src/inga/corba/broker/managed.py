"""A manager of object groups for other programs, which manage the members of its groups over CORBA.

The operations, their IDL and exceptions are those of PortableGroup::ObjectGroupManager, so that any ORB's client can use it. A location
is a name as in the naming service. Operations whose arguments are properties are not among them (create_member, and the whole
of PropertyManager and GenericFactory): their values are of type `any`, which our IDL does not have. So groups are made and
deleted in the process of the manager, and their members may be in any process.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from inga.corba.broker.dispatch import NotAGroupObject
from inga.corba.broker.groups import GroupManager, MemberAlreadyPresent, MemberNotFound, ObjectGroupNotFound
from inga.corba.broker.idl import ULongLong, UserException, interface, raises, user_exception
from inga.corba.broker.naming import CompoundName, InvalidName, to_name, to_string
from inga.corba.wire.reference import Reference

PREFIX = "IDL:omg.org/PortableGroup"
KEY = b"GroupManager"
"""The object key by which clients find it."""
MEMBERS_MAX = 10_000
"""Members of one group. There has to be a bound, since any client may add some."""


@user_exception(f"{PREFIX}/ObjectGroupNotFound:1.0")
class UnknownGroup(UserException):
    """The reference does not name a group of this manager."""


@user_exception(f"{PREFIX}/MemberNotFound:1.0")
class UnknownMember(UserException):
    """There is no member at that location."""


@user_exception(f"{PREFIX}/MemberAlreadyPresent:1.0")
class PresentMember(UserException):
    """There is a member at that location."""


@user_exception(f"{PREFIX}/ObjectNotAdded:1.0")
class ObjectNotAdded(UserException):
    """The object cannot become a member."""


@interface(f"{PREFIX}/ObjectGroupManager:1.0")
class ObjectGroupManager:
    """Members of groups, by location."""

    @raises(UnknownGroup, PresentMember, ObjectNotAdded)
    async def add_member(
        self, object_group: Reference | None, the_location: CompoundName, member: Reference | None
    ) -> Reference | None:
        """Make an existing object a member; return the group's newest reference."""
        raise NotImplementedError

    @raises(UnknownGroup, UnknownMember)
    async def remove_member(
        self, object_group: Reference | None, the_location: CompoundName
    ) -> Reference | None:
        """Remove the member at a location; return the group's newest reference."""
        raise NotImplementedError

    @raises(UnknownGroup)
    async def locations_of_members(self, object_group: Reference | None) -> list[CompoundName]:
        """The locations of the members."""
        raise NotImplementedError

    @raises(UnknownGroup)
    async def get_object_group_id(self, object_group: Reference | None) -> ULongLong:
        """The number of a group."""
        raise NotImplementedError

    @raises(UnknownGroup)
    async def get_object_group_ref(self, object_group: Reference | None) -> Reference | None:
        """The newest reference of a group."""
        raise NotImplementedError

    @raises(UnknownGroup, UnknownMember)
    async def get_member_ref(self, object_group: Reference | None, loc: CompoundName) -> Reference | None:
        """The member at a location."""
        raise NotImplementedError


class ServedGroups(ObjectGroupManager):
    """The servant: makes a manager of this process callable by other programs."""

    def __init__(self, manager: GroupManager) -> None:
        self._manager = manager

    async def add_member(
        self, object_group: Reference | None, the_location: CompoundName, member: Reference | None
    ) -> Reference | None:
        if member is None:
            raise ObjectNotAdded("nothing cannot be a member")
        try:
            place = to_string(the_location)
        except InvalidName as error:
            raise ObjectNotAdded(str(error)) from None
        with _told():
            if len(self._manager.locations_of_members(_group(object_group))) >= MEMBERS_MAX:
                raise ObjectNotAdded(f"a group has at most {MEMBERS_MAX:,} members")
            return self._manager.add_member(_group(object_group), place, member)

    async def remove_member(
        self, object_group: Reference | None, the_location: CompoundName
    ) -> Reference | None:
        with _told():
            return self._manager.remove_member(_group(object_group), _place(the_location))

    async def locations_of_members(self, object_group: Reference | None) -> list[CompoundName]:
        with _told():
            return [to_name(each) for each in self._manager.locations_of_members(_group(object_group))]

    async def get_object_group_id(self, object_group: Reference | None) -> ULongLong:
        with _told():
            return self._manager.get_object_group_id(_group(object_group))

    async def get_object_group_ref(self, object_group: Reference | None) -> Reference | None:
        with _told():
            return self._manager.get_object_group_ref(_group(object_group))

    async def get_member_ref(self, object_group: Reference | None, loc: CompoundName) -> Reference | None:
        with _told():
            return self._manager.get_member_ref(_group(object_group), _place(loc))


def _group(reference: Reference | None) -> Reference:
    if reference is None:
        raise UnknownGroup("nothing is no group")
    return reference


def _place(location: CompoundName) -> str:
    """A location as text. UnknownMember if it is invalid: no member can be there."""
    try:
        return to_string(location)
    except InvalidName as error:
        raise UnknownMember(str(error)) from None


@contextmanager
def _told() -> Iterator[None]:
    """Turn the errors of the manager into the exceptions that the IDL declares."""
    try:
        yield
    except (ObjectGroupNotFound, NotAGroupObject) as error:
        raise UnknownGroup(str(error)) from None
    except MemberNotFound as error:
        raise UnknownMember(str(error)) from None
    except MemberAlreadyPresent as error:
        raise PresentMember(str(error)) from None
