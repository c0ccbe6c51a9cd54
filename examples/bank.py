"""A bank that keeps its money while its processes are killed.

    python examples/bank.py [--kills 200] [--order object|total]

Five tellers, a process each, have copies of all accounts and move money between them as fast as they can. Again and
again one of them, the leader of the group among others, is killed (SIGKILL: it can say nothing to anybody) and started
again under its name. It comes back as a new member and gets the accounts from the others, who have gone on meanwhile.

At the end the money is counted at every teller. Each transfer leaves a mark of its own, a large random number, at the
account that it took from and at the one that it gave to. So if an account has the same marks at every teller, all of
them have made the same transfers; and if the marks of all accounts cancel out, none was made by half.
"""

import argparse
import asyncio
import json
import logging
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import inga
from inga.obg import Abort, ObjectClass, method

NAMES = ("alice", "bob", "cathy", "dave", "erin")
VIA = os.environ.get("INGA_VIA", "udp://239.7.7.7:7400?interface=lo")

DETECT = 0.4
"""Seconds of silence after which a teller is taken for dead."""

CLERKS = 3
"""Transfers that a teller has under way at a time."""

AT_WORK_MIN = 3
"""Tellers that are left alone: a majority goes on."""

PAUSE_MAX = 1.0
"""Seconds between a kill and the return, at most."""

PATIENCE = 30.0
"""Seconds after which a teller, or a transfer, is taken to hang."""

START = 1000
"""What is in each account."""


class Account(ObjectClass):
    """Its balance, the number of its transfers, and their marks."""

    def initial(self) -> tuple[int, int, int]:
        return START, 0, 0

    @method(compatible=("give",))
    async def give(self, ctx: Any, amount: int, mark: int) -> None:
        ctx.effect(lambda s: (s[0] + amount, s[1] + 1, s[2] ^ mark))

    @method
    async def take(self, ctx: Any, amount: int, mark: int) -> None:
        if self.state[0] < amount:
            raise Abort("too little money")
        ctx.effect(lambda s: (s[0] - amount, s[1] + 1, s[2] ^ mark))


ACCOUNTS = {f"account{number}": Account for number in range(8)}

# A teller


async def work(name: str, order: str) -> None:
    """Make transfers until told to stop; say what is in the accounts whenever asked."""
    joining = inga.join(
        "bank", name, members=NAMES, via=VIA, order=order, objects=ACCOUNTS, detect=DETECT, rejoin=True
    )
    async with joining as bank, asyncio.TaskGroup() as tasks:
        watching = tasks.create_task(watch(bank))
        await bank.ready(at_least=AT_WORK_MIN)
        closing = asyncio.Event()
        clerks = [tasks.create_task(clerk(bank, closing)) for _ in range(CLERKS)]
        while line := await asyncio.to_thread(sys.stdin.readline):
            if line == "stop\n":
                closing.set()
                await asyncio.wait(clerks)
            say("accounts", {account: bank.state(account) for account in ACCOUNTS})
        watching.cancel()
        closing.set()


async def clerk(bank: inga.Group, closing: asyncio.Event) -> None:
    """One transfer after another."""
    while not closing.is_set():
        try:
            async with asyncio.timeout(PATIENCE):
                await bank.transact(transfer())
        except TimeoutError:
            say("hangs", "a transfer")
        except inga.IngaError as error:
            say("failed", str(error))
        else:
            say("made")


def transfer() -> Any:
    """A transaction: it withdraws here and deposits there, or does nothing at all."""
    source, target = random.sample(list(ACCOUNTS), 2)
    amount, mark = random.randint(1, 100), random.getrandbits(60)

    async def body(ctx: Any) -> None:
        await ctx.call(source, "take", amount, mark)
        await ctx.call(target, "give", amount, mark)

    return body


async def watch(bank: inga.Group) -> None:
    """Say who is here."""
    async for item in bank.items():
        if isinstance(item, inga.View):
            say("view", [item.number, *item.names])


def say(kind: str, content: Any = None) -> None:
    print(json.dumps([kind, content]), flush=True)


# The one who kills them


class Broken(Exception):
    """The bank does not keep what it promises."""


class Teller:
    """A process of the bank, from outside."""

    process: asyncio.subprocess.Process
    listening: asyncio.Task[None]

    def __init__(self, name: str, order: str) -> None:
        self.name = name
        self.command = (sys.executable, __file__, "--order", order, "--teller", name)
        self.made = 0  # transfers
        self.failed: Counter[str] = Counter()  # others, by reason
        self.is_working = False  # it has made one since it was started
        self.view: list[Any] = [0]  # its number, and who is in it
        self.accounts: dict[str, list[int]] = {}

    async def start(self) -> None:
        pipe = asyncio.subprocess.PIPE
        self.is_working, self.view = False, [0]
        self.process = await asyncio.create_subprocess_exec(
            *self.command, stdin=pipe, stdout=pipe, process_group=0
        )
        self.listening = asyncio.create_task(self.listen(self.process.stdout))

    async def listen(self, lines: Any) -> None:
        while (line := await lines.readline()).endswith(b"\n"):
            match json.loads(line):
                case "made", _:
                    self.made, self.is_working = self.made + 1, True
                case "failed", why:
                    self.failed[why] += 1
                case "view", view:
                    self.view = view
                case "accounts", accounts:
                    self.accounts = accounts
                case "hangs", what:
                    raise Broken(f"{what} of {self.name} did not end within {PATIENCE:g} s")

    async def kill(self) -> None:
        self.process.kill()
        await self.process.wait()
        await self.listening
        self.is_working = False

    async def ask(self, word: str) -> dict[str, list[int]]:
        """What is in its accounts."""
        assert self.process.stdin is not None
        self.accounts = {}
        self.process.stdin.write(word.encode() + b"\n")
        await self.until(lambda: bool(self.accounts), "answer")
        return self.accounts

    async def until(self, is_so: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not is_so():
            if self.listening.done():
                self.listening.result()
                raise Broken(f"{self.name} has ended by itself, with {await self.process.wait()}")
            if time.monotonic() > deadline:
                raise Broken(f"{self.name} did not {what} within {PATIENCE:g} s")
            await asyncio.sleep(0.01)

    async def end(self) -> None:
        if not hasattr(self, "process"):
            return
        assert self.process.stdin is not None
        self.process.stdin.close()
        with suppress(TimeoutError):
            await asyncio.wait_for(self.process.wait(), 5.0)
        if self.process.returncode is None:
            self.process.kill()
            await self.process.wait()
        self.listening.cancel()


async def rob(kills: int, order: str) -> None:
    """Start the tellers, kill them at random, count the money."""
    tellers = [Teller(name, order) for name in NAMES]
    try:
        for each in tellers:
            await each.start()
        await at_work(tellers, len(NAMES))
        began, leaders = time.monotonic(), 0
        for number in range(1, kills + 1):
            await at_work(tellers, AT_WORK_MIN + 1)
            view = max((each.view for each in tellers if each.is_working), key=lambda view: int(view[0]))
            victim = random.choice([each for each in tellers if each.is_working])
            is_leader = victim.name == view[1]
            leaders += is_leader
            made = sum(each.made for each in tellers)
            whom = f"{victim.name}{', who leads' * is_leader}"
            print(f"kill {number} of {kills}: {whom}; view {view[0]}, {made:,} transfers", flush=True)
            await victim.kill()
            await asyncio.sleep(random.uniform(0, PAUSE_MAX))
            await victim.start()
        await at_work(tellers, len(NAMES))
        seconds = time.monotonic() - began
        made = sum(each.made for each in tellers)
        print(f"{kills} kills in {seconds:.0f} s, {leaders} of leaders; {made:,} transfers")
        for why, times in sum((each.failed for each in tellers), Counter()).most_common():
            print(f"  {times:,} came to nothing: {why}")
        await count(tellers)
    except Broken:
        for each in tellers:
            number, *names = each.view
            print(f"  {each.name}: in view {number} with {', '.join(names)}; accounts {each.accounts}")
        raise
    finally:
        await asyncio.gather(*(each.end() for each in tellers))


async def at_work(tellers: list[Teller], wanted: int) -> None:
    """Wait until so many make transfers; whoever does not hangs."""
    for each in tellers:
        if sum(each.is_working for each in tellers) < wanted:
            enough = lambda each=each: each.is_working or sum(t.is_working for t in tellers) >= wanted  # noqa: E731
            await each.until(enough, "begin to work")


async def count(tellers: list[Teller]) -> None:
    """The verdict: all tellers have the same, nothing is lost, and nothing is done by half."""
    await asyncio.gather(*(each.ask("stop") for each in tellers))
    deadline = time.monotonic() + PATIENCE
    while True:  # what a transfer had done that came to nothing may still be on its way back
        told = await asyncio.gather(*(each.ask("show") for each in tellers))
        wrong = fault(told, sum(each.made for each in tellers))
        if wrong is None:
            break
        if time.monotonic() > deadline:
            raise Broken(wrong)
        await asyncio.sleep(0.1)
    print(f"{len(told)} tellers agree on {len(ACCOUNTS)} accounts, with {START * len(ACCOUNTS):,} in all")


def fault(told: list[dict[str, list[int]]], made: int) -> str | None:
    """What is wrong with what the tellers have in their accounts."""
    for name, accounts in zip(NAMES, told, strict=True):
        balances, transfers, marks = zip(*accounts.values(), strict=True)
        odd = 0
        for mark in marks:
            odd ^= mark
        if sum(balances) != START * len(ACCOUNTS):
            return f"{name} has {sum(balances):,} instead of {START * len(ACCOUNTS):,}"
        if odd:
            return f"{name} has transfers that were made by half"
        if sum(transfers) < 2 * made:
            return f"{name} has {sum(transfers) // 2:,} transfers, but {made:,} were confirmed"
        for account in ACCOUNTS:
            if accounts[account] != told[0][account]:
                return f"{account} is {accounts[account]} at {name} and {told[0][account]} at {NAMES[0]}"
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--kills", type=int, default=20, help="tellers that are killed (default 20)")
    parser.add_argument("--order", choices=("object", "total"), default="object")
    parser.add_argument("--teller", choices=NAMES, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.teller:
        logging.getLogger("inga").setLevel(logging.ERROR)  # who has failed is told by the one who kills them
        inga.run(work(chosen.teller, chosen.order))
        return 0
    try:
        asyncio.run(rob(chosen.kills, chosen.order))
    except KeyboardInterrupt:
        print("given up")
        return 130
    except Broken as error:
        print(f"BROKEN: {error}")
        return 1
    print("kept")
    return 0


if __name__ == "__main__":
    sys.exit(main())
