"""References to objects and groups: the published vectors, other ORBs' forms, URLs, and damaged text."""

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inga.corba.wire import reference as module
from inga.corba.wire.cdr import Decoder, Encoder
from inga.corba.wire.giop import Tagged
from inga.corba.wire.reference import (
    TAG_GROUP,
    TAG_GROUP_IIOP,
    TAG_INTERNET_IOP,
    TAG_UIPMC,
    GroupIdentity,
    Iiop,
    Reference,
    Uipmc,
    decode_group,
    decode_group_iiop,
    decode_iiop,
    decode_uipmc,
    encode_group,
    encode_group_iiop,
    encode_iiop,
    encode_uipmc,
    get_reference,
    group_reference,
    put_reference,
    read,
    to_corbaloc,
    to_ior,
)
from inga.model.errors import UsageError, WireError

VECTORS: dict[str, list[str]] = json.loads(
    (Path(__file__).parents[2] / "scenarios" / "miop" / "vectors.json").read_text()
)
GROUP = GroupIdentity("TestDomain", 1)
GROUP_OBJECT = Iiop("127.0.0.1", 2809, b"groupobj")
GATEWAY = Iiop("127.0.0.1", 2810, b"gateway")

URL = "corbaloc:miop:1.0@1.0-TestDomain-1/225.6.7.8:12345"
WITH_VERSION = "corbaloc:miop:1.0@1.0-TestDomain-1-7/225.6.7.8:12345"
WITHOUT_PREFIX = "corbaloc:miop:1.0-TestDomain-1/225.6.7.8:12345"
WITH_OBJECT = f"{URL};iiop:1.2@127.0.0.1:2809/groupobj"
IPV6 = "corbaloc:miop:1.0@1.0-dom-1/[ff01::10]:12345"
WITH_GATEWAY = f"{WITH_OBJECT},iiop:1.2@127.0.0.1:2810/gateway"


# The vectors


def test_a_group_with_everything() -> None:
    text = VECTORS["V8"][0]
    made = group_reference(
        "IDL:test/Hello:1.0", GROUP, "225.6.7.8", 12345, group_iiop=GROUP_OBJECT, gateway=GATEWAY
    )
    assert to_ior(made) == text
    reference = read(text)
    assert reference == made and reference.type_id == "IDL:test/Hello:1.0"
    (multicast,), (gateway,) = reference.multicast(), reference.iiop()
    assert (multicast.address, multicast.port, multicast.group) == ("225.6.7.8", 12345, GROUP)
    assert multicast.group_iiop == GROUP_OBJECT
    assert (gateway.host, gateway.port, gateway.key, gateway.group) == ("127.0.0.1", 2810, b"gateway", GROUP)
    assert to_corbaloc(reference) == WITH_GATEWAY


LEFT_OUT = {
    "multicast profile": TAG_UIPMC,
    "identity of the group": TAG_GROUP,
    "object that answers": TAG_GROUP_IIOP,
    "gateway": TAG_INTERNET_IOP,
}


@pytest.mark.parametrize("what", LEFT_OUT)
def test_a_writer_that_leaves_something_out_is_noticed(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = module.put_tagged

    def put(encoder: Encoder, items: Sequence[Tagged]) -> None:
        right(encoder, [each for each in items if each.tag != LEFT_OUT[what]])

    monkeypatch.setattr(module, "put_tagged", put)
    with pytest.raises(AssertionError):
        test_a_group_with_everything()


def test_the_profile_of_a_url_is_what_jacorb_makes_of_it() -> None:
    data = bytes.fromhex(VECTORS["V9"][0])
    assert read(URL) == Reference("", (Tagged(TAG_UIPMC, data),))
    assert decode_uipmc(data) == Uipmc("225.6.7.8", 12345, (encode_group(GROUP),))


# Round trips

texts = st.text(st.characters(min_codepoint=1, max_codepoint=255), max_size=20)
domains = st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="-/,;"), min_size=1)
versions = st.just((1, 0))
groups = st.builds(
    GroupIdentity, texts, st.integers(0, (1 << 64) - 1), st.integers(0, (1 << 32) - 1), versions
)
tagged = st.builds(Tagged, st.integers(0, (1 << 32) - 1), st.binary(max_size=20))
ports = st.integers(0, 65535)
components = st.lists(tagged, max_size=3).map(tuple)
objects = st.builds(
    Iiop, texts, ports, st.binary(max_size=20), st.sampled_from([(1, 1), (1, 2)]), components
) | st.builds(Iiop, texts, ports, st.binary(max_size=20), st.just((1, 0)))


@given(groups, st.booleans())
def test_groups_come_back(group: GroupIdentity, little: bool) -> None:
    assert decode_group(encode_group(group, little=little).data) == group


@given(objects, st.booleans())
def test_objects_come_back(body: Iiop, little: bool) -> None:
    assert decode_iiop(encode_iiop(body, little=little).data) == body
    assert decode_group_iiop(encode_group_iiop(body, little=little).data) == body


@given(texts, ports, components, st.booleans())
def test_multicast_profiles_come_back(
    address: str, port: int, kept: tuple[Tagged, ...], little: bool
) -> None:
    profile = Uipmc(address, port, kept)
    assert decode_uipmc(encode_uipmc(profile, little=little).data) == profile


@given(texts, st.lists(tagged.filter(lambda each: each.tag not in (0, 3)), max_size=4), st.booleans())
def test_unknown_profiles_survive(type_id: str, profiles: list[Tagged], little: bool) -> None:
    reference = Reference(type_id, (*profiles, encode_iiop(GATEWAY)))
    text = to_ior(reference, little=little)
    assert read(text) == read(text.upper()) == reference
    assert to_ior(read(text), little=little) == text


@given(
    domains,
    st.integers(0, (1 << 64) - 1),
    st.integers(0, (1 << 32) - 1),
    st.binary(min_size=1, max_size=12),
    st.binary(min_size=1, max_size=12),
    st.booleans(),
)
def test_urls_come_back(
    domain: str, group_id: int, ref_version: int, key: bytes, through: bytes, six: bool
) -> None:
    reference = group_reference(
        "",
        GroupIdentity(domain, group_id, ref_version),
        "ff01::10" if six else "225.6.7.8",
        12345,
        group_iiop=Iiop("::1" if six else "host.example", 2809, key),
        gateway=Iiop("127.0.0.1", 2810, through),
    )
    assert read(to_corbaloc(reference)) == reference


# What others write


def test_a_group_without_version() -> None:
    whole = encode_group(GROUP).data
    assert decode_group(whole[:-4]) == GROUP


def test_the_object_of_a_group_directly_as_component() -> None:
    direct = Tagged(TAG_GROUP_IIOP, encode_iiop(GROUP_OBJECT).data)
    assert Uipmc("225.6.7.8", 1, (direct,)).group_iiop == GROUP_OBJECT


def test_the_object_of_a_group_as_jacorb_stores_it() -> None:
    stored = Tagged(0, encode_iiop(GROUP_OBJECT).data)
    assert Uipmc("225.6.7.8", 1, (encode_group(GROUP), stored)).group_iiop == GROUP_OBJECT


def test_the_same_number_with_another_meaning() -> None:
    """As a component, 0 is also the type of an ORB."""
    encoder = Encoder.encapsulation()
    encoder.ulong(0x4A414300)
    profile = Uipmc("225.6.7.8", 1, (Tagged(0, encoder.data()),))
    assert profile.group_iiop is None
    assert decode_uipmc(encode_uipmc(profile).data) == profile


def test_a_profile_that_names_no_group() -> None:
    profile = Uipmc("225.6.7.8", 12345)
    assert profile.group is None and profile.group_iiop is None
    with pytest.raises(UsageError, match="which group"):
        to_corbaloc(Reference("", (encode_uipmc(profile),)))


def test_an_old_profile_has_no_components() -> None:
    old = Iiop("localhost", 2809, b"NameService", (1, 0))
    assert decode_iiop(encode_iiop(old).data) == old
    with pytest.raises(UsageError, match="has no components"):
        encode_iiop(Iiop("localhost", 2809, b"key", (1, 0), (Tagged(1, b""),)))


@pytest.mark.parametrize("text", ["utf-8", "latin-1"])
def test_text_around_a_reference_has_its_own_code_set(text: str) -> None:
    """The name of a type is read alike by everybody."""
    named = Reference("IDL:Café:1.0", ())
    encoder = Encoder(text=text)
    for _ in range(2):
        encoder.string("Über")
        put_reference(encoder, named)
    decoder = Decoder(encoder.data(), text=text)
    for _ in range(2):
        assert decoder.string() == "Über"
        assert get_reference(decoder) == named
    assert not decoder.remaining


def test_a_nil_reference() -> None:
    nil = read("IOR:" + "00" * 4 + "00000001" + "00" + "00" * 3 + "00000000")
    assert nil == Reference("", ()) and nil.is_nil
    with pytest.raises(UsageError, match="no profile"):
        to_corbaloc(nil)


# URLs


@pytest.mark.parametrize("url", [URL, WITH_VERSION, WITH_OBJECT, IPV6, WITH_GATEWAY])
def test_urls_are_written_as_they_were_read(url: str) -> None:
    assert to_corbaloc(read(url)) == url


def test_a_url_without_the_version_of_miop() -> None:
    assert read(WITHOUT_PREFIX) == read(URL)


def test_ports_versions_and_keys_of_objects() -> None:
    (body,) = read("corbaloc:iiop:localhost/a%2cb/c").iiop()
    assert body == Iiop("localhost", 2809, b"a,b/c")
    (body,) = read("corbaloc::1.0@[::1]:99/NameService").iiop()
    assert body == Iiop("::1", 99, b"NameService", (1, 0))
    first, second = read("corbaloc:iiop:one:1,iiop:two:2/a,b").iiop()
    assert (first.host, first.key, second.host, second.key) == ("one", b"a,b", "two", b"a,b")


@pytest.mark.parametrize(
    "url, why",
    [
        ("corbaloc:", "no address"),
        ("corbaloc:rir:/NameService", "neither miop: nor iiop:"),
        ("corbaloc:miop:1.0@1.0-TestDomain/225.6.7.8:12345", "is no group"),
        ("corbaloc:miop:1.0@TestDomain-1/225.6.7.8:12345", "is no group"),
        ("corbaloc:miop:1.0@1.0-Test-Domain-1/225.6.7.8:12345", "is no group"),
        ("corbaloc:miop:1.0@1.0-TestDomain-1/225.6.7.8", "is no group"),
        ("corbaloc:miop:1.0@1.0-TestDomain-1-/225.6.7.8:1", "is no group"),
        ("corbaloc:miop:2.0@1.0-TestDomain-1/225.6.7.8:1", "MIOP 2.0"),
        ("corbaloc:miop:1.0@2.0-TestDomain-1/225.6.7.8:1", "component 2.0"),
        ("corbaloc:miop:1.0@1.0-TestDomain-18446744073709551616/225.6.7.8:1", "64 bits"),
        ("corbaloc:miop:1.0@1.0-TestDomain-1-4294967296/225.6.7.8:1", "64 bits, its version 32"),
        ("corbaloc:miop:1.0@1.0-TestDomain-1/225.6.7.8:0", "port 0"),
        ("corbaloc:miop:1.0@1.0-TestDomain-1/225.6.7.8:65536", "port 65536"),
        ("corbaloc:miop:1.0@1.0-TestDomain-1/127.0.0.1:1", "no multicast address"),
        ("corbaloc:miop:1.0@1.0-TestDomain-1/[::1]:1", "no multicast address"),
        ("corbaloc:miop:1.0@1.0-TestDomain-1/somewhere:1", "no IP address"),
        ("corbaloc:miop:1.0@1.0-TestDomain-1/[225.6.7.8]:1", "no IP address"),
        ("corbaloc:miop:1.0@1.0-TestDomain-1/225.6.7.8:1;iiop:localhost:1", "key of the object"),
        ("corbaloc:iiop:localhost:1", "key of the object"),
        ("corbaloc:iiop:1.3@localhost:1/key", "IIOP 1.3"),
        ("corbaloc:iiop::1/key", "no address"),
        ("corbaloc:iiop:localhost:x/key", "no address"),
        (URL + ",iiop:1.0@localhost:1/key", "1.1 or newer"),
    ],
)
def test_urls_that_say_what_is_wrong_with_them(url: str, why: str) -> None:
    with pytest.raises(UsageError, match=why.replace(".", r"\.")):
        read(url)


@pytest.mark.parametrize("domain", ["", "a-b", "a/b", "a,b", "a;b"])
def test_domains_that_no_url_can_hold(domain: str) -> None:
    reference = group_reference("", GroupIdentity(domain, 1), "225.6.7.8", 1)
    assert next(read(to_ior(reference)).multicast()).group == GroupIdentity(domain, 1)
    with pytest.raises(UsageError, match="domain"):
        to_corbaloc(reference)


# What is no reference


@pytest.mark.parametrize(
    "text, why",
    [
        ("", "neither IOR: nor corbaloc:"),
        ("hello", "neither IOR: nor corbaloc:"),
        ("IOR:", "hexadecimal"),
        ("IOR:0", "one is missing"),
        ("IOR:0g", "hexadecimal"),
        ("IOR:00 0", "hexadecimal"),
        ("IOR:02", "damaged"),
        ("IOR:00", "damaged"),
    ],
)
def test_text_that_is_no_reference(text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        read(text)


def test_every_truncation_and_every_changed_octet_of_a_reference_is_read_or_refused() -> None:
    text = VECTORS["V8"][0]
    octets = bytes.fromhex(text[4:])
    for size in range(len(octets)):
        with pytest.raises(UsageError):
            read("IOR:" + octets[:size].hex())
    for at in range(len(octets)):
        for octet in (0, 1, 2, 39, 40, 127, 128, 255):
            other = octets[:at] + bytes((octet,)) + octets[at + 1 :]
            try:
                reference = read("IOR:" + other.hex())
            except UsageError:
                continue
            assert read(to_ior(reference)) == reference
            for each in (*reference.multicast(), *reference.iiop()):
                with suppress(WireError):
                    assert isinstance(each.group, GroupIdentity | None)


@given(st.text(max_size=60))
def test_any_text(text: str) -> None:
    for each in (text, "IOR:" + text, "corbaloc:" + text, "corbaloc:miop:" + text, "corbaloc:iiop:" + text):
        try:
            reference = read(each)
        except UsageError:
            continue
        assert read(to_ior(reference)) == reference


def test_a_profile_of_another_generation() -> None:
    for tag in (TAG_UIPMC, TAG_INTERNET_IOP):
        reference = Reference("", (Tagged(tag, b"\0\2\0\0"),))
        with pytest.raises(UsageError, match=r"version 2\.0"):
            read(to_ior(reference))
