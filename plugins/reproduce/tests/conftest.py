"""The browser of the core's tests of pages."""

import importlib.util
from pathlib import Path

PAGES = Path(__file__).resolve().parents[3] / "tests" / "nas" / "pages" / "conftest.py"
spec = importlib.util.spec_from_file_location("core_page_fixtures", PAGES)
assert spec is not None
assert spec.loader is not None
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
driver, page = module.driver, module.page
