"""A local manager of object groups: makes their references, and keeps their members by location.

The operations are those of CORBA's multicast group manager, as methods of an object of this process. Properties say
how groups are made; they are set for all groups, for those of a type, or for one group; the most specific one applies:

    creation_mode   CREATE_ADDRESS_DEFERED    the address is set later, by `set_properties_dynamically`
                    CREATE_ADDRESS_GENERATED  one of the manager's range (the default)
                    CREATE_ADDRESS_SUPPLIED   that of `address` and `port`
    address, port   of the multicast group
    domain          of the group's identity
    group_iiop      an `Iiop` that answers requests which need a reply
    gateway         an `Iiop` for clients that cannot multicast
    reliable        whether members repair lost packets (ReMIOP) or not (MIOP)

The version of a group rises when its address changes, since old references then lead nowhere. It does not rise when
members join or leave, so that references stay valid.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Network, ip_address
from typing import Any

from inga.corba.broker.dispatch import group_key
from inga.corba.wire.giop import Tagged
from inga.corba.wire.reference import (
    TAG_UIPMC,
    GroupIdentity,
    Iiop,
    Reference,
    decode_uipmc,
    encode_uipmc,
    group_reference,
)
from inga.model.errors import UsageError

CREATE_ADDRESS_DEFERED, CREATE_ADDRESS_GENERATED, CREATE_ADDRESS_SUPPLIED = 0, 1, 2
"""The first is misspelled in the standard's IDL, too."""
NO_ADDRESS = "0.0.0.0"
"""The address in the reference of a group that has none yet."""
RELIABLE = 0x696E6701
"""The component of a group's profile that says that it uses ReMIOP. Other ORBs ignore it and see a group of MIOP."""
PROPERTIES: dict[str, tuple[Any, Any]] = {
    "creation_mode": (CREATE_ADDRESS_GENERATED, int),
    "address": (None, str | None),
    "port": (7400, int),
    "domain": ("inga", str),
    "group_iiop": (None, Iiop | None),
    "gateway": (None, Iiop | None),
    "reliable": (False, bool),
}
"""The default and the type of each property."""

Properties = Mapping[str, Any]
Factory = Callable[[str, Properties], Reference]


class GroupError(UsageError):
    """The manager cannot do what was requested."""


class ObjectGroupNotFound(GroupError):
    """The manager has made no such group, or deleted it."""


class MemberNotFound(GroupError):
    """There is no member at that location."""


class MemberAlreadyPresent(GroupError):
    """There is a member at that location already."""


class InvalidProperty(GroupError):
    """A property with an unknown name or an invalid value."""


class NoFactory(GroupError):
    """There is no factory that can make members at that location."""


@dataclass(slots=True)
class _Managed:
    type_id: str
    identity: GroupIdentity
    properties: dict[str, Any]
    address: str
    members: dict[str, Reference] = field(default_factory=dict)


class GroupManager:
    """Groups by their numbers, from 1."""

    def __init__(
        self, network: str = "239.255.0.0/16", *, factories: Mapping[str, Factory] | None = None
    ) -> None:
        """Addresses are generated from `network`; `factories` make members, by location."""
        self._network = IPv4Network(network)
        if not self._network.is_multicast:
            raise UsageError(f"{network} is no network of multicast addresses.")
        self._factories = dict(factories or {})
        self._defaults: dict[str, Any] = {}
        self._by_type: dict[str, dict[str, Any]] = {}
        self._groups: dict[int, _Managed] = {}
        self._number = 0

    # Properties

    def set_default_properties(self, properties: Properties) -> None:
        """Set properties for all groups made from now on."""
        self._defaults.update(_checked(properties))

    def get_default_properties(self) -> dict[str, Any]:
        """The properties of groups for which nothing more specific is set."""
        return {name: default for name, (default, _) in PROPERTIES.items()} | self._defaults

    def remove_default_properties(self, names: Iterable[str]) -> None:
        """Set properties back to those that the manager began with."""
        _remove(self._defaults, names)

    def set_type_properties(self, type_id: str, properties: Properties) -> None:
        """Set properties for groups of one type made from now on."""
        self._by_type.setdefault(type_id, {}).update(_checked(properties))

    def get_type_properties(self, type_id: str) -> dict[str, Any]:
        """The properties of groups of one type."""
        return self.get_default_properties() | self._by_type.get(type_id, {})

    def remove_type_properties(self, type_id: str, names: Iterable[str]) -> None:
        """Set properties of one type back to those of all groups."""
        _remove(self._by_type.get(type_id, {}), names)

    def set_properties_dynamically(self, group: Reference, properties: Properties) -> Reference:
        """Change a group; its new reference."""
        managed = self._managed(group)
        fixed = set(properties) & {"creation_mode", "domain"}
        if fixed:
            raise InvalidProperty(f"{', '.join(sorted(fixed))} cannot be changed once the group is made.")
        before = managed.address, managed.properties["port"]
        managed.properties.update(_checked(properties))
        if properties.get("address"):
            managed.address = properties["address"]
        if before != (managed.address, managed.properties["port"]):
            identity = managed.identity
            managed.identity = identity._replace(ref_version=identity.ref_version + 1)
        return _reference(managed)

    def get_properties(self, group: Reference) -> dict[str, Any]:
        """The properties of a group."""
        managed = self._managed(group)
        return managed.properties | {"address": managed.address}

    # Making and deleting

    def create_object(self, type_id: str, criteria: Properties | None = None) -> tuple[Reference, int]:
        """A new group: its reference, and the number under which to delete it."""
        properties = self.get_type_properties(type_id) | _checked(criteria or {})
        number = self._number + 1
        address = self._address(properties, number)
        self._number = number
        managed = _Managed(type_id, GroupIdentity(properties["domain"], number), properties, address)
        self._groups[number] = managed
        return _reference(managed), number

    def delete_object(self, creation_id: int) -> None:
        """The group is no more. Its members are not touched."""
        if self._groups.pop(creation_id, None) is None:
            raise ObjectGroupNotFound(f"There is no group {creation_id}.")

    # Members

    def create_member(
        self, group: Reference, location: str, type_id: str, criteria: Properties | None = None
    ) -> Reference:
        """Have the factory of a location make a member; the group's reference."""
        self._free(group, location)
        if location not in self._factories:
            raise NoFactory(f"Nobody can make members at {location}.")
        return self.add_member(group, location, self._factories[location](type_id, criteria or {}))

    def add_member(self, group: Reference, location: str, member: Reference) -> Reference:
        """An object that exists becomes a member; the group's reference."""
        managed = self._free(group, location)
        managed.members[location] = member
        return _reference(managed)

    def remove_member(self, group: Reference, location: str) -> Reference:
        """No member there any more; the group's reference."""
        managed = self._managed(group)
        self.get_member_ref(group, location)
        del managed.members[location]
        return _reference(managed)

    def locations_of_members(self, group: Reference) -> list[str]:
        """Where there are members."""
        return list(self._managed(group).members)

    def groups_at_location(self, location: str) -> list[Reference]:
        """The groups that have a member there."""
        return [_reference(each) for each in self._groups.values() if location in each.members]

    def get_object_group_id(self, group: Reference) -> int:
        """The number of a group."""
        return self._managed(group).identity.group_id

    def get_object_group_ref(self, group: Reference) -> Reference:
        """The newest reference of a group."""
        return _reference(self._managed(group))

    def newest(self, domain: str, number: int) -> Reference | None:
        """The newest reference of a group by its identity; None if it is none of ours."""
        managed = self._groups.get(number)
        return None if managed is None or managed.identity.domain != domain else _reference(managed)

    def get_member_ref(self, group: Reference, location: str) -> Reference:
        """The member at a location."""
        members = self._managed(group).members
        if location not in members:
            raise MemberNotFound(f"There is no member at {location}.")
        return members[location]

    def _managed(self, group: Reference) -> _Managed:
        domain, number, _ = group_key(group)  # of any version: callers may have old references
        managed = self._groups.get(number)
        if managed is None or managed.identity.domain != domain:
            raise ObjectGroupNotFound(f"Group {number} of {domain} is not known here.")
        return managed

    def _free(self, group: Reference, location: str) -> _Managed:
        managed = self._managed(group)
        if location in managed.members:
            raise MemberAlreadyPresent(f"There is a member at {location} already.")
        return managed

    def _address(self, properties: Properties, number: int) -> str:
        mode, supplied = properties["creation_mode"], properties["address"]
        if mode == CREATE_ADDRESS_DEFERED:
            return NO_ADDRESS
        if mode == CREATE_ADDRESS_SUPPLIED:
            if not supplied:
                raise InvalidProperty("A group whose address is supplied needs the property address.")
            return str(supplied)
        return str(self._network[number % self._network.num_addresses])


def is_reliable(components: Iterable[Tagged]) -> bool:
    """Whether a group uses ReMIOP: its members repair lost packets."""
    return any(each.tag == RELIABLE for each in components)


def reliable(reference: Reference) -> Reference:
    """The same group, reached by ReMIOP."""
    return Reference(reference.type_id, tuple(map(_reliable_profile, reference.profiles)))


def _reliable_profile(profile: Tagged) -> Tagged:
    if profile.tag != TAG_UIPMC:
        return profile
    way = decode_uipmc(profile.data)
    if is_reliable(way.components):
        return profile
    return encode_uipmc(replace(way, components=(*way.components, Tagged(RELIABLE, b""))))


def _reference(managed: _Managed) -> Reference:
    properties = managed.properties
    made = group_reference(
        managed.type_id,
        managed.identity,
        managed.address,
        0 if managed.address == NO_ADDRESS else properties["port"],
        group_iiop=properties["group_iiop"],
        gateway=properties["gateway"],
    )
    return reliable(made) if properties["reliable"] else made


def _checked(properties: Properties) -> dict[str, Any]:
    _known(properties)
    for name, value in properties.items():
        if not isinstance(value, PROPERTIES[name][1]) or (isinstance(value, bool) and name != "reliable"):
            raise InvalidProperty(f"The property {name} cannot be {value!r}.")
    if not CREATE_ADDRESS_DEFERED <= properties.get("creation_mode", 0) <= CREATE_ADDRESS_SUPPLIED:
        raise InvalidProperty("The property creation_mode is 0, 1 or 2.")
    if not 0 < properties.get("port", 1) < 1 << 16:
        raise InvalidProperty("The property port is between 1 and 65535.")
    if (address := properties.get("address")) is not None and not _is_multicast(address):
        raise InvalidProperty(
            f"The property address is one of multicast, as 239.255.0.1 is, not {address!r}."
        )
    return dict(properties)


def _is_multicast(address: str) -> bool:
    try:
        return ip_address(address).is_multicast
    except ValueError:
        return False


def _remove(properties: dict[str, Any], names: Iterable[str]) -> None:
    for name in _known(names):
        properties.pop(name, None)


def _known(names: Iterable[str]) -> list[str]:
    for name in (found := list(names)):
        if name not in PROPERTIES:
            raise InvalidProperty(f"There is no property {name}; there are {', '.join(PROPERTIES)}.")
    return found
