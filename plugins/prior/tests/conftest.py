"""What the tests share is imported from beside them; problems are those of the core's tests of strategies."""

import sys
from pathlib import Path

from core_tests import loaded

sys.path.insert(0, str(Path(__file__).parent))
bare = loaded("nas/strategies/conftest.py").bare
