"""Every page is finished, can be found from the index, and links to what exists."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, PAGES, ROOT, read_page

README_LINES = 135


def test_the_readme_stays_short() -> None:
    assert len(read_page("README.md").splitlines()) <= README_LINES


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_nothing_is_left_to_fill_in(page: Path) -> None:
    assert not re.search(r"^[A-Z]{5,}$|TODO|TBD", page.read_text("utf-8"), re.MULTILINE)


def find_links(page: Path) -> Iterator[tuple[Path, str]]:
    """Every relative link of a page: the file that it leads to, and the heading in it or nothing."""
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8")):
        if not re.match(r"\w+:", target):
            file, _, heading = target.partition("#")
            yield ((page.parent / file).resolve() if file else page), heading


def list_anchors(page: Path) -> set[str]:
    """The anchors that a page's headings get."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    dead = [str(file) for file, _ in find_links(page) if not file.exists()]
    assert dead == []
    lost = [anchor for file, anchor in find_links(page) if anchor and anchor not in list_anchors(file)]
    assert lost == []


def test_every_page_is_linked_from_the_index() -> None:
    index = DOCS / "README.md"
    linked = {file for file, _ in find_links(index)}
    assert [str(page) for page in sorted(DOCS.rglob("*.md")) if page not in linked | {index}] == []
