"""Made-up store profiles are those of the cost model's tests."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "model"))
