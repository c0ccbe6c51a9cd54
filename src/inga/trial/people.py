"""Names for the members of a trial."""

PEOPLE = (
    "alice bob cathy dave erin frank grace heidi ivan judy mallory niaj olivia peggy rupert sybil".split()
)


def member_names(members: int) -> tuple[str, ...]:
    """Names for so many members: those of `PEOPLE` as far as they go, then `member17` and so on."""
    return tuple(PEOPLE[i] if i < len(PEOPLE) else f"member{i + 1}" for i in range(members))
