"""Services on a network: naming, finding objects by name, managing the members of groups."""

from typing import Any
from urllib.parse import unquote

from inga.corba.broker.groups import GroupManager
from inga.corba.broker.managed import KEY as GROUPS_KEY
from inga.corba.broker.managed import ServedGroups
from inga.corba.broker.naming import KEY, NameService, NamingContext, NamingContextExt, to_name
from inga.corba.orb.orb import Orb, as_reference
from inga.corba.wire.reference import Reference, read
from inga.model.errors import UsageError

ADAPTER = "names"


def serve_names(orb: Orb) -> Reference:
    """Make an Orb a naming service; the reference of its root context."""
    adapter = orb.adapter(ADAPTER)

    def activate(servant: Any) -> Reference:
        return orb.activate(servant, adapter=ADAPTER)

    def deactivate(servant: Any) -> None:
        object_id = adapter.object_id(servant)
        if object_id is not None:
            adapter.deactivate(object_id)

    service = NameService(activate, deactivate, orb.local, lambda far: orb.proxy(NamingContextExt, far))
    return orb.activate(service.root, KEY)


def serve_groups(orb: Orb, manager: GroupManager) -> Reference:
    """Let other programs manage the members of this process's groups; return the reference of the manager. Members in this process
    forward callers that use an older reference of their group to the newest one."""
    orb.broker.managed = manager.newest
    return orb.activate(ServedGroups(manager), GROUPS_KEY)


async def find(orb: Orb, text: str) -> Reference:
    """The object that a reference, a corbaloc or a corbaname URL stands for; the last asks a naming service."""
    if not text.startswith("corbaname:"):
        return read(text)
    where, _, name = text.removeprefix("corbaname:").partition("#")
    service = read(f"corbaloc:{where}" + ("" if "/" in where else f"/{KEY.decode()}"))
    if not name:
        return service
    return await resolve(orb, service, unquote(name))


async def resolve(orb: Orb, service: Reference | str, name: str) -> Reference:
    """The object that has this name in a naming service."""
    found = await orb.proxy(NamingContext, as_reference(service)).resolve(to_name(name))
    if found is None:
        raise UsageError(f"{name} is the name of a nil reference.")
    return found
