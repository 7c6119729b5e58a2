"""The browser of the core's tests of pages."""

from core_tests import loaded

pages = loaded("nas/pages/conftest.py")
driver, page = pages.driver, pages.page
