"""Names for references: CORBA's naming service, as a servant that keeps its bindings in memory.

A name is a path of components, each an id and a kind; as text `forum.dir/lunch`. A context binds components to
references: of objects and of groups alike, or of other contexts, which may live in other processes. An operation on a
path is passed on from context to context until one component is left:

    resolve, unbind               NotFound if nothing is bound there
    bind, bind_context            AlreadyBound if something is
    rebind, rebind_context        replaces what was bound, if that is of the same type
    new_context, bind_new_context another context here; contexts on the path are not created
    destroy                       NotEmpty unless all its bindings are gone
    list                          the bindings of one context, the rest by an iterator

Texts and rules are those of CosNaming, with the additions of NamingContextExt, so that any ORB's client can use it.
"""

import enum
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Any
from urllib.parse import quote

from inga.corba.broker.idl import SystemException, ULong, UserException, interface, raises, user_exception
from inga.corba.wire.reference import Reference
from inga.model.errors import UsageError

PREFIX = "IDL:omg.org/CosNaming"
KEY = b"NameService"
"""The object key by which clients find the root context."""
COMPONENTS_MAX = 64
"""Components of one name."""
OCTETS_MAX = 64 << 20
"""Octets of all names and references that a service keeps."""
OVERHEAD = 500
"""Octets that a binding or a context costs in addition."""
ITERATORS_MAX = 64
"""Open iterators; beyond, the oldest is closed: clients forget to destroy them."""
LIST_MAX = 1000
"""Bindings in one reply; the iterator has the others."""


@dataclass(frozen=True, slots=True)
class NameComponent:
    """One step of a name."""

    id: str
    kind: str = ""


CompoundName = list[NameComponent]


class BindingType(enum.Enum):
    """What a name is bound to."""

    OBJECT = "object"
    CONTEXT = "context"


@dataclass(frozen=True, slots=True)
class Binding:
    """A name within a context, and what it is bound to."""

    binding_name: CompoundName
    binding_type: BindingType


Bindings = list[Binding]


class NotFoundReason(enum.Enum):
    """Why a name was not found."""

    MISSING_NODE = "nothing is bound there"
    NOT_CONTEXT = "it is no context"
    NOT_OBJECT = "it is a context"


@user_exception(f"{PREFIX}/NamingContext/NotFound:1.0")
class NotFound(UserException):
    """The first component of the rest is not bound, or to something of the wrong type."""

    why: NotFoundReason
    rest_of_name: CompoundName

    def __str__(self) -> str:
        return f"{to_string(self.rest_of_name)}: {self.why.value}"


@user_exception(f"{PREFIX}/NamingContext/CannotProceed:1.0")
class CannotProceed(UserException):
    """The service could not go on; the client may try the rest of the name at that context."""

    cxt: Reference | None
    rest_of_name: CompoundName


@user_exception(f"{PREFIX}/NamingContext/InvalidName:1.0")
class InvalidName(UserException):
    """Not a name."""


@user_exception(f"{PREFIX}/NamingContext/AlreadyBound:1.0")
class AlreadyBound(UserException):
    """Something else has this name."""


@user_exception(f"{PREFIX}/NamingContext/NotEmpty:1.0")
class NotEmpty(UserException):
    """The context still has bindings."""


@user_exception(f"{PREFIX}/NamingContextExt/InvalidAddress:1.0")
class InvalidAddress(UserException):
    """Not the address part of a URL."""


@interface(f"{PREFIX}/BindingIterator:1.0")
class BindingIterator:
    """The bindings that did not fit into one answer."""

    async def next_one(self) -> tuple[bool, Binding]:
        """Whether there is another binding, and that binding."""
        raise NotImplementedError

    async def next_n(self, how_many: ULong) -> tuple[bool, Bindings]:
        """Whether there are other bindings, and up to `how_many` of them."""
        raise NotImplementedError

    async def destroy(self) -> None:
        """Close the iterator."""
        raise NotImplementedError


@interface(f"{PREFIX}/NamingContext:1.0")
class NamingContext:
    """What every context can do."""

    @raises(NotFound, CannotProceed, InvalidName, AlreadyBound)
    async def bind(self, name: CompoundName, obj: Reference | None) -> None:
        """Give an object a name."""
        raise NotImplementedError

    @raises(NotFound, CannotProceed, InvalidName)
    async def rebind(self, name: CompoundName, obj: Reference | None) -> None:
        """Give an object a name that another may have now."""
        raise NotImplementedError

    @raises(NotFound, CannotProceed, InvalidName, AlreadyBound)
    async def bind_context(self, name: CompoundName, context: Reference | None) -> None:
        """Give a context a name, so that others can be found through it."""
        raise NotImplementedError

    @raises(NotFound, CannotProceed, InvalidName)
    async def rebind_context(self, name: CompoundName, context: Reference | None) -> None:
        """Give a context a name that another may have now."""
        raise NotImplementedError

    @raises(NotFound, CannotProceed, InvalidName)
    async def resolve(self, name: CompoundName) -> Reference | None:
        """What has this name."""
        raise NotImplementedError

    @raises(NotFound, CannotProceed, InvalidName)
    async def unbind(self, name: CompoundName) -> None:
        """Free a name."""
        raise NotImplementedError

    async def new_context(self) -> Reference | None:
        """A context without a name."""
        raise NotImplementedError

    @raises(NotFound, AlreadyBound, CannotProceed, InvalidName)
    async def bind_new_context(self, name: CompoundName) -> Reference | None:
        """A new context under a name."""
        raise NotImplementedError

    @raises(NotEmpty)
    async def destroy(self) -> None:
        """Remove an empty context. Names that lead to it have to be unbound too."""
        raise NotImplementedError

    async def list(self, how_many: ULong) -> tuple[Bindings, Reference | None]:
        """So many bindings, and an iterator for the others if there are any."""
        raise NotImplementedError


@interface(f"{PREFIX}/NamingContextExt:1.0")
class NamingContextExt(NamingContext):
    """A naming context that also takes names as text."""

    @raises(InvalidName)
    async def to_string(self, name: CompoundName) -> str:
        """A name as text."""
        return to_string(name)

    @raises(InvalidName)
    async def to_name(self, text: str) -> CompoundName:
        """A name from text."""
        return to_name(text)

    @raises(InvalidAddress, InvalidName)
    async def to_url(self, address: str, text: str) -> str:
        """A URL that names an object in a naming service."""
        if not address:
            raise InvalidAddress("an empty address")
        to_name(text)
        return f"corbaname:{address}#{quote(text, safe=URL_SAFE)}"

    @raises(NotFound, CannotProceed, InvalidName)
    async def resolve_str(self, text: str) -> Reference | None:
        """What has this name, which is given as text."""
        return await self.resolve(to_name(text))


URL_SAFE = ";/:?@&=+$,-_.!~*'()"


class NameService:
    """The contexts of one process. `root` is where names begin."""

    def __init__(
        self,
        activate: Callable[[Any], Reference],
        deactivate: Callable[[Any], None],
        local: Callable[[Reference], Any],
        far: Callable[[Reference], NamingContext],
    ) -> None:
        """`activate` and `deactivate` are an adapter's; `local` finds the local context behind a reference, `far` makes a proxy of a
        remote one."""
        self._activate = activate
        self._deactivate = deactivate
        self._local = local
        self._far = far
        self._iterators: list[Iterating] = []
        self.octets = 0
        self.root = LocalContext(self, is_root=True)

    def context(self) -> Reference:
        """Create an empty context."""
        self.count(OVERHEAD)
        return self._activate(LocalContext(self))

    def destroyed(self, context: "LocalContext") -> None:
        """A context was destroyed."""
        self.count(-OVERHEAD)
        self._deactivate(context)

    def iterate(self, context: "LocalContext", components: CompoundName) -> Reference:
        """An iterator over these bindings of a context."""
        if len(self._iterators) >= ITERATORS_MAX:
            self.iterated(self._iterators[0])
        iterating = Iterating(self, context, components)
        self._iterators.append(iterating)
        return self._activate(iterating)

    def iterated(self, iterating: "Iterating") -> None:
        """Close an iterator."""
        self._iterators.remove(iterating)
        self._deactivate(iterating)

    def at(self, reference: Reference) -> NamingContext:
        """The context behind a reference, local or remote."""
        ours = self._local(reference)
        return ours if isinstance(ours, LocalContext) else self._far(reference)

    def count(self, more: int) -> None:
        """Add to the octets that all bindings cost; NO_RESOURCES beyond the bound."""
        if more > 0 and self.octets + more > OCTETS_MAX:
            raise SystemException("NO_RESOURCES", f"names fill {OCTETS_MAX} octets already", completed="no")
        self.octets += more


class LocalContext(NamingContextExt):
    """A context of this process."""

    def __init__(self, service: NameService, *, is_root: bool = False) -> None:
        self._service = service
        self._is_root = is_root
        self._bound: dict[NameComponent, tuple[Reference, BindingType]] = {}

    async def bind(self, name: CompoundName, obj: Reference | None) -> None:
        await self._set("bind", name, obj, BindingType.OBJECT)

    async def rebind(self, name: CompoundName, obj: Reference | None) -> None:
        await self._set("rebind", name, obj, BindingType.OBJECT)

    async def bind_context(self, name: CompoundName, context: Reference | None) -> None:
        await self._set("bind_context", name, context, BindingType.CONTEXT)

    async def rebind_context(self, name: CompoundName, context: Reference | None) -> None:
        await self._set("rebind_context", name, context, BindingType.CONTEXT)

    async def resolve(self, name: CompoundName) -> Reference | None:
        if len(_checked(name)) > 1:
            found: Reference | None = await self._pass_on("resolve", name)
            return found
        return self._get(name)[0]

    async def unbind(self, name: CompoundName) -> None:
        if len(_checked(name)) > 1:
            await self._pass_on("unbind", name)
            return
        reference, _ = self._get(name)
        del self._bound[name[0]]
        self._service.count(-_cost(name[0], reference))

    async def new_context(self) -> Reference | None:
        return self._service.context()

    async def bind_new_context(self, name: CompoundName) -> Reference | None:
        if len(_checked(name)) > 1:
            made: Reference | None = await self._pass_on("bind_new_context", name)
            return made
        if name[0] in self._bound:
            raise _already_bound(name)
        context = self._service.context()
        try:
            self._put(name[0], context, BindingType.CONTEXT)
        except SystemException:
            await self._service.at(context).destroy()
            raise
        return context

    async def destroy(self) -> None:
        if self._bound:
            raise NotEmpty(f"the context still has {len(self._bound)} bindings")
        if self._is_root:
            raise SystemException("NO_PERMISSION", "the root context stays", completed="no")
        self._service.destroyed(self)

    async def list(self, how_many: ULong) -> tuple[Bindings, Reference | None]:
        components = iter(self._bound)
        first = [
            Binding([each], self._bound[each][1]) for each in islice(components, min(how_many, LIST_MAX))
        ]
        rest = list(components)
        return first, self._service.iterate(self, rest) if rest else None

    def _still_bound(self, component: NameComponent) -> Binding | None:
        """The binding that an iterator has reached, if it still exists."""
        found = self._bound.get(component)
        return None if found is None else Binding([component], found[1])

    async def _set(
        self, how: str, name: CompoundName, reference: Reference | None, kind: BindingType
    ) -> None:
        if len(_checked(name)) > 1:
            await self._pass_on(how, name, reference)
            return
        if reference is None:
            raise SystemException("BAD_PARAM", "a name for nothing", completed="no")
        before = self._bound.get(name[0])
        if before is not None and not how.startswith("rebind"):
            raise _already_bound(name)
        if before is not None and before[1] is not kind:
            wrong = NotFoundReason.NOT_CONTEXT if kind is BindingType.CONTEXT else NotFoundReason.NOT_OBJECT
            raise NotFound(wrong, name)
        self._put(name[0], reference, kind)

    def _put(self, component: NameComponent, reference: Reference, kind: BindingType) -> None:
        before = self._bound.get(component)
        freed = 0 if before is None else _cost(component, before[0])
        self._service.count(_cost(component, reference) - freed)
        self._bound[component] = reference, kind

    def _get(self, name: CompoundName) -> tuple[Reference, BindingType]:
        if name[0] not in self._bound:
            raise NotFound(NotFoundReason.MISSING_NODE, name)
        return self._bound[name[0]]

    async def _pass_on(self, how: str, name: CompoundName, *arguments: Any) -> Any:
        """Call the same operation, with the rest of the name, at the context that the first component is bound to."""
        reference, kind = self._get(name)
        if kind is not BindingType.CONTEXT:
            raise NotFound(NotFoundReason.NOT_CONTEXT, name)
        rest = name[1:]
        try:
            return await getattr(self._service.at(reference), how)(rest, *arguments)
        except AlreadyBound:
            raise _already_bound(name) from None  # with the whole path
        except (SystemException, UsageError) as error:
            if isinstance(error, SystemException) and error.name in ("BAD_PARAM", "NO_RESOURCES"):
                raise
            raise CannotProceed(reference, rest) from error


class Iterating(BindingIterator):
    """The rest of a list. Bindings that were removed meanwhile are skipped."""

    def __init__(self, service: NameService, context: LocalContext, components: CompoundName) -> None:
        self._service = service
        self._rest = (found for each in components if (found := context._still_bound(each)) is not None)

    async def next_one(self) -> tuple[bool, Binding]:
        found = next(self._rest, None)
        return (False, Binding([], BindingType.OBJECT)) if found is None else (True, found)

    async def next_n(self, how_many: ULong) -> tuple[bool, Bindings]:
        if how_many == 0:
            raise SystemException("BAD_PARAM", "none are asked for", completed="no")
        found = list(islice(self._rest, min(how_many, LIST_MAX)))
        return bool(found), found

    async def destroy(self) -> None:
        self._service.iterated(self)


def to_string(name: CompoundName) -> str:
    """A name as text: `id.kind/id.kind`; separators within components are escaped, an empty component is `.`."""
    return "/".join(
        _escaped(each.id) + (f".{_escaped(each.kind)}" if each.kind or not each.id else "")
        for each in _checked(name)
    )


def to_name(text: str) -> CompoundName:
    """The name that a text stands for."""
    parts: list[list[str]] = [[""]]
    letters = iter(text)
    for letter in letters:
        if letter == "\\":
            escaped = next(letters, "")
            if escaped not in ("/", ".", "\\"):
                raise InvalidName(f"{text}: a backslash stands before / or . or another one")
            parts[-1][-1] += escaped
        elif letter == "/":
            parts.append([""])
        elif letter == ".":
            parts[-1].append("")
        else:
            parts[-1][-1] += letter
    return _checked([_component(each, text) for each in parts])


def _cost(component: NameComponent, reference: Reference) -> int:
    """Octets that a binding counts as."""
    texts = len(component.id) + len(component.kind) + len(reference.type_id)
    return 4 * texts + sum(len(each.data) for each in reference.profiles) + OVERHEAD


def _already_bound(name: CompoundName) -> AlreadyBound:
    return AlreadyBound(f"{to_string(name)}: something has this name already")


def _component(parts: list[str], text: str) -> NameComponent:
    # A dot at the end would announce a kind that does not follow; alone it is the empty component.
    if len(parts) > 2 or parts == [""] or (len(parts) == 2 and parts[0] and not parts[1]):
        raise InvalidName(f"{text or 'an empty text'} is no name; one is written id.kind/id.kind")
    return NameComponent(*parts)


def _checked(name: CompoundName) -> CompoundName:
    if not 0 < len(name) <= COMPONENTS_MAX:
        raise InvalidName(f"a name of {len(name)} components; there are 1 to {COMPONENTS_MAX}")
    return name


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("/", "\\/").replace(".", "\\.")
