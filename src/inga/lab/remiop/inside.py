"""Round trips over a narrow path: `SideBySide` starts this program, within a network namespace or not, and passes the trials on
standard input."""

import json
import sys
from dataclasses import asdict
from typing import Any

from inga.lab.remiop.live import NetworkPath, measure_here
from inga.lab.remiop.trips import Setup
from inga.model.errors import IngaError


def main() -> None:
    order = json.load(sys.stdin)
    path = NetworkPath(**{**order["path"], "prefix": ()})
    trials = [Setup(**each) for each in order["trials"]]

    def tell(content: dict[str, Any]) -> None:
        print(json.dumps(content), flush=True)

    try:
        for trip in measure_here(trials, path, order["rounds"], lambda what: tell({"say": what})):
            tell(asdict(trip))
    except IngaError as error:
        tell({"error": str(error)})
    except (KeyboardInterrupt, BrokenPipeError):
        sys.exit(130)  # the process that started us has interrupted us, or has ended


if __name__ == "__main__":
    main()
