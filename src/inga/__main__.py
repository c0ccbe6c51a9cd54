"""`python -m inga` is `inga`, and so is this file for `spark-submit`."""

import sys

if not __package__:
    # Run as a file, the folder of the package comes first on the path, and `trace` would no longer be Python's.
    del sys.path[0]

from inga.cli.main import main

raise SystemExit(main())
