"""`python -m tasks.export`: the process in which one model is exported, or with `--serve` the export server."""

import sys

if sys.argv[1:] == ["--serve"]:
    from tasks.export.server import Server

    Server().serve()
else:
    from tasks.export.child import main

    sys.exit(main())
