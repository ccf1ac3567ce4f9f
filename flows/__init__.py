import os
from pathlib import Path

from flows.server.settings import set_up_log

set_up_log()  # a worker starts a process for each flow run
if os.environ.get("ETFARM_LOG") or Path("etfarm.yaml").exists():
    from flows.json_log import set_up_json_log

    set_up_json_log()
