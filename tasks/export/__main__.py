"""`python -m tasks.export`: the process in which one model is exported."""

import sys

from tasks.export.export import main

sys.exit(main())
