"""Describes references, as data and as text."""

from typing import Any

from inga.corba.wire import reference as references
from inga.corba.wire.giop import Tagged
from inga.corba.wire.reference import GroupIdentity, Iiop, Reference, Uipmc
from inga.model.errors import UsageError, WireError
from inga.model.text import printable

PROFILES = {0: "TAG_INTERNET_IOP", 1: "TAG_MULTIPLE_COMPONENTS", 3: "TAG_UIPMC"}
COMPONENTS = {
    0: "TAG_ORB_TYPE",
    1: "TAG_CODE_SETS",
    2: "TAG_POLICIES",
    3: "TAG_ALTERNATE_IIOP_ADDRESS",
    20: "TAG_SSL_SEC_TRANS",
    33: "TAG_CSI_SEC_MECH_LIST",
    39: "TAG_GROUP",
    40: "TAG_GROUP_IIOP",
    references.MEMBER: "member of inga",
}


def describe(reference: Reference) -> dict[str, Any]:
    """A reference as the JSON object that `inga ior --json` prints."""
    return {
        "type_id": reference.type_id,
        "profiles": [_profile(each) for each in reference.profiles],
        "corbaloc": _corbaloc(reference),
        "ior": references.to_ior(reference),
    }


def _corbaloc(reference: Reference) -> str | None:
    try:
        return references.to_corbaloc(reference)
    except (UsageError, WireError):
        return None


def _profile(profile: Tagged) -> dict[str, Any]:
    content = _tagged(profile, PROFILES)
    try:
        if profile.tag == references.TAG_UIPMC:
            return {**content, **_uipmc(references.decode_uipmc(profile.data))}
        if profile.tag == references.TAG_INTERNET_IOP:
            return {**content, **_iiop(references.decode_iiop(profile.data))}
    except WireError as error:
        return {**content, "damaged": str(error)}
    return content


def _uipmc(profile: Uipmc) -> dict[str, Any]:
    return {
        "version": _version(profile.version),
        "address": profile.address,
        "port": profile.port,
        "components": [_component(each, of_group=True) for each in profile.components],
    }


def _iiop(profile: Iiop) -> dict[str, Any]:
    return {
        "version": _version(profile.version),
        "host": profile.host,
        "port": profile.port,
        "key": profile.key.hex(),
        "components": [_component(each, of_group=False) for each in profile.components],
    }


def _component(component: Tagged, *, of_group: bool) -> dict[str, Any]:
    content = _tagged(component, COMPONENTS)
    tag, data = component
    try:
        if tag == references.TAG_GROUP:
            return {**content, "group": group_of(references.decode_group(data))}
        if tag == references.TAG_GROUP_IIOP:
            return {**content, "object": _iiop(references.decode_group_iiop(data))}
        if tag == references.TAG_SSL_SEC_TRANS:
            return {**content, "secure": references.decode_secure(data)._asdict()}
        if tag == references.MEMBER:
            return {**content, "member": references.decode_member(data)}
        if tag == references.JACORB_GROUP_IIOP and of_group:
            found = _iiop(references.decode_group_iiop(data))
            return {**content, "name": "TAG_GROUP_IIOP as JacORB numbers it", "object": found}
    except WireError as error:
        return content if tag == references.JACORB_GROUP_IIOP else {**content, "damaged": str(error)}
    return content


def _tagged(tagged: Tagged, names: dict[int, str]) -> dict[str, Any]:
    return {"tag": tagged.tag, "name": names.get(tagged.tag), "data": tagged.data.hex()}


def group_of(group: GroupIdentity) -> dict[str, Any]:
    """A group as JSON."""
    return {"domain": group.domain, "id": group.group_id, "ref_version": group.ref_version}


def group_text(group: dict[str, Any]) -> str:
    """The same in a line of text."""
    version = f" version {group['ref_version']}" if group["ref_version"] else ""
    return printable(f"{group['domain']}/{group['id']}{version}")


def _version(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"


def text_of(content: dict[str, Any]) -> str:
    """A described reference as lines of text."""
    lines = [f"type      {printable(content['type_id']) or '(not said)'}"]
    for profile in content["profiles"]:
        lines.append(f"profile   {_name(profile)}: {_what(profile)}")
        lines += (f"          - {_name(each)}: {_what(each)}" for each in profile.get("components", ()))
    if not content["profiles"]:
        lines.append("profile   none: this is the nil reference")
    if content["corbaloc"]:
        lines.append(f"corbaloc  {printable(content['corbaloc'])}")
    lines.append(f"ior       {content['ior']}")
    return "\n".join(lines)


def _name(tagged: dict[str, Any]) -> str:
    return f"{tagged['name']} ({tagged['tag']})" if tagged["name"] else f"number {tagged['tag']}"


def _what(tagged: dict[str, Any]) -> str:
    if "damaged" in tagged:
        return f"damaged: {tagged['damaged']}"
    if "address" in tagged:
        return printable(f"{tagged['address']} port {tagged['port']}, MIOP {tagged['version']}")
    if "host" in tagged:
        return _object_text(tagged)
    if "group" in tagged:
        return f"group {group_text(tagged['group'])}"
    if "secure" in tagged:
        way = tagged["secure"]
        return f"TLS port {way['port']}, supports 0x{way['supports']:x}, requires 0x{way['requires']:x}"
    if "member" in tagged:
        return printable(tagged["member"])
    if "object" in tagged:
        return _object_text(tagged["object"])
    return f"{len(tagged['data']) // 2} octets"


def _object_text(body: dict[str, Any]) -> str:
    return printable(
        f"{body['host']} port {body['port']}, IIOP {body['version']}, key {key_text(body['key'])}"
    )


def key_text(key: str) -> str:
    """An object key, given in hexadecimal: as text if it is printable, else unchanged."""
    octets = bytes.fromhex(key)
    return octets.decode("ascii") if octets.isascii() and octets.decode("ascii").isprintable() else key
