"""The rungs as orders by name. `inga.recipes.find` imports this module when one of them is requested."""

from inga.lab.rungs import BENT, RUNGS
from inga.recipes import REPAIRED, causal, compose, find, plain

for rung in RUNGS:
    compose(rung.name, plain(rung), REPAIRED, guarantees=rung.claims, level=rung.level, unsafe=True)

VECTOR = find("vector")
for bent in BENT:
    compose(bent.name, causal(bent), REPAIRED, guarantees=VECTOR.guarantees, level=VECTOR.level, unsafe=True)
