"""What each agent follows when it continues a session, so that a cut leaves that whole.

An agent's description says it (`Source.chain`); the daemon stores it in the index for the client,
which knows no agent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from sess_common.errors import Exit, SessError

if TYPE_CHECKING:
    import apsw

CHAINS = "chains"  # the fact that has them
WHOLE = "(.*)"
BACK, ONWARD = "back", "onward"
PROMPTS, RECORDS = "prompts", "records"


@dataclass(frozen=True, slots=True)
class Name:
    """A member by which records of a kind name another one."""

    kind: str
    member: str  # dots lead into objects: `payload.target`
    to: str = BACK  # what is named instead of a record that goes: the one before or after it
    or_goes: bool = False  # where nothing is left to name, this record goes, too


@dataclass(frozen=True, slots=True)
class Count:
    """A member by which records of a kind count the prompts or records before them."""

    kind: str
    member: str
    of: str = PROMPTS


@dataclass(frozen=True, slots=True)
class Pack:
    """A member of records that an agent goes on from instead of from what is before them."""

    kind: str
    member: str


@dataclass(frozen=True, slots=True)
class Chain:
    """How the records of one agent hang together."""

    id: str | None = None  # the member with a record's id; None: nothing names records
    parent: str | None = None  # the member with the id of the one before; None: their order counts
    # What of an id in the index is the id in the file: the first group, else all of it.
    own: str = WHOLE
    from_last: bool = False  # the last record of the file is where the agent goes on
    heads: tuple[str, ...] = ()  # kinds of records without which it loads nothing
    names: tuple[Name, ...] = ()
    counts: tuple[Count, ...] = ()
    packs: tuple[Pack, ...] = ()
    beside: str | None = None  # a file in the same folder that it reads instead

    def own_id(self, native_id: str | None) -> str | None:
        """The id in the file of what has this one in the index."""
        if native_id is None or self.id is None:
            return None
        if self.own == WHOLE:  # of most agents, and records are many
            return native_id
        found = re.fullmatch(self.own, native_id, re.DOTALL)
        return found[1] if found else native_id


def as_fact(chains: Mapping[str, Chain]) -> str:
    """The chains of agents, as the index has them."""
    return json.dumps({agent: asdict(chain) for agent, chain in sorted(chains.items())})


def of_agent(db: apsw.Connection, agent: str) -> Chain:
    """How the records of an agent hang together."""
    stored = db.execute("SELECT value FROM facts WHERE name = ?", (CHAINS,)).get
    if stored is None:
        raise SessError(
            "the index does not say yet what agents follow from record to record",
            hint="run `sessiond sync` (or `sessiond restart`)",
            code=Exit.INDEX_UNUSABLE,
        )
    facts = json.loads(str(stored)).get(agent)
    if facts is None:
        return Chain()
    names = tuple(Name(**name) for name in facts.pop("names"))
    counts = tuple(Count(**count) for count in facts.pop("counts"))
    packs = tuple(Pack(**pack) for pack in facts.pop("packs"))
    facts["heads"] = tuple(facts["heads"])
    return Chain(**facts, names=names, counts=counts, packs=packs)
