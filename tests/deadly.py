"""Jobs that kill their process; in a module of its own, which a spawned process can import."""

import os
import signal
from pathlib import Path

from rumi.geotiff.batch import _Job


class DeadlyJob(_Job):
    """Ends its process the hard way where the source is called so."""

    def run(self):
        if "kill" in self.src:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().run()


class UnluckyJob(_Job):
    """Ends its process the first time it runs."""

    def run(self):
        marker = Path(self.src).with_suffix(".killed")
        if "unlucky" in self.src and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().run()
